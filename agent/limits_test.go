// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"slices"
	"strings"
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

// TestLimitsHoldInCompactions: the calls for summaries count as turns, and no
// limit that they reach lets another call through.
func TestLimitsHoldInCompactions(t *testing.T) {
	priced := model.Fact[model.Price]{Value: model.Price{Input: 1, Output: 10}, Source: model.FromOperator}
	took := model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 900_000, OutputTokens: 10_000}}
	for _, tt := range []struct {
		name   string
		limits agent.Limits
		before artel.Usage
		code   string
		calls  int
	}{
		{"turns", agent.Limits{Turns: 1}, artel.Usage{}, artel.CodeLimitTurns, 1},
		{"tokens", agent.Limits{Tokens: 1000}, artel.Usage{}, artel.CodeLimitTokens, 1},
		{"cost", agent.Limits{Cost: 0.5}, artel.Usage{}, artel.CodeLimitCost, 1},
		{"tokens spent before", agent.Limits{Tokens: 1000}, artel.Usage{InputTokens: 1000}, artel.CodeLimitTokens, 0},
		{"cost spent before", agent.Limits{Cost: 0.5}, artel.Usage{Calls: 1, Cost: artel.Cost{USD: 1, Calls: 1}}, artel.CodeLimitCost, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, []turn{{say(summed), took}, {say("Done."), end}})
			b.long(10, 2600, 8000) // over the threshold
			b.in.Agent.Limits, b.in.Service.Capabilities.Price, b.in.Run.Usage = tt.limits, priced, tt.before
			all, err := b.run(t.Context())
			if artel.CodeOf(err) != tt.code {
				t.Errorf("%v, code %s, want %s", err, artel.CodeOf(err), tt.code)
			}
			if len(b.requests) != tt.calls {
				t.Errorf("%d model calls, want %d", len(b.requests), tt.calls)
			}
			if _, done := compactions(all); tt.calls > 0 && (len(done) != 1 || !done[0].OK) {
				t.Errorf("%+v", done)
			}
		})
	}
	t.Run("requested", func(t *testing.T) {
		b := newBench(t, []turn{{say(summed), took}})
		b.long(3, 100, 8000)
		b.in.Agent.Limits, b.in.Run.Usage = agent.Limits{Tokens: 1000}, artel.Usage{InputTokens: 1000}
		for _, err := range b.engine.Compact(t.Context(), b.in) {
			if err != nil && artel.CodeOf(err) != artel.CodeLimitTokens {
				t.Error(err)
			}
		}
		if len(b.requests) != 0 {
			t.Errorf("%d model calls", len(b.requests))
		}
	})
}

// TestBrokenSummaryCounts: what was received of a summary is paid for.
func TestBrokenSummaryCounts(t *testing.T) {
	b := newBench(t, []turn{{say("## 1. Half of"), brokenStream()}, {say("Done."), end}})
	b.long(10, 2600, 8000)
	all, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var told []artel.UsageReported
	for _, p := range all {
		if u, ok := p.(artel.UsageReported); ok {
			told = append(told, u)
		}
	}
	if len(told) != 2 || told[0].Purpose != artel.CallCompacts || !told[0].Usage.Estimated || told[0].Usage.InputTokens < 3000 || told[0].Usage.OutputTokens == 0 || told[1].Usage.Estimated {
		t.Errorf("%+v", told)
	}
}

// TestCostLimitNeedsPrice: a limit that cannot be kept is refused before the
// first call, also where only a subagent's service has no price.
func TestCostLimitNeedsPrice(t *testing.T) {
	b := newBench(t, []turn{{say("Done."), end}})
	b.in.Agent.Limits.Cost, b.in.Service.Dialect = 0.01, model.OpenAI
	_, err := b.run(t.Context())
	if artel.CodeOf(err) != artel.CodeLimitCostUnknown || !errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), "price: {input") || len(b.requests) != 0 {
		t.Errorf("%v, code %s, %d calls", err, artel.CodeOf(err), len(b.requests))
	}
	b.in.Service.Capabilities.Price.Source = model.FromOperator
	if _, err := b.run(t.Context()); artel.CodeOf(err) == artel.CodeLimitCostUnknown {
		t.Error("a service that costs nothing is refused")
	}

	h := keep(t, once, []agent.Definition{
		{Name: "lead", Limits: agent.Limits{Cost: 1}, Subagents: []artel.AgentName{"finder"}}, {Name: "finder"},
	})
	free := h.in.Host.(hooks)
	delegate := free.delegate
	free.delegate = func(d agent.Delegation) (agent.Input, error) {
		in, err := delegate(d)
		in.Service.Dialect = model.OpenAI
		return in, err
	}
	h.in.Host = free
	if _, _, err := h.play(t.Context()); artel.CodeOf(err) != artel.CodeLimitCostUnknown {
		t.Errorf("a subagent's service: %v", err)
	}
}
