// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

const pictureSize = 1000

// bytesOf returns bytes that are no text; each n has others.
func bytesOf(n int) []byte {
	return append([]byte("\x89PNG\r\n\x1a\n\x00\x01"), bytes.Repeat([]byte{byte(n)}, pictureSize-10)...)
}

func (b *bench) used(t fatal) (n int64) {
	t.Helper()
	if err := b.store.View(background, artel.Local, func(tx store.Tx) (err error) { n, err = tx.Storage.Used(); return err }); err != nil {
		t.Fatal(err)
	}
	return n
}

// upload stores one picture with a reservation of its size. between is called while the
// bytes are stored but belong to nothing yet; an error of it abandons them.
func (b *bench) upload(c *artifact.Collection, n int, size int64, between func() error) error {
	ctx, release, err := c.Quota.Reserve(artel.WithOwner(background, artel.Local), size, 0)
	if err != nil {
		return err
	}
	defer release()
	staged, err := c.Uploads.Stage(ctx, bytes.NewReader(bytesOf(n)), media.Hint{Filename: "p.png"})
	if err == nil && between != nil {
		err = between()
	}
	if err == nil {
		_, err = c.Uploads.Add(ctx, artel.Local, b.conv, []artifact.Staged{staged})
	}
	return err
}

// TestQuotaTogether: of uploads at once at the edge of the quota, as many succeed as
// fit, whatever becomes of the others, and none is over.
func TestQuotaTogether(t *testing.T) {
	const all, fit, fail = 16, 10, 4
	abandoned := errors.New("the client has left")
	for name, size := range map[string]int64{"known sizes": pictureSize, "unknown sizes": -1} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, rowstest.Address(t))
			b.options.Quota = fit*pictureSize + pictureSize/2
			c := b.collection()
			// The first uploads hold reservations until all others have asked for one.
			var asked sync.WaitGroup
			asked.Add(all)
			results := make(chan error, all)
			for n := range all {
				go func() {
					var between func() error
					if n < fail {
						between = func() error { asked.Wait(); return abandoned }
					}
					asked.Done()
					results <- b.upload(c, n, size, between)
				}()
			}
			done, left, refused := 0, 0, 0
			for range all {
				err := <-results
				full, isFull := errors.AsType[*artifact.Full](err)
				switch {
				case err == nil:
					done++
				case errors.Is(err, abandoned):
					left++
				case isFull && !full.Reserved && errors.Is(err, artel.TooLarge) && artel.CodeOf(err) == artifact.CodeStorage:
					refused++
					if full.Used+pictureSize <= b.options.Quota {
						t.Errorf("refused with %d of %d bytes used", full.Used, full.Limit)
					}
				default:
					t.Errorf("an upload: %v", err)
				}
			}
			// An upload that came after the quota was full does not get as far as to fail.
			if done != fit || done+left+refused != all || b.used(t) != fit*pictureSize {
				t.Errorf("%d were stored, %d abandoned, %d refused, %d bytes are used; want %d stored", done, left, refused, b.used(t), fit)
			}
			if err := b.upload(c, 0, size, nil); artel.CodeOf(err) != artifact.CodeStorage {
				t.Errorf("with too little left: %v", err)
			}
		})
	}
}

// TestQuotaWithin: writes without a reservation cannot exceed the limit together, and
// leave nothing when they are refused.
func TestQuotaWithin(t *testing.T) {
	const all, fit = 16, 5
	b := newBench(t, rowstest.Address(t))
	b.options.Quota = fit*pictureSize + 1
	c := b.collection()
	results := make(chan error, all)
	for n := range all {
		go func() {
			staged, err := c.Uploads.Stage(background, bytes.NewReader(bytesOf(n)), media.Hint{Filename: "p.png"})
			if err == nil {
				_, err = c.Uploads.Add(background, artel.Local, b.conv, []artifact.Staged{staged})
			}
			results <- err
		}()
	}
	done := 0
	for range all {
		if err := <-results; err == nil {
			done++
		} else if artel.CodeOf(err) != artifact.CodeStorage || !strings.Contains(err.Error(), "1000 B more") {
			t.Errorf("an upload: %v", err)
		}
	}
	if heads := must[[]artel.Artifact](t)(c.List(background, artel.Local, b.conv, "")); done != fit || len(heads) != fit || b.used(t) != fit*pictureSize {
		t.Errorf("%d were stored as %d artifacts with %d bytes", done, len(heads), b.used(t))
	}
	// The same bytes again need nothing.
	again := must[artifact.Staged](t)(c.Uploads.Stage(background, bytes.NewReader(bytesOf(0)), media.Hint{Filename: "again.png"}))
	var known bool
	for _, a := range must[[]artel.Artifact](t)(c.List(background, artel.Local, b.conv, "")) {
		known = known || a.Digest == again.Digest
	}
	if _, err := c.Uploads.Add(background, artel.Local, b.conv, []artifact.Staged{again}); known != (err == nil) {
		t.Errorf("bytes that are stored (%v) again: %v", known, err)
	}
}

// TestQuotaOfTexts: what agents and users write counts, small edits of long texts cost
// nothing, and deleting is always possible.
func TestQuotaOfTexts(t *testing.T) {
	b := newBench(t, rowstest.Address(t))
	b.options.Quota = 50_000
	users := b.workspace("", "")
	long := strings.Repeat("one line of text\n", 1000) // 17,000 bytes
	must[artel.Artifact](t)(users.Create(background, "doc.md", "Doc", long, ""))
	for i := range 20 {
		old, repl := "one line", "two line"
		if i%2 == 1 {
			old, repl = repl, old
		}
		text, _, err := b.collection().Text(background, artel.Local, b.conv, "doc.md", 0, "")
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(text, old, repl, 1)
		if _, err := users.Edit.Save(background, "doc.md", 0, artifact.Draft{Text: &changed}); err != nil {
			t.Fatalf("edit %d with %d bytes used: %v", i, b.used(t), err)
		}
	}
	if n := b.used(t); n < 34_000 || n > 42_000 { // the first and the last text, and the changes
		t.Errorf("one text and 20 small edits use %d bytes", n)
	}
	b.beginRun(t, "run_1", b.a)
	agents := b.workspace("run_1", b.a)
	before := b.used(t)
	if _, err := agents.Create(background, "other.md", "Other", long, ""); artel.CodeOf(err) != artifact.CodeStorage || !errors.Is(err, artel.TooLarge) {
		t.Errorf("a second long text: %v", err)
	}
	if now := b.used(t); now != before {
		t.Errorf("the refused text left %d bytes", now-before)
	}
	must[artel.Artifact](t)(agents.Create(background, "small.md", "Small", "small", ""))
	b.fold(t, "run_1")
	b.options.Quota = 100 // the limit was made smaller
	if _, err := b.workspace("", "").Edit.Rename(background, "doc.md", "Another name", 0); err != nil {
		t.Errorf("renaming needs nothing: %v", err)
	}
	if _, err := b.workspace("", "").Edit.Delete(background, "doc.md", 0); err != nil {
		t.Errorf("deleting needs nothing: %v", err)
	}
	if _, err := b.workspace("", "").Create(background, "new.md", "New", "x", ""); artel.CodeOf(err) != artifact.CodeStorage {
		t.Errorf("a text above the limit: %v", err)
	}
	b.beginRun(t, "run_2", b.a)
	summary := b.collection().Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: b.conv, Run: "run_2", Message: b.a, Author: "lead_agent", Source: artel.SourceSummary})
	if _, err := summary.Create(background, "summary_1", "Summary", "what was said", ""); err != nil {
		t.Errorf("a summary, without which the conversation could not continue: %v", err)
	}
}

// TestQuotaOfRestored: an older version that a message restores counts like any text.
func TestQuotaOfRestored(t *testing.T) {
	b := newBench(t, rowstest.Address(t))
	b.options.Quota = 50_000
	c := b.collection()
	users := b.workspace("", "")
	must[artel.Artifact](t)(users.Create(background, "doc.md", "Doc", strings.Repeat("one line of text\n", 1000), "")) // 17,000 bytes
	var refused error
	for n := 0; n < 10 && refused == nil; n++ {
		refused = b.store.Update(background, artel.Local, func(tx store.Tx) error {
			old, err := c.Uploads.ReadTx(tx, b.conv, "doc.md", 1)
			if err == nil {
				_, err = c.Uploads.RestoreTx(tx, b.conv, old)
			}
			return err
		})
	}
	if artel.CodeOf(refused) != artifact.CodeStorage || b.used(t) > b.options.Quota {
		t.Errorf("%d bytes are used of %d: %v", b.used(t), b.options.Quota, refused)
	}
}

// TestQuotaStops: a body that is longer than it said is stopped where nothing is left.
func TestQuotaStops(t *testing.T) {
	b := newBench(t, rowstest.Address(t))
	b.options.Quota = 2000
	c := b.collection()
	read := 0
	endless := readerFunc(func(p []byte) (int, error) {
		p = p[:min(len(p), 500)]
		read += len(p)
		return len(p), nil
	})
	for _, size := range []int64{100, -1} {
		read = 0
		ctx, release, err := c.Quota.Reserve(artel.WithOwner(background, artel.Local), size, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Uploads.Stage(ctx, endless, media.Hint{}); artel.CodeOf(err) != artifact.CodeStorage || read > 3000 {
			t.Errorf("size %d: %d bytes were read: %v", size, read, err)
		}
		release()
	}
	if _, _, err := c.Quota.Reserve(artel.WithOwner(background, artel.Local), 2001, 0); artel.CodeOf(err) != artifact.CodeStorage {
		t.Errorf("a body that is too long is admitted: %v", err)
	}
	if err := b.upload(c, 1, 2000, nil); err != nil { // everything was given back
		t.Error(err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var _ io.Reader = readerFunc(nil)

// usedStore is a store whose owners use nothing.
type usedStore struct{ store.Store }

type usedNothing struct{ store.Storage }

func (usedNothing) Used() (int64, error) { return 0, nil }

// View implements [store.Store].
func (usedStore) View(_ context.Context, _ artel.Owner, fn func(store.Tx) error) error {
	return fn(store.Tx{Storage: usedNothing{}})
}

// TestQuotaWaits: an upload that would fit but for others waits for them a minute, then
// it may be tried again; one that leaves waits no longer.
func TestQuotaWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := artifact.NewQuota(usedStore{}, 1000, time.Now)
		ctx := artel.WithOwner(t.Context(), "ann")
		_, release, err := q.Reserve(ctx, 600, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, other, err := q.Reserve(artel.WithOwner(t.Context(), "bob"), 600, 0); err != nil {
			t.Errorf("another owner: %v", err)
		} else {
			other()
		}
		began := time.Now()
		_, _, err = q.Reserve(ctx, 600, 0)
		if f, ok := errors.AsType[*artifact.Full](err); !ok || !f.Reserved || f.RetryAfter() <= 0 || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		left, leave := context.WithCancel(ctx)
		time.AfterFunc(time.Second, leave)
		if _, _, err := q.Reserve(left, 600, 0); !errors.Is(err, artel.Canceled) {
			t.Errorf("of a client that left: %v", err)
		}
		time.AfterFunc(time.Second, release)
		_, release, err = q.Reserve(ctx, 600, 0)
		if err != nil {
			t.Fatal(err)
		}
		release()
		release() // again, which changes nothing
		if _, release, err := q.Reserve(ctx, 1000, 0); err != nil {
			t.Errorf("when all has ended: %v", err)
		} else {
			release()
		}
	})
}
