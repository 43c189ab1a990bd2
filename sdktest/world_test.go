// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/sdktest/program"
)

// An upstream is a service behind the gateway: a stand-in of a model API, and
// what is configured about it.
type upstream struct {
	id       string
	title    string // in the table
	dialect  model.Dialect
	model    string
	input    string // capabilities
	behavior fake.Behavior
}

// The services that every client is tried with.
var upstreams = []upstream{
	{id: "chat", title: "Chat Completions", dialect: model.OpenAI, model: "gpt-like", input: "text, vision, file, audio"},
	{id: "responses", title: "Responses", dialect: model.OpenAIResponses, model: "gpt-like", input: "text, vision, file"},
	{id: "anthropic", title: "Messages", dialect: model.Anthropic, model: "claude-sonnet-4-6", input: "text, vision, file"},
	{id: "gemini3", title: "Gemini 3", dialect: model.Gemini, model: "gemini-3-pro", input: "text, vision, file, audio, video"},
	{id: "gemini25", title: "Gemini 2.5", dialect: model.Gemini, model: "gemini-2.5-pro", input: "text, vision, file, audio, video"},
	{id: "mistral", title: "Mistral-like", dialect: model.OpenAI, model: "pixtral-like", input: "text, vision", behavior: fake.Behavior{Refuses: []fake.Refusal{fake.NoUserAfterTool}}},
	{id: "text", title: "text only", dialect: model.OpenAI, model: "text-like", input: "text"},
}

// The ways in which services fail, by the suffix of their ids, and the status
// that a client is to see.
var faults = []struct {
	suffix string
	status int
	mode   fake.Mode
}{
	{"-400", 400, fake.BadRequest},
	{"-429", 429, fake.RateLimit},
	{"-500", 500, fake.ServerError},
	{"-half", 0, fake.HalfStream},
}

func faultOf(id string) (status int, ok bool) {
	for _, f := range faults {
		if strings.HasSuffix(id, f.suffix) {
			return f.status, true
		}
	}
	return 0, false
}

// A world is a running program with its upstreams.
type world struct {
	url   string
	panel map[program.Snippet]string // of its page
	bases map[string]string          // where the page says that an SDK is to look
	left  sync.Map                   // the marks of waits whose clients have gone
	calls atomic.Int64               // of tools, which have ids of their own
	asked sync.Map                   // *atomic.Int32, the requests by the marks of flaky answers
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	var config strings.Builder
	config.WriteString("services:\n")
	add := func(u upstream) {
		o := fake.Options{Responder: w.answer, Behavior: u.behavior, Models: []string{u.model}}
		var s *fake.Server
		suffix := ""
		switch u.dialect {
		case model.Anthropic:
			s = fake.Anthropic(o)
		case model.Gemini:
			s = fake.Gemini(o)
		default:
			s, suffix = fake.OpenAI(o), "/v1"
		}
		h := httptest.NewServer(s)
		t.Cleanup(h.Close)
		fmt.Fprintf(&config, "  - {id: %s, dialect: %s, baseURL: %q, model: %s, apiKey: sk-upstream, context_window: 100000, capabilities: {input: [%s]}}\n",
			u.id, u.dialect, h.URL+suffix, u.model, u.input)
	}
	for _, u := range upstreams {
		add(u)
	}
	for _, u := range upstreams[:4] {
		for _, f := range faults {
			add(upstream{id: u.id + f.suffix, dialect: u.dialect, model: u.model, input: u.input, behavior: fake.Behavior{Mode: f.mode}})
		}
	}
	w.url = program.Start(t, "..", config.String())
	w.panel, w.bases = readPanel(t, w.url)
	return w
}

// attempts is how often the gateway asks a service that fails; an answer comes to
// clients that ask again.
const attempts = 3

// answer is the model behind every service. It does what the newest text after
// "do:" says, and else tells what it got.
func (w *world) answer(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	command, results := "", 0
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.Text:
				if _, c, ok := strings.Cut(p.Text, "do: "); ok && m.Role == artel.RoleUser {
					command, results = c, 0
				}
			case artel.ToolResult:
				results++
			}
		}
	}
	say := func(deltas ...model.Delta) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			for _, d := range deltas {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
	usage := artel.Usage{Calls: 1, InputTokens: 11, OutputTokens: 7}
	made := func(q string) model.CallDelta {
		return model.CallDelta{ID: artel.CallID(fmt.Sprintf("call_%d", w.calls.Add(1))), Name: r.Tools[0].Name, Arguments: json.RawMessage(`{"q":"` + q + `"}`)}
	}
	tools := model.Finish{Reason: model.StopTools, Usage: usage}
	switch word, rest, _ := strings.Cut(strings.TrimSpace(command), " "); {
	case word == "call" && results == 0 && len(r.Tools) > 0:
		return say(made("one"), tools)
	case word == "calls" && results == 0 && len(r.Tools) > 0:
		return say(model.TextDelta("Two at once."), made("one"), made("two"), tools)
	case word == "json" && r.Choice.Mode != model.ChooseAuto && len(r.Tools) == 1: // how some clients ask for JSON
		return say(model.CallDelta{ID: "call_json", Name: r.Tools[0].Name, Arguments: json.RawMessage(`{"answer":"yes"}`)}, tools)
	case word == "json" && r.Format.JSON:
		return say(model.TextDelta(`{"answer":"yes"}`), model.Finish{Reason: model.StopEnd, Usage: usage})
	case word == "write" && len(r.Tools) > 0:
		return say(made(strings.Repeat("word ", 40)), tools)
	case word == "data" && r.Choice.Mode != model.ChooseAuto && len(r.Tools) == 1:
		return say(model.CallDelta{ID: "call_json", Name: r.Tools[0].Name, Arguments: json.RawMessage(`{"name":"Ada","age":36}`)}, tools)
	case word == "data" && r.Format.JSON:
		return say(model.TextDelta(`{"name":"Ada","age":36}`), model.Finish{Reason: model.StopEnd, Usage: usage})
	case word == "reason":
		return say(model.ReasoningDelta("A thought."), model.ReasoningDone{}, model.TextDelta(fmt.Sprintf("effort %q, budget %d", r.Reasoning.Effort, r.Reasoning.Budget)),
			model.Finish{Reason: model.StopEnd, Usage: usage})
	case word == "flaky":
		n, _ := w.asked.LoadOrStore(strings.TrimSpace(rest), new(atomic.Int32))
		if n.(*atomic.Int32).Add(1) <= attempts {
			return func(yield func(model.Delta, error) bool) {
				yield(nil, &artel.Error{Kind: artel.Unavailable, Err: &model.CallError{Status: http.StatusInternalServerError, Message: "Try again."}})
			}
		}
	case word == "wait":
		return func(yield func(model.Delta, error) bool) {
			if !yield(model.TextDelta("It begins."), nil) {
				return
			}
			<-ctx.Done()
			w.left.Store(strings.TrimSpace(rest), true)
		}
	}
	return fake.Echo(ctx, r)
}
