// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
)

func sample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "files", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDocumentsAreRead(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct{ name, kind, want, head string }{
		{"brief.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "| Berlin | 2 | 1,250.50 |", ""},
		{"brief.pdf", "application/pdf", "Trip report", ` pages="1"`},
		{"data.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "Sales 销售", ` pages="3"`},
		{"talk.pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation", "- Hire two people", ` pages="2"`},
		{"brief.odt", "application/vnd.oasis.opendocument.text", "| Berlin | 2 | 1,250.50 |", ""},
		{"brief.rtf", "application/rtf", "Berlin", ""},
	} {
		a := b.upload(tt.name, sample(t, tt.name))
		r := b.ok("read_artifact", m{"id": tt.name})
		head, _, _ := strings.Cut(r.Content, "\n")
		if !strings.Contains(head, fmt.Sprintf(`type="%s" derived="text/markdown, taken out of %[1]s"`, tt.kind)+tt.head) || !strings.Contains(r.Content, tt.want) {
			t.Errorf("%s: got %s", tt.name, r.Content)
		}
		if d, _ := r.Metadata["derived"].(m); d["media_type"] != "text/markdown" || d["cut"] != false || r.Metadata["media_type"] != tt.kind {
			t.Errorf("%s: got %v", tt.name, r.Metadata)
		}
		whole, _ := b.readAll(t, m{"id": tt.name})
		if paged, pages := b.readAll(t, m{"id": tt.name, "limit": 3}); paged != whole || pages < 2 {
			t.Errorf("%s: %d pages do not make up the text", tt.name, pages)
		}
		for _, ref := range []string{tt.name + "@1", "artifact:" + string(b.env.Conversation) + "/" + tt.name, artel.BlobRef(a.Digest).String()} {
			if got := body.FindStringSubmatch(b.ok("read_artifact", m{"id": ref}).Content); got == nil || got[1] != whole {
				t.Errorf("%s: got %q", ref, got)
			}
		}
		b.refused("update_artifact", m{"id": tt.name, "old_str": "Berlin", "new_str": "Bonn"}, "binary")
	}
	if page := b.upload("page.html", []byte("<p>as <b>it</b> is</p>")); page.Binary {
		t.Fatal("a page is text")
	}
	if r := b.ok("read_artifact", m{"id": "page.html"}); !strings.Contains(r.Content, "<p>as <b>it</b> is</p>") || strings.Contains(r.Content, "derived=") {
		t.Errorf("a text that can be edited has to be shown as it is: %s", r.Content)
	}
}

func TestDocumentsOfOtherConversationsAreRead(t *testing.T) {
	b := newBench(t)
	b.upload("brief.docx", sample(t, "brief.docx"))
	ref := fmt.Sprintf("artifact:%s/brief.docx@1", b.env.Conversation)
	const other = artel.ConversationID("cnv_00000000000000000000000001")
	err := b.store.Update(t.Context(), artel.Local, func(tx store.Tx) error { return tx.Conversations.Create(artel.Conversation{ID: other}) })
	if err != nil {
		t.Fatal(err)
	}
	b.env.Conversation = other
	if r := b.ok("read_artifact", m{"id": ref}); !strings.Contains(r.Content, "| Berlin") {
		t.Errorf("got %s", r.Content)
	}
	b.env.At = artel.NewMessageID(time.Time{}) // of this conversation, which the other knows nothing of
	if r := b.ok("read_artifact", m{"id": strings.TrimSuffix(ref, "@1")}); !strings.Contains(r.Content, "| Berlin") {
		t.Errorf("got %s", r.Content)
	}
	if r := b.ok("grep_artifacts", m{"id": ref, "pattern": "^# Trip"}); !strings.Contains(r.Content, "# Trip report") {
		t.Errorf("got %s", r.Content)
	}
}

func TestDocumentsThatCannotBeRead(t *testing.T) {
	b := newBench(t)
	damaged := sample(t, "brief.docx")
	b.upload("damaged.docx", damaged[:len(damaged)-200])
	b.upload("locked.pdf", sample(t, "locked.pdf"))
	b.upload("old.doc", append([]byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"), make([]byte, 4096)...))
	b.upload("p.png", picture(t))
	for _, tt := range []struct{ id, want string }{
		{"damaged.docx", "damaged.docx: the document is damaged"},
		{"locked.pdf", "locked.pdf: "},
		{"old.doc", "Office before 2007"},
	} {
		b.refused("read_artifact", m{"id": tt.id}, tt.want, "get_artifact gives the file itself")
		b.refused("grep_artifacts", m{"id": tt.id, "pattern": "x"}, tt.want)
	}
	const noLines = "p.png: it is binary (image/png) and has no lines; use get_artifact"
	b.refused("read_artifact", m{"id": "p.png"}, noLines)
	b.refused("grep_artifacts", m{"id": "p.png", "pattern": "x"}, noLines)
	r := b.ok("grep_artifacts", m{"pattern": "x"})
	for _, want := range []string{"Nothing matches.", "[These documents could not be read: damaged.docx: ", "; locked.pdf: ", "[2 binary artifacts have no text"} {
		if !strings.Contains(r.Content, want) {
			t.Errorf("%s lacks %s", r.Content, want)
		}
	}
}

func TestDocumentsAreSearched(t *testing.T) {
	b := newBench(t)
	b.ok("create_artifact", m{"id": "notes", "title": "Notes", "content": "one\nBerlin, too\n"})
	b.upload("brief.docx", sample(t, "brief.docx"))
	b.upload("data.xlsx", sample(t, "data.xlsx"))
	r := b.ok("grep_artifacts", m{"pattern": "Berlin|Tea"})
	want := regexp.MustCompile(`^<artifact_matches pattern="Berlin\|Tea" matches="3" searched="3" complete="true">
brief\.docx:(\d+):\| Berlin \| 2 \| 1,250\.50 \|
data\.xlsx:\d+:.*Tea.*
notes:2:Berlin, too
\[The lines are those of the text taken out of these documents, which cannot be edited: brief\.docx \(application/\S+document\); data\.xlsx \(application/\S+sheet\)\]
</artifact_matches>$`)
	got := want.FindStringSubmatch(r.Content)
	if got == nil {
		t.Fatalf("got %s", r.Content)
	}
	line := b.ok("read_artifact", m{"id": "brief.docx", "offset": json.Number(got[1]), "limit": 1})
	if text := body.FindStringSubmatch(line.Content); text == nil || text[1] != "| Berlin | 2 | 1,250.50 |\n" {
		t.Errorf("line %s is not where it was found: %s", got[1], line.Content)
	}
	if r := b.ok("grep_artifacts", m{"pattern": "Berlin", "max": 1}); !strings.Contains(r.Content, `matches="1"`) || !strings.Contains(r.Content, `complete="false"`) {
		t.Errorf("got %s", r.Content)
	}
}

// lostBlobs has lost every blob.
type lostBlobs struct{ blob.Store }

func (lostBlobs) Open(_ context.Context, d artel.Digest) (blob.Reader, error) {
	return nil, artel.Errorf(artel.NotFound, "blob.Open", string(d), "there is no such blob")
}

// brokenBlobs gives bytes that fail as no document does.
type brokenBlobs struct{ blob.Store }

func (brokenBlobs) Open(context.Context, artel.Digest) (blob.Reader, error) {
	return nil, artel.Errorf(artel.Internal, "blob.Open", "/srv/secret", "the stored size is wrong")
}

func TestDocumentsWhoseBytesAreGone(t *testing.T) {
	b := newBench(t)
	b.upload("brief.docx", sample(t, "brief.docx"))
	for _, tt := range []struct {
		blobs blob.Store
		want  string
	}{{lostBlobs{}, "there is no such blob"}, {brokenBlobs{}, "brief.docx: its text could not be read"}} {
		b.env.Artifacts = artifact.New(b.store, tt.blobs, artifact.Options{})
		b.env.Workspace = b.env.Artifacts.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: b.env.Conversation, Author: "lead"})
		r := b.refused("read_artifact", m{"id": "brief.docx"}, tt.want)
		if strings.Contains(r.Content, "secret") {
			t.Errorf("got %s", r.Content)
		}
		if r := b.ok("grep_artifacts", m{"pattern": "x"}); !strings.Contains(r.Content, "[These documents could not be read: ") || !strings.Contains(r.Content, tt.want) {
			t.Errorf("got %s", r.Content)
		}
	}
}
