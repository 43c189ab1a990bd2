// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// TestForms has what each property of a form does to a conversation.
func TestForms(t *testing.T) {
	t.Parallel()
	msg := func(role artel.Role, ps ...artel.Part) model.Message { return model.Message{Role: role, Parts: ps} }
	text := func(s string) artel.Text { return artel.Text{Text: s} }
	call := func(id artel.CallID) artel.ToolCall { return artel.ToolCall{ID: id, Name: "f"} }
	res := func(id artel.CallID, content string, ps ...artel.Part) artel.ToolResult {
		return artel.ToolResult{CallID: id, Content: content, Parts: ps}
	}
	group := []model.Message{
		msg("user", text("u")), msg("assistant", call("a"), call("b")), msg("tool", res("b", "two", picture(1))), msg("tool", res("a", "one")), msg("user", text("so?")),
		msg("user", text("well?")),
	}
	for name, c := range map[string]struct {
		form provider.MessageRules
		in   []model.Message
		want string
	}{
		"results together": {
			provider.MessageRules{Results: provider.Together}, group, `user: "u"
assistant: a() b()
tool: a="one" b="two"
user: "artifact pic1 v1 (p.png), from tool call b" <pic1> "so?"
user: "well?"
`,
		},
		"results at the head of the user message": {
			provider.MessageRules{Results: provider.WithUser, Alternate: true}, group, `user: "u"
assistant: a() b()
user: a="one" b="two" "artifact pic1 v1 (p.png), from tool call b" <pic1> "so?" "well?"
`,
		},
		"results alone, neighbors joined": {
			provider.MessageRules{Alternate: true}, group, `user: "u"
assistant: a() b()
tool: a="one"
tool: b="two"
user: "artifact pic1 v1 (p.png), from tool call b" <pic1> "so?" "well?"
`,
		},
		"assistants join, and each group keeps its results": {
			provider.MessageRules{Results: provider.WithUser, Alternate: true},
			[]model.Message{msg("user", text("u")), msg("assistant", text("x")), msg("assistant", call("a")), msg("assistant", text("y"))},
			`user: "u"
assistant: "x" a()
user: a="` + provider.NoResult + `"
assistant: "y"
`,
		},
		"the user opens": {
			provider.MessageRules{UserFirst: true},
			[]model.Message{msg("system", text("s")), msg("assistant", text("hi")), msg("user", text("u"))},
			`system: "s"
user: "` + provider.OpeningMessage + `"
assistant: "hi"
user: "u"
`,
		},
		"the user opens, and nobody else is there": {
			provider.MessageRules{UserFirst: true}, []model.Message{msg("system", text("s"))}, `system: "s"
user: "` + provider.OpeningMessage + `"
`,
		},
		"the user has opened": {
			provider.MessageRules{UserFirst: true}, []model.Message{msg("user", text("u")), msg("assistant", text("a"))}, "user: \"u\"\nassistant: \"a\"\n",
		},
		"the system comes first": {
			provider.MessageRules{SystemFirst: true, Alternate: true},
			[]model.Message{msg("system", text("s")), msg("system", text("t")), msg("user", text("u")), msg("system", text("now"), picture(1)), msg("assistant", text("a"))},
			`system: "s" "t"
user: "u" "<system-reminder>\nnow\n</system-reminder>" <pic1>
assistant: "a"
`,
		},
		"types that results hold": {
			provider.MessageRules{ToolTypes: []string{"image/gif", "text/*"}}, group, `user: "u"
assistant: a() b()
tool: a="one"
tool: b="two"
user: "artifact pic1 v1 (p.png), from tool call b" <pic1> "so?"
user: "well?"
`,
		},
		"types that results hold, by their kind": {
			provider.MessageRules{ToolTypes: []string{"image/*"}}, group, `user: "u"
assistant: a() b()
tool: a="one"
tool: b="two" +` + fmt.Sprint(picture(1)) + `
user: "so?"
user: "well?"
`,
		},
		"ids of their own": {
			provider.MessageRules{UniqueIDs: true},
			[]model.Message{
				msg("assistant", call("a"), call("a"), call("")), msg("tool", res("a", "one"), res("a", "two"), res("", "three", picture(1))),
				msg("assistant", call("a"), call("a_2")), msg("tool", res("a", "four"), res("a_2", "five")),
			},
			`assistant: a() a_3() call_2()
tool: a="one"
tool: a_3="two"
tool: call_2="three"
user: "artifact pic1 v1 (p.png), from tool call call_2" <pic1>
assistant: a_4() a_2()
tool: a_4="four"
tool: a_2="five"
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := model.Capabilities{ToolImage: model.Fact[bool]{Value: c.form.ToolTypes != nil}}
			if d := cmp.Diff(c.want, show(c.form.Conform(c.in, to))); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// TestStateGoesToItsOwnService and nowhere else.
func TestStateGoesToItsOwnService(t *testing.T) {
	t.Parallel()
	state := json.RawMessage(`{"signature":"x"}`)
	in := []model.Message{
		{Role: artel.RoleAssistant, Parts: artel.Parts{artel.Reasoning{Text: "foreign", Opaque: state, Service: "other"}}},
		{Role: artel.RoleAssistant, Parts: artel.Parts{
			artel.Reasoning{Text: "mine", Opaque: state, Service: "me"},
			artel.Text{Text: "between"},
			artel.Reasoning{Text: "unsigned", Service: "me"},
			artel.Reasoning{Opaque: state, Service: "me"},
			artel.ToolCall{ID: "a", Opaque: state, Service: "me"},
			artel.ToolCall{ID: "b", Opaque: state, Service: "other"},
			artel.ToolCall{ID: "c", Opaque: state},
		}},
	}
	for own, want := range map[artel.ServiceID]artel.Parts{
		"me": {
			artel.Reasoning{Text: "mine", Opaque: state, Service: "me"},
			artel.Text{Text: "between"},
			artel.Reasoning{Opaque: state, Service: "me"},
			artel.ToolCall{ID: "a", Opaque: state, Service: "me"},
			artel.ToolCall{ID: "b"},
			artel.ToolCall{ID: "c"},
		},
		"": append(artel.Parts{artel.Text{Text: "between"}}, in[1].Parts[4:]...),
	} {
		out := provider.MessageRules{Own: own}.Conform(in, model.Capabilities{})
		if len(out) != 4 || out[0].Role != artel.RoleAssistant {
			t.Fatalf("for %q: %s", own, show(out))
		}
		if d := cmp.Diff(want, out[0].Parts); d != "" {
			t.Errorf("for %q (-want +got)\n%s", own, d)
		}
	}
}

// TestFormsAreAlwaysLegal holds the promises of a form for any history; those
// of Conform hold as well.
func TestFormsAreAlwaysLegal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := provider.MessageRules{
			Results:   rapid.SampledFrom([]provider.ResultLayout{provider.OneByOne, provider.Together, provider.WithUser}).Draw(rt, "results"),
			Alternate: rapid.Bool().Draw(rt, "alternate"), UserFirst: rapid.Bool().Draw(rt, "user first"),
			SystemFirst: rapid.Bool().Draw(rt, "system first"), UniqueIDs: rapid.Bool().Draw(rt, "unique"),
		}
		in, texts := conversation(rt, "a", "b", "a_2", "")
		before := show(in)
		out := f.Conform(in, model.Capabilities{ToolImage: model.Fact[bool]{Value: rapid.Bool().Draw(rt, "tool media"), Source: model.FromProbe}})
		if show(in) != before {
			rt.Fatal("the input was changed")
		}
		var open []artel.CallID
		all := map[artel.CallID]bool{}
		last, spoken := artel.Role(""), false
		for i, m := range out {
			if len(m.Parts) == 0 {
				rt.Fatalf("message %d is empty\n%s", i, show(out))
			}
			results := 0
			for _, p := range m.Parts {
				switch p := p.(type) {
				case artel.ToolCall:
					if f.UniqueIDs && (p.ID == "" || all[p.ID]) {
						rt.Fatalf("the id %q is not unique\n%s", p.ID, show(out))
					}
					all[p.ID] = true
					open = append(open, p.ID)
				case artel.ToolResult:
					if len(open) == 0 || open[0] != p.CallID {
						rt.Fatalf("the result of %q is out of place\n%s", p.CallID, show(out))
					}
					open = open[1:]
					results++
				default:
					if m.Role != artel.RoleAssistant && len(open) > 0 {
						rt.Fatalf("something comes while %v wait\n%s", open, show(out))
					}
				}
			}
			switch {
			case results == 0:
			case f.Results == provider.OneByOne && (m.Role != artel.RoleTool || len(m.Parts) != 1),
				f.Results == provider.Together && (m.Role != artel.RoleTool || len(m.Parts) != results || len(open) > 0),
				f.Results == provider.WithUser && (m.Role != artel.RoleUser || len(open) > 0):
				rt.Fatalf("message %d has results in another form\n%s", i, show(out))
			}
			if f.Alternate && m.Role == last && results == 0 {
				rt.Fatalf("message %d has the role of the one before\n%s", i, show(out))
			}
			if m.Role != artel.RoleSystem {
				if f.UserFirst && !spoken && m.Role != artel.RoleUser {
					rt.Fatalf("the %s speaks first\n%s", m.Role, show(out))
				}
				spoken = true
			} else if f.SystemFirst && spoken {
				rt.Fatalf("the system speaks late\n%s", show(out))
			}
			last = m.Role
		}
		if len(open) > 0 {
			rt.Fatalf("%v wait at the end\n%s", open, show(out))
		}
		for _, s := range texts {
			if strings.Count(show(out), s) != 1 {
				rt.Fatalf("%q is not there once\n%s\n%s", s, show(in), show(out))
			}
		}
	})
}

// conversation draws a history in any order, with calls of these ids, and returns
// its texts.
func conversation(rt *rapid.T, ids ...artel.CallID) (in []model.Message, texts []string) {
	id := func() artel.CallID { return rapid.SampledFrom(ids).Draw(rt, "id") }
	text := func() string {
		texts = append(texts, fmt.Sprintf("<text %d>", len(texts)))
		return texts[len(texts)-1]
	}
	media := func() artel.Media { return picture(byte(rapid.IntRange(1, 3).Draw(rt, "picture"))) }
	for range rapid.IntRange(0, 8).Draw(rt, "messages") {
		m := model.Message{Role: rapid.SampledFrom([]artel.Role{"system", "user", "assistant", "tool"}).Draw(rt, "role")}
		for range rapid.IntRange(0, 3).Draw(rt, "parts") {
			switch kind := rapid.IntRange(0, 2).Draw(rt, "part"); {
			case m.Role == artel.RoleTool:
				r := artel.ToolResult{CallID: id(), Content: text()}
				if kind == 0 {
					r.Parts = artel.Parts{media()}
				}
				m.Parts = append(m.Parts, r)
			case kind == 0:
				m.Parts = append(m.Parts, artel.Text{Text: text()})
			case kind == 1:
				m.Parts = append(m.Parts, media())
			case m.Role == artel.RoleAssistant:
				m.Parts = append(m.Parts, artel.ToolCall{ID: id(), Name: "f"})
			}
		}
		in = append(in, m)
	}
	return in, texts
}
