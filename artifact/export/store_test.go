// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/artifact/export"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// TestZIPOfStore exports what a real store holds, and reads it back.
func TestZIPOfStore(t *testing.T) {
	ctx := t.Context()
	s, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "a.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := newThread()
	root := c.say("", artel.RoleUser, artel.Text{Text: "Write a plan <now>."}, artel.Reasoning{Text: "hm"})
	c.say(root, artel.RoleAssistant, artel.ToolCall{ID: "1", Name: "f", Arguments: []byte(`{ "a": "<" }`)})
	err = s.Update(ctx, artel.Local, func(tx store.Tx) error {
		if err := tx.Conversations.Create(c.Conversation); err != nil {
			return err
		}
		for _, m := range c.messages {
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	list := artifact.New(s, blob.NewMemory(), artifact.Options{})
	var staged []artifact.Staged
	for name, b := range map[string]string{"红.png": string(picture(t, "png", 5, 5)), "old.txt": "\xd6\xd0\xce\xc4\xb5\xc4\xce\xc4\xb1\xbe\xa3\xac\xb9\xbb\xb3\xa4"} {
		up, err := list.Uploads.Stage(ctx, strings.NewReader(b), media.Hint{Filename: name})
		if err != nil {
			t.Fatal(err)
		}
		staged = append(staged, up)
	}
	if _, err := list.Uploads.Add(ctx, artel.Local, c.ID, staged); err != nil {
		t.Fatal(err)
	}
	w := list.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: c.ID, Message: root, Author: "lead"})
	if _, err := w.Create(ctx, "plan", "Plan", "# Plan\n\n- [ ] ![red](artifact:红.png)\n", ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Edit.Update(ctx, "plan", []edit.Edit{{Old: "- [ ]", New: "- [x]"}}, artifact.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Create(ctx, "gone", "", "soon", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Edit.Delete(ctx, "gone", 0); err != nil {
		t.Fatal(err)
	}

	var all export.Conversation
	var stored []artel.Message
	err = s.View(ctx, artel.Local, func(tx store.Tx) (err error) {
		if all.Conversation, err = tx.Conversations.Get(c.ID); err != nil {
			return err
		}
		stored, _, err = tx.Messages.List(c.ID, store.Page{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all.Messages = sequence(stored)
	all.Readme = phrase.English.Say(phrase.ExportReadme, map[string]any{"Title": all.Title})
	all.Open = func(ctx context.Context, ref artel.Ref) (artifact.Content, error) {
		return list.Open(ctx, artel.Local, ref, "")
	}
	back := &thread{Conversation: all.Conversation, messages: stored, bytes: map[artel.Ref][]byte{}}
	ids := []artel.ArtifactID{"plan", "gone"}
	for _, up := range staged {
		ids = append(ids, artifact.UploadID(up.Filename))
	}
	slices.Sort(ids)
	for _, id := range ids {
		versions, err := list.Versions.List(ctx, artel.Local, c.ID, id)
		if err != nil {
			t.Fatal(err)
		}
		back.artifacts = append(back.artifacts, export.Artifact{ID: id, Versions: versions})
		for i, v := range versions {
			versions[i].Preview = "" // that of the text, which is there
			ref := artel.Ref{Conversation: c.ID, Artifact: id, Version: v.Number}
			got, err := all.Open(ctx, ref)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, got.Size())
			_, _ = got.ReadAt(b, 0)
			back.bytes[ref] = b
			_ = got.Close()
		}
	}
	all.Artifacts = sequence(back.artifacts)
	var out bytes.Buffer
	if err := export.ZIP(ctx, &out, all); err != nil {
		t.Fatal(err)
	}
	if err := sameThread(t, back, out.String()); err != nil {
		t.Error(err)
	}
	entries := entriesOf(t, out.String())
	for name, want := range map[string]string{
		"files/plan.md":                  "# Plan\n\n- [x] ![red](%E7%BA%A2.png)\n",
		"files/红.png":                    string(picture(t, "png", 5, 5)),
		"artifacts/old.txt/v1.utf-8.txt": "中文的文本，够长",
	} {
		if entries[name] != want {
			t.Errorf("%s is %q", name, artel.Shorten(entries[name], 80))
		}
	}
	if _, ok := entries["files/gone.md"]; ok {
		t.Error("a deleted artifact is among the newest files")
	}
	if !strings.Contains(entries["README.md"], "# Quarter") {
		t.Errorf("README.md is %q", entries["README.md"])
	}
}
