// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/sweep"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is a store and blobs with people who use them.
type world struct {
	t     fataler
	ctx   context.Context
	rows  store.Store
	blobs blob.Store
	now   time.Time // of rows
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newWorld(t fataler, ctx context.Context, path string, blobs blob.Store) *world {
	t.Helper()
	rows, err := sqlite.Open(ctx, path, sqlite.Options{Synchronous: sqlite.Normal})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &world{t: t, ctx: ctx, rows: rows, blobs: blobs, now: time.Now().UTC().Truncate(time.Microsecond)}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
}

func (w *world) put(content string) artel.Digest {
	w.t.Helper()
	info, err := w.blobs.Put(w.ctx, strings.NewReader(content), 0)
	w.must(err)
	return info.Digest
}

func (w *world) update(owner artel.Owner, fn func(store.Tx) error) {
	w.t.Helper()
	w.must(w.rows.Update(w.ctx, owner, fn))
}

func (w *world) conversation(owner artel.Owner) artel.ConversationID {
	w.t.Helper()
	c := artel.Conversation{ID: artel.NewConversationID(w.now), CreatedAt: w.now, UpdatedAt: w.now}
	w.update(owner, func(tx store.Tx) error { return tx.Conversations.Create(c) })
	return c.ID
}

func versionOf(d artel.Digest) artel.Version {
	return artel.Version{Number: 1, Digest: d, InBlob: true, MediaInfo: artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage}}
}

// claim makes a version of the bytes of d.
func claim(tx store.Tx, c artel.ConversationID, id artel.ArtifactID, d artel.Digest) error {
	v := versionOf(d)
	n, err := tx.Journal.Append(c, id, v, nil)
	if err != nil {
		return err
	}
	v.Number = n
	return tx.Journal.Fold(c, id, v, nil)
}

func (w *world) add(owner artel.Owner, c artel.ConversationID, id artel.ArtifactID, d artel.Digest) {
	w.t.Helper()
	w.update(owner, func(tx store.Tx) error { return claim(tx, c, id, d) })
}

func (w *world) there(d artel.Digest) bool {
	w.t.Helper()
	_, err := w.blobs.Stat(w.ctx, d)
	if err != nil && !errors.Is(err, artel.NotFound) {
		w.t.Fatalf("%v", err)
	}
	return err == nil
}

// wanted returns what rows refer to: bytes of versions, and of renditions whose
// source is wanted.
func (w *world) wanted() map[artel.Digest]bool {
	w.t.Helper()
	all, made := map[artel.Digest]bool{}, map[artel.Digest]artel.Digest{}
	for u, err := range w.rows.Digests(w.ctx) {
		w.must(err)
		switch {
		case u.Of != "":
			made[u.Digest] = u.Of
		case u.Bytes:
			all[u.Digest] = true
		}
	}
	for range made {
		for d, of := range made {
			if all[of] {
				all[d] = true
			}
		}
	}
	return all
}

// clear removes all rows.
func (w *world) clear() {
	w.t.Helper()
	for _, owner := range []artel.Owner{"me", "them"} {
		w.update(owner, func(tx store.Tx) error {
			list, _, err := tx.Conversations.List(store.ConversationQuery{Page: store.Page{Limit: 500}})
			for _, c := range list {
				if err == nil {
					err = tx.Conversations.Delete(c.ID, w.now)
				}
			}
			return err
		})
	}
	_, err := w.rows.Purge(w.ctx, future())
	w.must(err)
	w.sweep(future(), sweep.Options{}) // the renditions of what is gone
}

// whole fails where a row refers to bytes that are not there.
func (w *world) whole(when string) {
	w.t.Helper()
	for d := range w.wanted() {
		if !w.there(d) {
			w.t.Fatalf("%s: a row refers to %s, which is not there", when, d)
		}
	}
}

func future() time.Time { return time.Now().Add(time.Hour) }

func (w *world) sweep(before time.Time, o sweep.Options) sweep.Report {
	w.t.Helper()
	r, err := sweep.Run(w.ctx, w.rows, w.blobs, before, o)
	w.must(err)
	return r
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	blobs, err := blob.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, t.Context(), filepath.Join(t.TempDir(), "rows"), blobs)
	t.Cleanup(func() { _ = w.rows.Close(); _ = blobs.Close() })
	mine, theirs := w.conversation("me"), w.conversation("them")
	used, shared, named, orphan, other := w.put("used"), w.put("shared"), w.put("named"), w.put("orphan!"), w.put("orphan of theirs")
	w.add("me", mine, "a", used)
	w.add("me", mine, "b", shared)
	w.add("them", theirs, "b", shared)
	w.update("me", func(tx store.Tx) error {
		return tx.Messages.Create(artel.Message{ID: artel.NewMessageID(w.now), Conversation: mine, Role: artel.RoleUser, CreatedAt: w.now, Parts: artel.Parts{artel.Text{Text: "see " + artel.BlobRef(named).String()}}})
	})
	// Other forms: of what is used, of that form again, and of what nobody has.
	small, smaller, stale := w.put("small"), w.put("smaller"), w.put("stale")
	for source, made := range map[artel.Digest]artel.Digest{used: small, small: smaller, orphan: stale} {
		w.update("me", func(tx store.Tx) error {
			return tx.Renditions.Put(store.Rendition{Source: source, Form: "f", Digest: made, CreatedAt: w.now})
		})
	}
	half := filepath.Join(dir, "staging", "put-1")
	w.must(os.WriteFile(half, []byte("half"), 0o600))

	var told []sweep.Report
	dry := w.sweep(future(), sweep.Options{DryRun: true, Digests: 2, Progress: func(r sweep.Report) { told = append(told, r) }})
	if dry.Phase != sweep.Done || dry.Blobs.Count != 8 || dry.Wanted.Count != 5 || dry.Removed != (sweep.Amount{Count: 3, Bytes: 28}) || dry.Renditions != 1 || len(dry.Digests) != 2 || dry.References < 7 {
		t.Errorf("a dry run: got %+v", dry)
	}
	if len(told) == 0 || told[len(told)-1].Phase != sweep.Done {
		t.Errorf("told %+v", told)
	}
	if young := w.sweep(time.Now().Add(-time.Hour), sweep.Options{}); young.Removed.Count != 0 || young.Young.Count != 3 || !w.there(orphan) {
		t.Errorf("nothing is old: got %+v", young)
	}
	got := w.sweep(future(), sweep.Options{})
	if got.Removed != dry.Removed || got.Staged != (sweep.Amount{Count: 1, Bytes: 4}) {
		t.Errorf("got %+v, want what the dry run said", got)
	}
	for d, want := range map[artel.Digest]bool{used: true, shared: true, named: true, small: true, smaller: true, orphan: false, other: false, stale: false} {
		if w.there(d) != want {
			t.Errorf("%s is there: %v", d, !want)
		}
	}
	err = w.rows.View(w.ctx, "me", func(tx store.Tx) error { _, err := tx.Renditions.Get(orphan, "f"); return err })
	if !errors.Is(err, artel.NotFound) {
		t.Errorf("the rendition of nothing: %v", err)
	}

	// What is deleted can come back, with its bytes, until it is purged.
	w.update("me", func(tx store.Tx) error { return tx.Conversations.Delete(mine, w.now) })
	if w.sweep(future(), sweep.Options{}); !w.there(used) {
		t.Error("the bytes of a deleted conversation went before it was purged")
	}
	_, err = w.rows.Purge(w.ctx, future())
	w.must(err)
	w.sweep(future(), sweep.Options{})
	for d, want := range map[artel.Digest]bool{used: false, named: false, small: false, smaller: false, shared: true} {
		if w.there(d) != want {
			t.Errorf("after purging, %s is there: %v", d, !want)
		}
	}
}

// racingStore and racingBlobs let others act between any two steps of a sweep.
type racingStore struct {
	store.Store
	act func()
}

// Digests implements [store.Store]. It sees one state, so that others act before
// and after.
func (r racingStore) Digests(ctx context.Context) iter.Seq2[store.Use, error] {
	return func(yield func(store.Use, error) bool) {
		r.act()
		defer r.act()
		for u, err := range r.Store.Digests(ctx) {
			if !yield(u, err) {
				return
			}
		}
	}
}

type racingBlobs struct {
	blob.Store
	act func()
}

// List implements [blob.Store].
func (r racingBlobs) List(ctx context.Context, yield func(blob.Info) bool) error {
	r.act()
	return r.Store.List(ctx, func(i blob.Info) bool { r.act(); return yield(i) })
}

// Delete implements [blob.Store].
func (r racingBlobs) Delete(ctx context.Context, d artel.Digest, before time.Time) (bool, error) {
	r.act()
	defer r.act()
	return r.Store.Delete(ctx, d, before)
}

// A people is what goes on in a world, one step at a time.
type people struct {
	*world
	*rapid.T
	convs  map[artel.ConversationID]artel.Owner
	gone   map[artel.ConversationID]artel.Owner // deleted, not yet purged
	staged []stagedBlob                         // put, and nothing refers to them yet
	copies []artel.Digest                       // seen in a view, to be committed
	fresh  map[artel.ConversationID]artel.Owner // imports at work
}

type stagedBlob struct {
	digest artel.Digest
	since  time.Time
}

// grace is a time before everything that is on its way was put.
func (p *people) grace() time.Time {
	at := time.Now()
	for _, s := range p.staged {
		if s.since.Before(at) {
			at = s.since
		}
	}
	return at
}

func (p *people) pick(m map[artel.ConversationID]artel.Owner) (artel.ConversationID, artel.Owner, bool) {
	if len(m) == 0 {
		return "", "", false
	}
	ids := make([]artel.ConversationID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	id := rapid.SampledFrom(ids).Draw(p.T, "conversation")
	return id, m[id], true
}

func (p *people) step() {
	content := func() string { return rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(p.T, "content") }
	c, owner, ok := p.pick(p.convs)
	switch what := rapid.SampledFrom([]string{"put", "put", "claim", "claim", "abandon", "conversation", "delete", "restore", "purge", "see", "copy", "begin", "go on", "finish", "picture"}).Draw(p.T, "step"); {
	case what == "conversation" || !ok:
		o := rapid.SampledFrom([]artel.Owner{"me", "them"}).Draw(p.T, "owner")
		p.convs[p.conversation(o)] = o
	case what == "put":
		since := time.Now()
		p.staged = append(p.staged, stagedBlob{p.put(content()), since})
	case what == "claim" && len(p.staged) > 0:
		p.add(owner, c, artel.ArtifactID(rapid.SampledFrom([]string{"x", "y"}).Draw(p.T, "id")), p.staged[0].digest)
		p.staged = p.staged[1:]
	case what == "abandon" && len(p.staged) > 0:
		p.staged = p.staged[1:]
	case what == "delete":
		p.update(owner, func(tx store.Tx) error { return tx.Conversations.Delete(c, p.now) })
		delete(p.convs, c)
		p.gone[c] = owner
	case what == "restore" && len(p.gone) > 0:
		id, o, _ := p.pick(p.gone)
		p.update(o, func(tx store.Tx) error { return tx.Conversations.Restore(id) })
		delete(p.gone, id)
		p.convs[id] = o
	case what == "purge" && len(p.copies) == 0:
		_, err := p.rows.Purge(p.ctx, future())
		p.must(err)
		clear(p.gone)
		clear(p.fresh)
	case what == "see": // somebody reads which bytes a version has …
		for u, err := range p.rows.Digests(p.ctx) {
			p.must(err)
			if u.Owner == owner && u.Bytes && u.Of == "" && u.Conversation == c {
				p.copies = append(p.copies, u.Digest)
				break
			}
		}
	case what == "copy" && len(p.copies) > 0: // … and makes another version of them
		p.add(owner, c, "copy", p.copies[0])
		p.copies = p.copies[1:]
	case what == "begin":
		id := artel.NewConversationID(p.now)
		p.update(owner, func(tx store.Tx) error {
			return tx.Imports.Begin(artel.Conversation{ID: id, CreatedAt: p.now, UpdatedAt: p.now}, p.now)
		})
		p.fresh[id] = owner
	case what == "go on" && len(p.fresh) > 0 && len(p.staged) > 0:
		id, o, _ := p.pick(p.fresh)
		v := versionOf(p.staged[0].digest)
		p.update(o, func(tx store.Tx) error {
			if err := tx.Imports.Continue(id, p.now); err != nil {
				return err
			}
			return tx.Imports.Version(id, artel.ArtifactID("i"+string(id)+v.Digest.Hex()[:4]+time.Now().Format("150405.000000000")), v, nil)
		})
		p.staged = p.staged[1:]
	case what == "finish" && len(p.fresh) > 0:
		id, o, _ := p.pick(p.fresh)
		p.update(o, func(tx store.Tx) error {
			if err := tx.Imports.Continue(id, p.now); err != nil {
				return err
			}
			return tx.Imports.Finish(id)
		})
		delete(p.fresh, id)
		p.convs[id] = o
	case what == "picture":
		for u, err := range p.rows.Digests(p.ctx) {
			p.must(err)
			if u.Owner == owner && u.Bytes {
				source := u.Digest
				defer func() {
					made := p.put("small " + string(source))
					p.update(owner, func(tx store.Tx) error {
						return tx.Renditions.Put(store.Rendition{Source: source, Form: "f", Digest: made, CreatedAt: p.now})
					})
				}()
				break
			}
		}
	}
}

// TestRaces lets uploads, claims, copies, deletions, purges, imports and
// renditions happen between any two steps of a sweep: no row ever refers to
// what is not there, and in the end only what is wanted is left.
func TestRaces(t *testing.T) {
	for name, open := range map[string]func(dir string) (blob.Store, func() error){
		"memory": func(string) (blob.Store, func() error) { return blob.NewMemory(), func() error { return nil } },
		"folder": func(dir string) (blob.Store, func() error) {
			d, err := blob.OpenDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			return d, d.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			shared := newWorld(t, t.Context(), sqlite.Memory, nil) // making one for each history would take most of the time
			defer func() { _ = shared.rows.Close() }()
			rapid.Check(t, func(rt *rapid.T) {
				shared.t, shared.blobs = rt, blob.NewMemory()
				shared.clear()
				dir, err := os.MkdirTemp(t.TempDir(), "")
				if err != nil {
					rt.Fatal(err)
				}
				blobs, closeBlobs := open(dir)
				defer func() { _ = closeBlobs() }()
				w := &world{t: rt, ctx: shared.ctx, rows: shared.rows, blobs: blobs, now: shared.now}
				p := &people{
					world: w, T: rt, convs: map[artel.ConversationID]artel.Owner{}, gone: map[artel.ConversationID]artel.Owner{}, fresh: map[artel.ConversationID]artel.Owner{},
				}
				steps := func(most int) {
					for range rapid.IntRange(0, most).Draw(rt, "steps") {
						p.step()
					}
				}
				sweeps, before := 3, 15
				if name == "folder" { // each put waits for the disk several times
					sweeps, before = 1, 6
				}
				for range rapid.IntRange(1, sweeps).Draw(rt, "sweeps") {
					steps(before)
					act := func() { steps(2); w.whole("during a sweep") }
					before := p.grace()
					if _, err := sweep.Run(w.ctx, racingStore{w.rows, act}, racingBlobs{blobs, act}, before, sweep.Options{}); err != nil {
						rt.Fatal(err)
					}
					w.whole("after a sweep")
				}
				_, err = w.rows.Purge(w.ctx, future())
				w.must(err)
				w.sweep(future(), sweep.Options{})
				want := w.wanted()
				w.must(blobs.List(w.ctx, func(i blob.Info) bool {
					if !want[i.Digest] {
						rt.Errorf("%s is left", i.Digest)
					}
					delete(want, i.Digest)
					return true
				}))
				if len(want) > 0 {
					rt.Errorf("missing: %v", want)
				}
			})
		})
	}
}

// TestTogether has uploads, claims and deletions beside sweeps, all at once, on
// files.
func TestTogether(t *testing.T) {
	blobs, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, t.Context(), filepath.Join(t.TempDir(), "rows"), blobs)
	defer func() { _ = w.rows.Close(); _ = blobs.Close() }()
	const people, uploads = 4, 25
	var since [people]atomic.Int64 // when what is on its way was begun; 0: nothing is
	var wg sync.WaitGroup
	for i := range people {
		owner := artel.Owner([]string{"me", "them"}[i%2])
		c := w.conversation(owner)
		wg.Go(func() {
			for n := range uploads {
				since[i].Store(time.Now().UnixNano())
				info, err := blobs.Put(w.ctx, strings.NewReader(string(rune('a'+n%7))), 0)
				if err == nil && n%3 > 0 {
					err = w.rows.Update(w.ctx, owner, func(tx store.Tx) error { return claim(tx, c, "x", info.Digest) })
				}
				since[i].Store(0)
				if err != nil {
					t.Error(err)
				}
				if n%10 == 9 { // a new conversation in the place of the old one
					old := c
					c = w.conversation(owner)
					if err := w.rows.Update(w.ctx, owner, func(tx store.Tx) error { return tx.Conversations.Delete(old, w.now) }); err != nil {
						t.Error(err)
					}
					if _, err := w.rows.Purge(w.ctx, future()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	removed := int64(0)
	for working := true; working; {
		select {
		case <-done:
			working = false
		default:
		}
		before := time.Now()
		for i := range since {
			if at := since[i].Load(); at > 0 && time.Unix(0, at).Before(before) {
				before = time.Unix(0, at)
			}
		}
		before = before.Add(-50 * time.Millisecond) // the times of files that are being written are coarse
		removed += w.sweep(before, sweep.Options{}).Removed.Count
	}
	w.whole("in the end")
	removed += w.sweep(future(), sweep.Options{}).Removed.Count
	if w.whole("at the very end"); removed == 0 {
		t.Error("nothing was ever removed")
	}
}

// A sweep that cannot read everything that is wanted removes nothing.
func TestBrokenMarking(t *testing.T) {
	blobs := blob.NewMemory()
	w := newWorld(t, t.Context(), sqlite.Memory, blobs)
	defer func() { _ = w.rows.Close() }()
	d := w.put("wanted by a row that was not read")
	if r, err := sweep.Run(w.ctx, brokenStore{w.rows}, blobs, future(), sweep.Options{}); !errors.Is(err, artel.Unavailable) || r.Phase != sweep.Marking || !w.there(d) {
		t.Errorf("got %+v, %v", r, err)
	}
	ctx, stop := context.WithCancel(w.ctx)
	stop()
	if r, err := sweep.Run(ctx, w.rows, blobs, future(), sweep.Options{}); !errors.Is(err, artel.Canceled) || r.Removed.Count != 0 || !w.there(d) {
		t.Errorf("got %+v, %v", r, err)
	}
}

type brokenStore struct{ store.Store }

// Digests implements [store.Store].
func (brokenStore) Digests(context.Context) iter.Seq2[store.Use, error] {
	return func(yield func(store.Use, error) bool) {
		yield(store.Use{}, artel.Errorf(artel.Unavailable, "store.Digests", "", "the disk is gone"))
	}
}

// TestPace removes no faster than asked, and stops in between when told to.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blobs := blob.NewMemory()
		w := &world{t: t, ctx: t.Context(), blobs: blobs}
		for i := range 50 {
			w.put(string(rune(i)))
		}
		start := time.Now()
		if _, err := sweep.Run(w.ctx, emptyStore{}, blobs, future(), sweep.Options{Pace: 10}); err != nil || time.Since(start) < 4800*time.Millisecond || time.Since(start) > 6*time.Second {
			t.Errorf("50 blobs took %v, %v", time.Since(start), err)
		}
		for i := range 50 {
			w.put(string(rune(i)))
		}
		ctx, stop := context.WithTimeout(w.ctx, time.Second)
		defer stop()
		if r, err := sweep.Run(ctx, emptyStore{}, blobs, future(), sweep.Options{Pace: 10}); !errors.Is(err, artel.Canceled) || r.Removed.Count < 9 || r.Removed.Count > 12 {
			t.Errorf("after a second: %+v, %v", r.Removed, err)
		}
	})
}

type emptyStore struct{ store.Store }

// Digests implements [store.Store].
func (emptyStore) Digests(context.Context) iter.Seq2[store.Use, error] {
	return func(func(store.Use, error) bool) {}
}
