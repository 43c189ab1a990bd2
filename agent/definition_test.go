// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/pipeline/token"
)

const whole = `---
name: writer
description: Writes things.
service: fast
tools: [create_artifact, read_artifact]
limits:
  turns: 3
  tool_calls: 9
  seconds: 60
---

You write.

---
Even this.
`

func TestParse(t *testing.T) {
	want := agent.Definition{
		Name: "writer", Description: "Writes things.", Service: "fast", Tools: []string{"create_artifact", "read_artifact"},
		Limits: agent.Limits{Turns: 3, ToolCalls: 9, Seconds: 60}, Prompt: "You write.\n\n---\nEven this.",
	}
	for name, src := range map[string]string{
		"lf": whole, "crlf": strings.ReplaceAll(whole, "\n", "\r\n"), "bom": "\uFEFF" + whole,
	} {
		got, err := agent.Parse("writer.md", []byte(src))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	if d, err := agent.Parse("agents/bare.md", []byte("---\n---\nAnswer.")); err != nil || d.Name != "bare" || d.Prompt != "Answer." {
		t.Errorf("empty front matter: got %+v, %v", d, err)
	}
}

const shaped = `---
name: sailor
context: {max_tokens: 8000, reply_reserve: 500, keep_chars: 200}
clock: {virtual: 1805-10-21T11:00:00Z, real: 2026-01-01T00:00:00Z, scale: 2}
preset_messages:
  - {id: history, slot: chat_history}
  - id: note
    role: user
    text: "Remember: {{char}} sails."
    place: {depth: 3, order: 7}
    enabled: false
  - id: aside
    text: Hush.
    place: {kind: anchor, anchor: chat_history, side: before}
    when: {models: [sonnet], match: all}
processors:
  - {id: merge-roles, enabled: false}
  - id: token-limiter
    config: {keep_chars: 10}
---
`

func TestParseContext(t *testing.T) {
	got, err := agent.Parse("sailor.md", []byte(shaped))
	if err != nil {
		t.Fatal(err)
	}
	reserve, order, no := 500, 7, false
	want := agent.Definition{
		Name: "sailor", Context: pipeline.Limits{MaxTokens: 8000, ReplyReserve: &reserve, KeepChars: 200},
		Clock: macro.Clock{Virtual: time.Date(1805, 10, 21, 11, 0, 0, 0, time.UTC), Real: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Scale: 2},
		Presets: []pipeline.Preset{
			{ID: "history", Slot: pipeline.SlotHistory},
			{ID: "note", Role: artel.RoleUser, Text: "Remember: {{char}} sails.", Place: pipeline.Place{Depth: "3", Order: &order}, Enabled: &no},
			{
				ID: "aside", Text: "Hush.", Place: pipeline.Place{Kind: pipeline.AtAnchor, Anchor: "chat_history", Side: pipeline.Before},
				When: &pipeline.Condition{Models: []string{"sonnet"}, Match: pipeline.MatchAll},
			},
		},
		Processors: []pipeline.Setting{{ID: "merge-roles", Enabled: &no}, {ID: "token-limiter", Config: []byte(`{"keep_chars":10}`)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if at := got.Time(time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC)); !at.Equal(time.Date(1805, 10, 21, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("its clock shows %v", at)
	}
	for name, c := range map[string]struct{ front, says string }{
		"preset":     {"preset_messages: [{id: a, place: {kind: top}}]", "want list, depth or anchor"},
		"two":        {"preset_messages: [{id: a}, {id: a}]", "two presets have this id"},
		"a key":      {"preset_messages: [{id: a, txt: b}]", "unknown field"},
		"a negative": {"context: {max_tokens: -1}", "context.max_tokens: the number is negative"},
		"reserve":    {"context: {reply_reserve: -1}", "context.reply_reserve: the number is negative"},
		"setting":    {"processors: [{id: a, settings: {}}]", "unknown field"},
		"clock":      {"clock: {virtual: 2026-01-01T00:00:00Z, real: 2020-01-01T00:00:00Z, scale: 1000000}", "outside of the years"},
	} {
		if _, err := agent.Parse("x.md", []byte("---\n"+c.front+"\n---\nx")); !errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAgentsAreDocumented reads the file that the document shows.
func TestAgentsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	_, src, _ := strings.Cut(string(doc), "```markdown\n")
	src, _, _ = strings.Cut(src, "```\n")
	d, err := agent.Parse("pilot.md", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Presets) != 6 || len(d.Processors) != 2 || d.Context.KeepChars != 500 || d.Clock.Scale != 2 || d.Prompt != "You are {{char}}, a pilot." {
		t.Errorf("got %+v", d)
	}
	r, err := pipeline.NewRegistry(token.NewCounter(), pipeline.BuiltIn()...)
	if err != nil {
		t.Fatal(err)
	}
	if unknown, err := r.Processors().Check(d.Processors); err != nil || len(unknown) > 0 {
		t.Errorf("its processors: %v, %v", unknown, err)
	}
}

func TestLimitsHaveDefaults(t *testing.T) {
	if got := (agent.Limits{}).Time(); got != time.Hour {
		t.Errorf("got %v", got)
	}
	if got := (agent.Limits{Seconds: 7}).Time(); got != 7*time.Second {
		t.Errorf("got %v", got)
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ src, want string }{
		"unknown key":       {"---\nname: a\ntoolz: [x]\n---\nPrompt", "toolz"},
		"its line":          {"---\nname: a\ntoolz: [x]\n---\nPrompt", "[3:1]"},
		"key twice":         {"---\nname: a\nname: b\n---\nPrompt", "name"},
		"wrong type":        {"---\nlimits: 3\n---\nPrompt", "limits"},
		"no front matter":   {"You write.", "front matter"},
		"not closed":        {"---\nname: a\nYou write.", "front matter"},
		"empty":             {"", "front matter"},
		"no prompt":         {"---\nname: a\n---\n \n", "prompt"},
		"two words":         {"---\nname: a b\n---\nPrompt", "name"},
		"negative limit":    {"---\nlimits: {turns: -1}\n---\nPrompt", "negative"},
		"limit without end": {"---\nlimits: {seconds: 9999999999999}\n---\nPrompt", "limit"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := agent.Parse("x.md", []byte(tt.src))
			if !errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "x.md: ") {
				t.Errorf("got %+v, %v; want kind invalid, naming %q", d, err, tt.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := fstest.MapFS{
		"b.md":     {Data: []byte("---\ndescription: second\n---\nB")},
		"a.md":     {Data: []byte("---\nname: z\n---\nA")},
		"notes":    {Data: []byte("nothing")},
		"sub/c.md": {Data: []byte("nothing")},
	}
	got, err := agent.Load(dir)
	if err != nil || len(got) != 2 || got[0].Name != "z" || got[1].Name != "b" {
		t.Errorf("got %+v, %v", got, err)
	}
	dir["c.md"] = &fstest.MapFile{Data: []byte("---\nname: z\n---\nAgain")}
	if _, err := agent.Load(dir); !errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), "c.md") {
		t.Errorf("two files of one name: got %v", err)
	}
	dir["c.md"] = &fstest.MapFile{Data: []byte("broken")}
	if _, err := agent.Load(dir); !errors.Is(err, artel.Invalid) {
		t.Errorf("a broken file: got %v", err)
	}
}

func TestShipped(t *testing.T) {
	all, err := agent.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, d := range all {
		found = found || d.Name == agent.Lead
		if d.Description == "" || len(d.Tools) == 0 {
			t.Errorf("%s has no description or no tools", d.Name)
		}
	}
	if !found {
		t.Errorf("there is no %s", agent.Lead)
	}

	// A prompt speaks of what its agent has, and of all to whom it can give work.
	tools := map[string]bool{agent.SubagentTool: true}
	for _, b := range tool.BuiltIn() {
		tools[b.Name] = true
	}
	for _, d := range all {
		named := map[string]bool{}
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(d.Prompt, -1) {
			named[m[1]] = true
			if has := slices.Contains(d.Tools, m[1]) || m[1] == agent.SubagentTool && len(d.Subagents) > 0; tools[m[1]] && !has {
				t.Errorf("%s is told of %s, which it does not have", d.Name, m[1])
			}
		}
		for _, a := range d.Subagents {
			if !named[string(a)] {
				t.Errorf("%s is not told what %s is for", d.Name, a)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(strings.ReplaceAll(whole, "\n", "\r\n")))
	f.Add([]byte("---\n---\nx"))
	f.Add([]byte("---\na: &a [*a]\n---\nx"))
	f.Add([]byte("---\ntools: !x\n  a: 0\n---\nx"))
	f.Add([]byte("---\nname: |\n  a\n---\nx"))
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := agent.Parse("dir/x.md", src)
		if err != nil {
			if artel.KindOf(err) != artel.Invalid {
				t.Fatalf("got %v", err)
			}
			return
		}
		if d.Name == "" || d.Prompt == "" || d.Limits.Time() <= 0 {
			t.Fatalf("accepted %+v", d)
		}
	})
}
