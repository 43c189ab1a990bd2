// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
)

// A household is an engine over a scenario, with agents that may call each
// other.
type household struct {
	engine *agent.Engine
	in     agent.Input
	agents map[artel.AgentName]agent.Definition

	permit func(context.Context, artel.AgentName, []artel.ToolCall) ([]agent.Verdict, error) // nil: nobody can be asked

	mu      sync.Mutex
	threads map[artel.CallPath][]artel.Message // what earlier attempts have left
	opened  []agent.Delegation
}

// keep opens a household; the scenario plays every model.
func keep(t testing.TB, scenario string, agents []agent.Definition, tools ...tool.Tool) *household {
	t.Helper()
	s, err := demo.ParseScenario([]byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	box, err := tool.NewSet(append([]tool.Tool{tool.Func("echo", "Says it again.", echo)}, tools...)...)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pipeline.NewRegistry(token.NewCounter(), pipeline.BuiltIn()...)
	if err != nil {
		t.Fatal(err)
	}
	caller := model.NewCaller(map[model.Dialect]model.Provider{model.Demo: demo.New(blob.NewMemory(), demo.Options{Scenario: s})}, model.CallerOptions{Attempts: 1})
	now := time.Now()
	ask := artel.Message{
		ID: artel.NewMessageID(now), Conversation: artel.NewConversationID(now), Role: artel.RoleUser,
		Parts: artel.Parts{artel.Text{Text: "Do it."}}, Run: artel.NewRunID(now), CreatedAt: now,
	}
	h := &household{engine: agent.New(registry, box, caller, nil), agents: map[artel.AgentName]agent.Definition{}, threads: map[artel.CallPath][]artel.Message{}}
	for _, d := range agents {
		d.Prompt, d.Tools = "You are "+string(d.Name)+".", box.Names()
		h.agents[d.Name] = d
	}
	h.in = h.input(agents[0].Name, artel.Run{ID: ask.Run, Conversation: ask.Conversation, Message: ask.ID}, []artel.Message{ask})
	return h
}

func (h *household) input(name artel.AgentName, run artel.Run, history []artel.Message) agent.Input {
	d := h.agents[name]
	host := hooks{delegate: func(d agent.Delegation) (agent.Input, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.opened = append(h.opened, d)
		if _, ok := h.agents[d.Agent]; !ok {
			return agent.Input{}, artel.Errorf(artel.Invalid, "", string(d.Agent), "there is no such agent")
		}
		return h.input(d.Agent, run, h.threads[d.Within]), nil
	}}
	var team []agent.Member
	for _, s := range d.Subagents {
		team = append(team, agent.Member{Name: s, Description: "Does\nthings."})
	}
	if h.permit != nil {
		host.permit = func(ctx context.Context, calls []agent.Question) ([]agent.Verdict, error) {
			var made []artel.ToolCall
			for _, q := range calls {
				made = append(made, q.ToolCall)
			}
			return h.permit(ctx, name, made)
		}
	}
	return agent.Input{
		Run: run, Agent: d, History: history, Subagents: team, Host: host,
		Service: model.Service{ID: "scripted", Dialect: model.Demo, Model: "script", Capabilities: model.TextOnly()},
	}
}

// play runs the household and returns what it told, in short, the messages of
// each thread, and the error.
func (h *household) play(ctx context.Context) (told []string, threads map[artel.CallPath][]artel.Message, err error) {
	threads = map[artel.CallPath][]artel.Message{}
	for p, e := range h.engine.Run(ctx, h.in) {
		if e != nil {
			return told, threads, e
		}
		var path artel.CallPath
		who := "lead"
		if n, ok := p.(agent.Nested); ok {
			path, who, p = n.Within, string(n.Agent), n.Payload
		}
		keep := func(m artel.Message) { threads[path] = append(threads[path], m) }
		switch p := p.(type) {
		case artel.MessageDelta, artel.AgentStarted, artel.UsageReported:
			continue
		case artel.MessageCompleted:
			keep(p.Message)
		case artel.ToolCompleted:
			keep(p.Message)
			told = append(told, fmt.Sprintf("%s: result %v %s", who, p.OK, artel.TextOf(artel.Parts{artel.Text{Text: p.Message.Parts[0].(artel.ToolResult).Content}})))
			continue
		case artel.SubagentStarted:
			keep(p.Message)
			told = append(told, fmt.Sprintf("%s: asked %s, fresh %v", who, artel.TextOf(p.Message.Parts), p.Fresh))
			continue
		case artel.SubagentCompleted:
			told = append(told, fmt.Sprintf("%s: rests %v, %d calls", who, p.OK, p.Usage.Calls))
			continue
		case artel.ToolStarted:
			told = append(told, fmt.Sprintf("%s: starts %s", who, p.Name))
			continue
		}
		if c, ok := p.(artel.MessageCompleted); ok {
			told = append(told, fmt.Sprintf("%s: says %s", who, artel.TextOf(c.Message.Parts)))
		}
	}
	return told, threads, nil
}

const once = `
-- turn 1 --
I ask.
@call call_subagent {"agent": "finder", "instruction": "find it"}
-- turn 2 --
Found.
-- asked find it --
-- turn 1 --
I look.
@call echo {"text": "here"}
-- turn 2 --
It is here.
`

var pair = []agent.Definition{{Name: "lead", Subagents: []artel.AgentName{"finder", "other"}}, {Name: "finder"}, {Name: "other"}}

func TestSubagentIsARunInsideARun(t *testing.T) {
	h := keep(t, once, pair)
	told, threads, err := h.play(t.Context())
	want := []string{
		"lead: says I ask.", "lead: starts call_subagent", "finder: asked find it, fresh true", "finder: says I look.", "finder: starts echo",
		"finder: result true echo here", "finder: says It is here.", "finder: rests true, 2 calls", "lead: result true It is here.", "lead: says Found.",
	}
	if diff := cmp.Diff(want, told); diff != "" || err != nil {
		t.Fatalf("%v\n%s", err, diff)
	}
	own := threads[h.opened[0].Within]
	if len(threads) != 2 || len(own) != 4 || own[0].Parent != threads[""][0].ID || own[0].Role != artel.RoleUser {
		t.Fatalf("threads %+v", threads)
	}
	for i, m := range own {
		if m.Agent != "finder" || m.Within != h.opened[0].Within || m.Run != h.in.Run.ID || i > 0 && m.Parent != own[i-1].ID {
			t.Errorf("message %d of the thread: %+v", i, m)
		}
	}
	for i, m := range threads[""] {
		if m.Within != "" || i > 0 && m.Parent != threads[""][i-1].ID {
			t.Errorf("message %d of the run: %+v", i, m)
		}
	}
}

// TestSubagentsWorkAtTheSameTime: each waits for the other.
func TestSubagentsWorkAtTheSameTime(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	meet := tool.Func("meet", "Waits for the other.", func(context.Context, *tool.Env, struct{}) (tool.Result, error) {
		both.Done()
		both.Wait()
		return tool.Result{Content: "met"}, nil
	})
	h := keep(t, `
-- turn 1 --
@call call_subagent {"agent": "finder", "instruction": "meet one"}
@call call_subagent {"agent": "other", "instruction": "meet two"}
-- turn 2 --
Done.
-- asked meet one --
-- turn 1 --
@call meet {}
-- turn 2 --
One is back.
-- asked meet two --
-- turn 1 --
@call meet {}
-- turn 2 --
Two is back.
`, pair, meet)
	told, threads, err := h.play(t.Context())
	if err != nil || len(threads) != 3 {
		t.Fatal(err, told)
	}
	if got := told[len(told)-3:]; !slices.Equal(got, []string{"lead: result true One is back.", "lead: result true Two is back.", "lead: says Done."}) {
		t.Errorf("results in another order than the calls: %v", got)
	}
}

func TestSubagentsThatFail(t *testing.T) {
	deep := []agent.Definition{
		{Name: "lead", Subagents: []artel.AgentName{"finder"}}, {Name: "finder", Subagents: []artel.AgentName{"finder"}, Limits: agent.Limits{Turns: 2}},
	}
	const loop = "-- turn 1 --\n@call call_subagent {\"agent\": \"finder\", \"instruction\": \"find it\"}\n-- turn 2 --\nWell.\n-- asked find it --\n" +
		"-- turn 1 --\n@call echo {\"text\": \"1\"}\n-- turn 2 --\nStill here.\n@call echo {\"text\": \"2\"}\n-- turn 3 --\nNever.\n"
	for name, c := range map[string]struct {
		scenario string
		agents   []agent.Definition
		limits   agent.Limits
		want     string // in what was told
		err      string // of the run
	}{
		"its model fails": {
			scenario: "-- turn 1 --\n@call call_subagent {\"agent\": \"finder\", \"instruction\": \"find it\"}\n-- turn 2 --\nWell.\n-- asked find it --\n-- turn 1 --\nI saw\n@cut\n",
			want:     "lead: result false finder has not finished: ", agents: pair,
		},
		"what it said is kept": {
			scenario: "-- turn 1 --\n@call call_subagent {\"agent\": \"finder\", \"instruction\": \"find it\"}\n-- turn 2 --\nWell.\n-- asked find it --\n-- turn 1 --\nI saw\n@cut\n",
			want:     "What it said last:\n\nI saw", agents: pair,
		},
		"its own limit":     {scenario: loop, agents: deep, want: "limits.turns"},
		"what it said then": {scenario: loop, agents: deep, want: "What it said last:\n\nStill here."},
		"the run's limit of turns": {
			scenario: loop, agents: deep, limits: agent.Limits{Turns: 2}, err: "stopped after 2 model calls of the agent and its subagents",
		},
		"the run's limit of calls": {
			scenario: loop, agents: deep, limits: agent.Limits{ToolCalls: 1}, err: "stopped after 1 tool calls of the agent and its subagents",
		},
		"nobody of that name": {
			scenario: "-- turn 1 --\n@call call_subagent {\"agent\": \"nobody\", \"instruction\": \"find it\"}\n-- turn 2 --\nWell.\n",
			agents:   pair, want: "lead: result false the arguments of call_subagent are not valid",
		},
		"no instruction": {
			scenario: "-- turn 1 --\n@call call_subagent {\"agent\": \"finder\", \"instruction\": \"\"}\n-- turn 2 --\nWell.\n",
			agents:   pair, want: "lead: result false the arguments of call_subagent are not valid",
		},
		"too deep": {
			scenario: "-- turn 1 --\n@call call_subagent {\"agent\": \"finder\", \"instruction\": \"find it\"}\n-- turn 2 --\nWell.\n-- asked find it --\n" +
				"-- turn 1 --\n@call call_subagent {\"agent\": \"finder\", \"instruction\": \"deeper\"}\n-- turn 2 --\nNo deeper.\n",
			agents: []agent.Definition{deep[0], {Name: "finder", Subagents: []artel.AgentName{"finder"}}},
			limits: agent.Limits{Depth: 1}, want: "finder: result false there is no tool call_subagent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			agents := slices.Clone(c.agents)
			agents[0].Limits = c.limits
			told, _, err := keep(t, c.scenario, agents).play(t.Context())
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got %v\n%v", err, told)
			}
			if !strings.Contains(strings.Join(told, "\n"), c.want) {
				t.Errorf("want %q in\n%s", c.want, strings.Join(told, "\n"))
			}
		})
	}
}

// TestSubagentsAreCancelledWithTheRun: one hangs in its model, one in a tool.
func TestSubagentsAreCancelledWithTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := tool.Func("wait", "Waits.", func(ctx context.Context, _ *tool.Env, _ struct{}) (tool.Result, error) {
		cancel()
		<-ctx.Done()
		return tool.Result{}, artel.Errorf(artel.Canceled, "wait", "", "%w", ctx.Err())
	})
	h := keep(t, `
-- turn 1 --
@call call_subagent {"agent": "finder", "instruction": "hang"}
@call call_subagent {"agent": "other", "instruction": "wait"}
-- asked hang --
-- turn 1 --
@hang
-- asked wait --
-- turn 1 --
@call wait {}
`, pair, wait)
	if _, _, err := h.play(ctx); artel.KindOf(err) != artel.Canceled {
		t.Fatalf("got %v", err)
	}
}

// TestConsumerStopsAnywhere: whoever listens may go away at any payload, and
// nothing is left behind; goleak looks for that.
func TestConsumerStopsAnywhere(t *testing.T) {
	const two = `
-- turn 1 --
@call call_subagent {"agent": "finder", "instruction": "find it"}
@call call_subagent {"agent": "other", "instruction": "find it too"}
-- turn 2 --
Found.
-- asked find it --
-- turn 1 --
I look.
@call echo {"text": "here"}
-- turn 2 --
It is here.
`
	rapid.Check(t, func(rt *rapid.T) {
		h := keep(t, two, pair)
		n := rapid.IntRange(1, 40).Draw(rt, "payloads")
		for p, err := range h.engine.Run(t.Context(), h.in) {
			if err != nil {
				rt.Fatal(err)
			}
			if n--; n == 0 || p == nil {
				break
			}
		}
	})
}

// TestSubagentGoesOn: a run that is started again with any beginning of what it
// and its subagent have written ends with the same words, and asks no model
// twice for what is there.
func TestSubagentGoesOn(t *testing.T) {
	whole := keep(t, once, pair)
	_, written, err := whole.play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	within := whole.opened[0].Within
	for n := range len(written[within]) + 1 {
		h := keep(t, once, pair)
		h.in = h.input("lead", whole.in.Run, append(slices.Clone(whole.in.History), written[""][0]))
		h.threads[within] = slices.Clone(written[within][:n])
		told, threads, err := h.play(t.Context())
		if err != nil {
			t.Fatalf("after %d messages of the subagent: %v", n, err)
		}
		if last := told[len(told)-1]; last != "lead: says Found." || told[len(told)-2] != "lead: result true It is here." {
			t.Errorf("after %d messages: %v", n, told)
		}
		if all := n + len(threads[within]); all != len(written[within]) {
			t.Errorf("after %d messages of the subagent, %d more, want %d in all", n, len(threads[within]), len(written[within]))
		}
	}
}

// TestSubagentsAskForThemselves: whoever calls a tool that has to be asked for
// asks, in its own thread, by its own permissions;
// two may ask at once. What is denied is told to whoever asked.
func TestSubagentsAskForThemselves(t *testing.T) {
	team := slices.Clone(pair)
	team[1].Permissions = agent.Permissions{"echo": agent.Ask}
	h := keep(t, `
-- turn 1 --
@call call_subagent {"agent": "finder", "instruction": "find one"}
@call call_subagent {"agent": "finder", "instruction": "find two"}
@call call_subagent {"agent": "other", "instruction": "find three"}
-- turn 2 --
@call echo {"text": "of the lead"}
-- turn 3 --
Done.
-- asked find one --
-- turn 1 --
@call echo {"text": "one"}
-- turn 2 --
Found one.
-- asked find two --
-- turn 1 --
@call echo {"text": "two"}
-- turn 2 --
Not found two.
-- asked find three --
-- turn 1 --
@call echo {"text": "three"}
-- turn 2 --
Found three.
`, team)
	var both sync.WaitGroup
	both.Add(2)
	h.permit = func(_ context.Context, who artel.AgentName, calls []artel.ToolCall) ([]agent.Verdict, error) {
		both.Done()
		both.Wait() // the other one asks, too
		if len(calls) != 1 || who != "finder" {
			t.Errorf("%s asks about %+v", who, calls)
		}
		if strings.Contains(string(calls[0].Arguments), "two") {
			return []agent.Verdict{{Decision: artel.Deny, Reason: artel.ResolvedByPerson, Comment: "there is no two"}}, nil
		}
		return []agent.Verdict{{Decision: artel.Allow}}, nil
	}
	told, threads, err := h.play(t.Context())
	if err != nil || len(threads) != 4 {
		t.Fatal(err, told)
	}
	all := strings.Join(told, "\n")
	for _, want := range []string{"finder: result true echo one", "finder: result false ", "there is no two", "other: result true echo three", "lead: result true echo of the lead"} {
		if !strings.Contains(all, want) {
			t.Errorf("want %q in\n%s", want, all)
		}
	}
	if strings.Count(all, "finder: starts echo") != 1 {
		t.Errorf("what was denied was begun:\n%s", all)
	}
}

// TestSubagentOpensNobody: the model is told, and can mend it.
func TestSubagentOpensNobody(t *testing.T) {
	h := keep(t, once, pair)
	delete(h.agents, "finder")
	told, _, err := h.play(t.Context())
	if err != nil || !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, "there is no such agent") }) {
		t.Fatal(err, told)
	}
}

func TestToolOfSubagentsIsOfferedToWhoHasSome(t *testing.T) {
	for name, c := range map[string]struct {
		agents []agent.Definition
		want   bool
	}{"some": {pair, true}, "none": {[]agent.Definition{{Name: "lead"}}, false}} {
		h := keep(t, once, c.agents)
		built, err := h.engine.Preview(t.Context(), h.in)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(built.Request.Tools, func(s model.ToolSpec) bool { return s.Name == agent.SubagentTool })
		if (i >= 0) != c.want {
			t.Errorf("%s: tools %v", name, built.Request.Tools)
		}
		if i >= 0 && (!strings.Contains(built.Request.Tools[i].Description, "- finder: Does things.") || !strings.Contains(string(built.Request.Tools[i].Schema), `"enum":["finder","other"]`)) {
			t.Errorf("%s: %s %s", name, built.Request.Tools[i].Description, built.Request.Tools[i].Schema)
		}
	}
}
