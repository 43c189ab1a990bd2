// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/run"
)

// looks fetches the picture that came with the message, writes, and answers.
const looks = `
-- turn 1 --
@call get_artifact {"ref":"dot.gif"}
-- turn 2 --
@call list_artifacts {}
-- turn 3 --
Seen.
`

func TestContextBuilt(t *testing.T) {
	b := newBench(t, play(t, looks))
	c := b.conversation()
	note := b.upload(c, "note.txt", "one two")
	dot := b.upload(c, "dot.gif", gif)
	first := b.ended(b.send(c, run.Input{Text: "See.", Attachments: []string{"note.txt", "dot.gif"}}))

	want := "run_started user_input agent_started context_built message_completed usage tool_started tool_completed" +
		" context_built message_completed usage tool_started tool_completed message_completed usage run_finished"
	all := b.events(c)
	if got := typesOf(all); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	one := decode[artel.ContextBuilt](t, all[3]).Attachments
	if len(one) != 2 || one[0].Message != first.Message || one[0].Ref.Artifact != note.ID || one[0].Ref.Version != 1 || one[0].Filename != "note.txt" ||
		one[0].Step != artel.StepNative || one[0].Reason != artel.ReasonText || one[0].Sent == nil || one[0].Sent.Characters != 7 ||
		one[1].Ref.Artifact != dot.ID || one[1].Kind != artel.KindImage || one[1].Step != artel.StepNative || one[1].Sent != nil || one[1].Tokens == 0 {
		t.Errorf("the first call: got %+v", one)
	}
	two := decode[artel.ContextBuilt](t, all[8]).Attachments
	if len(two) != 3 || two[2].Message != b.messages(c)[2].ID || two[2].Ref.Artifact != dot.ID {
		t.Errorf("the second call: got %+v", two)
	}

	b.ask(c, "And now?")
	again := b.events(c)[len(all):]
	if again[3].Type != artel.EventContextBuilt || len(decode[artel.ContextBuilt](t, again[3]).Attachments) != 3 {
		t.Errorf("the next run: got %s", typesOf(again))
	}
}
