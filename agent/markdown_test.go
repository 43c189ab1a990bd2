// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline"
)

// awkward makes texts that YAML could take for something else.
var awkward = rapid.OneOf(
	rapid.SampledFrom([]string{
		"yes", "null", "~", "1e3", "0x1f", "a: b", "- a", "# no", "---", "a\n---\nb", "\"", "'", "a\\nb", "{a}", "[b]", "@x", "%y", "*z", "&w",
		"a\r\nb", "a\r\r\nb", "a\rb", "\u2028", "\U0001f600", "\ttab", " around ", "é", "中文", "<b>&</b>", "\u0085", "2020-01-01", "no:", "!tag", "|", ">",
	}),
	rapid.StringN(1, 20, -1),
)

// TestMarkdownIsReadBack holds the written form to what is read from it.
func TestMarkdownIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := func(label string) string {
			return rapid.StringMatching(`[a-zA-Z0-9_:-][a-zA-Z0-9_.:-]{0,11}`).Draw(t, label)
		}
		d := agent.Definition{
			Name: artel.AgentName(name("name")), Service: artel.ServiceID(awkward.Draw(t, "service")),
			Description: awkward.Draw(t, "description"),
			Tools:       rapid.SliceOfNDistinct(awkward, 0, 3, rapid.ID[string]).Draw(t, "tools"),
			Limits: agent.Limits{
				Turns: rapid.IntRange(0, 1000).Draw(t, "turns"), Cost: float64(rapid.IntRange(0, 1000).Draw(t, "cost")) / 8, Depth: rapid.IntRange(0, 8).Draw(t, "depth"),
			},
			Prompt: "p " + awkward.Draw(t, "prompt"),
		}
		for _, n := range d.Tools {
			d.Subagents = append(d.Subagents, artel.AgentName(n))
		}
		d.Skills = rapid.SampledFrom([]agent.SkillNames{nil, {"*"}, {"brand"}, {"brand", "pdf-forms"}, {"*", "brand"}}).Draw(t, "skills")
		if rapid.Bool().Draw(t, "permissions") {
			d.Permissions = map[string]agent.Permission{"*": agent.Ask, awkward.Draw(t, "tool"): agent.Deny}
		}
		if rapid.Bool().Draw(t, "shaped") {
			no, order := false, 7
			d.Clock.Virtual, d.Clock.Real = time.Date(1805, 10, 21, 11, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			d.Context.ReplyReserve = &order
			d.Presets = []pipeline.Preset{{ID: "a", Text: awkward.Draw(t, "text"), Enabled: &no, Place: pipeline.Place{Depth: "1,5", Order: &order}}}
			d.Processors = []pipeline.Setting{{ID: "merge-roles", Enabled: &no}, {ID: "token-limiter", Config: []byte(`{"keep_chars":10}`)}}
		}
		if flaws := d.Check(agent.Known{}); len(flaws) > 0 {
			t.Fatal(flaws)
		}
		got, err := agent.Parse("x.md", d.Markdown())
		if err != nil {
			t.Fatalf("%v\n%s", err, d.Markdown())
		}
		if diff := cmp.Diff(d.Tidy(), got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("-want +got\n%s\n%s", diff, d.Markdown())
		}
	})
}

func TestShippedAgentsAreWritten(t *testing.T) {
	all, err := agent.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		got, err := agent.Parse("x.md", d.Markdown())
		if diff := cmp.Diff(d, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", d.Name, err, diff)
		}
	}
}

func TestCheckNamesFieldLimitAndWayOut(t *testing.T) {
	known := agent.Known{Tools: []string{"read", agent.SubagentTool}, Agents: []artel.AgentName{"lead"}, Services: []artel.ServiceID{"demo"}}
	for name, c := range map[string]struct {
		d           agent.Definition
		field, says string
	}{
		"name":          {agent.Definition{Name: "a b"}, "name", "one word of 1 to 256 bytes"},
		"dots":          {agent.Definition{Name: ".."}, "name", "one word"},
		"context":       {agent.Definition{Context: pipeline.Limits{MaxTokens: -1}}, "context.max_tokens", "negative"},
		"slash":         {agent.Definition{Name: "a/b"}, "name", "without /"},
		"description":   {agent.Definition{Description: strings.Repeat("x", 2001)}, "description", "2001 characters, and at most 2000"},
		"service":       {agent.Definition{Service: "gpt"}, "service", "there are: demo"},
		"fallback":      {agent.Definition{Fallbacks: []artel.ServiceID{"gpt"}}, "fallbacks", "there are: demo"},
		"tool":          {agent.Definition{Tools: []string{"raed"}}, "tools", "there is no tool raed; there are: read"},
		"twice":         {agent.Definition{Tools: []string{"read", "read"}}, "tools", "named twice"},
		"nobody to ask": {agent.Definition{Tools: []string{agent.SubagentTool}}, "tools", "name agents in subagents"},
		"skill":         {agent.Definition{Skills: agent.SkillNames{"A b"}}, "skills", "is no name of a skill"},
		"subagent":      {agent.Definition{Subagents: []artel.AgentName{"nobody"}}, "subagents", "there are: lead"},
		"permission":    {agent.Definition{Permissions: map[string]agent.Permission{"read": "maybe"}}, "permissions.read", "want auto, ask or deny"},
		"its tool":      {agent.Definition{Permissions: map[string]agent.Permission{"raed": "ask"}}, "permissions.raed", "there are: read"},
		"negative":      {agent.Definition{Limits: agent.Limits{Turns: -1}}, "limits.turns", "negative"},
		"too deep":      {agent.Definition{Limits: agent.Limits{Depth: 9}}, "limits.depth", "at most 8"},
		"cost":          {agent.Definition{Limits: agent.Limits{Cost: -0.5}}, "limits.cost", "-0.5"},
		"many":          {agent.Definition{Tools: make([]string, 201)}, "tools", "at most 200"},
		"prompt":        {agent.Definition{Prompt: "-"}, "prompt", "say who the agent is"},
		"long prompt":   {agent.Definition{Prompt: strings.Repeat("x", 200_001)}, "prompt", "at most 200000"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.d.Name == "" {
				c.d.Name = "x"
			}
			switch c.d.Prompt {
			case "":
				c.d.Prompt = "p"
			case "-":
				c.d.Prompt = ""
			}
			fs := c.d.Check(known)
			if len(fs) != 1 || fs[0].Field != c.field || !strings.Contains(fs[0].In(phrase.English), c.says) || !strings.Contains(fs.Error(), c.field+": ") {
				t.Errorf("got %v", fs)
			}
			if zh := fs[0].In(phrase.Chinese); zh == "" || zh == fs[0].In(phrase.English) {
				t.Errorf("in Chinese: %q", zh)
			}
		})
	}
	if fs := (agent.Definition{Name: "a", Prompt: "p", Permissions: map[string]agent.Permission{"*": agent.Ask, "read": agent.Auto}}).Check(known); len(fs) > 0 {
		t.Errorf("a good one: %v", fs)
	}
	if _, err := agent.Parse("x.md", []byte("---\nlimits: {turns: -1}\npermissions: {a: b}\n---\nx")); !errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), "permissions.a") || !strings.Contains(err.Error(), "limits.turns") {
		t.Errorf("all flaws at once: %v", err)
	}
}

func TestPermission(t *testing.T) {
	d := agent.Definition{Permissions: map[string]agent.Permission{"*": agent.Ask, "read": agent.Auto}}
	if d.Permission("read") != agent.Auto || d.Permission("write") != agent.Ask || (agent.Definition{}).Permission("x") != agent.Auto {
		t.Error("got another permission")
	}
}
