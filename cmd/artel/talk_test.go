// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/artelhq/artel"
)

// The pieces of an answer may be lost; what is printed holds all of it.
func TestChatPrintsWholeAnswers(t *testing.T) {
	const whole = "All is going so well.\n\nThe end."
	for name, c := range map[string]struct {
		pieces []artel.MessageDelta
		want   string
	}{
		"all pieces":           {[]artel.MessageDelta{{Text: "All is going "}, {Text: "so well.\n\n"}, {Text: "The end."}}, whole + "\n"},
		"the last is lost":     {[]artel.MessageDelta{{Text: "All is going "}}, whole + "\n"},
		"all are lost":         {nil, whole + "\n"},
		"one between is lost":  {[]artel.MessageDelta{{Text: "All is going "}, {Text: "The end."}}, "All is going The end.\n" + whole + "\n"},
		"it is written again":  {[]artel.MessageDelta{{Text: "All was"}, {Reset: true}, {Text: whole}}, "All was\n" + whole + "\n"},
		"it ends in a newline": {[]artel.MessageDelta{{Text: whole + "\n"}}, whole + "\n\n"},
	} {
		var out strings.Builder
		talk := &chatSession{out: &out}
		tell := func(kind artel.EventType, data any) {
			raw, err := json.Marshal(data)
			if err == nil {
				err = talk.print(artel.Event{Type: kind, Data: raw})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range c.pieces {
			tell(artel.EventMessageDelta, p)
		}
		tell(artel.EventMessageCompleted, artel.MessageCompleted{Message: artel.Message{Parts: artel.Parts{artel.Text{Text: whole}}}})
		if got := out.String(); got != c.want || talk.said != "" {
			t.Errorf("%s: printed %q, want %q", name, got, c.want)
		}
	}
}
