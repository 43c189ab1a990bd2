// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/agent/toolindex"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline/token"
)

// serverTools are n tools as a server offers them, each with a schema of its own.
func serverTools(n int) []tool.Tool {
	var out []tool.Tool
	for i := range n {
		name := fmt.Sprintf("shop_item_%03d", i)
		out = append(out, tool.Tool{
			Name: name, Doc: fmt.Sprintf("Handles item %d of the shop. It has much to say about it, more than a line holds.", i), Deferrable: true,
			Schema: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer","description":"how many"},"note":{"type":"string"}},"required":["amount"]}`),
			Call: func(_ context.Context, _ *tool.Env, args json.RawMessage) (tool.Result, error) {
				return tool.Result{Content: name + " got " + string(args)}, nil
			},
		})
	}
	return append(out, tool.Tool{
		Name: "weather_of_city", Doc: "Tells the weather.", Deferrable: true, Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		Call: func(_ context.Context, _ *tool.Env, args json.RawMessage) (tool.Result, error) {
			return tool.Result{Content: "rain for " + string(args)}, nil
		},
	})
}

// specTokens counts what the specifications of a request cost.
func specTokens(t *testing.T, specs []model.ToolSpec) int {
	t.Helper()
	c, all := token.NewCounter(), []toolindex.Tool{}
	for _, s := range specs {
		all = append(all, toolindex.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema})
	}
	return toolindex.Tokens(all, func(text string) int {
		n, err := c.Count(token.O200k, text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	})
}

func specNames(specs []model.ToolSpec) (names []string) {
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}

// Of 300 tools a model gets a list, finds one by words, and calls it. Everything but
// the request says that the tool itself was called.
func TestDeferred(t *testing.T) {
	b := newBench(t, []turn{
		{call("a", agent.FindTool, `{"query":"how is the weather"}`), tools},
		{call("b", agent.CallTool, `{"tool":"weather_of_city","arguments":{"city":"Oslo"}}`), call("c", "echo", `{"text":"x"}`), tools},
		{call("d", agent.CallTool, `"{\"tool\":\"shop_item_007\",\"arguments\":{\"amount\":\"many\"}}"`), tools},
		{call("e", agent.CallTool, `{"tool":"wether","arguments":{}}`), call("f", "weather_of_city", `{"city":"Rome"}`), tools},
		{say("Rain."), end},
	}, serverTools(300)...)
	b.in.Permissions = agent.Permissions{"weather_of_city": agent.Ask, "shop_item_009": agent.Deny, "*": agent.Auto}
	var asked []string
	b.host.permit = func(_ context.Context, calls []agent.Question) ([]agent.Verdict, error) {
		out := make([]agent.Verdict, len(calls))
		for i, c := range calls {
			asked = append(asked, c.Name+string(c.Arguments))
			out[i].Decision = artel.Allow
		}
		return out, nil
	}
	all := b.want(t,
		"agent_started", "message  call:a", "usage 1/5/1", "start a find_tools", "result a true weather_of_city: Tells the weather.",
		"message  call:b call:c", "usage 1/5/1", "start b weather_of_city", `result b true rain for {"city":"Oslo"}`, "start c echo", "result c true echo x",
		"message  call:d", "usage 1/5/1", "start d shop_item_007", "result d false the arguments of shop_item_007 are not v…",
		"message  call:e call:f", "usage 1/5/1", "start e call_tool", `result e false There is no tool "wether". find_tools fi…`,
		"start f weather_of_city", `result f true rain for {"city":"Rome"}`,
		"delta Rain.", "message Rain.", "usage 1/10/2")
	if want := []string{`weather_of_city{"city":"Oslo"}`, `weather_of_city{"city":"Rome"}`}; !slices.Equal(asked, want) {
		t.Errorf("asked about %q, want %q", asked, want)
	}
	for i, r := range b.requests {
		if want := []string{"echo", agent.FindTool, agent.CallTool}; !slices.Equal(specNames(r.Tools), want) {
			t.Fatalf("request %d has the tools %q, want %q", i, specNames(r.Tools), want)
		}
		if n := specTokens(t, r.Tools[1:]); n > toolindex.Budget {
			t.Errorf("request %d spends %d tokens on tools, want at most %d", i, n, toolindex.Budget)
		}
		if i > 0 { // a cached beginning stays
			before := b.requests[i-1]
			if diff := cmp.Diff(before.Tools, r.Tools); diff != "" {
				t.Errorf("the tools of request %d are others (-before +after):\n%s", i, diff)
			}
			for j, m := range before.Messages {
				if diff := cmp.Diff(m.Parts, r.Messages[j].Parts); diff != "" && j < len(before.Messages)-1 {
					t.Errorf("message %d of request %d is another (-before +after):\n%s", j, i, diff)
				}
			}
		}
	}
	if list := b.requests[0].Tools[1].Description; strings.Contains(list, "shop_item_009") || strings.Contains(list, "{009,") || !strings.Contains(list, "weather_of_city") {
		t.Errorf("the list is %q", list)
	}
	for _, p := range all {
		if done, ok := p.(artel.ToolCompleted); ok && done.Call == "d" {
			if text := done.Message.Parts[0].(artel.ToolResult).Content; !strings.Contains(text, `"amount"`) {
				t.Errorf("the mistake does not come with the schema: %q", text)
			}
		}
	}
}

// Tools within the budget, and the built-in ones, have their specifications in the
// request.
func TestNotDeferred(t *testing.T) {
	few := serverTools(3)
	b := newBench(t, []turn{{say("Good."), end}}, few...)
	b.want(t, "agent_started", "delta Good.", "message Good.", "usage 1/10/2")
	if got := specNames(b.requests[0].Tools); len(got) != 1+len(few) || slices.Contains(got, agent.FindTool) {
		t.Errorf("the tools are %q", got)
	}
	own := serverTools(300)
	for i := range own {
		own[i].Deferrable = false
	}
	b = newBench(t, []turn{{say("Good."), end}}, own...)
	b.want(t, "agent_started", "delta Good.", "message Good.", "usage 1/10/2")
	if got := specNames(b.requests[0].Tools); len(got) != 1+len(own) || slices.Contains(got, agent.FindTool) {
		t.Errorf("%d tools are in the request", len(got))
	}
}
