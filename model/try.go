// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"time"

	"github.com/artelhq/artel"
)

// FirstTimeout is the longest wait for the beginning of an answer of s.
func (c *Caller) FirstTimeout(s Service) time.Duration {
	if s.FirstTimeout > 0 {
		return s.FirstTimeout
	}
	return c.IdleTimeout(s)
}

// IdleTimeout is the longest that a service may say nothing.
func (c *Caller) IdleTimeout(s Service) time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return c.opts.IdleTimeout
}

// Try is for those who send a request and read its answer themselves: what
// [Caller.Call] does before the first delta. It waits for a place among the
// service's calls, runs do, and runs it again after a transient failure, at the
// time that the API asks for. Where do has succeeded, the place is kept until
// leave is called. attempts is how often do ran; the error is that of its last
// run, or of kind Canceled where ctx ended.
func (c *Caller) Try(ctx context.Context, s Service, do func() error) (leave func(), attempts int, err error) {
	for {
		leave, err = c.enter(ctx, s)
		if err != nil {
			return nil, attempts, canceled(ctx, s.ID)
		}
		attempts++
		if err = do(); err == nil {
			return leave, attempts, nil
		}
		leave()
		wait, again := c.next(attempts, err)
		switch {
		case ctx.Err() != nil:
			return nil, attempts, canceled(ctx, s.ID)
		case !again:
			return nil, attempts, err
		}
		c.opts.Log.WarnContext(ctx, "model call failed, trying again", "service", s.ID, "attempt", attempts, "wait", wait, "error", err)
		if sleep(ctx, wait) != nil {
			return nil, attempts, canceled(ctx, s.ID)
		}
	}
}

func canceled(ctx context.Context, id artel.ServiceID) error {
	return artel.Errorf(artel.Canceled, "model.Call", string(id), "the call was stopped: %w", context.Cause(ctx))
}
