// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
)

// A seeker is a model that finds a tool, calls it wrongly, then rightly, and answers.
type seeker struct {
	mu    sync.Mutex
	asked []*model.Request
	words string // before it looks
}

func (s *seeker) answer(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	s.mu.Lock()
	s.asked = append(s.asked, r)
	s.mu.Unlock()
	last := ""
	if m := r.Messages[len(r.Messages)-1]; len(artel.ResultsOf(m.Parts)) > 0 {
		result := artel.ResultsOf(m.Parts)[0]
		last = result.Content + artel.TextOf(result.Parts)
	}
	usage := artel.Usage{InputTokens: 10, OutputTokens: 3}
	call := func(id, name, args string) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			_ = (s.words == "" || name != "artel_find_tools" || yield(model.TextDelta(s.words), nil)) &&
				yield(model.CallPiece{ID: artel.CallID(id), Name: name, Text: args}, nil) &&
				yield(model.CallDelta{ID: artel.CallID(id), Name: name, Arguments: json.RawMessage(args)}, nil) &&
				yield(model.Finish{Reason: model.StopTools, Usage: usage}, nil)
		}
	}
	switch {
	case strings.Contains(last, "it rains"):
		return func(yield func(model.Delta, error) bool) {
			_ = yield(model.TextDelta("Take an umbrella."), nil) && yield(model.Finish{Reason: model.StopEnd, Usage: usage}, nil)
		}
	case strings.Contains(last, "was not called"):
		return call("call_3", "artel_call", `{"tool":"weather_of_city","arguments":{"city":"Oslo"}}`)
	case strings.Contains(last, "weather_of_city:"):
		return call("call_2", "artel_call", `{"tool":"weather_of_city","arguments":{"city":7}}`)
	}
	return call("call_1", "artel_find_tools", `{"query":"weather"}`)
}

// manyTools are more than a model gets.
func manyTools() []model.ToolSpec {
	out := []model.ToolSpec{{Name: "weather_of_city", Description: "Tells the weather.", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}}
	for i := range 200 {
		out = append(out, model.ToolSpec{
			Name: fmt.Sprintf("shop_item_%d", i), Description: "Handles an item of the shop.",
			Schema: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer","description":"how many"}}}`),
		})
	}
	return out
}

func question() []model.Message {
	return []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "How is it in Oslo?"}}}}
}

// TestDeferredTools: of 201 tools of a client, a model of any dialect gets two. It finds
// one by words, its mistake is explained, and the client gets the call of its own tool.
// When the client comes back with the result, the service reads the conversation as its
// model wrote it.
func TestDeferredTools(t *testing.T) {
	for _, service := range []string{"chat", "messages", "responses", "gemini", "other"} {
		for _, dialect := range []string{"chat", "messages", "responses", "gemini"} {
			t.Run(dialect+" to "+service, func(t *testing.T) {
				b := newBench(t, setup{options: backend.Options{Rewriting: backend.Rewriting{Defer: new(true)}}})
				s := &seeker{}
				b.upstream, b.answer = serveBy(s.answer), s.answer
				c := b.sdks(service)[dialect]
				ask := func(messages []model.Message) (calls []artel.ToolCall, text string, usage artel.Usage) {
					r := &model.Request{Service: c.service, Tools: manyTools(), Messages: messages}
					for d, err := range c.provider.Generate(apptest.Context(t), r) {
						if err != nil {
							t.Fatal(err)
						}
						switch d := d.(type) {
						case model.CallDelta:
							calls = append(calls, artel.ToolCall(d))
						case model.CallPiece:
							if strings.HasPrefix(d.Name, "artel_") {
								t.Errorf("a piece of %s reached the client", d.Name)
							}
						case model.TextDelta:
							text += string(d)
						case model.Finish:
							usage = d.Usage
						}
					}
					<-b.finished
					return calls, text, usage
				}
				calls, text, usage := ask(question())
				if len(calls) != 1 || calls[0].Name != "weather_of_city" || compact(calls[0].Arguments) != `{"city":"Oslo"}` || text != "" {
					t.Fatalf("the client got %+v and the text %q", calls, text)
				}
				if usage.InputTokens != 30 || usage.OutputTokens != 9 {
					t.Errorf("the usage is %+v, want that of three answers", usage)
				}
				if !has(b.did(), "deferred") {
					t.Errorf("the log has %v", b.did())
				}
				if len(s.asked) != 3 {
					t.Fatalf("the service was asked %d times", len(s.asked))
				}
				_, text, _ = ask(append(question(),
					model.Message{Role: artel.RoleAssistant, Parts: artel.Parts{calls[0]}},
					model.Message{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: calls[0].ID, Content: "it rains"}}},
				))
				if text != "Take an umbrella." || len(s.asked) != 4 {
					t.Fatalf("the client got %q after %d requests", text, len(s.asked))
				}
				for i, r := range s.asked {
					if len(r.Tools) != 2 || r.Tools[0].Name != "artel_find_tools" || r.Tools[1].Name != "artel_call" {
						t.Errorf("request %d has %d tools", i, len(r.Tools))
					}
					if i == 0 {
						continue
					}
					before := s.asked[i-1]
					if diff := cmp.Diff(before.Tools, r.Tools); diff != "" {
						t.Errorf("the tools of request %d are others (-before +after):\n%s", i, diff)
					}
					if len(before.Messages) >= len(r.Messages) {
						t.Fatalf("request %d has %d messages after %d", i, len(r.Messages), len(before.Messages))
					}
					if diff := cmp.Diff(before.Messages, r.Messages[:len(before.Messages)]); diff != "" {
						t.Errorf("request %d does not begin with the one before (-before +after):\n%s", i, diff)
					}
				}
			})
		}
	}
}

// compact is JSON without white space.
func compact(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return quotedJSON(v)
}

// TestDeferredSwitch: tools are deferred only if the request, its key or the gateway says
// so, if they are many, and if the model may choose.
func TestDeferredSwitch(t *testing.T) {
	b := newBench(t, setup{options: backend.Options{Keys: []backend.Key{
		{Name: "plain", Secret: "0"}, {Name: "deferring", Secret: "1", Rewriting: backend.Rewriting{Defer: new(true)}},
	}}})
	s := &seeker{words: "Let me look. "}
	b.upstream = serveBy(s.answer)
	c := b.sdks("chat")["chat"]
	for _, x := range []struct {
		key, header string
		tools       []model.ToolSpec
		choice      model.ToolChoice
		want        bool
	}{
		{"0", "", manyTools(), model.ToolChoice{}, false},
		{"0", "true", manyTools(), model.ToolChoice{}, true},
		{"1", "", manyTools(), model.ToolChoice{}, true},
		{"1", "false", manyTools(), model.ToolChoice{}, false},
		{"1", "", manyTools()[:3], model.ToolChoice{}, false},
		{"1", "", manyTools(), model.ToolChoice{Mode: model.ChooseNamed, Name: "weather_of_city"}, false},
	} {
		s.asked = nil
		header := []string{"Authorization", "Bearer " + x.key}
		if x.header != "" {
			header = append(header, "X-Artel-Defer-Tools", x.header)
		}
		body := b.written(c, &model.Request{Messages: question(), Tools: x.tools, Choice: x.choice})
		status, answer := b.post(c.path, body, header...)
		if status != 200 || has(b.did(), "deferred") != x.want {
			t.Errorf("%+v: %d, did %v", x, status, b.did())
		}
		if deferred := len(s.asked[0].Tools) == 2; deferred != x.want {
			t.Errorf("%s %s: the service got %d tools", x.key, x.header, len(s.asked[0].Tools))
		}
		if x.want && (!strings.Contains(answer, "weather_of_city") || !strings.Contains(answer, "Let me look. ") || strings.Contains(answer, "artel_")) {
			t.Errorf("the answer is %s", answer)
		}
	}
	if status, body := b.post(c.path, asks("chat", ""), "Authorization", "Bearer 0", "X-Artel-Defer-Tools", "some"); status != 400 || !strings.Contains(body, "X-Artel-Defer-Tools") {
		t.Errorf("a wrong header: %d %s", status, body)
	}
}

// TestDeferredForEver: a model that only looks for tools is stopped.
func TestDeferredForEver(t *testing.T) {
	b := newBench(t, setup{options: backend.Options{Rewriting: backend.Rewriting{Defer: new(true)}}})
	asked := 0
	b.answer = func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
		asked++
		return func(yield func(model.Delta, error) bool) {
			_ = yield(model.CallDelta{ID: artel.CallID(fmt.Sprint("call_", asked)), Name: "artel_find_tools", Arguments: json.RawMessage(`{"query":"x"}`)}, nil) &&
				yield(model.Finish{Reason: model.StopTools}, nil)
		}
	}
	c := b.sdks("other")["chat"]
	status, body := b.post(c.path, b.written(c, &model.Request{Messages: question(), Tools: manyTools()}))
	if status < 500 || asked != 10 || !strings.Contains(body, "looked for tools") {
		t.Errorf("after %d answers: %d %s", asked, status, body)
	}
}
