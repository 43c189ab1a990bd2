// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/artelhq/artel"
)

// A Caller calls services through the provider of their dialect. It adds retries
// of transient failures, idle timeouts and each service's limit on concurrent
// calls. It is safe for concurrent use and starts no goroutine that outlives a
// call.
type Caller struct {
	providers map[Dialect]Provider
	opts      CallerOptions
	limiters  *limiters
}

// limiters hold the limits on concurrent calls.
type limiters struct {
	mu        sync.Mutex
	byService map[artel.ServiceID]limiter
}

type limiter struct {
	limit int
	sem   *semaphore.Weighted
}

// CallerOptions change how a [Caller] calls.
type CallerOptions struct {
	Attempts    int           // attempts per call; 0: 3
	IdleTimeout time.Duration // longest wait for the next delta, unless the service has a timeout; 0: 5 minutes
	Backoff     time.Duration // wait before the second attempt; doubles with each attempt, less up to half at random; 0: 500 ms
	MaxWait     time.Duration // longest wait before an attempt; if the API asks for more, the call fails; 0: 30 s
	Log         *slog.Logger  // receives failed attempts that are retried; nil: no log

	// OnAttempt is called at the beginning of each attempt of a call, from 1. It
	// returns the context of the attempt and a function that is called once at its
	// end, also if the caller breaks the loop; the Finish is zero if there is
	// none. nil: not called.
	OnAttempt func(ctx context.Context, s Service, attempt int) (context.Context, func(Finish, error))

	// Charge is called before each attempt, also of [Caller.Transcribe]; its error
	// ends the call. nil: all are admitted.
	Charge func(context.Context, PaidCall) (Charge, error)
}

// NewCaller returns a caller for the dialects of providers.
func NewCaller(providers map[Dialect]Provider, o CallerOptions) *Caller {
	return &Caller{providers: maps.Clone(providers), opts: o.orDefault(), limiters: &limiters{byService: map[artel.ServiceID]limiter{}}}
}

// WithOptions returns a caller with other options that shares the limits on
// concurrent calls with c.
func (c *Caller) WithOptions(o CallerOptions) *Caller {
	return &Caller{providers: c.providers, opts: o.orDefault(), limiters: c.limiters}
}

func (o CallerOptions) orDefault() CallerOptions {
	if o.Attempts <= 0 {
		o.Attempts = 3
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = 5 * time.Minute
	}
	if o.Backoff <= 0 {
		o.Backoff = 500 * time.Millisecond
	}
	if o.MaxWait <= 0 {
		o.MaxWait = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Dialects returns the supported dialects, sorted.
func (c *Caller) Dialects() []Dialect { return slices.Sorted(maps.Keys(c.providers)) }

// Call calls the model of r.Service with the contract of [Provider]: deltas, then
// a [Finish] or one [*artel.Error]; the request is sent when the sequence is
// ranged over; breaking the loop cancels. In addition:
//
//   - A transient failure before the first delta is retried, at the time that
//     the API asks for. After the first delta it is final, because the caller
//     has seen part of the answer, unless r.Whole is set.
//   - Exceeding an idle timeout is a transient failure of kind Unavailable.
//   - An answer with more than [MaxAnswer] bytes of text and reasoning is
//     cancelled with kind TooLarge.
//   - A call waits until the service has fewer than MaxConcurrent calls, or ctx
//     ends. Waits between attempts do not count as calls.
//   - Fields that the service is known to refuse are left out; see [Drop].
//   - A sequence that ends without a Finish is a transient failure.
//
// An unknown dialect and a service for routing only are of kind Unsupported.
func (c *Caller) Call(ctx context.Context, r *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		p, err := c.provider(r.Service)
		if err != nil {
			yield(nil, err)
			return
		}
		if r, err = r.withoutRefused(); err != nil {
			yield(nil, err)
			return
		}
		for attempt := 1; ; attempt++ {
			said, err := c.watched(ctx, p, r, attempt, yield)
			if err == nil {
				return
			}
			said = said && !r.Whole
			wait, again := c.next(attempt, err)
			if said || !again || ctx.Err() != nil {
				yield(nil, finalError(ctx, r.Service.ID, attempt, err))
				return
			}
			c.opts.Log.WarnContext(ctx, "model call failed, trying again", "service", r.Service.ID, "attempt", attempt, "wait", wait, "error", err)
			if r.OnRetry != nil {
				if told := r.OnRetry(Retry{attempt + 1, c.opts.Attempts, wait, err}); told != nil {
					yield(nil, told)
					return
				}
			}
			if err := sleep(ctx, wait); err != nil {
				yield(nil, finalError(ctx, r.Service.ID, attempt, err))
				return
			}
		}
	}
}

// A TextAnswer is what a call of [Caller.CallText] has received.
type TextAnswer struct {
	Text    string
	End     Finish // zero: the answer broke off
	Calls   int    // tool calls, which are ignored
	Started bool   // a part of the answer was received, so that it is paid for
}

// CallText makes one call like Call and returns the text and the end of the
// answer. Everything else in the answer is only counted. With an error, it
// returns what was received before.
func (c *Caller) CallText(ctx context.Context, r *Request) (a TextAnswer, err error) {
	var b strings.Builder
	for delta, err := range c.Call(ctx, r) {
		if err != nil {
			a.Text = b.String()
			return a, err
		}
		a.Started = true
		switch d := delta.(type) {
		case TextDelta:
			b.WriteString(string(d))
		case CallDelta:
			a.Calls++
		case Finish:
			a.End = d
		}
	}
	a.Text = b.String()
	return a, nil
}

// A Retry announces another attempt of a call.
type Retry struct {
	Attempt int           // from 2
	Of      int           // the most attempts
	Wait    time.Duration // before the attempt
	Failed  error         // the error of the last attempt
}

// Body returns the request body of a call of r without sending it. Errors are
// those of Call; a dialect whose provider is no [Writer] is of kind Unsupported.
func (c *Caller) Body(r *Request) (Body, error) {
	p, err := c.provider(r.Service)
	if err != nil {
		return nil, err
	}
	w, ok := p.(Writer)
	if !ok {
		return nil, artel.Errorf(artel.Unsupported, "model.Body", string(r.Service.ID), "requests of the dialect %q have no body", r.Service.Dialect)
	}
	if r, err = r.withoutRefused(); err != nil {
		return nil, err
	}
	return w.Write(r)
}

func (c *Caller) provider(s Service) (Provider, error) {
	p, ok := c.providers[s.Dialect]
	if !ok {
		return nil, artel.Errorf(artel.Unsupported, "model.Call", string(s.ID),
			"the dialect %q is not spoken here; spoken: %q", s.Dialect, c.Dialects())
	}
	if !s.Callable() {
		return nil, artel.Errorf(artel.Unsupported, "model.Call", string(s.ID),
			"this service has no base URL or no model and serves for routing only")
	}
	return p, nil
}

// watched is attempt, observed by the options' OnAttempt.
func (c *Caller) watched(ctx context.Context, p Provider, r *Request, number int, yield func(Delta, error) bool) (said bool, err error) {
	if c.opts.OnAttempt == nil {
		return c.attempt(ctx, p, r, yield)
	}
	ctx, end := c.opts.OnAttempt(ctx, r.Service, number)
	var last Finish
	defer func() { end(last, err) }()
	return c.attempt(ctx, p, r, func(d Delta, err error) bool {
		if f, ok := d.(Finish); ok {
			last = f
		}
		return yield(d, err)
	})
}

// attempt makes one call. said reports whether a delta was yielded. The error is
// nil if the answer is complete or the loop was broken.
func (c *Caller) attempt(ctx context.Context, p Provider, r *Request, yield func(Delta, error) bool) (said bool, err error) {
	if r.Whole {
		var held []Delta
		hold := *r
		hold.Whole = false
		said, err = c.attempt(ctx, p, &hold, func(d Delta, _ error) bool {
			held = append(held, d)
			return true
		})
		if err != nil {
			return said, err
		}
		for _, d := range held {
			if !yield(d, nil) {
				break
			}
		}
		return true, nil
	}
	leave, err := c.enter(ctx, r.Service)
	if err != nil {
		return false, err
	}
	defer leave()
	if c.opts.Charge != nil {
		charge, err := c.opts.Charge(ctx, PaidCall{Service: &r.Service, Request: r, Output: int64(r.MaxOutput), Least: int64(r.Reasoning.Budget + 1)})
		if err != nil {
			return false, err
		}
		if charge.MaxOutput > 0 {
			limited := *r
			limited.MaxOutput, r = charge.MaxOutput, &limited
		}
		var end func()
		yield, end = charged(charge, yield)
		defer end()
	}

	if r.OnTry != nil {
		r.OnTry()
	}
	silence := c.IdleTimeout(r.Service)
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	first := c.FirstTimeout(r.Service)
	watch := time.AfterFunc(first, func() { cancel(errIdle) })
	defer watch.Stop()
	// Bytes without a delta are an answer too: a ping, reasoning that is not shown, or
	// the beginning of a call.
	active := false
	watched := *r
	watched.OnActivity = func() {
		active = true
		watch.Reset(silence)
	}

	written := 0
	for d, err := range p.Generate(call, &watched) {
		watch.Stop() // the time of the loop body does not count
		if err != nil {
			if context.Cause(call) == errIdle && ctx.Err() == nil {
				return said, idleError(r.Service.ID, first, silence, active || said)
			}
			return said, err
		}
		said = true
		if f, ok := d.(Finish); ok {
			f.Usage = plausible(f.Usage)
			d = f
		}
		if written += length(d); written > MaxAnswer {
			return said, artel.Errorf(artel.TooLarge, "model.Call", string(r.Service.ID), "the answer is longer than %d MB; the call was broken off", MaxAnswer>>20)
		}
		_, end := d.(Finish)
		if !yield(d, nil) || end {
			return said, nil
		}
		watch.Reset(silence)
	}
	if context.Cause(call) == errIdle && ctx.Err() == nil {
		return said, idleError(r.Service.ID, first, silence, active || said)
	}
	return said, unavailable(r.Service.ID, "the answer broke off before its end")
}

// MaxAnswer is the longest text and reasoning of one answer, in bytes.
const MaxAnswer = 8 << 20

func length(d Delta) int {
	switch d := d.(type) {
	case TextDelta:
		return len(d)
	case ReasoningDelta:
		return len(d)
	case ReasoningDone:
		return len(d.Opaque)
	}
	return 0 // tool calls and their pieces are limited by the providers
}

// enter waits until another call of s is allowed. A changed limit applies to
// later calls.
func (c *Caller) enter(ctx context.Context, s Service) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.MaxConcurrent <= 0 {
		return func() {}, nil
	}
	c.limiters.mu.Lock()
	g, ok := c.limiters.byService[s.ID]
	if !ok || g.limit != s.MaxConcurrent {
		g = limiter{s.MaxConcurrent, semaphore.NewWeighted(int64(s.MaxConcurrent))}
		c.limiters.byService[s.ID] = g
	}
	c.limiters.mu.Unlock()
	if err := g.sem.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { g.sem.Release(1) }, nil
}

// next reports whether err is to be retried, and after which wait.
func (c *Caller) next(attempt int, err error) (wait time.Duration, again bool) {
	ce, ok := errors.AsType[*CallError](err)
	if !ok || !ce.Transient || attempt >= c.opts.Attempts || ce.RetryAfter > c.opts.MaxWait {
		return 0, false
	}
	// The shift is bounded to avoid an overflow.
	wait = min(c.opts.Backoff<<min(attempt-1, 16), c.opts.MaxWait)
	wait -= time.Duration(rand.Int64N(int64(wait)/2 + 1))
	return max(wait, ce.RetryAfter), true
}

var errIdle = errors.New("silence")

func idleError(id artel.ServiceID, first, between time.Duration, said bool) error {
	if said {
		return unavailable(id, fmt.Sprintf("the answer stalled for %v", between))
	}
	return unavailable(id, fmt.Sprintf("no answer began within %v", first))
}

func unavailable(id artel.ServiceID, message string) error {
	return &artel.Error{
		Op: "model.Call", Subject: string(id), Kind: artel.Unavailable,
		Err: &CallError{Service: id, Message: message, Transient: true},
	}
}

// finalError returns err as an [*artel.Error], of kind Canceled if ctx ended, and
// adds the number of attempts.
func finalError(ctx context.Context, id artel.ServiceID, attempts int, err error) error {
	if ctx.Err() != nil {
		return artel.Errorf(artel.Canceled, "model.Call", string(id), "the call was stopped: %w", context.Cause(ctx))
	}
	if attempts > 1 {
		return &artel.Error{
			Op: "model.Call", Kind: artel.KindOf(err), Code: codeOf(err),
			Err: fmt.Errorf("%w (after %d attempts)", err, attempts),
		}
	}
	if _, ok := errors.AsType[*artel.Error](err); ok {
		return err
	}
	return &artel.Error{Op: "model.Call", Subject: string(id), Kind: artel.KindOf(err), Err: err}
}

func codeOf(err error) string {
	if code := artel.CodeOf(err); code != string(artel.KindOf(err)) {
		return code
	}
	return ""
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// FirstTimeout returns the longest wait for the first byte of an answer of s.
func (c *Caller) FirstTimeout(s Service) time.Duration {
	if s.FirstTimeout > 0 {
		return s.FirstTimeout
	}
	return c.IdleTimeout(s)
}

// IdleTimeout returns the longest silence of s while it answers.
func (c *Caller) IdleTimeout(s Service) time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return c.opts.IdleTimeout
}

// Try runs do with the concurrency limit, retries and back-off of [Caller.Call],
// for callers that handle the HTTP exchange themselves. After success the call
// counts against the limit until leave is called. attempts is how often do ran;
// the error is that of its last run, or of kind Canceled if ctx ended.
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
