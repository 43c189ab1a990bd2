// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// countingBlobs counts openings, and fails them while failing is set.
type countingBlobs struct {
	blob.Store
	opened  atomic.Int32
	failing atomic.Bool
}

func (c *countingBlobs) Open(ctx context.Context, d artel.Digest) (blob.Reader, error) {
	c.opened.Add(1)
	if c.failing.Load() {
		return nil, artel.Errorf(artel.Unavailable, "blob.Open", "", "the disk is away")
	}
	return c.Store.Open(ctx, d)
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "files", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func put(t testing.TB, b *bench, c *artifact.Collection, name string, data []byte) artel.Artifact {
	t.Helper()
	s, err := c.Uploads.Stage(t.Context(), bytes.NewReader(data), media.Hint{Filename: name})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Uploads.Add(t.Context(), artel.Local, b.conv, []artifact.Staged{s})
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func (b *bench) ref(id artel.ArtifactID, version int) artel.Ref {
	return artel.Ref{Conversation: b.conv, Artifact: id, Version: version}
}

func TestDerived(t *testing.T) {
	b := newBench(t, "")
	c := b.collection()
	for _, tt := range []struct {
		name  string
		made  bool
		kind  string
		pages int
		want  string
	}{
		{"brief.docx", true, "text/markdown", 0, "| Berlin"},
		{"brief.odt", true, "text/markdown", 1, "| Berlin"},
		{"brief.rtf", true, "text/markdown", 0, "Berlin"},
		{"brief.pdf", true, "text/markdown", 1, "Trip report"},
		{"data.xlsx", true, "text/markdown", 3, "Tea"},
		{"talk.pptx", true, "text/markdown", 2, "三月"},
		{"brief.html", true, "text/markdown", 0, "- Visited the plant"},
		{"table.csv", true, "text/markdown", 0, "| --- |"},
		{"notes.md", false, "text/markdown", 0, "#"},
		{"ru_cp1251.txt", false, "text/plain", 0, "и"},
		{"data.json", false, "application/json", 0, "{"},
	} {
		data := sample(t, tt.name)
		a := put(t, b, c, tt.name, data)
		d, err := c.Derived(t.Context(), artel.Local, b.ref(a.ID, 0), "")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if d.Made != tt.made || d.MediaType != tt.kind || d.Pages != tt.pages || d.Cut || !d.Visible ||
			d.Version.Number != 1 || d.Version.Digest != artel.NewDigest(sha256.Sum256(data)) || !strings.Contains(d.Text, tt.want) {
			t.Errorf("%s: got %+v", tt.name, d)
		}
		byDigest, err := c.Derived(t.Context(), artel.Local, artel.BlobRef(a.Digest), "")
		if err != nil || byDigest.Text != d.Text {
			t.Errorf("%s by its digest: %+v, %v", tt.name, byDigest, err)
		}
		content, err := c.Open(t.Context(), artel.Local, b.ref(a.ID, 1), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := make([]byte, len(data)); content.Size() != int64(len(data)) {
			t.Errorf("%s has %d bytes afterwards, want %d", tt.name, content.Size(), len(data))
		} else if _, err := content.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s is not what it was (%v)", tt.name, err)
		}
		if err := content.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDerivedRefusals(t *testing.T) {
	b := newBench(t, "")
	c := b.collection()
	damaged := sample(t, "brief.docx")
	damaged = damaged[:len(damaged)-200]
	for _, tt := range []struct {
		name string
		data []byte
		kind artel.Kind
		want string
	}{
		{"photo.jpg", sample(t, "photo.jpg"), artel.Unsupported, "photo.jpg: no text can be taken out of this media type"},
		{"locked.pdf", sample(t, "locked.pdf"), artel.Unsupported, "locked.pdf: "},
		{"broken.docx", damaged, artel.Invalid, "broken.docx: the document is damaged"},
	} {
		a := put(t, b, c, tt.name, tt.data)
		for range 2 { // made, and remembered
			d, err := c.Derived(t.Context(), artel.Local, b.ref(a.ID, 0), "")
			if artel.KindOf(err) != tt.kind || !strings.HasPrefix(err.Error(), tt.want) || d.Text != "" {
				t.Errorf("%s: got %q, %v", tt.name, d.Text, err)
			}
		}
	}
	for _, ref := range []artel.Ref{b.ref("nothing", 0), b.ref("photo.jpg", 7), artel.BlobRef(artel.NewDigest([32]byte{1})), {Artifact: "photo.jpg"}} {
		if _, err := c.Derived(t.Context(), artel.Local, ref, ""); artel.CodeOf(err) != artel.CodeArtifactNotFound {
			t.Errorf("%s: got %v", ref, err)
		}
	}
	if _, err := c.Derived(t.Context(), "somebody else", b.ref("broken.docx", 0), ""); !errors.Is(err, artel.NotFound) {
		t.Errorf("what is remembered was told to somebody else: %v", err)
	}
}

// TestDerivedOfEdits reads a page as it is after each edit of a run, and as it
// was before.
func TestDerivedOfEdits(t *testing.T) {
	b := newBench(t, "")
	c := b.collection()
	a := put(t, b, c, "page.html", []byte("<h1>Old</h1>"))
	w := c.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: b.conv, Run: artel.NewRunID(start), Message: b.root, Author: "lead_agent"})
	if _, _, err := w.Edit.Update(t.Context(), a.ID, []edit.Edit{{Old: "Old", New: "Nëw"}}, artifact.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		version int
		want    string
		visible bool
	}{{0, "# Nëw\n", false}, {1, "# Old\n", true}, {2, "# Nëw\n", false}} {
		d, err := c.Derived(t.Context(), artel.Local, b.ref(a.ID, tt.version), b.root)
		if err != nil || d.Text != tt.want || d.Visible != tt.visible || !d.Made {
			t.Errorf("version %d: got %+v, %v", tt.version, d, err)
		}
		if d, err := w.Derived(t.Context(), a.ID, tt.version); err != nil || d.Text != tt.want {
			t.Errorf("version %d of the writer: got %+v, %v", tt.version, d, err)
		}
	}
}

func TestDerivedIsMadeOnce(t *testing.T) {
	b := newBench(t, rowstest.Address(t))
	counting := &countingBlobs{Store: b.blobs}
	b.blobs = counting
	c := b.collection()
	a := put(t, b, c, "data.xlsx", sample(t, "data.xlsx"))
	again := put(t, b, c, "copy.xlsx", sample(t, "data.xlsx"))
	counting.opened.Store(0)

	counting.failing.Store(true)
	if _, err := c.Derived(t.Context(), artel.Local, b.ref(a.ID, 0), ""); !errors.Is(err, artel.Unavailable) {
		t.Fatalf("got %v", err)
	}
	counting.failing.Store(false) // what the storage failed with is not remembered
	counting.opened.Store(0)

	var wg sync.WaitGroup
	for range 8 {
		for _, id := range []artel.ArtifactID{a.ID, again.ID} {
			wg.Go(func() {
				if d, err := c.Derived(t.Context(), artel.Local, b.ref(id, 0), ""); err != nil || !strings.Contains(d.Text, "Tea") {
					t.Errorf("got %q, %v", d.Text, err)
				}
			})
		}
	}
	wg.Wait()
	if n := counting.opened.Load(); n != 1 {
		t.Errorf("the bytes were read %d times, want once", n)
	}
}

func BenchmarkDerived(b *testing.B) {
	for _, name := range []string{"brief.docx", "brief.pdf", "data.xlsx"} {
		bench := newBench(b, filepath.Join(b.TempDir(), "rows.db"))
		a := put(b, bench, bench.collection(), name, sample(b, name))
		b.Run(name+"/first", func(b *testing.B) {
			for b.Loop() {
				derive(b, bench, bench.collection(), a)
			}
		})
		b.Run(name+"/again", func(b *testing.B) {
			c := bench.collection()
			for b.Loop() {
				derive(b, bench, c, a)
			}
		})
	}
}

func derive(b *testing.B, bench *bench, c *artifact.Collection, a artel.Artifact) {
	if _, err := c.Derived(b.Context(), artel.Local, bench.ref(a.ID, 0), ""); err != nil {
		b.Fatal(err)
	}
}
