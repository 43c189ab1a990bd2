// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
)

// rewritten is a ZIP whose conversation.json has new in the place of old.
func rewritten(t *testing.T, from []byte, old, new string) []byte {
	t.Helper()
	in, err := zip.NewReader(bytes.NewReader(from), int64(len(from)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range in.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == "conversation.json" {
			if !bytes.Contains(b, []byte(old)) {
				t.Fatalf("no %s in %.300s", old, b)
			}
			b = bytes.ReplaceAll(b, []byte(old), []byte(new))
		}
		to, err := w.Create(f.Name)
		if err == nil {
			_, err = to.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// An export of another program may hold media as text. The import takes them
// out, and stores equal ones once.
func TestImportsLoseTheirMedia(t *testing.T) {
	b := newBench(t, "")
	c := b.conversation()
	b.ended(c, map[string]any{"text": "Look at PLACE, please."})
	b.ended(c, map[string]any{"text": "And PLACE again."})
	zipped, err := b.client.ExportConversation(apptest.Context(t), artel.ConversationID(c))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(zipped)
	if _ = zipped.Close(); err != nil {
		t.Fatal(err)
	}
	png, encoded := sampleFile(t, "red.png")
	changed := rewritten(t, content, "PLACE", "data:image/png;base64,"+encoded)
	made, err := b.client.Import(apptest.Context(t), bytes.NewReader(changed), int64(len(changed)))
	if err != nil {
		t.Fatal(err)
	}
	messages, err := b.client.Messages(apptest.Context(t), made.Conversation.ID, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	refs := 0
	for _, m := range messages.Items {
		parts, err := m.Parts.MarshalJSON()
		if err != nil || strings.Contains(string(parts), encoded[:40]) {
			t.Errorf("%s: %.300s, %v", m.Role, parts, err)
		}
		refs += strings.Count(string(parts), "artifact:"+string(made.Conversation.ID)+"/image_")
	}
	if strings.Contains(made.Conversation.Title, encoded[:20]) || refs < 2 {
		t.Errorf("the title is %.100q, and there are %d refs", made.Conversation.Title, refs)
	}
	list, err := b.client.Artifacts(apptest.Context(t), made.Conversation.ID)
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for _, a := range list.Items {
		if a.MediaType == "image/png" {
			pictures++
			if a.Source != artel.SourceToolResult || a.Size != int64(len(png)) {
				t.Errorf("the picture is %+v", a)
			}
			view, err := b.client.Artifact(apptest.Context(t), a.Ref)
			if err != nil || view.Digest != a.Digest {
				t.Errorf("%+v, %v", view, err)
			}
			if resp := b.do("GET", "/conversations/"+string(made.Conversation.ID)+"/artifacts/"+string(a.ID)+"/raw", nil); resp.StatusCode != 200 || !bytes.Equal(resp.body, png) {
				t.Errorf("its bytes: %s", resp.Status)
			}
		}
	}
	if pictures != 1 {
		t.Errorf("there are %d pictures", pictures)
	}
}
