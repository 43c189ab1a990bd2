// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/export"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// exported writes an export and returns its bytes.
func exported(t testing.TB, ctx context.Context, e app.Exported, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := e.Write(ctx, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestExportDuringARun: an export is made of what is folded and says so, or
// where it is asked for of what the run has written.
func TestExportDuringARun(t *testing.T) {
	waiting, release := make(chan struct{}), make(chan struct{})
	step := 0
	b := newBench(t, provide(func(ctx context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
		switch step++; step {
		case 1:
			_ = yield(call("create_artifact", m{"id": "note", "title": "Note", "content": "one"}), nil) && yield(model.Finish{}, nil)
			return
		case 3:
			_ = yield(call("rewrite_artifact", m{"id": "note", "content": "two"}), nil) && yield(model.Finish{}, nil)
			return
		case 4:
			close(waiting)
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		_ = yield(model.TextDelta("Done."), nil) && yield(model.Finish{}, nil)
	}))
	c := b.conversation()
	b.ask(c, "Write.")
	r := b.send(c, run.Input{Text: "Write anew."})
	<-waiting
	for _, tt := range []struct {
		q       app.ExportQuery
		want    string
		version int
	}{
		{app.ExportQuery{}, "one", 1},
		{app.ExportQuery{Live: true}, "two", 2},
		{app.ExportQuery{Version: 2, Live: true}, "two", 2},
		{app.ExportQuery{Version: 1, Live: true}, "one", 1},
	} {
		tt.q.Format = app.FormatMarkdown
		e, err := b.Artifacts.Export(apptest.Context(t), c, "note", tt.q)
		if got := exported(t, apptest.Context(t), e, err); got != tt.want || e.Version != tt.version {
			t.Errorf("%+v: got %q of version %d", tt.q, got, e.Version)
		}
	}
	if _, err := b.Artifacts.Export(apptest.Context(t), c, "note", app.ExportQuery{Format: app.FormatMarkdown, Version: 2}); artel.KindOf(err) != artel.NotFound {
		t.Errorf("a version of the journal alone: %v", err)
	}
	e, err := b.Conversations.Export(apptest.Context(t), c, "")
	if z := archiveOf(t, exported(t, apptest.Context(t), e, err)); z.Versions != 1 {
		t.Errorf("the ZIP has %d versions", z.Versions)
	}
	close(release)
	b.ended(r)
	e, err = b.Conversations.Export(apptest.Context(t), c, "")
	if z := archiveOf(t, exported(t, apptest.Context(t), e, err)); z.Versions != 2 {
		t.Errorf("after the run, the ZIP has %d versions", z.Versions)
	}
}

func archiveOf(t *testing.T, b string) *export.Archive {
	t.Helper()
	z, err := export.ReadZIP(apptest.Context(t), strings.NewReader(b), int64(len(b)), export.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestExportPages: a conversation that is longer than a page of the store is
// exported whole.
func TestExportPages(t *testing.T) {
	b := newBench(t, nil)
	c := b.conversation()
	err := b.config.Store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
		var parent artel.MessageID
		for range 1001 {
			now := time.Now()
			m := artel.Message{ID: artel.NewMessageID(now), Conversation: c, Parent: parent, Role: artel.RoleUser, CreatedAt: now}
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
			parent = m.ID
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := b.Conversations.Export(apptest.Context(t), c, "")
	if z := archiveOf(t, exported(t, apptest.Context(t), e, err)); z.Messages != 1001 {
		t.Errorf("got %d messages", z.Messages)
	}
}

// TestExportIsTheOwners: what belongs to somebody else is not there, neither a
// text, nor a conversation, nor a picture in a text.
func TestExportIsTheOwners(t *testing.T) {
	b := newBench(t, nil)
	other := artel.WithOwner(apptest.Context(t), "other")
	foreign, err := b.Conversations.Create(other, app.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	staged, err := b.Artifacts.Stage(other, foreign.ID, app.Upload{Body: strings.NewReader(gif), Filename: "secret.gif"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Artifacts.Add(other, foreign.ID, []artifact.Staged{staged}); err != nil {
		t.Fatal(err)
	}
	c := b.conversation()
	here := b.upload(c, "dot.gif", gif+"\x00")
	second := b.conversation()
	b.upload(second, "a.md", "![far](artifact:"+string(foreign.ID)+"/secret.gif) ![blob]("+artel.BlobRef(staged.Digest).String()+")")
	b.upload(second, "b.md", "![near]("+here.Ref.String()+") ![blob]("+artel.BlobRef(here.Digest).String()+")")
	for id, want := range map[artel.ArtifactID]int{"a.md": 0, "b.md": 2} {
		e, err := b.Artifacts.Export(apptest.Context(t), second, id, app.ExportQuery{Format: app.FormatHTML})
		if n := strings.Count(exported(t, apptest.Context(t), e, err), "data:image/gif"); n != want {
			t.Errorf("%s: %d pictures, want %d", id, n, want)
		}
	}
	if _, err := b.Artifacts.Export(apptest.Context(t), foreign.ID, "secret.gif", app.ExportQuery{Format: app.FormatHTML}); artel.KindOf(err) != artel.NotFound {
		t.Errorf("a foreign artifact: %v", err)
	}
	if _, err := b.Conversations.Export(apptest.Context(t), foreign.ID, ""); artel.KindOf(err) != artel.NotFound {
		t.Errorf("a foreign conversation: %v", err)
	}
}

// gif is a picture of one pixel.
const gif = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

// broken is a store of blobs that cannot be read.
type broken struct{ blob.Store }

func (broken) Open(context.Context, artel.Digest) (blob.Reader, error) {
	return nil, artel.Errorf(artel.Unavailable, "blob.Open", "", "the disk is gone")
}

// TestExportOfLostBytes: an export without its bytes is none.
func TestExportOfLostBytes(t *testing.T) {
	b := newBench(t, nil)
	c := b.conversation()
	b.upload(c, "dot.gif", gif)
	b.upload(c, "a.md", "![a dot](artifact:dot.gif)")
	b.config.Blobs = broken{b.config.Blobs}
	b.App = b.open()
	e, err := b.Conversations.Export(apptest.Context(t), c, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Write(apptest.Context(t), io.Discard); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("got %v", err)
	}
}
