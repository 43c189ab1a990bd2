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
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/edit"
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
		if _, err := b.Artifacts.Save(t.Context(), app.ArtifactAt{Conversation: c, ID: "doc", IfVersion: base}, app.Draft{Text: &text}); err != nil {
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
	history, err := b.Artifacts.History(t.Context(), c, "doc", app.Journal)
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
	if _, err := b.Artifacts.Save(t.Context(), p, app.Draft{Text: &first}); err != nil {
		t.Fatal(err)
	}
	_, err := b.Artifacts.Save(t.Context(), p, app.Draft{Text: &second})
	stale, ok := errors.AsType[*app.Stale](err)
	if !ok || artel.CodeOf(err) != app.CodeStale || artel.KindOf(err) != artel.Conflict || stale.Merged == nil || stale.Merged.Clean() {
		t.Fatalf("got %v", err)
	}
	for _, e := range b.events(c) {
		if e.Type == artel.EventArtifactUpdated && e.Agent != "user" {
			t.Errorf("who wrote: %+v", e)
		}
	}
}

// A reader follows a conversation as the page does, from nothing but events.
type reader struct {
	t        *testing.T
	b        *bench
	c        artel.ConversationID
	versions map[artel.ArtifactID]int
	texts    map[artel.ArtifactID]string
	deleted  map[artel.ArtifactID]bool
	applied  int // events that were applied as spans
	fetched  int // texts that the events did not give
}

func newReader(t *testing.T, b *bench, c artel.ConversationID) *reader {
	return &reader{
		t: t, b: b, c: c, versions: map[artel.ArtifactID]int{}, texts: map[artel.ArtifactID]string{}, deleted: map[artel.ArtifactID]bool{},
	}
}

// take applies one event.
func (r *reader) take(e artel.Event) {
	switch e.Type {
	case artel.EventArtifactCreated:
		p := decode[artel.ArtifactCreated](r.t, e)
		r.set(p.Artifact, p.Content)
	case artel.EventArtifactUpdated:
		p := decode[artel.ArtifactUpdated](r.t, e)
		_, had := r.versions[p.ID]
		if p.Content == nil && !p.ContentOmitted && had && r.versions[p.ID] == p.BaseVersion {
			text, err := edit.ApplyChanges(r.texts[p.ID], p.Spans)
			if err != nil {
				r.t.Fatalf("version %d of %s: %v", p.Version, p.ID, err)
			}
			p.Content = &text
			r.applied++
		}
		r.set(p.Artifact, p.Content)
	case artel.EventToolCompleted:
		p := decode[artel.ToolCompleted](r.t, e)
		snapshot, _ := p.Metadata["artifact_snapshot"].(m)
		content, ok := snapshot["content"].(string)
		id := artel.ArtifactID(fmt.Sprint(snapshot["id"]))
		if ok && int(snapshot["version"].(float64)) == r.versions[id] && content != r.texts[id] {
			r.t.Errorf("the snapshot of %s is %q, the deltas lead to %q", id, content, r.texts[id])
		}
	}
}

// set notes what an event says; what it leaves out is fetched by its number.
func (r *reader) set(a artel.Artifact, content *string) {
	if content == nil {
		_, text, err := r.b.Artifacts.State(r.t.Context(), r.c, a.ID, a.Version, app.WithLive)
		if err != nil {
			r.t.Fatal(err)
		}
		content = text
		r.fetched++
	}
	r.versions[a.ID], r.texts[a.ID], r.deleted[a.ID] = a.Version, *content, a.Deleted
}

// TestEventsLeadToTheStore: whoever applies the events of a random history has
// in the end what the store has, byte for byte; also who came later.
func TestEventsLeadToTheStore(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			var b *bench
			var c artel.ConversationID
			steps := 45
			b = newBench(t, provide(func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
				if steps--; steps < 0 || steps%15 == 0 {
					_ = yield(model.TextDelta("Done."), nil) && yield(model.Finish{}, nil)
					return
				}
				if random.IntN(4) == 0 {
					person(b, c, random)
				}
				_ = yield(anyCall(random), nil) && yield(model.Finish{}, nil)
			}))
			c = b.conversation()
			for range 3 {
				if r := b.ask(c, "Go."); r.State != artel.RunDone {
					t.Fatalf("the run: %+v", r)
				}
				person(b, c, random)
			}
			last, err := b.Events.Last(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			first := newReader(t, b, c)
			for _, after := range []artel.Seq{0, last / 3, last / 2, last - 1} {
				r := newReader(t, b, c)
				if after == 0 {
					r = first
				}
				ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
				for e, err := range b.Events.Follow(ctx, c, after, 0) {
					if err != nil {
						t.Fatal(err)
					}
					if r.take(e); e.Seq == last {
						break
					}
				}
				stop()
				r.compare()
			}
			t.Logf("%d events, %d applied as spans, %d texts fetched", last, first.applied, first.fetched)
			if first.applied == 0 {
				t.Error("no event was applied as spans")
			}
		})
	}
}

// compare holds what was followed to the store.
func (r *reader) compare() {
	r.t.Helper()
	for id, text := range r.texts {
		a, now, err := r.b.Artifacts.Find(r.t.Context(), r.c, id, "")
		if r.deleted[id] {
			if artel.KindOf(err) != artel.NotFound {
				r.t.Errorf("%s is deleted for who followed, not in the store: %v", id, err)
			}
			continue
		}
		if err != nil || a.Version != r.versions[id] || *now != text {
			r.t.Errorf("%s: followed to version %d %q, the store has %d, %v", id, r.versions[id], text, a.Version, err)
		}
	}
}

func anyID(random *rand.Rand) string { return []string{"plan", "notes", "测试"}[random.IntN(3)] }

func anyText(random *rand.Rand) string {
	var s strings.Builder
	for range 1 + random.IntN(8) {
		s.WriteString([]string{"alpha ", "beta\n", "伽马", "delta\r\n", "é", "\n"}[random.IntN(6)])
		fmt.Fprint(&s, random.IntN(100))
	}
	return s.String()
}

// anyCall is one of the writing tools with arguments that often work.
func anyCall(random *rand.Rand) model.Delta {
	id := anyID(random)
	old := []string{"alpha", "beta", "伽马", "delta", "1", "2"}[random.IntN(6)]
	switch random.IntN(8) {
	case 0, 1:
		return call("create_artifact", m{"id": id, "title": id, "content": anyText(random)})
	case 2:
		return call("rewrite_artifact", m{"id": id, "content": anyText(random)})
	case 3:
		return call("rename_artifact", m{"id": id, "title": anyText(random)})
	case 4:
		return call("delete_artifact", m{"id": id})
	case 5:
		return call("restore_artifact", m{"id": id, "version": random.IntN(4)})
	}
	return call("update_artifact", m{"id": id, "edits": []m{{"old": old, "new": anyText(random), "replace_all": true}}})
}

// person does something to an artifact, if it is there.
func person(b *bench, c artel.ConversationID, random *rand.Rand) {
	p := app.ArtifactAt{Conversation: c, ID: artel.ArtifactID(anyID(random))}
	a, text, err := b.Artifacts.Find(context.Background(), c, p.ID, "")
	if err != nil {
		_, _ = b.Artifacts.Restore(context.Background(), p, 0)
		return
	}
	p.IfVersion = a.Version
	changed := *text + anyText(random)
	if random.IntN(3) == 0 {
		changed = anyText(random)
	}
	if _, err := b.Artifacts.Save(context.Background(), p, app.Draft{Text: &changed}); err != nil {
		b.t.Error(err)
	}
}
