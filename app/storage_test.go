// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/sweep"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// TestCollect follows bytes from their upload until nothing refers to them, and
// a day on.
func TestCollect(t *testing.T) {
	var later atomic.Int64
	b := newBench(t, nil, func(c *app.Config) {
		c.Options.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	})
	ctx := apptest.Context(t)
	upload := func(c artel.ConversationID, content string) artel.Digest {
		t.Helper()
		s, err := b.Artifacts.Stage(ctx, c, app.Upload{Body: strings.NewReader(content), Filename: "a.bin"})
		if err != nil {
			t.Fatal(err)
		}
		if content != "never added" {
			if _, err := b.Artifacts.Add(ctx, c, []artifact.Staged{s}); err != nil {
				t.Fatal(err)
			}
		}
		return s.Digest
	}
	collect := func(o app.CollectOptions, want int64) {
		t.Helper()
		if _, err := b.Purge(ctx); err != nil {
			t.Fatal(err)
		}
		r, err := b.Storage.Collect(ctx, o)
		state := first(b.Storage.Collection(apptest.Context(b.t)))
		if err != nil || r.Removed.Count != want || state.Running || state.Report.Removed != r.Removed || state.Error != "" || state.FinishedAt.Before(state.StartedAt) {
			t.Errorf("got %+v, %v, want %d; %+v", r, err, want, state)
		}
	}
	day := app.CollectOptions{Grace: app.DefaultGrace}
	keeps, goes := b.conversation(), b.conversation()
	upload(keeps, "both have this")
	upload(goes, "both have this")
	upload(goes, "one has this")
	upload(goes, "never added")
	collect(day, 0)
	later.Store(int64(25 * time.Hour))
	collect(app.CollectOptions{Grace: app.DefaultGrace, DryRun: true}, 1)
	collect(day, 1)
	if err := b.Conversations.Delete(ctx, goes); err != nil {
		t.Fatal(err)
	}
	collect(day, 0) // it may be restored for an hour
	later.Add(int64(2 * time.Hour))
	collect(day, 1)
	f, err := b.Files.Open(ctx, "artifact:"+string(keeps)+"/a.bin@1")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Content.Close()
	if got, _ := io.ReadAll(f.Content); string(got) != "both have this" {
		t.Errorf("got %q", got)
	}
}

// slowStore marks until it is let go on.
type slowStore struct {
	store.Store
	marking, goOn chan bool
}

// Digests implements [store.Store].
func (s slowStore) Digests(ctx context.Context) iter.Seq2[store.Use, error] {
	s.marking <- true
	<-s.goOn
	return s.Store.Digests(ctx)
}

func TestCollectAlone(t *testing.T) {
	marking, goOn := make(chan bool), make(chan bool)
	others := error(nil)
	b := newBench(t, nil, func(c *app.Config) {
		c.Store = slowStore{c.Store, marking, goOn}
		c.Files.Alone = func() error { return others }
	})
	done := make(chan error)
	go func() {
		_, err := b.Storage.Collect(apptest.Context(t), app.CollectOptions{})
		done <- err
	}()
	<-marking
	if s := first(b.Storage.Collection(apptest.Context(b.t))); !s.Running || s.StartedAt.IsZero() {
		t.Errorf("got %+v", s)
	}
	if _, err := b.Storage.Collect(apptest.Context(t), app.CollectOptions{}); !errors.Is(err, artel.Conflict) || artel.CodeOf(err) != app.CodeCollecting {
		t.Errorf("a second one at once: %v", err)
	}
	goOn <- true
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s := first(b.Storage.Collection(apptest.Context(b.t))); s.Running || s.Report.Phase != sweep.Done {
		t.Errorf("got %+v", s)
	}
	others = artel.Errorf(artel.Conflict, "test", "", "somebody else")
	if _, err := b.Storage.Collect(apptest.Context(t), app.CollectOptions{}); !errors.Is(err, others) {
		t.Errorf("with others: %v", err)
	}
}

// TestFilesOfOthers wants every way to a file to be closed for another owner,
// and a signature to open just the file that it was made for.
func TestFilesOfOthers(t *testing.T) {
	b := newBench(t, nil)
	ctx, other := apptest.Context(t), artel.WithOwner(apptest.Context(t), "other")
	c := b.conversation()
	s, err := b.Artifacts.Stage(ctx, c, app.Upload{Body: strings.NewReader("\x00mine"), Filename: "a.bin"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Artifacts.Add(ctx, c, []artifact.Staged{s}); err != nil {
		t.Fatal(err)
	}
	ref := "artifact:" + string(c) + "/a.bin"
	digest := "blob:" + string(s.Digest)
	for what, open := range map[string]func() (app.File, error){
		"by ref":     func() (app.File, error) { return b.Files.Open(other, ref) },
		"by version": func() (app.File, error) { return b.Files.Open(other, ref+"@1") },
		"by digest":  func() (app.File, error) { return b.Files.Open(other, digest) },
		"by name":    func() (app.File, error) { return b.Files.OpenNamed(other, s.Digest.Hex()+".bin") },
		"raw":        func() (app.File, error) { return b.Artifacts.Open(other, c, "a.bin", 1, "") },
		"live":       func() (app.File, error) { return b.Artifacts.OpenLive(other, c, "a.bin", 1, "") },
		"to sign": func() (app.File, error) {
			_, err := b.Files.Sign(other, ref, time.Minute)
			return app.File{}, err
		},
	} {
		if f, err := open(); !errors.Is(err, artel.NotFound) {
			t.Errorf("%s: got %+v, %v", what, f, err)
		}
	}
	for _, of := range []string{ref, digest} {
		signed, err := b.Files.Sign(ctx, of, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		_, sig, _ := strings.Cut(signed.URL, "?sig=")
		f, err := b.Files.OpenSigned(other, signed.Ref.String(), sig)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(f.Content); string(got) != "\x00mine" || f.Signed <= 0 || f.Signed > time.Minute {
			t.Errorf("got %q for %v", got, f.Signed)
		}
		_ = f.Content.Close()
		if err := b.Conversations.Delete(ctx, c); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Files.OpenSigned(other, signed.Ref.String(), sig); !errors.Is(err, artel.NotFound) {
			t.Errorf("a signature of what was deleted: %v", err)
		}
		if _, err := b.Conversations.Restore(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
}

// TestResultsExpire wants what a tool has left outside any run to go after a
// week, its bytes soon after, and what somebody refers to never.
func TestResultsExpire(t *testing.T) {
	var later atomic.Int64
	b := newBench(t, nil, func(c *app.Config) {
		c.Options.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	})
	ctx := apptest.Context(t)
	c := b.conversation()
	source := func(id artel.ArtifactID, content string) artel.Digest {
		t.Helper()
		info, err := b.config.Blobs.Put(ctx, strings.NewReader(content), 0)
		if err != nil {
			t.Fatal(err)
		}
		v := artel.Version{
			Number: 1, Digest: info.Digest, InBlob: true, Provenance: artel.SourceToolResult, Update: artel.UpdateCreate, CreatedAt: time.Now(),
			MediaInfo: artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage, Size: info.Size},
		}
		err = b.config.Store.Update(ctx, artel.Local, func(tx store.Tx) error {
			if _, err := tx.Journal.Append(c, id, v, nil); err != nil {
				return err
			}
			return tx.Journal.Fold(c, id, v, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		return info.Digest
	}
	source("kept.png", "kept")
	goes := source("gone.png", "gone!")
	b.ended(b.send(c, run.Input{Text: "What is on kept.png?"}))
	collect := func(o app.CollectOptions, results, blobs int64) {
		t.Helper()
		o.Grace = app.DefaultGrace
		if r, err := b.Storage.Collect(ctx, o); err != nil || r.Results.Count != results || r.Removed.Count != blobs || len(r.Refs) != int(results) {
			t.Errorf("got %+v, %v, want %d results and %d blobs", r, err, results, blobs)
		}
	}
	later.Store(int64(6 * 24 * time.Hour))
	collect(app.CollectOptions{}, 0, 0)
	later.Store(int64(8 * 24 * time.Hour))
	collect(app.CollectOptions{DryRun: true}, 1, 0)
	collect(app.CollectOptions{}, 1, 0)
	if _, err := b.Files.Open(ctx, "artifact:"+string(c)+"/gone.png@1"); !errors.Is(err, artel.NotFound) || !strings.Contains(err.Error(), "was removed") {
		t.Errorf("what was removed: %v", err)
	}
	if _, err := b.Files.Open(ctx, "blob:"+string(goes)); !errors.Is(err, artel.NotFound) {
		t.Errorf("its bytes: %v", err)
	}
	collect(app.CollectOptions{}, 0, 1)
	for _, ref := range []string{"artifact:" + string(c) + "/kept.png", "artifact:" + string(c) + "/kept.png@1"} {
		f, err := b.Files.Open(ctx, ref)
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		_ = f.Content.Close()
	}
	if list, err := b.Artifacts.List(ctx, c, ""); err != nil || slices.ContainsFunc(list, func(a artel.Artifact) bool { return a.ID == "gone.png" }) {
		t.Errorf("got %+v, %v", list, err)
	}
}

func TestResultsForEver(t *testing.T) {
	b := newBench(t, nil, func(c *app.Config) { c.Files.Retention = -1; c.Store = noLeftovers{c.Store} })
	if _, err := b.Storage.Collect(apptest.Context(t), app.CollectOptions{}); err != nil {
		t.Error(err)
	}
}

type noLeftovers struct{ store.Store }

// Leftovers implements [store.Upkeep].
func (noLeftovers) Leftovers(context.Context, time.Time, bool) ([]store.Leftover, error) {
	return nil, errors.New("asked for leftovers")
}
