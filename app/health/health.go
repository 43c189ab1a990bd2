// SPDX-License-Identifier: Apache-2.0

// Package health says whether a server can do its work, and if not, why.
//
// Begin with [New]. A [Checker] runs its checks when it is asked, at most once
// in a few seconds, because anyone may ask and some checks write. What only a
// running part knows, such as a failed recovery, that part sets with
// [Checker.Set]. Causes are fixed sentences; the errors behind them are logged.
package health

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/disk"
	"github.com/artelhq/artel/store"
)

// A Cause is a reason why a server is not ready.
type Cause struct {
	Code   string `json:"code" enum:"database,blobs,disk,recovery,secrets,stopping"`
	Detail string `json:"detail"`
}

// The causes.
var causes = [...]Cause{
	{"database", "the database cannot be written"},
	{"blobs", "the folder or bucket of the blobs cannot be written"},
	{"disk", "the disk of the data directory has less than 100 MB left"},
	{"recovery", "unfinished runs of an earlier process could not be continued"},
	{"secrets", "the keys of stored services cannot be decrypted: restore secret.key in the data directory or ARTEL_SECRET_KEY, or enter the keys again"},
	{"stopping", "the server is shutting down"},
}

// Codes of [Checker.Set].
const (
	Recovery = "recovery"
	Secrets  = "secrets"
	Stopping = "stopping"
)

// A Check finds out whether one thing works.
type Check struct {
	Code string // of the cause
	Run  func(context.Context) error
}

const (
	fresh   = 2 * time.Second // how long results of checks are used again
	longest = 5 * time.Second // of all checks together
	minFree = 100_000_000     // bytes
)

// A Checker knows whether a server is ready. It is safe for concurrent use.
type Checker struct {
	checks []Check
	log    *slog.Logger

	running sync.Mutex // held while the checks run
	checked time.Time
	failed  map[string]error // results of the checks

	mu  sync.Mutex
	set map[string]error
}

// New returns a checker with checks.
func New(log *slog.Logger, checks ...Check) *Checker {
	return &Checker{checks: checks, log: log, failed: map[string]error{}, set: map[string]error{}}
}

// Set sets the cause with a code, or removes it if err is nil.
func (c *Checker) Set(code string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set[code] = err; err == nil {
		delete(c.set, code)
	}
}

// Causes returns why the server is not ready; empty if it is ready.
func (c *Checker) Causes(ctx context.Context) []Cause {
	failed := c.run(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(causes[:]), func(cause Cause) bool { return failed[cause.Code] == nil && c.set[cause.Code] == nil })
}

// run runs the checks, unless their results are fresh.
func (c *Checker) run(ctx context.Context) map[string]error {
	c.running.Lock()
	defer c.running.Unlock()
	if time.Since(c.checked) < fresh {
		return c.failed
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), longest) // the results serve others too
	defer stop()
	before := c.failed
	c.failed = map[string]error{}
	for _, check := range c.checks {
		err := check.Run(ctx)
		if err != nil {
			c.failed[check.Code] = err
		}
		if (err == nil) != (before[check.Code] == nil) {
			c.log.WarnContext(ctx, "the readiness of the server has changed", "check", check.Code, "err", err)
		}
	}
	c.checked = time.Now()
	return c.failed
}

// probe names the row and the bytes that checks write.
const probe = "readiness"

// Database checks that s can be written, by writing the time.
func Database(s store.Store) Check {
	return Check{"database", func(ctx context.Context) error {
		err := s.Update(ctx, probe, func(tx store.Tx) error {
			now := time.Now().UTC()
			value, err := json.Marshal(now)
			if err != nil {
				return err
			}
			revision := 0
			switch last, err := tx.Settings.Get(probe); {
			case err == nil:
				revision = last.Revision
			case artel.KindOf(err) != artel.NotFound:
				return err
			}
			_, err = tx.Settings.Put(store.Setting{Name: probe, Value: value, Revision: revision, UpdatedAt: now})
			return err
		})
		if artel.KindOf(err) == artel.Conflict { // another server has written it at the same time
			return nil
		}
		return err
	}}
}

// Blobs checks that s can be written, by writing a few bytes, which are garbage.
func Blobs(s blob.Store) Check {
	return Check{"blobs", func(ctx context.Context) error {
		_, err := s.Put(ctx, bytes.NewReader([]byte(probe)), 0)
		return err
	}}
}

// Disk checks that the file system of path has space left.
func Disk(path string) Check {
	return Check{"disk", func(context.Context) error {
		free, err := disk.Free(path)
		if err == nil && free < minFree {
			err = artel.Errorf(artel.Unavailable, "health.Disk", path, "%d bytes are left", free)
		}
		return err
	}}
}
