// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A step of a script: something to say after a while, or an error.
type step struct {
	after time.Duration
	say   model.Delta
	err   error
}

func say(d model.Delta) step { return step{say: d} }
func fail(err error) step    { return step{err: err} }
func wait(d time.Duration, s step) step {
	s.after = d
	return s
}

// scripted plays one script per attempt, the last one again and again.
type scripted struct {
	scripts [][]step

	mu       sync.Mutex
	attempts []time.Time
	running  atomic.Int32
	most     int32
	left     atomic.Int32 // attempts that ended because the reader left
}

func (p *scripted) Generate(ctx context.Context, _ *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		p.mu.Lock()
		script := p.scripts[min(len(p.attempts), len(p.scripts)-1)]
		p.attempts = append(p.attempts, time.Now())
		p.most = max(p.most, p.running.Add(1))
		p.mu.Unlock()
		defer p.running.Add(-1)
		for _, s := range script {
			select {
			case <-time.After(s.after):
			case <-ctx.Done():
				yield(nil, &artel.Error{Op: "test", Kind: artel.Canceled, Err: ctx.Err()})
				return
			}
			if s.err != nil {
				yield(nil, s.err)
				return
			}
			if !yield(s.say, nil) {
				p.left.Add(1)
				return
			}
		}
	}
}

var (
	hello = say(model.TextDelta("hello"))
	end   = say(model.Finish{Reason: model.StopEnd})
)

func overloaded(retryAfter time.Duration) error {
	return &artel.Error{
		Op: "test", Subject: "s", Kind: artel.Unavailable, Code: "overloaded",
		Err: &model.CallError{Service: "s", Status: 529, Message: "overloaded", RetryAfter: retryAfter, Transient: true},
	}
}

func refused() error {
	return &artel.Error{Op: "test", Kind: artel.Invalid, Err: &model.CallError{Status: 400, Message: "bad request"}}
}

func request(p model.Dialect) *model.Request {
	s := service("s")
	s.Dialect = p
	return &model.Request{Service: s}
}

// play runs one call to its end and returns what came.
func play(ctx context.Context, c *model.Caller, r *model.Request) (said []string, err error) {
	for d, e := range c.Call(ctx, r) {
		if err != nil {
			panic("the sequence went on after its error")
		}
		if e != nil {
			err = e
			continue
		}
		said = append(said, fmt.Sprint(d))
	}
	return said, err
}

func caller(p model.Provider, o model.CallerOptions) *model.Caller {
	return model.NewCaller(map[model.Dialect]model.Provider{model.OpenAI: p}, o)
}

func TestCall(t *testing.T) {
	finished := fmt.Sprint(end.say)
	for _, tt := range []struct {
		name     string
		scripts  [][]step
		opts     model.CallerOptions
		attempts int
		said     []string
		kind     artel.Kind
		message  string
	}{
		{name: "plain", scripts: [][]step{{hello, end}}, attempts: 1, said: []string{"hello", finished}},
		{name: "nothing after the end", scripts: [][]step{{hello, end, hello}}, attempts: 1, said: []string{"hello", finished}},
		{name: "retry, then success", scripts: [][]step{{fail(overloaded(0))}, {fail(overloaded(0))}, {hello, end}}, attempts: 3, said: []string{"hello", finished}},
		{
			name: "attempts are bounded", scripts: [][]step{{fail(overloaded(0))}}, attempts: 3,
			kind: artel.Unavailable, message: "s: overloaded (after 3 attempts)",
		},
		{
			name: "one attempt", scripts: [][]step{{fail(overloaded(0))}}, opts: model.CallerOptions{Attempts: 1}, attempts: 1,
			kind: artel.Unavailable, message: "s: overloaded",
		},
		{name: "lasting failure", scripts: [][]step{{fail(refused())}, {hello, end}}, attempts: 1, kind: artel.Invalid, message: "bad request"},
		{
			name: "no retry after the first delta", scripts: [][]step{{hello, fail(overloaded(0))}, {hello, end}}, attempts: 1,
			said: []string{"hello"}, kind: artel.Unavailable, message: "overloaded",
		},
		{
			name: "reasoning counts as said", scripts: [][]step{{say(model.ReasoningDelta("hm")), fail(overloaded(0))}}, attempts: 1,
			said: []string{"hm"}, kind: artel.Unavailable,
		},
		{
			name: "asks for too long a wait", scripts: [][]step{{fail(overloaded(time.Minute))}, {hello, end}}, attempts: 1,
			kind: artel.Unavailable, message: "overloaded",
		},
		{
			name: "silence at first", scripts: [][]step{{wait(time.Hour, hello)}}, opts: model.CallerOptions{Attempts: 1, IdleTimeout: time.Minute}, attempts: 1,
			kind: artel.Unavailable, message: "no answer began within 1m0s",
		},
		{
			name: "silence, then success", scripts: [][]step{{wait(time.Hour, hello)}, {hello, end}}, opts: model.CallerOptions{IdleTimeout: time.Minute}, attempts: 2,
			said: []string{"hello", finished},
		},
		{
			name: "stall", scripts: [][]step{{hello, wait(61*time.Second, hello)}}, opts: model.CallerOptions{IdleTimeout: time.Minute}, attempts: 1,
			said: []string{"hello"}, kind: artel.Unavailable, message: "stalled for 1m0s",
		},
		{
			name: "slow but never silent", scripts: [][]step{{wait(59*time.Second, hello), wait(59*time.Second, hello), wait(59*time.Second, end)}},
			opts: model.CallerOptions{IdleTimeout: time.Minute}, attempts: 1, said: []string{"hello", "hello", finished},
		},
		{
			name: "no end", scripts: [][]step{{hello}}, attempts: 1, said: []string{"hello"},
			kind: artel.Unavailable, message: "broke off",
		},
		{name: "nothing at all, then success", scripts: [][]step{{}, {hello, end}}, attempts: 2, said: []string{"hello", finished}},
		{
			name: "an error without a kind", scripts: [][]step{{fail(errors.New("odd"))}}, attempts: 1,
			kind: artel.Internal, message: "s: odd",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &scripted{scripts: tt.scripts}
				said, err := play(t.Context(), caller(p, tt.opts), request(model.OpenAI))
				if diff := cmp.Diff(tt.said, said); diff != "" {
					t.Error(diff)
				}
				if artel.KindOf(err) != tt.kind || err != nil && !strings.Contains(err.Error(), tt.message) {
					t.Errorf("error %v (%s), want %s: %q", err, artel.KindOf(err), tt.kind, tt.message)
				}
				if _, ok := errors.AsType[*artel.Error](err); err != nil && !ok {
					t.Errorf("%T is no *artel.Error", err)
				}
				if len(p.attempts) != tt.attempts {
					t.Errorf("%d attempts, want %d", len(p.attempts), tt.attempts)
				}
			})
		})
	}
}

func TestDetailsSurviveTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := play(t.Context(), caller(&scripted{scripts: [][]step{{fail(overloaded(0))}}}, model.CallerOptions{}), request(model.OpenAI))
		ce, ok := errors.AsType[*model.CallError](err)
		if !ok || ce.Status != 529 || artel.CodeOf(err) != "overloaded" {
			t.Errorf("%v: %+v, code %q", err, ce, artel.CodeOf(err))
		}
	})
}

func TestBackoff(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			p := &scripted{scripts: [][]step{{fail(overloaded(0))}}}
			_, _ = play(t.Context(), caller(p, model.CallerOptions{Attempts: 6, Backoff: time.Second, MaxWait: 5 * time.Second}), request(model.OpenAI))
			for i, most := range []time.Duration{1, 2, 4, 5, 5} {
				most *= time.Second
				if got := p.attempts[i+1].Sub(p.attempts[i]); got < most/2 || got > most {
					t.Errorf("waited %v before attempt %d, want %v to %v", got, i+2, most/2, most)
				}
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{scripts: [][]step{{fail(overloaded(20 * time.Second))}, {hello, end}}}
		if _, err := play(t.Context(), caller(p, model.CallerOptions{}), request(model.OpenAI)); err != nil {
			t.Fatal(err)
		}
		if got := p.attempts[1].Sub(p.attempts[0]); got != 20*time.Second {
			t.Errorf("waited %v, want 20s", got)
		}
	})
}

func TestServiceTimeoutWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := request(model.OpenAI)
		r.Service.Timeout = time.Second
		_, err := play(t.Context(), caller(&scripted{scripts: [][]step{{wait(time.Minute, hello)}}}, model.CallerOptions{Attempts: 1}), r)
		if err == nil || !strings.Contains(err.Error(), "within 1s") {
			t.Errorf("%v", err)
		}
	})
}

// A service may think longer before it answers than it may be silent while it
// does, and the other way round.
func TestTwoTimeLimits(t *testing.T) {
	for _, tt := range []struct {
		name           string
		first, between time.Duration
		script         []step
		fails          bool
	}{
		{"thinks long", time.Minute, time.Second, []step{wait(59*time.Second, hello), end}, false},
		{"thinks too long", time.Minute, time.Hour, []step{wait(61*time.Second, hello), end}, true},
		{"stalls", time.Hour, time.Second, []step{hello, wait(2*time.Second, hello), end}, true},
		{"as it always was", 0, time.Minute, []step{wait(59*time.Second, hello), end}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &scripted{scripts: [][]step{tt.script}}
				r := request(model.OpenAI)
				r.Service.FirstTimeout, r.Service.Timeout = tt.first, tt.between
				var failed error
				for _, err := range caller(p, model.CallerOptions{Attempts: 1}).Call(t.Context(), r) {
					failed = errors.Join(failed, err)
				}
				if (failed != nil) != tt.fails {
					t.Errorf("%v", failed)
				}
			})
		})
	}
}

// pinging answers after 20 seconds, in which only bytes without a delta arrive.
type pinging struct{}

func (pinging) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for range 20 {
			select {
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case <-time.After(time.Second):
			}
			r.OnActivity()
		}
		_ = yield(model.TextDelta("done"), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
	}
}

// TestBytesAreNoSilence: a service that sends pings, or a long call piece by piece,
// is not silent, however long its answer takes.
func TestBytesAreNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := request(model.OpenAI)
		r.Service.FirstTimeout, r.Service.Timeout = 3*time.Second, 2*time.Second
		tries := 0
		r.OnTry = func() { tries++ }
		a, err := caller(pinging{}, model.CallerOptions{}).CallText(t.Context(), r)
		if err != nil || a.Text != "done" || tries != 1 {
			t.Errorf("%q after %d tries: %v", a.Text, tries, err)
		}
	})
}

func TestSlowReaderIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{scripts: [][]step{{hello, hello, end}}}
		for _, err := range caller(p, model.CallerOptions{IdleTimeout: time.Minute}).Call(t.Context(), request(model.OpenAI)) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // the bubble's clock
		}
	})
}

func TestNothingIsSentBeforeRanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{scripts: [][]step{{hello, end}}}
		seq := caller(p, model.CallerOptions{}).Call(t.Context(), request(model.OpenAI))
		synctest.Wait()
		if len(p.attempts) != 0 {
			t.Error("called before anybody ranged")
		}
		for range 2 {
			for range seq {
			}
		}
		if len(p.attempts) != 2 {
			t.Errorf("%d calls after ranging twice", len(p.attempts))
		}
	})
}

func TestBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{scripts: [][]step{{hello, hello, end}}}
		r := request(model.OpenAI)
		r.Service.MaxConcurrent = 1
		c := caller(p, model.CallerOptions{})
		for range 3 { // each break gives its place back
			for range c.Call(t.Context(), r) {
				break
			}
		}
		if p.left.Load() != 3 || p.running.Load() != 0 {
			t.Errorf("%d left, %d running", p.left.Load(), p.running.Load())
		}
	})
}

func TestPanicGivesThePlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := request(model.OpenAI)
		r.Service.MaxConcurrent = 1
		c := caller(&scripted{scripts: [][]step{{hello, end}}}, model.CallerOptions{})
		func() {
			defer func() {
				if recover() != "mine" {
					t.Error("the reader's panic got lost")
				}
			}()
			for range c.Call(t.Context(), r) {
				panic("mine")
			}
		}()
		if _, err := play(t.Context(), c, r); err != nil {
			t.Error(err)
		}
	})
}

func TestCancel(t *testing.T) {
	reason := errors.New("the person left")
	for _, tt := range []struct {
		name   string
		script []step
		after  time.Duration
	}{
		{"before the call", []step{hello, end}, 0},
		{"while nothing was said", []step{wait(time.Hour, hello)}, time.Second},
		{"in mid-answer", []step{hello, wait(time.Hour, end)}, time.Second},
		{"between attempts", []step{fail(overloaded(20 * time.Second))}, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if tt.after == 0 {
					cancel(reason)
				}
				stop := time.AfterFunc(tt.after, func() { cancel(reason) })
				defer stop.Stop()
				start := time.Now()
				p := &scripted{scripts: [][]step{tt.script}}
				_, err := play(ctx, caller(p, model.CallerOptions{}), request(model.OpenAI))
				if artel.KindOf(err) != artel.Canceled || !errors.Is(err, reason) {
					t.Errorf("%v (%s), want kind canceled and the reason", err, artel.KindOf(err))
				}
				if took := time.Since(start); took != tt.after {
					t.Errorf("ended after %v, canceled after %v", took, tt.after)
				}
				if len(p.attempts) > 1 {
					t.Errorf("%d attempts", len(p.attempts))
				}
			})
		})
	}
}

func TestConcurrencyLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{scripts: [][]step{{wait(time.Second, hello), end}}}
		c := caller(p, model.CallerOptions{})
		r := request(model.OpenAI)
		r.Service.MaxConcurrent = 2
		start := time.Now()
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if _, err := play(t.Context(), c, r); err != nil {
					t.Error(err)
				}
			})
		}
		other := request(model.OpenAI)
		other.Service.ID = "other" // has no limit, and does not wait for others
		wg.Go(func() {
			if _, err := play(t.Context(), c, other); err != nil || time.Since(start) != time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
		wg.Wait()
		if p.most != 3 || time.Since(start) != 3*time.Second {
			t.Errorf("%d at once for %v, want 3 (one of them without a limit) for 3s", p.most, time.Since(start))
		}
	})
}

func TestCancelWhileWaitingForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{scripts: [][]step{{hello, wait(time.Minute, end)}}}
		c := caller(p, model.CallerOptions{})
		r := request(model.OpenAI)
		r.Service.MaxConcurrent = 1
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := play(t.Context(), c, r); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := play(ctx, c, r)
		if artel.KindOf(err) != artel.Canceled || len(p.attempts) != 1 {
			t.Errorf("%v, %d calls", err, len(p.attempts))
		}
		wg.Wait()
	})
}

func TestChangedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{scripts: [][]step{{wait(time.Second, hello), end}}}
		c := caller(p, model.CallerOptions{})
		one, two := request(model.OpenAI), request(model.OpenAI)
		one.Service.MaxConcurrent, two.Service.MaxConcurrent = 1, 2
		if _, err := play(t.Context(), c, one); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = play(t.Context(), c, two) })
		}
		wg.Wait()
		if time.Since(start) != time.Second {
			t.Errorf("two calls took %v under a limit of two", time.Since(start))
		}
	})
}

func TestUnsupported(t *testing.T) {
	c := caller(&scripted{scripts: [][]step{{hello, end}}}, model.CallerOptions{})
	_, err := play(t.Context(), c, request(model.Gemini))
	if artel.KindOf(err) != artel.Unsupported || !strings.Contains(err.Error(), "gemini") || !strings.Contains(err.Error(), "openai") {
		t.Errorf("dialect: %v", err)
	}
	r := request(model.OpenAI)
	r.Service.BaseURL = ""
	if _, err := play(t.Context(), c, r); artel.KindOf(err) != artel.Unsupported {
		t.Errorf("routing only: %v", err)
	}
	if diff := cmp.Diff([]model.Dialect{model.OpenAI}, c.Dialects()); diff != "" {
		t.Error(diff)
	}
}

// endless never stops talking.
type endless struct{ left bool }

func (p *endless) Generate(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for yield(model.TextDelta(strings.Repeat("x", 10_000)), nil) {
		}
		p.left = true
	}
}

// An answer without end is broken off before it fills memory.
func TestEndlessAnswer(t *testing.T) {
	t.Parallel()
	p := &endless{}
	c := model.NewCaller(map[model.Dialect]model.Provider{model.Demo: p}, model.CallerOptions{})
	written := 0
	var last error
	for d, err := range c.Call(t.Context(), &model.Request{Service: model.DemoService()}) {
		if text, ok := d.(model.TextDelta); ok {
			written += len(text)
		}
		last = err
	}
	if !errors.Is(last, artel.TooLarge) || written > model.MaxAnswer || written < model.MaxAnswer-20_000 || !p.left {
		t.Errorf("%d bytes, then %v; left %t", written, last, p.left)
	}
}

// TestUsageThatCannotBe: what a server reports must not give tokens back, nor
// make a limit useless or end a run at once.
func TestUsageThatCannotBe(t *testing.T) {
	for reported, want := range map[artel.Usage]artel.Usage{
		{Calls: 1, InputTokens: 100, OutputTokens: 5, CachedTokens: 60, StoredTokens: 40, ThoughtTokens: 5}: {Calls: 1, InputTokens: 100, OutputTokens: 5, CachedTokens: 60, StoredTokens: 40, ThoughtTokens: 5},
		{Calls: 1, InputTokens: -100, OutputTokens: -5, CachedTokens: -1}:                                   {Calls: 1},
		{Calls: 1, InputTokens: 1 << 62, OutputTokens: 7}:                                                   {Calls: 1, OutputTokens: 7},
		{Calls: 1, InputTokens: 10, CachedTokens: 60, StoredTokens: 60, ThoughtTokens: 9}:                   {Calls: 1, InputTokens: 10, CachedTokens: 10},
	} {
		p := &scripted{scripts: [][]step{{hello, say(model.Finish{Reason: model.StopEnd, Usage: reported})}}}
		var got artel.Usage
		for d, err := range caller(p, model.CallerOptions{}).Call(t.Context(), request(model.OpenAI)) {
			if err != nil {
				t.Fatal(err)
			}
			if f, ok := d.(model.Finish); ok {
				got = f.Usage
			}
		}
		if got != want {
			t.Errorf("of %+v: got %+v, want %+v", reported, got, want)
		}
	}
}
