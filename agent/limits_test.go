// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/model"
)

func TestEveryLimit(t *testing.T) {
	priced := model.Fact[model.Price]{Value: model.Price{Input: 1, Output: 10}, Source: model.FromOperator}
	took := model.Finish{Reason: model.StopTools, Usage: artel.Usage{InputTokens: 900_000, OutputTokens: 10_000}}
	for _, tt := range []struct {
		name   string
		limits agent.Limits
		before artel.Usage
		code   string
		calls  int
	}{
		{"turns", agent.Limits{Turns: 2}, artel.Usage{}, artel.CodeLimitTurns, 2},
		{"tool calls", agent.Limits{ToolCalls: 1}, artel.Usage{}, artel.CodeLimitToolCalls, 2},
		{"tokens", agent.Limits{Tokens: 1_000_000}, artel.Usage{}, artel.CodeLimitTokens, 2},
		{"cost", agent.Limits{Cost: 1.5}, artel.Usage{}, artel.CodeLimitCost, 2},
		{"what an earlier attempt took", agent.Limits{Cost: 1.5}, artel.Usage{Calls: 1, Cost: artel.Cost{USD: 1, Calls: 1}}, artel.CodeLimitCost, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			step := func(id string) turn { return turn{say("Working. "), call(id, "echo", `{"text":"x"}`), took} }
			b := newBench(t, []turn{step("a"), step("b"), step("c")})
			b.in.Agent.Limits, b.in.Service.Capabilities.Price, b.in.Run.Usage = tt.limits, priced, tt.before
			all, err := b.run(t.Context())
			if !errors.Is(err, artel.TooLarge) || artel.CodeOf(err) != tt.code {
				t.Errorf("%v, code %s", err, artel.CodeOf(err))
			}
			if len(b.requests) != tt.calls {
				t.Errorf("%d model calls, want %d", len(b.requests), tt.calls)
			}
			var u artel.Usage
			for _, p := range all {
				if p, ok := p.(artel.UsageReported); ok {
					u = u.Add(p.Usage)
				}
			}
			if u.Calls != tt.calls || u.Cost.Calls != tt.calls || u.Cost.USD < 0.999*float64(tt.calls) || u.Cost.USD > 1.001*float64(tt.calls) {
				t.Errorf("%+v", u)
			}
		})
	}
}

func TestFallback(t *testing.T) {
	down := &artel.Error{Op: "x", Kind: artel.Unavailable, Err: &model.CallError{Message: "overloaded"}}
	other := model.Service{ID: "other", Dialect: model.Demo, Model: "other", Capabilities: model.TextOnly()}
	fallback := func(b *bench, left ...model.Service) {
		b.host.fallback = func(model.Service) (agent.Fallback, bool) {
			if len(left) == 0 {
				return agent.Fallback{}, false
			}
			s := left[0]
			left = left[1:]
			return agent.Fallback{Service: s, Context: b.in.Context}, true
		}
	}
	b := newBench(t, []turn{{down}, {call("a", "echo", `{"text":"x"}`), tools}, {say("Done."), end}})
	fallback(b, other)
	all, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(p artel.Payload) bool { _, ok := p.(artel.ServiceChanged); return ok })
	if i < 0 || all[i] != (artel.ServiceChanged{From: "scripted", To: "other", Model: "other", Demo: true, Reason: "overloaded"}) {
		t.Errorf("%+v", all[max(i, 0)])
	}
	for n, want := range []artel.ServiceID{"scripted", "other", "other"} {
		if got := b.requests[n].Service.ID; got != want {
			t.Errorf("call %d went to %s, want %s", n+1, got, want)
		}
	}

	b = newBench(t, []turn{{down}, {down}})
	fallback(b, other)
	if _, err := b.run(t.Context()); !errors.Is(err, artel.Unavailable) {
		t.Errorf("all are down: %v", err)
	}

	b = newBench(t, []turn{{say("It was "), down}})
	fallback(b, other)
	if _, err := b.run(t.Context()); !errors.Is(err, artel.Unavailable) || len(b.requests) != 1 {
		t.Errorf("what was said cannot be said again: %v, %d calls", err, len(b.requests))
	}
}
