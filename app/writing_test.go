// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model"
)

// turns is a provider that plays a function per turn of one run.
func turns(play ...func() model.Delta) model.Provider {
	n := 0
	return provide(func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
		d := model.Delta(model.TextDelta("Done."))
		if n < len(play) {
			d = play[n]()
		}
		n++
		_ = yield(d, nil) && yield(model.Finish{}, nil)
	})
}

func call(name string, args any) model.Delta {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return model.CallDelta{ID: artel.CallID(fmt.Sprintf("call_%d", rand.Uint64())), Name: name, Arguments: raw}
}

type m = map[string]any

// A person writes while a run goes on, after messages of the run. The run
// meets what they wrote: an edit that fits goes on top of it, one that does
// not fit is told to the model, and so is a rewrite of what it has not seen.
func TestPersonWritesDuringARun(t *testing.T) {
	var b *bench
	var c artel.ConversationID
	save := func(base int, text string) {
		t.Helper()
		if _, err := b.Edits.Save(apptest.Context(t), app.ArtifactAt{Conversation: c, ID: "doc", IfVersion: base}, artifact.Draft{Text: &text}); err != nil {
			t.Error(err)
		}
	}
	b = newBench(t, turns(
		func() model.Delta {
			return call("create_artifact", m{"id": "doc", "title": "Doc", "content": "one\ntwo\nthree\n"})
		},
		func() model.Delta {
			save(1, "ONE\ntwo\nthree\n")
			return call("update_artifact", m{"id": "doc", "old_str": "three", "new_str": "3"})
		},
		func() model.Delta { return call("rewrite_artifact", m{"id": "doc", "content": "all gone\n"}) },
		func() model.Delta { return call("read_artifact", m{"id": "doc"}) },
		func() model.Delta {
			save(3, "ONE\nzwei\n3\n")
			return call("update_artifact", m{"id": "doc", "edits": []m{{"old": "two\n", "new": "2\n"}}})
		},
		func() model.Delta { return call("delete_artifact", m{"id": "doc"}) },
		func() model.Delta { return call("read_artifact", m{"id": "doc"}) },
		func() model.Delta { return call("rewrite_artifact", m{"id": "doc", "content": "ONE\nzwei\ndrei\n"}) },
	))
	c = b.conversation()
	r := b.ask(c, "Go.")
	if r.State != artel.RunDone {
		t.Fatalf("the run: %+v", r)
	}
	var results []string
	for _, e := range b.events(c) {
		if e.Type == artel.EventToolCompleted {
			p := decode[artel.ToolCompleted](t, e)
			result := p.Message.Parts[0].(artel.ToolResult)
			results = append(results, fmt.Sprint(p.OK, " ", result.Content))
		}
	}
	for i, want := range []string{
		`true <artifact version="1">`, `true <artifact version="3">`, "false doc: somebody else has changed it meanwhile, and it is at version 3 now",
		"true <artifact_slice", "false doc: the old text is not there", "false doc: somebody else has changed it meanwhile, and it is at version 4 now",
		"true <artifact_slice", `true <artifact version="5">`,
	} {
		if i >= len(results) || !strings.HasPrefix(results[i], want) {
			t.Fatalf("call %d: got %q, want %q", i, results[min(i, len(results)):], want)
		}
	}
	if got := b.text(c, "doc", ""); got != "ONE\nzwei\ndrei\n" {
		t.Errorf("the text is %q", got)
	}
	history, err := b.Versions.History(apptest.Context(t), c, "doc", artifact.Journal)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, e := range history {
		rows = append(rows, fmt.Sprintf("%d %s %s %t %t", e.Number, e.Author, e.Update, e.Visible, e.Run == r.ID))
		if e.Message != r.Message || e.Live {
			t.Errorf("edit %d: %+v", e.Number, e)
		}
	}
	want := "1 lead_agent create false true|2 user rewrite true false|3 lead_agent update false true|4 user rewrite true false|5 lead_agent rewrite true true"
	if got := strings.Join(rows, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestStaleSave(t *testing.T) {
	b := newBench(t, nil)
	c := b.conversation()
	b.upload(c, "a.txt", "one\ntwo\n")
	p := app.ArtifactAt{Conversation: c, ID: "a.txt", IfVersion: 1}
	first, second := "1\ntwo\n", "one\n2\n"
	if _, err := b.Edits.Save(apptest.Context(t), p, artifact.Draft{Text: &first}); err != nil {
		t.Fatal(err)
	}
	_, err := b.Edits.Save(apptest.Context(t), p, artifact.Draft{Text: &second})
	stale, ok := errors.AsType[*artifact.Stale](err)
	if !ok || artel.CodeOf(err) != app.CodeStale || artel.KindOf(err) != artel.Conflict || stale.Merged == nil || stale.Merged.Clean() {
		t.Fatalf("got %v", err)
	}
	for _, e := range b.events(c) {
		if e.Type == artel.EventArtifactUpdated && e.Agent != "user" {
			t.Errorf("who wrote: %+v", e)
		}
	}
}
