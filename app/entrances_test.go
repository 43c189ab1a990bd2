// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/store"
)

func encodedSample(t *testing.T, name string) (data []byte, encoded string) {
	t.Helper()
	data, err := os.ReadFile("../testdata/files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data, base64.StdEncoding.EncodeToString(data)
}

// TestTitlesLoseTheirMedia: a description stands where there were bytes, by
// whichever way a person gives a title.
func TestTitlesLoseTheirMedia(t *testing.T) {
	ctx := apptest.Context(t)
	b := newBench(t, play(t, writes))
	_, encoded := encodedSample(t, "red.png")
	written, want := "See "+encoded, "See [image/png, 96 bytes]"
	c, err := b.Conversations.Create(ctx, app.NewConversation{Title: written})
	if err != nil || c.Title != want {
		t.Fatalf("of a new conversation: %q, %v", c.Title, err)
	}
	if renamed, err := b.Conversations.Rename(ctx, c.ID, written+"!"); err != nil || renamed.Title != want+"!" {
		t.Errorf("of a renamed conversation: %q, %v", renamed.Title, err)
	}
	b.upload(c.ID, "a.txt", "words")
	at := app.ArtifactAt{Conversation: c.ID, ID: "a.txt"}
	a, err := b.Edits.Rename(ctx, at, written)
	if err != nil || a.Title != want {
		t.Errorf("of a renamed artifact: %q, %v", a.Title, err)
	}
	at.IfVersion = a.Version
	text, title := "other words", written+"?"
	if a, err = b.Edits.Save(ctx, at, artifact.Draft{Text: &text, Title: &title}); err != nil || a.Title != want+"?" {
		t.Errorf("of a saved artifact: %q, %v", a.Title, err)
	}
	c = artel.Conversation{ID: b.conversation()}
	b.ask(c.ID, written)
	if c, err = b.Conversations.Find(ctx, c.ID); err != nil || c.Title != want {
		t.Errorf("made of the first message: %q, %v", c.Title, err)
	}
}

// TestImportLosesMedia: nothing that a ZIP says beside the contents of
// artifacts keeps bytes that stand there as text.
func TestImportLosesMedia(t *testing.T) {
	ctx := apptest.Context(t)
	b := newBench(t, play(t, writes))
	data, encoded := encodedSample(t, "red.png")
	changed := map[string]bool{}
	z := rezip(t, b.zip(b.full()), func(name, s string) string {
		if name != "conversation.json" {
			return s
		}
		for from, to := range map[string]string{
			`"title":"Renamed"`: `"title":"R ` + encoded + `"`, `"text":"Another way."`: `"text":"Another ` + encoded + ` way."`,
			`"title":"See `: `"title":"` + encoded + ` See `, `"author":"lead_agent"`: `"author":"` + encoded + `"`, `"agent":"lead_agent"`: `"agent":"` + encoded + `"`,
		} {
			changed[from] = strings.Contains(s, from)
			s = strings.ReplaceAll(s, from, to)
		}
		return s
	})
	for from, done := range changed {
		if !done {
			t.Errorf("the ZIP has no %s", from)
		}
	}
	done, err := b.bringIn(ctx, z)
	if err != nil {
		t.Fatal(err)
	}
	c := done.Conversation
	if !strings.HasPrefix(c.Title, "[image/png, 96 bytes] See ") {
		t.Errorf("the title is %q", c.Title)
	}
	rezip(t, b.zip(c.ID), func(name, s string) string {
		if strings.Contains(s, encoded[:30]) {
			t.Errorf("%s still has it", name)
		}
		return s
	})
	messages, _, err := b.Messages.List(ctx, c.ID, store.Page{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	said, _ := json.Marshal(messages)
	ref := "artifact:" + string(c.ID) + "/image_" + artel.NewDigest(sha256.Sum256(data)).Hex()[:16] + ".png@1"
	if strings.Contains(string(said), encoded[:30]) || !strings.Contains(string(said), "Another "+ref+" way.") {
		t.Errorf("the messages are %s", said)
	}
	f, err := b.Files.Open(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Content.Close()
	if f.Info.Size != int64(len(data)) {
		t.Errorf("the picture has %d bytes, not %d", f.Info.Size, len(data))
	}
	list, err := b.Artifacts.List(ctx, c.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		versions, err := b.Versions.List(ctx, c.ID, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		if said, _ := json.Marshal(versions); strings.Contains(string(said), encoded[:30]) {
			t.Errorf("a version of %s still has it: %s", a.ID, said)
		}
	}
}
