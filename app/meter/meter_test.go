// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/meter"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bench is a meter whose clock a test sets.
type bench struct {
	*meter.Meter
	t    *testing.T
	db   store.Store
	user meter.UserLimits

	mu  sync.Mutex
	now time.Time
}

func newBench(t *testing.T, user meter.UserLimits) *bench {
	t.Helper()
	b := &bench{t: t, db: rowstest.Open(t), user: user, now: time.Date(2026, 3, 31, 23, 59, 0, 0, time.UTC)}
	b.start()
	return b
}

// start is a start of the process, without a stop of the one before.
func (b *bench) start() {
	b.Meter = meter.New(meter.Config{People: b.db.People(), User: b.user, Log: slog.New(slog.DiscardHandler), Now: b.clock})
	m := b.Meter
	b.t.Cleanup(func() {
		if err := m.Flush(context.Background()); err != nil {
			b.t.Error(err)
		}
	})
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// service costs a dollar for a thousand tokens of requests and of answers.
func service() *model.Service {
	s := &model.Service{ID: "main", Model: "m", Dialect: model.OpenAI}
	s.Capabilities.Price = model.Fact[model.Price]{Value: model.Price{Input: 1000, Output: 1000}, Source: model.FromOperator}
	return s
}

func usage(in, out int64) model.Spent {
	return model.Spent{Started: true, Usage: artel.Usage{InputTokens: in, OutputTokens: out}}
}

func (b *bench) as(l store.KeyLimits) context.Context {
	return meter.With(artel.WithOwner(b.t.Context(), "ann"), meter.Client{ID: "k", Name: "laptop", Limits: l})
}

// sum is what the ledger has.
func (b *bench) sum() (c store.UsageCounts) {
	b.t.Helper()
	if err := b.Flush(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	err := b.db.People().View(b.t.Context(), func(tx store.PeopleTx) error {
		rows, err := tx.Ledger.Sum(store.UsageQuery{})
		for _, r := range rows {
			c = c.Plus(r.Counts)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *bench) exceeded(what string, err error, code string, after time.Duration) {
	b.t.Helper()
	var e *meter.Exceeded
	if !errors.As(err, &e) || e.Code != code || artel.CodeOf(err) != code || artel.KindOf(err) != artel.TooLarge || e.After != after {
		b.t.Errorf("%s: got %v (%+v), want %s after %v", what, err, e, code, after)
	}
}

func budget(usd float64, p store.Period) store.KeyLimits {
	return store.KeyLimits{Budget: store.Budget{USD: usd, Period: p}}
}

// TestBudgetIsExact: many calls at once never cost more than the budget, the last
// ones have shorter answers, and all of it can be spent.
func TestBudgetIsExact(t *testing.T) {
	b := newBench(t, meter.UserLimits{})
	ctx := b.as(budget(1, store.PerDay)) // a thousand tokens
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for refused := 0; refused < 20; {
				c, err := b.Charge(ctx, model.PaidCall{Service: service(), Input: 10, Output: 100})
				if err != nil {
					refused++
					continue
				}
				out := int64(100)
				if c.MaxOutput > 0 {
					out = int64(c.MaxOutput)
				}
				c.End(usage(10, out))
			}
		})
	}
	wg.Wait()
	got := b.sum()
	if got.Cost > 1e9 || got.Cost < 1e9-26e6 { // less than ten tokens and the shortest answer is left
		t.Errorf("%d billionths of a dollar were spent in %d calls, want one dollar", got.Cost, got.Calls)
	}
	_, err := b.Charge(ctx, model.PaidCall{Service: service(), Input: 10, Output: 100})
	b.exceeded("after the last", err, meter.CodeBudget, time.Minute)
	refused := func(want bool) {
		t.Helper()
		if got := b.Refused("k", store.Budget{USD: 1, Period: store.PerDay}); got != want {
			t.Errorf("the last request was refused by the budget: %v, want %v", got, want)
		}
	}
	refused(true)
	if b.Refused("k", store.Budget{USD: 2, Period: store.PerDay}) {
		t.Error("a budget that was raised since refused a request")
	}
	b.pass(time.Minute)
	refused(false)
	c, err := b.Charge(ctx, model.PaidCall{Service: service(), Input: 10, Output: 100})
	if err != nil {
		t.Fatalf("on the next day: %v", err)
	}
	_, err = b.Charge(ctx, model.PaidCall{Service: service(), Input: 950, Output: 100})
	b.exceeded("while the rest is reserved", err, meter.CodeBudget, time.Second)
	refused(false)
	c.End(model.Spent{}) // refused by the service: costs nothing
	if again := b.sum(); again != got {
		t.Errorf("a refused call cost %+v", again)
	}
}

// TestBudgetSurvivesCrashes: a process that is killed during calls leaves no more than
// the budget to the next, and one that ends leaves exactly the rest.
func TestBudgetSurvivesCrashes(t *testing.T) {
	b := newBench(t, meter.UserLimits{})
	ctx := b.as(budget(1, store.PerMonth))
	charge := func() model.Charge {
		t.Helper()
		c, err := b.Charge(ctx, model.PaidCall{Service: service(), Input: 100, Output: 300})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	charge().End(usage(100, 100))
	charge() // is running when the process is killed
	b.start()
	_, err := b.Charge(ctx, model.PaidCall{Service: service(), Input: 400, Output: 300})
	b.exceeded("after a crash", err, meter.CodeBudget, time.Minute)
	c, err := b.Charge(ctx, model.PaidCall{Service: service(), Input: 100, Output: 200})
	if err != nil {
		t.Fatalf("what the crash has left: %v", err)
	}
	c.End(usage(100, 100))
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.start()
	if c, err = b.Charge(ctx, model.PaidCall{Service: service(), Input: 10, Output: 1000}); err != nil {
		t.Fatal(err)
	}
	// 200 and the running 400 tokens of the first process with its step of 10, and 200.
	if c.MaxOutput != 1000-610-200-10 {
		t.Errorf("%d tokens are left", c.MaxOutput)
	}
	c.End(model.Spent{})
}

// TestBudgetOfTheLedger: a budget that a key gets later counts what the key has spent
// in its period, and one that it loses and gets again everything between.
func TestBudgetOfTheLedger(t *testing.T) {
	b := newBench(t, meter.UserLimits{})
	spend := func(l store.KeyLimits) {
		t.Helper()
		c, err := b.Charge(b.as(l), model.PaidCall{Service: service(), Input: 100, Output: 100})
		if err != nil {
			t.Fatal(err)
		}
		c.End(usage(100, 100))
	}
	left := func(want int) {
		t.Helper()
		c, err := b.Charge(b.as(budget(1, store.PerDay)), model.PaidCall{Service: service(), Output: 2000})
		if err != nil {
			t.Fatal(err)
		}
		if c.End(model.Spent{}); c.MaxOutput != want {
			t.Errorf("%d tokens are left, want %d", c.MaxOutput, want)
		}
	}
	spend(store.KeyLimits{})
	left(800)
	spend(store.KeyLimits{})
	left(600)
	spend(budget(1, store.PerDay))
	left(400)
}

// TestTokensPerMinute: in any minute, no more tokens are used than the key may.
func TestTokensPerMinute(t *testing.T) {
	b := newBench(t, meter.UserLimits{})
	ctx := b.as(store.KeyLimits{Tokens: 1000})
	call := model.PaidCall{Service: &model.Service{ID: "free"}, Input: 100, Output: 400}
	for range 2 {
		c, err := b.Charge(ctx, call)
		if err != nil {
			t.Fatal(err)
		}
		c.End(usage(100, 400))
		b.pass(20 * time.Second)
	}
	_, err := b.Charge(ctx, call)
	b.exceeded("the third", err, meter.CodeTokens, 20*time.Second)
	b.pass(20 * time.Second)
	c, err := b.Charge(ctx, call)
	if err != nil {
		t.Fatalf("after a minute: %v", err)
	}
	c.End(model.Spent{})
}

// TestUserLimits: the limits of a user hold for all keys and runs together, and for
// each user alone.
func TestUserLimits(t *testing.T) {
	b := newBench(t, meter.UserLimits{Tokens: 1000, USD: 0.5})
	run := artel.WithOwner(t.Context(), "ann")
	c, err := b.Charge(run, model.PaidCall{Service: service(), Input: 100, Output: 300})
	if err != nil {
		t.Fatal(err)
	}
	c.End(usage(100, 300))
	_, err = b.Charge(b.as(store.KeyLimits{}), model.PaidCall{Service: service(), Input: 100, Output: 300})
	b.exceeded("dollars", err, meter.CodeBudget, time.Minute)
	free := service()
	free.Capabilities.Price.Value = model.Price{}
	_, err = b.Charge(run, model.PaidCall{Service: free, Input: 600, Output: 300})
	b.exceeded("tokens", err, meter.CodeTokens, time.Minute)
	if c, err = b.Charge(artel.WithOwner(t.Context(), "bob"), model.PaidCall{Service: service(), Input: 100, Output: 300}); err != nil {
		t.Fatalf("another user: %v", err)
	}
	c.End(model.Spent{})
	unknown := model.Service{ID: "unknown", Dialect: model.OpenAI}
	_, err = b.Charge(run, model.PaidCall{Service: &unknown})
	if artel.CodeOf(err) != artel.CodeLimitCostUnknown || artel.KindOf(err) != artel.Invalid {
		t.Errorf("without a price: %v", err)
	}
}

// TestRecords: what the ledger has of calls with and without reported usage.
func TestRecords(t *testing.T) {
	b := newBench(t, meter.UserLimits{})
	ctx := artel.WithAgent(artel.WithOwner(t.Context(), "ann"), "lead")
	for _, e := range []model.Spent{
		{Started: true, Usage: artel.Usage{InputTokens: 10, CachedTokens: 4, OutputTokens: 5, ThoughtTokens: 2}},
		{Started: true, Said: "broken off"}, // counted as its input
		{},                                  // not paid for
	} {
		c, err := b.Charge(ctx, model.PaidCall{Service: service(), Input: 7})
		if err != nil {
			t.Fatal(err)
		}
		c.End(e)
	}
	c, err := b.Charge(ctx, model.PaidCall{Service: &model.Service{ID: "unknown"}})
	if err != nil {
		t.Fatal(err)
	}
	c.End(usage(1, 1))
	got := b.sum()
	want := store.UsageCounts{Calls: 3, Input: 18, Cached: 4, Output: 6, Reasoning: 2, Cost: 18_000_000, Unknown: 1} // 6 plain and 5 of the first, 7 of the second; cached tokens are free here
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
