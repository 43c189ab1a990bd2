// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

func (b *bench) zip(c artel.ConversationID) string {
	b.t.Helper()
	e, err := b.Conversations.Export(apptest.Context(b.t), c, "")
	return exported(b.t, apptest.Context(b.t), e, err)
}

func (b *bench) bringIn(ctx context.Context, z string) (app.Imported, error) {
	b.t.Helper()
	s, err := b.Imports.Stage(ctx, strings.NewReader(z))
	if err != nil {
		return app.Imported{}, err
	}
	defer s.Close()
	return b.Imports.Import(ctx, s)
}

// rezip changes the entries of a ZIP.
func rezip(t *testing.T, z string, change func(name, content string) string) string {
	t.Helper()
	r, err := zip.NewReader(strings.NewReader(z), int64(len(z)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		entry, err := w.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(entry, change(f.Name, string(b)))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// full is a conversation with branches, pictures, old charsets, edits and a
// deleted artifact.
func (b *bench) full() artel.ConversationID {
	b.t.Helper()
	ctx := apptest.Context(b.t)
	c := b.conversation()
	b.upload(c, "dot.gif", gif)
	b.upload(c, "old.txt", "\xd6\xd0\xce\xc4\xb5\xc4\xce\xc4\xb1\xbe\xa3\xac\xb9\xbb\xb3\xa4")
	first := b.ended(b.send(c, run.Input{Text: "See artifact:" + string(c) + "/dot.gif", Attachments: []string{"dot.gif"}}))
	at := app.ArtifactAt{Conversation: c, ID: "note"}
	if _, err := b.Edits.Rename(ctx, at, "Renamed"); err != nil {
		b.t.Fatal(err)
	}
	b.upload(c, "gone.md", "soon")
	if _, err := b.Edits.Delete(ctx, app.ArtifactAt{Conversation: c, ID: "gone.md"}); err != nil {
		b.t.Fatal(err)
	}
	b.ended(b.send(c, run.Input{Text: "Another way.", Parent: &first.Message}))
	return c
}

// TestImport: what is exported comes in as it was, under new ids.
func TestImport(t *testing.T) {
	ctx := apptest.Context(t)
	b := newBench(t, play(t, writes))
	c := b.full()
	z := b.zip(c)
	for _, owner := range []artel.Owner{"", "other"} {
		ctx, b := ctx, b
		if owner != "" { // to another installation, where nothing is
			ctx, b = artel.WithOwner(ctx, owner), newBench(t, play(t, writes))
		}
		done, err := b.bringIn(ctx, z)
		if err != nil {
			t.Fatal(err)
		}
		e, err := b.Conversations.Export(ctx, done.Conversation.ID, "")
		again := exported(t, ctx, e, err)
		compareArchives(t, z, again)
		rezip(t, again, func(name, s string) string {
			if name == "conversation.json" && (strings.Contains(s, string(c)) || !strings.Contains(s, string(done.Conversation.ID))) {
				i := strings.Index(s, string(c))
				t.Errorf("something still has the old id: %.300s", s[max(i-200, 0):])
			}
			return s
		})
		messages, _, err := b.Messages.List(ctx, done.Conversation.ID, store.Page{Limit: 500})
		if err != nil || len(messages) != done.Messages {
			t.Fatalf("%d messages, %v", len(messages), err)
		}
		if text := artel.TextOf(messages[0].Parts); text != "See artifact:"+string(done.Conversation.ID)+"/dot.gif" {
			t.Errorf("the first message is %q", text)
		}
		var media *artel.Media
		for _, p := range messages[0].Parts {
			if m, ok := p.(artel.Media); ok {
				media = &m
			}
		}
		if media == nil {
			t.Fatal("the attachment is lost")
		}
		file, err := b.Files.Open(ctx, media.Ref.String())
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Content.Close()
		// It is a conversation like any other.
		at := app.ArtifactAt{Conversation: done.Conversation.ID, ID: "old.txt"}
		old, err := b.Edits.Rename(ctx, at, "Young")
		if err != nil || old.Version != 2 {
			t.Errorf("renamed: %+v, %v", old, err)
		}
		if _, text, err := b.Artifacts.Find(ctx, done.Conversation.ID, "old.txt", ""); err != nil || *text != "中文的文本，够长" {
			t.Errorf("the text in an old charset: %v, %v", text, err)
		}
		r, err := b.Runs.Send(ctx, done.Conversation.ID, run.Input{Text: "Go on."})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range b.Events.Follow(ctx, done.Conversation.ID, 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == artel.EventRunFinished {
				break
			}
		}
		if r, err = b.Runs.Find(ctx, r.ID); err != nil || r.State != artel.RunDone {
			t.Errorf("the run: %+v, %v", r, err)
		}
	}
}

// compareArchives holds two ZIPs to the same content, apart from ids.
func compareArchives(t *testing.T, want, got string) {
	t.Helper()
	type all struct {
		Conversation artel.Conversation
		Messages     []artel.Message
		Versions     map[artel.ArtifactID][]artel.Version
		Bytes        map[artel.Ref]string
	}
	read := func(z string) (x all) {
		a := archiveOf(t, z)
		x.Conversation, x.Versions, x.Bytes = a.Conversation, map[artel.ArtifactID][]artel.Version{}, map[artel.Ref]string{}
		number := map[artel.MessageID]artel.MessageID{}
		for m, err := range a.EachMessage(apptest.Context(t)) {
			if err != nil {
				t.Fatal(err)
			}
			number[m.ID] = artel.MessageID("message " + string(rune('a'+len(number))))
			parts, err := json.Marshal(m.Parts)
			if err != nil {
				t.Fatal(err)
			}
			m.ID, m.Parent, m.Conversation, m.Run = number[m.ID], number[m.Parent], "", ""
			m.Parts = artel.Parts{artel.Text{Text: strings.ReplaceAll(string(parts), string(a.Conversation.ID), "cnv")}}
			x.Messages = append(x.Messages, m)
		}
		x.Conversation.ID, x.Conversation.Leaf = "", number[x.Conversation.Leaf]
		x.Conversation.Title = strings.ReplaceAll(x.Conversation.Title, string(a.Conversation.ID), "cnv")
		for art, err := range a.EachArtifact(apptest.Context(t)) {
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range art.Versions {
				r, err := a.Open(art.ID, v.Number)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				x.Bytes[artel.Ref{Artifact: art.ID, Version: v.Number}] = string(b)
				art.Versions[i].Message, art.Versions[i].Run = number[v.Message], ""
			}
			x.Versions[art.ID] = art.Versions
		}
		return x
	}
	if diff := cmp.Diff(read(want), read(got), cmpopts.IgnoreFields(artel.Conversation{}, "UpdatedAt")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestImportBreaksOff: what is not whole is never seen, and goes.
func TestImportBreaksOff(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	b := newBench(t, play(t, writes), func(c *app.Config) {
		c.Options.Now = func() time.Time { return now }
		c.Options.Artifacts = artifact.Options{MaxBytes: 1 << 20}
	})
	c := b.full()
	z := b.zip(c)
	listed := func() int {
		list, _, err := b.Conversations.List(apptest.Context(t), store.ConversationQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for name, tt := range map[string]struct {
		z    string
		kind artel.Kind
	}{
		"no ZIP": {"hello", artel.Invalid},
		"cut":    {z[:len(z)/2], artel.Invalid},
		"other bytes": {rezip(t, z, func(name, s string) string {
			if strings.HasPrefix(name, "artifacts/old.txt/") && !strings.Contains(name, "utf-8") {
				return strings.Replace(s, "\xd6", "\xd7", 1)
			}
			return s
		}), artel.Invalid},
		"later format": {rezip(t, z, func(name, s string) string {
			return strings.Replace(s, `"format_version":1`, `"format_version":2`, 1)
		}), artel.Unsupported},
	} {
		if _, err := b.bringIn(apptest.Context(t), tt.z); artel.KindOf(err) != tt.kind {
			t.Errorf("%s: got %v", name, err)
		}
		if n := listed(); n != 1 {
			t.Errorf("%s: %d conversations are listed", name, n)
		}
	}
	ctx, stop := context.WithCancel(apptest.Context(t))
	s, err := b.Imports.Stage(ctx, strings.NewReader(z))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := b.Imports.Import(ctx, s); artel.KindOf(err) != artel.Canceled {
		t.Errorf("canceled: %v", err)
	}
	_ = s.Close()
	now = now.Add(2 * time.Hour)
	if n, err := b.Purge(apptest.Context(t)); err != nil || n != 1 {
		t.Errorf("purged %d, %v: want what the broken import left", n, err)
	}
	if done, err := b.bringIn(apptest.Context(t), z); err != nil || listed() != 2 {
		t.Errorf("%+v, %v", done, err)
	}
	for name, o := range map[string]artifact.Options{"bytes": {MaxBytes: 10}, "text": {MaxText: 4}} {
		small := newBench(t, nil, func(c *app.Config) { c.Options.Artifacts = o })
		if _, err := small.bringIn(apptest.Context(t), z); artel.KindOf(err) != artel.TooLarge {
			t.Errorf("over the limit of %s: got %v", name, err)
		}
	}
	if left := spooled(t, b.spool); left != 0 {
		t.Errorf("%d files are left in the spool", left)
	}
}

// TestImportOfHostile: what a ZIP says of its files is not believed.
func TestImportOfHostile(t *testing.T) {
	b := newBench(t, play(t, writes))
	c := b.full()
	z := rezip(t, b.zip(c), func(name, s string) string {
		if name != "conversation.json" {
			return s
		}
		for from, to := range map[string]string{
			`"media_type":"image/gif"`: `"media_type":"text/html"`, `"media_type":"text/markdown"`: `"media_type":"image/svg+xml"`,
			`"title":"Renamed"`: `"title":"a\nb\u202e"`, `"kind":"image"`: `"kind":"document"`, `"agent":"lead_agent"`: `"agent":"none"`,
		} {
			s = strings.ReplaceAll(s, from, to)
		}
		return s
	})
	done, err := b.bringIn(apptest.Context(t), z)
	if err != nil {
		t.Fatal(err)
	}
	list, err := b.Artifacts.List(apptest.Context(t), done.Conversation.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	types := map[artel.ArtifactID]string{}
	for _, a := range list {
		types[a.ID] = a.MediaType + " " + string(a.Kind)
		if strings.ContainsAny(a.Title, "\n\u202e") {
			t.Errorf("the title of %s is %q", a.ID, a.Title)
		}
	}
	if types["dot.gif"] != "image/gif image" || !strings.HasSuffix(types["note"], " text") {
		t.Errorf("got %v", types)
	}
	if done.Conversation.Agent != "" {
		t.Errorf("the agent is %q, which there is not", done.Conversation.Agent)
	}
}

func spooled(t *testing.T, dir string) int {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// TestImportedSystemMessages: a file from elsewhere does not instruct models with
// the authority of the system, and what it hides from them is counted.
func TestImportedSystemMessages(t *testing.T) {
	b := newBench(t, nil)
	c := b.conversation()
	b.ask(c, "hello")
	z := rezip(t, b.zip(c), func(name, content string) string {
		if name == "conversation.json" {
			content = strings.Replace(content, `"role":"user"`, `"role":"system"`, 1)
			content = strings.Replace(content, `"role": "user"`, `"role": "system"`, 1)
			content = strings.Replace(content, `"role":"assistant"`, `"summary":true,"role":"assistant"`, 1)
			content = strings.Replace(content, `"role": "assistant"`, `"summary": true, "role": "assistant"`, 1)
		}
		return content
	})
	made, err := b.bringIn(apptest.Context(t), z)
	if err != nil || made.SystemAsUser != 1 || made.Summaries != 1 {
		t.Fatalf("got %+v, %v", made, err)
	}
	for _, m := range b.messages(made.Conversation.ID) {
		if m.Role == artel.RoleSystem {
			t.Errorf("a system message: %+v", m)
		}
	}
}

// TestImportOfADeletedArtifact: a deleted artifact can be restored in the imported
// conversation, too.
func TestImportOfADeletedArtifact(t *testing.T) {
	b := newBench(t, play(t, writes))
	c := b.conversation()
	b.upload(c, "gone.md", "soon")
	if _, err := b.Edits.Delete(apptest.Context(t), app.ArtifactAt{Conversation: c, ID: "gone.md"}); err != nil {
		t.Fatal(err)
	}
	done, err := b.bringIn(apptest.Context(t), b.zip(c))
	if err != nil {
		t.Fatal(err)
	}
	back, err := b.Edits.Restore(apptest.Context(t), app.ArtifactAt{Conversation: done.Conversation.ID, ID: "gone.md"}, 0)
	if err != nil || back.Deleted || b.text(done.Conversation.ID, "gone.md", "") != "soon" {
		t.Errorf("it is restored as version %d, deleted %v: %v", back.Version, back.Deleted, err)
	}
}
