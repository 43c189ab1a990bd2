// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// TestResumedRunOverwritesNobody lets a person edit a text of a run between two of
// its steps, before another process takes the run over. What the run replaces after
// that without having read it is refused, and what it edits is merged.
func TestResumedRunOverwritesNobody(t *testing.T) {
	address := rowstest.Address(t)
	open := func(config *app.Config) {
		config.Store = local{rowstest.At(t, address)}
	}
	first := newBench(t, play(t, `
-- turn 1 --
@call create_artifact {"id":"note","title":"Note","content":"one\ntwo\n"}
-- turn 2 --
Half
@hang
`), open)
	c := first.conversation()
	r := first.send(c, run.Input{Text: "Go."})
	first.until(c, func(e artel.Event) bool { return strings.Contains(string(e.Data), "Half") })
	mine := "one\na person's line\ntwo\n"
	if _, err := first.Edits.Save(apptest.Context(t), app.ArtifactAt{Conversation: c, ID: "note", IfVersion: 1}, artifact.Draft{Text: &mine}); err != nil {
		t.Fatal(err)
	}

	now := time.Now().Add(time.Minute) // the lease of the first has ended, also if it was renewed just now
	second := newBench(t, play(t, `
-- turn 1 --
Not played: the run has made this call already.
-- turn 2 --
@call rewrite_artifact {"id":"note","content":"all new\n"}
-- turn 3 --
@call update_artifact {"id":"note","edits":[{"old":"two","new":"2"}]}
-- turn 4 --
Done.
`), open, func(config *app.Config) {
		config.Blobs = first.config.Blobs
		config.Options.Now = func() time.Time { return now }
	})
	if n, err := second.Recover(apptest.Context(t), false); err != nil || n != 1 {
		t.Fatalf("got %d, %v", n, err)
	}
	if r = second.ended(r); r.State != artel.RunDone {
		t.Fatalf("got %+v", r)
	}
	if got, want := second.text(c, "note", ""), "one\na person's line\n2\n"; got != want {
		t.Errorf("the note is %q, want %q", got, want)
	}
	refused := 0
	for _, e := range second.events(c) {
		if e.Type == artel.EventToolCompleted && strings.Contains(string(e.Data), "somebody else has changed it") {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d writes were refused, want the rewrite", refused)
	}
	if err := first.Close(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
}
