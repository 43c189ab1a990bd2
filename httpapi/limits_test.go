// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/model"
)

// A working model calls tools for as long as it is asked; the lead gives its
// work to two others at once. Each of its calls takes 1,100 tokens and 0.002
// dollars.
type working struct {
	mu    sync.Mutex
	calls map[string]int // by agent and service
	first map[artel.ServiceID]error
	hangs bool
	rests int // calls after which it rests; 0: never
}

func (w *working) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		role, _, _ := strings.Cut(artel.TextOf(r.Messages[0].Parts), "\n")
		w.mu.Lock()
		w.calls[role]++
		w.calls[string(r.Service.ID)]++
		n, failed := w.calls[role], w.first[r.Service.ID]
		delete(w.first, r.Service.ID)
		w.mu.Unlock()
		if failed != nil {
			yield(nil, failed)
			return
		}
		if w.hangs {
			<-ctx.Done()
			yield(nil, ctx.Err())
			return
		}
		end := model.Finish{Reason: model.StopTools, Usage: artel.Usage{InputTokens: 1000, OutputTokens: 100}}
		if r.Choice.Mode == model.ChooseNone || w.rests > 0 && n >= w.rests {
			end.Reason = model.StopEnd
			_ = yield(model.TextDelta("Done."), nil) && yield(end, nil)
			return
		}
		id := func(i int) artel.CallID { return artel.CallID(fmt.Sprintf("%s_%d_%d", role, n, i)) }
		calls := []model.CallDelta{{ID: id(0), Name: "list_artifacts", Arguments: json.RawMessage(`{}`)}}
		if role == "LEAD" {
			given := json.RawMessage(`{"agent":"sub","instruction":"Work."}`)
			calls = []model.CallDelta{{ID: id(0), Name: "call_subagent", Arguments: given}, {ID: id(1), Name: "call_subagent", Arguments: given}}
		}
		for _, c := range calls {
			if !yield(c, nil) {
				return
			}
		}
		yield(end, nil)
	}
}

func (w *working) made(by string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[by]
}

// fails has the next call of a service fail.
func (w *working) fails(id artel.ServiceID, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first = map[artel.ServiceID]error{id: err}
}

func (w *working) bench(t *testing.T, limits agent.Limits) *bench {
	w.calls = map[string]int{}
	return newBench(t, "", func(c *app.Config) {
		var list []model.Service
		for _, id := range []artel.ServiceID{"one", "two"} {
			s := model.DemoService()
			s.ID = id
			s.Capabilities.Price = model.Fact[model.Price]{Value: model.Price{Input: 1, Output: 10}, Source: model.FromOperator}
			list = append(list, s)
		}
		c.Services = model.NewRegistry(list, "one")
		c.Providers = map[model.Dialect]model.Provider{model.Demo: w}
		c.Agents = []agent.Definition{
			{Name: agent.Lead, Prompt: "ALONE", Tools: []string{"list_artifacts"}, Limits: limits, Fallbacks: []artel.ServiceID{"two"}},
			{Name: "boss", Prompt: "LEAD", Subagents: []artel.AgentName{"sub"}, Limits: limits},
			{Name: "sub", Prompt: "SUB", Tools: []string{"list_artifacts"}},
		}
	})
}

// answers sends a message, waits for the end of its run, and returns that.
func (b *bench) answers(c string, m map[string]any) artel.Run {
	b.t.Helper()
	sent := b.object(b.do(http.MethodPost, "/conversations/"+c+"/messages", m), http.StatusAccepted)
	b.until(c, func(e artel.Event) bool { return finished(e) && string(e.Run) == sent["run_id"] })
	var r artel.Run
	if err := json.Unmarshal(b.do(http.MethodGet, "/runs/"+sent["run_id"].(string), nil).body, &r); err != nil {
		b.t.Fatal(err)
	}
	return r
}

// TestLimitsOverHTTP: each limit ends an endless run and is
// named as the reason; subagents share those on calls, tokens and cost.
func TestLimitsOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits agent.Limits
		agent  string
		code   string
		calls  int // of models; of subagents at once, one more or less
	}{
		{"turns", agent.Limits{Turns: 3}, "", artel.CodeLimitTurns, 3},
		{"tool calls", agent.Limits{ToolCalls: 2}, "", artel.CodeLimitToolCalls, 3},
		{"tokens", agent.Limits{Tokens: 3300}, "", artel.CodeLimitTokens, 3},
		{"cost", agent.Limits{Cost: 0.006}, "", artel.CodeLimitCost, 3},
		{"turns of all", agent.Limits{Turns: 6}, "boss", artel.CodeLimitTurns, 6},
		{"tool calls of all", agent.Limits{ToolCalls: 5}, "boss", artel.CodeLimitToolCalls, 6},
		{"tokens of all", agent.Limits{Tokens: 5500}, "boss", artel.CodeLimitTokens, 5},
		{"cost of all", agent.Limits{Cost: 0.01}, "boss", artel.CodeLimitCost, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &working{}
			b := w.bench(t, tt.limits)
			c := b.conversation()
			r := b.answers(c, map[string]any{"text": "Go.", "agent": tt.agent})
			if r.State != artel.RunFailed || r.Error == nil || r.Error.Code != tt.code {
				t.Fatalf("%+v, %+v", r, r.Error)
			}
			least, most := tt.calls, tt.calls
			if tt.agent != "" {
				least, most = least-1, most+1
			}
			calls := w.made("one")
			if calls < least || calls > most {
				t.Errorf("%d model calls, want %d to %d", calls, least, most)
			}
			if n := w.made("SUB"); tt.agent != "" && n < 2 {
				t.Errorf("the subagents made %d calls", n)
			}
			var u artel.Usage
			if err := json.Unmarshal(b.do(http.MethodGet, "/conversations/"+c+"/usage", nil).body, &u); err != nil {
				t.Fatal(err)
			}
			if u != r.Usage || u.Calls < 1 || u.Calls > calls || u.InputTokens != int64(u.Calls)*1000 {
				t.Errorf("after %d calls, the conversation took %+v and the run %+v", calls, u, r.Usage)
			}
		})
	}
}

func TestTimeLimitOverHTTP(t *testing.T) {
	w := &working{hangs: true}
	b := w.bench(t, agent.Limits{Seconds: 1})
	if r := b.answers(b.conversation(), map[string]any{"text": "Go."}); r.State != artel.RunTimedOut || r.Error == nil || r.Error.Code != artel.CodeLimitTime {
		t.Errorf("%+v, %+v", r, r.Error)
	}
}

// TestFallbackAndOverflowOverHTTP: a run continues with another service, and with
// a summary where a service finds the request too long.
func TestFallbackAndOverflowOverHTTP(t *testing.T) {
	down := &artel.Error{Op: "x", Kind: artel.Unavailable, Err: &model.CallError{Service: "one", Message: "overloaded"}}
	long := &artel.Error{Op: "x", Kind: artel.TooLarge, Err: &model.CallError{
		Service: "one", Status: 400, Message: "too long", Refusal: model.Refusal{Class: model.RefusedContext},
	}}
	w := &working{rests: 1}
	b := w.bench(t, agent.Limits{})
	c := b.conversation()
	for range 2 {
		if r := b.answers(c, map[string]any{"text": "Go."}); r.State != artel.RunDone {
			t.Fatalf("%+v, %+v", r, r.Error)
		}
	}
	w.fails("one", down)
	if r := b.answers(c, map[string]any{"text": "And now?"}); r.State != artel.RunDone || r.Service != "two" {
		t.Errorf("%+v, %+v", r, r.Error)
	}
	w.fails("one", long)
	r := b.answers(c, map[string]any{"text": "And then?"})
	if r.State != artel.RunDone || r.Service != "one" {
		t.Errorf("%+v, %+v", r, r.Error)
	}
	changed, summed := 0, 0
	for _, e := range b.until(c, func(e artel.Event) bool { return finished(e) && e.Run == r.ID }) {
		switch e.Type {
		case artel.EventServiceChanged:
			changed++
		case artel.EventCompactionCompleted:
			var p artel.CompactionCompleted
			if err := json.Unmarshal(e.Data, &p); err != nil || !p.OK || p.Reason != artel.CompactOverflow {
				t.Errorf("%+v, %v", p, err)
			}
			summed++
		}
	}
	if changed != 1 || summed != 1 {
		t.Errorf("%d changes of the service and %d summaries are in the log", changed, summed)
	}
}
