// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
)

// TestHelpAfterTheFirstMistake: the longer description of a tool comes with the
// result of its first call that fails, and with no other.
func TestHelpAfterTheFirstMistake(t *testing.T) {
	const help = "Say what is to be echoed."
	helpful := tool.Func("helpful", "Says it again.\n\n---\n\n"+help+"\n", func(ctx context.Context, e *tool.Env, in echoArgs) (tool.Result, error) { return echo(ctx, e, in) })
	if helpful.Doc != "Says it again." || helpful.Help != help {
		t.Fatalf("%q, %q", helpful.Doc, helpful.Help)
	}
	b := newBench(t, []turn{
		{call("a", "helpful", `{"text":"x"}`), call("b", "helpful", `{"text":""}`), call("c", "helpful", `{"text":""}`), call("d", "helpful", `{}`), tools},
		{say("Done."), end},
	}, helpful)
	all, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p, ok := p.(artel.ToolCompleted); ok {
			content := p.Message.Parts[0].(artel.ToolResult).Content
			if got, want := strings.Contains(content, help), p.Call == "b"; got != want {
				t.Errorf("call %s: %q", p.Call, content)
			}
		}
	}
	if spec := b.requests[0].Tools; !strings.Contains(spec[len(spec)-1].Description, "Says it again.") || strings.Contains(spec[len(spec)-1].Description, help) {
		t.Errorf("%+v", spec)
	}
}
