// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// A reader knows artifacts from nothing but events, as the page does, of all
// branches. What an event leaves out it fetches by its number.
type reader struct {
	t       *rapid.T
	b       *bench
	c       artel.ConversationID
	texts   map[artel.ArtifactID]map[int]string
	heads   map[artel.ArtifactID]map[int]artel.Artifact
	applied *int // events that were applied as spans
}

func (r *reader) take(e artel.Event) {
	switch e.Type {
	case artel.EventArtifactCreated:
		p := payload[artel.ArtifactCreated](r.t, e)
		r.set(p.Artifact, p.Content)
	case artel.EventArtifactUpdated:
		p := payload[artel.ArtifactUpdated](r.t, e)
		base, had := r.texts[p.ID][p.BaseVersion]
		if had && !p.ContentOmitted && (p.Content == nil || p.Spans != nil) {
			text, err := edit.ApplyChanges(base, p.Spans)
			if err != nil {
				r.t.Fatalf("version %d of %s: %v", p.Version, p.ID, err)
			}
			if p.Content != nil && *p.Content != text {
				r.t.Fatalf("version %d of %s comes as %q, its spans lead to %q", p.Version, p.ID, *p.Content, text)
			}
			p.Content = &text
			*r.applied++
		}
		r.set(p.Artifact, p.Content)
	case artel.EventToolCompleted:
		p := payload[artel.ToolCompleted](r.t, e)
		snapshot, _ := p.Metadata["artifact_snapshot"].(m)
		content, ok := snapshot["content"].(string)
		if !ok {
			return
		}
		id, n := artel.ArtifactID(fmt.Sprint(snapshot["id"])), int(snapshot["version"].(float64))
		if text, had := r.texts[id][n]; had && content != text {
			r.t.Fatalf("the snapshot of %s at version %d is %q, the deltas lead to %q", id, n, content, text)
		}
	}
}

// set notes what an event says.
func (r *reader) set(a artel.Artifact, content *string) {
	if content == nil {
		_, text, err := r.b.Versions.State(background, r.c, a.ID, a.Version, artifact.WithLive)
		if err != nil {
			r.t.Fatal(err)
		}
		content = text
	}
	if r.texts[a.ID] == nil {
		r.texts[a.ID], r.heads[a.ID] = map[int]string{}, map[int]artel.Artifact{}
	}
	r.texts[a.ID][a.Version], r.heads[a.ID][a.Version] = *content, a
}

// compare holds what the events told to the store, on every branch. whole says
// that the reader has heard of everything.
func (r *reader) compare(leaves []artel.MessageID, whole bool) {
	for _, at := range leaves {
		for _, id := range someIDs() {
			a, text, err := r.b.Artifacts.Find(background, r.c, id, at)
			if artel.KindOf(err) == artel.NotFound {
				continue
			}
			if err != nil {
				r.t.Fatal(err)
			}
			got, had := r.texts[id][a.Version]
			if had && (got != *text || r.heads[id][a.Version].Deleted || r.heads[id][a.Version].Title != a.Title) || !had && whole {
				r.t.Fatalf("%s at %s: followed to %q, the store has version %d %q", id, at, got, a.Version, *text)
			}
		}
		deleted, err := r.b.Artifacts.Deleted(background, r.c, at)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, a := range deleted {
			if h, had := r.heads[a.ID][a.Version]; had && !h.Deleted {
				r.t.Fatalf("%s is deleted at %s, not for who followed", a.ID, at)
			}
		}
	}
}

var background = artel.WithOwner(context.Background(), artel.Local)

func payload[P artel.Payload](t rapid.TB, e artel.Event) P {
	var p P
	if err := json.Unmarshal(e.Data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func someIDs() []artel.ArtifactID { return []artel.ArtifactID{"plan", "notes", "测试"} }

// A deed is what a person does, or what a model asks for.
type deed struct {
	id   artel.ArtifactID
	kind string
	text string
	old  string
	n    int
}

func someDeed(kinds ...string) *rapid.Generator[deed] {
	pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"alpha ", "beta\n", "伽马", "delta\r\n", "é", "\n", "1", "2", "3"}), 1, 9)
	return rapid.Custom(func(t *rapid.T) deed {
		d := deed{
			id: rapid.SampledFrom(someIDs()).Draw(t, "id"), kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
			old: rapid.SampledFrom([]string{"alpha", "alpha", "1", "beta", "伽马", "delta"}).Draw(t, "old"), n: rapid.IntRange(0, 5).Draw(t, "version"),
		}
		d.text = "alpha 1 "
		for _, piece := range pieces.Draw(t, "text") {
			d.text += piece
		}
		return d
	})
}

// call is the deed as a model asks for it.
func (d deed) call() model.Delta {
	switch d.kind {
	case "create", "rewrite":
		return call(d.kind+"_artifact", m{"id": d.id, "title": "T", "content": d.text})
	case "rename":
		return call("rename_artifact", m{"id": d.id, "title": d.text})
	case "delete":
		return call("delete_artifact", m{"id": d.id})
	case "restore":
		return call("restore_artifact", m{"id": d.id, "version": d.n})
	case "read":
		return call("read_artifact", m{"id": d.id})
	}
	return call("update_artifact", m{"id": d.id, "edits": []m{{"old": d.old, "new": d.text, "replace_all": true}}})
}

// by lets a person do it, where it can be done.
func (d deed) by(b *bench, c artel.ConversationID) error {
	p := app.ArtifactAt{Conversation: c, ID: d.id}
	a, text, err := b.Artifacts.Find(background, c, d.id, "")
	if err == nil {
		p.IfVersion = a.Version
	}
	switch changed := d.text; {
	case err != nil:
		_, err = b.Edits.Restore(background, p, 0)
	case d.kind == "delete":
		_, err = b.Edits.Delete(background, p)
	case d.kind == "rename":
		_, err = b.Edits.Rename(background, p, d.text)
	case d.kind == "update":
		changed = *text + d.text
		fallthrough
	default:
		_, err = b.Edits.Save(background, p, artifact.Draft{Text: &changed})
	}
	switch artel.KindOf(err) {
	case "", artel.NotFound, artel.Conflict, artel.Invalid: // it was not there, or has no such title
		return nil
	}
	return err
}

// A part of a history is one run, on the branch that goes on from the reply of
// an earlier one, with what a person does before some of its turns and after it.
type part struct {
	from  int // 0: the beginning
	turns []deed
	hands map[int]deed
}

func somePart(n int) *rapid.Generator[part] {
	return rapid.Custom(func(t *rapid.T) part {
		p := part{from: rapid.IntRange(0, n).Draw(t, "from"), hands: map[int]deed{}}
		p.turns = rapid.SliceOfN(someDeed("create", "create", "update", "update", "update", "rewrite", "rename", "delete", "restore", "read"), 1, 4).Draw(t, "turns")
		for i := range len(p.turns) + 1 {
			if rapid.IntRange(0, 3).Draw(t, "a person") == 0 {
				p.hands[i] = someDeed("save", "update", "update", "rename", "delete").Draw(t, "does")
			}
		}
		return p
	})
}

// A follower collects events, with its connection lost after so many of them
// each time, and taken up from the last number it has.
type follower struct {
	wg   sync.WaitGroup
	stop context.CancelFunc

	mu     sync.Mutex
	events []artel.Event
	newest artel.Seq
	until  artel.Seq // 0: not known yet
	err    error
}

func (b *bench) follow(c artel.ConversationID, after artel.Seq, losses []int) *follower {
	ctx, stop := context.WithTimeout(background, 5*time.Minute)
	f := &follower{stop: stop, newest: after}
	f.wg.Go(func() {
		for ctx.Err() == nil {
			f.connect(ctx, b, c, after, losses)
			f.mu.Lock()
			after = f.newest
			f.mu.Unlock()
			losses = losses[min(1, len(losses)):]
		}
	})
	return f
}

// connect follows until the connection is lost or everything has come.
func (f *follower) connect(ctx context.Context, b *bench, c artel.ConversationID, after artel.Seq, losses []int) {
	n := 0
	for e, err := range b.Events.Follow(ctx, c, after, 0) {
		f.mu.Lock()
		if err != nil && ctx.Err() == nil {
			f.err = err
		}
		if e.Seq > 0 {
			f.events, f.newest = append(f.events, e), e.Seq
			n++
		}
		end := err != nil || f.until > 0 && f.newest >= f.until
		f.mu.Unlock()
		if end {
			f.stop()
			return
		}
		if len(losses) > 0 && n == losses[0] {
			return
		}
	}
}

// to waits for the events up to a number, and returns them all.
func (f *follower) to(t *rapid.T, last artel.Seq) []artel.Event {
	f.mu.Lock()
	f.until = last
	if f.newest >= last {
		f.stop()
	}
	f.mu.Unlock()
	f.wg.Wait()
	if f.err != nil || f.newest != last {
		t.Fatalf("followed to %d of %d: %v", f.newest, last, f.err)
	}
	return f.events
}

// TestEventsLeadToTheStore: whoever applies the events of a history has in the
// end what the store has, byte for byte: with the connection lost and found
// anywhere, while it goes on and afterwards, and whoever comes late too.
func TestEventsLeadToTheStore(t *testing.T) {
	var play func() model.Delta
	b := newBench(t, provide(func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
		_ = yield(play(), nil) && yield(model.Finish{}, nil)
	}))
	applied, runs := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := b.conversation()
		leaves := []artel.MessageID{""}
		losses := rapid.SliceOfN(rapid.IntRange(1, 12), 0, 5).Draw(t, "connections are lost after")
		live := b.follow(c, 0, losses)
		defer live.stop()
		for i := range rapid.IntRange(1, 2).Draw(t, "runs") {
			p := somePart(i).Draw(t, "run")
			n := 0
			var failed error
			play = func() model.Delta {
				if d, ok := p.hands[n]; ok && failed == nil {
					failed = d.by(b, c)
				}
				if n++; n > len(p.turns) {
					return model.TextDelta("Done.")
				}
				return p.turns[n-1].call()
			}
			r := b.ended(b.send(c, run.Input{Text: "Go.", Parent: &leaves[p.from]}))
			if r.State != artel.RunDone || failed != nil {
				t.Fatalf("the run: %+v, %v", r, failed)
			}
			leaves = append(leaves, r.Reply)
			runs++
		}
		last, err := b.Events.Last(background, c)
		if err != nil {
			t.Fatal(err)
		}
		late := artel.Seq(rapid.Int64Range(0, int64(last)-1).Draw(t, "late"))
		for _, f := range []struct {
			events []artel.Event
			whole  bool
		}{
			{live.to(t, last), true},
			{b.follow(c, 0, losses).to(t, last), true},
			{b.follow(c, late, losses).to(t, last), late == 0},
		} {
			r := &reader{t: t, b: b, c: c, texts: map[artel.ArtifactID]map[int]string{}, heads: map[artel.ArtifactID]map[int]artel.Artifact{}, applied: &applied}
			for _, e := range f.events {
				r.take(e)
			}
			r.compare(leaves[1:], f.whole)
		}
	})
	if applied == 0 {
		t.Errorf("%d events were applied as spans in %d runs", applied, runs)
	}
}
