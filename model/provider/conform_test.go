// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

func picture(n byte) artel.Media {
	ref := artel.Ref{Artifact: artel.ArtifactID(fmt.Sprintf("pic%d", n)), Version: int(n), Digest: artel.NewDigest([32]byte{n})}
	return artel.Media{Ref: ref, MediaType: "image/png", Kind: artel.KindImage, Filename: "p.png", Size: 1}
}

// show writes messages on lines.
func show(ms []model.Message) string {
	var b strings.Builder
	for _, m := range ms {
		fmt.Fprintf(&b, "%s:", m.Role)
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.Text:
				fmt.Fprintf(&b, " %q", p.Text)
			case artel.Media:
				fmt.Fprintf(&b, " <%s>", p.Ref.Artifact)
			case artel.ToolCall:
				fmt.Fprintf(&b, " %s()", p.ID)
			case artel.ToolResult:
				fmt.Fprintf(&b, " %s=%q", p.CallID, p.Content)
				for _, p := range p.Parts {
					fmt.Fprintf(&b, " +%v", p)
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestPlace(t *testing.T) {
	t.Parallel()
	msg := func(role artel.Role, ps ...artel.Part) model.Message { return model.Message{Role: role, Parts: ps} }
	text := func(s string) artel.Text { return artel.Text{Text: s} }
	call := func(id artel.CallID) artel.ToolCall { return artel.ToolCall{ID: id, Name: "f"} }
	res := func(id artel.CallID, content string, ps ...artel.Part) artel.ToolResult {
		return artel.ToolResult{CallID: id, Content: content, Parts: ps}
	}
	for name, c := range map[string]struct {
		in   []model.Message
		want string
	}{
		"the carrier follows the group and joins the user": {
			[]model.Message{
				msg("assistant", call("a"), call("b")), msg("tool", res("a", "one", picture(1))), msg("tool", res("b", "two", picture(2), picture(1))), msg("user", text("so?")),
			},
			`assistant: a() b()
tool: a="one"
tool: b="two"
user: "artifact pic1 v1 (p.png), from tool call a" <pic1> "artifact pic2 v2 (p.png), from tool call b" <pic2> "artifact pic1 v1 (p.png), from tool call b: the same as artifact pic1 v1 (p.png), already shown" "so?"
`,
		},
		"the carrier stands alone before an assistant": {
			[]model.Message{msg("assistant", call("a")), msg("tool", res("a", "", picture(1))), msg("assistant", text("nice"))},
			`assistant: a()
tool: a="(the result is the media that follow)"
user: "artifact pic1 v1 (p.png), from tool call a" <pic1>
assistant: "nice"
`,
		},
		"late, missing, doubled and foreign results": {
			[]model.Message{
				msg("assistant", call("a"), call("b"), call("c")), msg("user", text("wait")), msg("tool", res("c", "three"), res("a", "one")), msg("tool", res("a", "more"), res("z", "who", picture(1))),
			},
			`assistant: a() b() c()
tool: a="one"
tool: b="` + provider.NoResult + `"
tool: c="three"
user: "wait"
user: "further result of tool call a:\n\nmore" "result of tool call z, which is no longer in the conversation:\n\nwho" "artifact pic1 v1 (p.png), from tool call z" <pic1>
`,
		},
		"ids that come again belong to their own group": {
			[]model.Message{msg("assistant", call("a")), msg("tool", res("a", "one")), msg("assistant", call("a")), msg("tool", res("a", "two"))},
			"assistant: a()\ntool: a=\"one\"\nassistant: a()\ntool: a=\"two\"\n",
		},
		"media of assistant and system": {
			[]model.Message{msg("system", text("s1"), picture(1)), msg("system", text("s2")), msg("user", text("u")), msg("assistant", text("x"), picture(2)), msg("system", text("tail"))},
			`system: "s1"
system: "s2"
user: "artifact pic1 v1 (p.png), from the instructions" <pic1> "u"
assistant: "x"
user: "artifact pic2 v2 (p.png), from the assistant" <pic2>
system: "tail"
`,
		},
		"text beside media in a result stays with it": {
			[]model.Message{msg("assistant", call("a")), msg("tool", res("a", "one", text("note")))},
			"assistant: a()\ntool: a=\"one\\n\\nnote\"\n",
		},
		"nothing is empty": {
			[]model.Message{msg("system"), msg("user", text("")), msg("assistant", text("")), msg("user", text("x"))}, "user: \"x\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(c.want, show(provider.Conform(c.in, model.Capabilities{}))); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// TestPlaceByCapabilities keeps media where the API takes them, and puts an
// assistant message where it wants one.
func TestPlaceByCapabilities(t *testing.T) {
	t.Parallel()
	document := picture(9)
	document.Ref.Artifact, document.MediaType, document.Kind = "doc", "application/pdf", artel.KindDocument
	said := func(parts ...artel.Part) artel.Parts { return parts }
	called := model.Message{Role: artel.RoleAssistant, Parts: said(artel.ToolCall{ID: "a", Name: "f"})}
	answered := model.Message{Role: artel.RoleTool, Parts: said(artel.ToolResult{CallID: "a", Content: "one", Parts: said(picture(1), document)})}
	asked := model.Message{Role: artel.RoleUser, Parts: said(artel.Text{Text: "so?"})}
	yes, no := model.Fact[bool]{Value: true, Source: model.FromProbe}, model.Fact[bool]{Source: model.FromLearned}
	for name, c := range map[string]struct {
		to   model.Capabilities
		want string
	}{
		"pictures stay and other media do not": {
			model.Capabilities{ToolImage: yes},
			"assistant: a()\ntool: a=\"one\" +" + fmt.Sprint(picture(1)) + "\nuser: \"artifact doc v9 (p.png), from tool call a\" <doc> \"so?\"\n",
		},
		"other media stay and pictures do not": {
			model.Capabilities{ToolFile: yes},
			"assistant: a()\ntool: a=\"one\" +" + fmt.Sprint(document) + "\nuser: \"artifact pic1 v1 (p.png), from tool call a\" <pic1> \"so?\"\n",
		},
		"no user may follow a tool": {
			model.Capabilities{ToolImage: yes, ToolFile: yes, UserAfterTool: no},
			"assistant: a()\ntool: a=\"one\" +" + fmt.Sprint(picture(1)) + " +" + fmt.Sprint(document) + "\nassistant: \"" + provider.FillerMessage + "\"\nuser: \"so?\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(c.want, show(provider.Conform([]model.Message{called, answered, asked}, c.to))); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// TestPlaceIsAlwaysLegal holds the promises of Conform for any history.
func TestPlaceIsAlwaysLegal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		in, texts := conversation(rt, "a", "b", "c")
		sent := map[artel.Digest]bool{}
		for _, m := range in {
			for _, media := range artel.MediaOf(m.Parts) {
				sent[media.Ref.Digest] = true
			}
		}
		before := show(in)
		toolMedia := rapid.Bool().Draw(rt, "tool media")
		bridged := rapid.Bool().Draw(rt, "bridged")
		out := provider.Conform(in, model.Capabilities{
			ToolImage:     model.Fact[bool]{Value: toolMedia, Source: model.FromProbe},
			UserAfterTool: model.Fact[bool]{Value: !bridged, Source: model.FromProbe},
		})
		if show(in) != before {
			rt.Fatal("the input was changed")
		}
		var open []artel.CallID
		seen := map[artel.Digest]int{}
		count := func(ps artel.Parts) {
			for _, p := range ps {
				if m, ok := p.(artel.Media); ok {
					seen[m.Ref.Digest]++
				}
			}
		}
		for i, m := range out {
			if len(m.Parts) == 0 {
				rt.Fatalf("message %d is empty\n%s", i, show(out))
			}
			if m.Role != artel.RoleTool && len(open) > 0 {
				rt.Fatalf("message %d comes while %v wait\n%s", i, open, show(out))
			}
			switch m.Role {
			case artel.RoleTool:
				r, ok := m.Parts[0].(artel.ToolResult)
				if !ok || len(m.Parts) != 1 || len(open) == 0 || r.CallID != open[0] || !toolMedia && len(r.Parts) > 0 {
					rt.Fatalf("tool message %d is out of place\n%s", i, show(out))
				}
				open = open[1:]
				count(r.Parts)
			case artel.RoleUser:
				if bridged && i > 0 && out[i-1].Role == artel.RoleTool {
					rt.Fatalf("message %d follows a tool\n%s", i, show(out))
				}
				count(m.Parts)
			default:
				if provider.HasMedia(m.Parts) {
					rt.Fatalf("media in a message of role %s", m.Role)
				}
				for _, p := range m.Parts {
					if c, ok := p.(artel.ToolCall); ok {
						open = append(open, c.ID)
					}
				}
			}
		}
		if len(open) > 0 {
			rt.Fatalf("%v wait at the end", open)
		}
		for d := range sent {
			if seen[d] != 1 {
				rt.Fatalf("%s is sent %d times\n%s", d, seen[d], show(out))
			}
		}
		for _, s := range texts {
			if strings.Count(show(out), s) != 1 {
				rt.Fatalf("%q is not there once\n%s\n%s", s, show(in), show(out))
			}
		}
	})
}

// TestRepeatedMediaOfUsers: a text that stands for a picture says which one it was,
// also if pictures have no names or all the same.
func TestRepeatedMediaOfUsers(t *testing.T) {
	t.Parallel()
	media := func(kind artel.MediaKind, n, name string) artel.Media {
		return artel.Media{Ref: artel.BlobRef(artel.Digest("sha256-" + strings.Repeat(n, 64))), MediaType: "x/y", Kind: kind, Filename: name}
	}
	user := func(parts ...artel.Part) model.Message { return model.Message{Role: artel.RoleUser, Parts: parts} }
	a, b := media(artel.KindImage, "a", ""), media(artel.KindImage, "b", "")
	c, d := media(artel.KindImage, "c", "image.png"), media(artel.KindImage, "d", "image.png")
	sound, shot := media(artel.KindAudio, "e", ""), media(artel.KindImage, "f", "")
	got := provider.Conform([]model.Message{
		user(a, b, c, d, sound),
		user(artel.Text{Text: "which is this?"}, b),
		{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "1", Name: "look"}, artel.ToolCall{ID: "2", Name: "look"}}},
		{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "1", Parts: artel.Parts{shot}}}},
		{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "2", Parts: artel.Parts{shot, a}}}},
		user(shot, c, d, sound),
	}, model.TextOnly())
	var texts []string
	for _, m := range got {
		for _, p := range m.Parts {
			if text, ok := p.(artel.Text); ok {
				texts = append(texts, text.Text)
			}
		}
	}
	want := []string{
		"which is this?", "this picture: the same as picture 2 of the user, already shown",
		"file, from tool call 1", "file, from tool call 2: the same as file, from tool call 1, already shown",
		"file, from tool call 2: the same as picture 1 of the user, already shown",
		"this picture: the same as file, from tool call 1, already shown",
		"file (image.png): the same as file (image.png), already shown",
		"file (image.png): the same as picture 4 of the user, already shown",
		"this recording: the same as recording 1 of the user, already shown",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
}
