// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"slices"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline/token"
	"github.com/artelhq/artel/run"
)

// leanTokens is what the prompt and the tools of a shipped agent take at most, so
// that the agent fits the windows of small local models.
const leanTokens = 1800

// TestShippedAgentsAreLean: in a window of 4,000 tokens, each of them has room to
// talk.
func TestShippedAgentsAreLean(t *testing.T) {
	all, err := agent.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	counter := token.NewCounter()
	count := func(s string) int {
		n, err := counter.Count(token.O200k, s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, d := range all {
		t.Run(string(d.Name), func(t *testing.T) {
			var sent *model.Request
			answer := provide(answering().generate)
			b := newBench(t, answer, func(c *app.Config) {
				s := model.DemoService()
				s.Capabilities.ContextWindow.Value, s.Capabilities.Tokenizer.Value = 4000, token.O200k
				c.Services = model.NewRegistry([]model.Service{s}, s.ID)
			})
			c := b.conversation()
			r := b.ended(b.send(c, run.Input{Text: "hello there", Agent: d.Name}))
			if r.State != artel.RunDone {
				t.Fatalf("it ended as %s: %+v", r.State, r.Error)
			}
			p, err := b.Previews.Build(apptest.Context(t), c, run.Input{Text: "And then?", Agent: d.Name})
			if err != nil || len(p.Tokens.Dropped) > 0 || p.Tokens.Budget-p.Tokens.Total < 1000 {
				t.Errorf("of %d tokens, %d are taken: %v", p.Tokens.Budget, p.Tokens.Total, err)
			}
			if fixed := p.Tokens.Total - p.Tokens.History; fixed > leanTokens+100 { // and the reminder
				t.Errorf("%d tokens are taken before a word", fixed)
			}
			g := answering()
			b = newBench(t, provide(g.generate))
			b.ended(b.send(b.conversation(), run.Input{Text: "hello", Agent: d.Name}))
			sent = g.calls[0]
			total := count(d.Prompt)
			for _, tool := range sent.Tools {
				total += count(tool.Name) + count(tool.Description) + count(string(tool.Schema))
			}
			t.Logf("%d tokens, of which the prompt has %d", total, count(d.Prompt))
			if total > leanTokens {
				t.Errorf("prompt and tools take %d tokens, want at most %d", total, leanTokens)
			}
			if slices.ContainsFunc(sent.Tools, func(s model.ToolSpec) bool { return s.Description == "" }) {
				t.Error("a tool is not described")
			}
		})
	}
}
