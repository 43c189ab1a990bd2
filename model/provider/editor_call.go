// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"io"
	"iter"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A CheckedRequest is a request of a dialect.
type CheckedRequest interface {
	// Check returns an error of the dialect if the request has no neutral form.
	Check() error
	// Neutral returns a new request without a dialect.
	Neutral() *model.Request
}

// An Answerer writes the answer to a request in its dialect.
type Answerer interface {
	// Body returns the answer in one piece.
	Body(deltas iter.Seq2[model.Delta, error]) ([]byte, error)
	// Stream writes the answer as events.
	Stream(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error
}

// DecodeCall implements [RequestReader.Decode]: it decodes a request and checks it.
// fault turns the dialect's errors into faults; answer returns what writes the answer
// under the name of a model, with the reasoning of a service.
func DecodeCall[R CheckedRequest](
	ctx context.Context, r io.Reader, decode func(context.Context, io.Reader, DecodeOptions) (R, error),
	fault func(error) error, answer func(req R, name string, by artel.ServiceID) Answerer,
) (ServerCall, error) {
	req, err := decode(ctx, r, DecodeOptions{})
	if err == nil {
		err = req.Check()
	}
	if err != nil {
		return nil, fault(err)
	}
	return serverCall[R]{req, answer}, nil
}

// serverCall implements [ServerCall].
type serverCall[R CheckedRequest] struct {
	req    R
	answer func(req R, name string, by artel.ServiceID) Answerer
}

func (c serverCall[R]) Neutral() *model.Request { return c.req.Neutral() }

// MaxCalls implements [CallLimiter] for requests that do.
func (c serverCall[R]) MaxCalls() (n int, field string) {
	if l, ok := any(c.req).(CallLimiter); ok {
		return l.MaxCalls()
	}
	return 0, ""
}

func (c serverCall[R]) Body(name string, by artel.ServiceID, deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
	return c.answer(c.req, name, by).Body(deltas)
}

func (c serverCall[R]) Stream(name string, by artel.ServiceID, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	return c.answer(c.req, name, by).Stream(w, flush, deltas)
}

// MarshalAnswer writes an answer in one piece as JSON, unless it failed.
func MarshalAnswer(answer any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return Marshal(answer)
}
