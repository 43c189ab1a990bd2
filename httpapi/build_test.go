// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/httpapi"
)

func (b *bench) build(body string) httpapi.BuildResult {
	b.t.Helper()
	a := b.do("POST", "/pipeline/build", body)
	var out httpapi.BuildResult
	if a.StatusCode != 200 || json.Unmarshal(a.body, &out) != nil {
		b.t.Fatalf("%d: %s", a.StatusCode, a.body)
	}
	return out
}

// said is the messages as "id role origin: text".
func said(r httpapi.BuildResult) (out []string) {
	for _, m := range r.Messages {
		text := "(parts)"
		if m.Text != nil {
			text = *m.Text
		}
		out = append(out, m.ID+" "+string(m.Role)+" "+m.Origin+": "+text)
	}
	return out
}

func TestBuildInline(t *testing.T) {
	b := newBench(t, "")
	r := b.build(`{
		"agent": {"name": "Ada", "preset_messages": [
			{"id": "p", "text": "You are {{char}}, it is {{datetime_format::YYYY}}."},
			{"id": "h", "slot": "chat_history"},
			{"id": "n", "role": "user", "text": "{{persona}}", "place": {"kind": "depth", "depth": "1"}}]},
		"user": {"name": "Eve", "persona": "curious"},
		"model_processors": [{"id": "merge-roles", "enabled": false}, {"id": "nothing"}],
		"messages": [{"id": "1", "role": "user", "text": "one"}, {"id": "2", "role": "assistant", "text": "two", "muted": true}, {"id": "3", "role": "user", "text": "three", "pending": true}],
		"clock": {"now": "2026-05-04T12:30:00Z", "timezone": "Europe/Paris"}}`)
	want := []string{"p system preset: You are Ada, it is 2026.", "1 user history: one", "n user depth: curious", "3 user history: three"}
	if diff := cmp.Diff(want, said(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Error != nil || r.Tokens.Budget != 0 || r.Tokens.Total != r.Tokens.Fixed+r.Tokens.History || r.Tokens.History == 0 || len(r.Record.RequestSHA256) != 64 {
		t.Errorf("%+v", r)
	}
	first := r.Record.Processors[0]
	if first.ID != "session-loader" || !slices.Equal(first.Added, []string{"1", "3"}) || len(first.Logs) != 1 || first.Logs[0].Level != "warn" {
		t.Errorf("the first step: %+v", first)
	}
	again := b.build(`{"messages": [{"role": "user", "text": "one"}]}`)
	if more := b.build(`{"messages": [{"role": "user", "text": "one"}], "seed": 3}`); more.Record.RequestSHA256 != again.Record.RequestSHA256 {
		t.Error("the same draft gives two requests")
	}
}

func TestBuildInlineBranches(t *testing.T) {
	b := newBench(t, "")
	r := b.build(`{"messages": [
		{"id": "a", "role": "user", "text": "root"},
		{"id": "b", "parent_id": "a", "role": "assistant", "text": "left"},
		{"id": "c", "parent_id": "a", "role": "assistant", "text": "right"},
		{"id": "d", "parent_id": "c", "role": "user", "text": "on"}]}`)
	if diff := cmp.Diff([]string{"a user history: root", "c assistant history: right", "d user history: on"}, said(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r = b.build(`{"until": "session-loader", "messages": [{"id": "a", "role": "user", "text": "x"}, {"id": "b", "role": "user", "text": "y"}]}`)
	if len(r.Record.Processors) != 1 || len(r.Messages) != 2 {
		t.Errorf("until the first processor: %+v", r)
	}
	r = b.build(`{"until": "convert-system", "messages": [{"id": "a", "role": "user", "text": "x"}, {"id": "s", "role": "system", "text": "y"}]}`)
	steps := r.Record.Processors
	if steps[len(steps)-1].ID != "convert-system" || r.Messages[len(r.Messages)-1].Role != "user" {
		t.Errorf("until one that is off: %+v", said(r))
	}
}

func TestBuildInlineFiles(t *testing.T) {
	b := newBench(t, "")
	r := b.build(`{"service": {"dialect": "openai", "model": "none-such", "capabilities": ["text", "vision"]},
		"messages": [{"id": "1", "role": "user", "text": "see", "attachments": [
			{"name": "a.png", "media_type": "image/png", "width": 1024, "height": 1024},
			{"name": "b.txt", "media_type": "text/plain", "data": "b25lIHR3bw=="},
			{"name": "c.zip", "media_type": "application/zip", "data": "UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA=="}]}]}`)
	raw, _ := json.Marshal(r.Messages)
	for _, want := range []string{`"type":"media"`, `"width":1024`, "one two", "ZIP archive"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %s in %s", want, raw)
		}
	}
	if strings.Contains(string(raw), "UEsFBg") || r.Error != nil {
		t.Errorf("%s %+v", raw, r.Error)
	}
	blind := b.build(`{"messages": [{"role": "user", "text": "see", "attachments": [{"name": "a.png", "media_type": "image/png", "width": 10, "height": 10}]}]}`)
	if raw, _ := json.Marshal(blind.Messages); strings.Contains(string(raw), `"media"`) || !strings.Contains(string(raw), "a.png") {
		t.Errorf("without vision: %s", raw)
	}
}

func TestBuildInlineErrors(t *testing.T) {
	b := newBench(t, "")
	r := b.build(`{"agent": {"context": {"max_tokens": 8}}, "messages": [{"id": "1", "role": "user", "text": "a text that is longer than the window is wide, by far"}]}`)
	if r.Error == nil || r.Error.Kind != "too_large" || r.Error.Processor != "token-limiter" || r.Tokens.Budget == 0 {
		t.Errorf("over the budget: %+v", r)
	}
	r = b.build(`{"agent": {"processors": [{"id": "token-limiter", "config": {"max_tokens": "many"}}]}, "messages": [{"role": "user", "text": "x"}]}`)
	if r.Error == nil || r.Error.Kind != "invalid" || r.Error.Processor != "token-limiter" {
		t.Errorf("a bad configuration: %+v", r.Error)
	}
	for body, want := range map[string]string{
		`{"messages": [{"role": "user", "text": "x"}], "unknown": 1}`:                                      "/unknown",
		`{"messages": [{"role": "robot", "text": "x"}]}`:                                                   "/messages/0/role",
		`{"messages": [{"role": "user", "text": "x", "parts": []}]}`:                                       "/messages/0/parts",
		`{"messages": [{"role": "user", "parts": [{"type": "smell"}]}]}`:                                   "/messages/0/parts",
		`{"messages": [{"role": "user", "attachments": [{}]}]}`:                                            "/messages/0/attachments/0",
		`{"messages": [{"role": "user", "attachments": [{"name": "a", "data": "?"}]}]}`:                    "/messages/0/attachments/0/data",
		`{"messages": [], "clock": {"timezone": "Mars/Base"}}`:                                             "/clock/timezone",
		`{"messages": [], "service": {"dialect": "openai", "colour": "red"}}`:                              "/service",
		`{"messages": [], "service": {"dialect": "esperanto"}}`:                                            "esperanto",
		`{"messages": [], "service": "none-such"}`:                                                         "none-such",
		`{"messages": [], "until": "none-such"}`:                                                           "none-such",
		`{"messages": [{"id": "1", "role": "user", "text": "x"}, {"id": "1", "role": "user", "text":""}]}`: "two messages",
		`{"messages": [], "agent": {"preset_messages": [{"id": "a", "place": {"kind": "top"}}]}}`:          "want list, depth or anchor",
	} {
		if a := b.do("POST", "/pipeline/build", body); a.StatusCode != 422 && !(want == "none-such" && a.StatusCode == 200) || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.body)
		}
	}
	if a := b.do("POST", "/pipeline/build", `{"messages": []}`); a.StatusCode != 200 {
		t.Errorf("an empty draft: %d %s", a.StatusCode, a.body)
	}
}
