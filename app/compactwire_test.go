// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"iter"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// TestCompactionOnTheWire compacts in the middle of a run, at strict services of
// all dialects: a model that calls a tool instead of summarising is asked once
// more, with another choice of tools and nothing else changed, and the picture
// that the user has asked about is sent on after the compaction.
func TestCompactionOnTheWire(t *testing.T) {
	for _, dialect := range []model.Dialect{model.Anthropic, model.OpenAI, model.OpenAIResponses, model.Gemini} {
		t.Run(string(dialect), func(t *testing.T) {
			w := newWire(t, dialect, false)
			c := w.conversation()
			w.ask(c, "Remember the red crane.")
			picture := noise(t, 8)
			w.upload(c, "dots.png", picture)
			asked := 0 // for a summary
			w.answer = func(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
				return func(yield func(model.Delta, error) bool) {
					text, results := textsOf(r), 0
					for _, m := range r.Messages {
						results += len(artel.ResultsOf(m.Parts))
					}
					end := model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 9, OutputTokens: 1}}
					var d model.Delta = model.TextDelta("It is noise.")
					switch {
					case strings.Contains(text, phrase.English.Say(phrase.CompactAsk, nil)):
						asked++
						if d = model.TextDelta("## 1. Request and intent"); r.Choice.Mode != model.ChooseNone {
							d, end.Reason = call("list_artifacts", m{}), model.StopTools
						}
					case results == 0 && !strings.Contains(text, "## 1. Request and intent"):
						d, end.Reason = call("list_artifacts", m{}), model.StopTools
						if _, err := w.Runs.Compact(apptest.Context(t), c, ""); err != nil {
							t.Error(err)
						}
					}
					_ = yield(d, nil) && yield(end, nil)
				}
			}
			r := w.ended(w.send(c, run.Input{Text: "What is on it?", Attachments: []string{"dots.png"}}))
			if r.State != artel.RunDone {
				t.Fatalf("it ended as %s: %+v", r.State, r.Error)
			}
			if p := w.theCompaction(c); !p.OK || len(artel.MediaOf(p.Message.Parts)) != 1 || asked != 2 {
				t.Fatalf("asked %d times: %+v", asked, p)
			}
			n := len(w.bodies)
			if !strings.Contains(w.bodies[n-1], base64.StdEncoding.EncodeToString([]byte(picture))) || !strings.Contains(w.bodies[n-1], "## 1. Request and intent") {
				t.Errorf("after the compaction was sent\n%s", w.bodies[n-1])
			}
			before, _ := fieldsOf(t, w.bodies[n-4])
			first, sent := fieldsOf(t, w.bodies[n-3])
			again, repeated := fieldsOf(t, w.bodies[n-2])
			if !bytes.Equal(before["tools"], first["tools"]) || !bytes.Equal(first["tools"], again["tools"]) {
				t.Error("the tools differ")
			}
			for _, name := range []string{"tool_choice", "toolConfig"} {
				if !bytes.Equal(before[name], first[name]) {
					t.Errorf("%s is %s, and was %s", name, first[name], before[name])
				}
			}
			if len(sent) != len(repeated) {
				t.Errorf("%d messages, then %d", len(sent), len(repeated))
			}
			for i := range min(len(sent), len(repeated)) {
				if !bytes.Equal(sent[i], repeated[i]) {
					t.Errorf("message %d differs:\n%s\n%s", i, sent[i], repeated[i])
				}
			}
		})
	}
}
