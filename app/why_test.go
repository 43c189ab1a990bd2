// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/inspect"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

func TestWhy(t *testing.T) {
	b := newBench(t, provide((&listener{}).generate), withoutCompaction)
	c := b.conversation()
	dot := b.upload(c, "dot.gif", gif)
	b.upload(c, "Never.txt", "x")
	first := b.ended(b.send(c, run.Input{Text: "one", Attachments: []string{"dot.gif"}}))
	muted := b.ask(c, "two")
	other := b.ended(b.send(c, run.Input{Text: "left", Parent: &first.Reply}))
	if err := b.config.Store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error { return tx.Messages.SetMuted(muted.Message, true) }); err != nil {
		t.Fatal(err)
	}
	right := b.ended(b.send(c, run.Input{Text: "right", Parent: &muted.Reply}))
	last := b.ended(b.send(c, run.Input{Text: "last", Parent: &right.Reply}))
	why := func(r artel.Run, about string, want inspect.WhyCode, seen bool) {
		t.Helper()
		w, err := b.Contexts.Why(apptest.Context(t), record.ContextKey{Run: r.ID, Number: 1}, about, phrase.Chinese)
		if err != nil || len(w.Findings) == 0 || w.Findings[0].Code != want || w.Seen != seen {
			t.Errorf("%s in %s: %+v, %v; want %s", about, r.ID, w, err, want)
			return
		}
		if text := w.Findings[0].Text; text == "" || strings.Contains(text, "why.") || strings.Contains(text, "<no value>") {
			t.Errorf("%s: %q", about, text)
		}
	}
	why(right, string(muted.Message), inspect.WhyMuted, false)
	why(right, string(first.Message), inspect.WhyChanged, true)
	why(right, string(first.Reply), inspect.WhyChanged, true) // the reply to the muted message is joined to it
	why(right, string(muted.Reply), inspect.WhyMerged, true)
	why(right, string(other.Message), inspect.WhyBranch, false)
	why(first, string(last.Message), inspect.WhyLater, false)
	why(right, "dot.gif", inspect.WhyFile, true)
	why(right, dot.Ref.String(), inspect.WhyFile, true)
	why(right, "never.txt", inspect.WhyUnattached, false)
	why(right, "gone.txt", inspect.WhyNotHere, false)

	limit, _ := json.Marshal(map[string]int{"max_tokens": 2350, "reply_reserve": 0})
	if _, err := b.Pipeline.SetLevel(apptest.Context(t), settings.LevelAt{Agent: "lead_agent"}, []pipeline.Setting{{ID: pipeline.TokenLimiter, Config: limit}, {ID: pipeline.InjectionAssembler, Config: json.RawMessage(`{"preview":0}`)}}, settings.AnyRevision); err != nil {
		t.Fatal(err)
	}
	var long artel.Run
	for i := range 4 {
		long = b.ended(b.send(c, run.Input{Text: fmt.Sprint(i, strings.Repeat(" and some more", 60))}))
	}
	if long.State != artel.RunDone {
		t.Fatalf("%+v", long.Error)
	}
	why(long, string(last.Message), inspect.WhyDropped, false)
}

// A file that was only described was not seen, and its finding says so.
func TestDescribedIsNotSeen(t *testing.T) {
	b := newBench(t, provide((&listener{}).generate), func(c *app.Config) {
		s := model.DemoService()
		s.Capabilities = model.TextOnly()
		c.Services = model.NewRegistry([]model.Service{s}, s.ID)
	})
	c := b.conversation()
	b.upload(c, "dot.gif", gif)
	b.upload(c, "note.txt", "words")
	run := b.ended(b.send(c, run.Input{Text: "See.", Attachments: []string{"dot.gif", "note.txt"}}))
	for about, seen := range map[string]bool{"dot.gif": false, "note.txt": true} {
		w, err := b.Contexts.Why(apptest.Context(t), record.ContextKey{Run: run.ID, Number: 1}, about, phrase.English)
		if err != nil || len(w.Findings) != 1 || w.Findings[0].Code != inspect.WhyFile || w.Seen != seen {
			t.Errorf("%s: %+v, %v", about, w, err)
		}
	}
}
