// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

// background is for places that have no test's context.
var background = context.Background()

// picture returns a PNG image of 3 by 2 pixels.
func picture(t testing.TB) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func upload(t fatal, b *bench, names ...string) []artel.Artifact {
	t.Helper()
	c := b.collection()
	var staged []artifact.Staged
	for _, name := range names {
		staged = append(staged, must[artifact.Staged](t)(c.Uploads.Stage(background, strings.NewReader("a"), media.Hint{Filename: name})))
	}
	return must[[]artel.Artifact](t)(c.Uploads.Add(background, artel.Local, b.conv, staged))
}

func TestUploadNames(t *testing.T) {
	long := strings.Repeat("x", 80)
	b := newBench(t, "")
	for _, tt := range []struct {
		names []string
		want  []artel.ArtifactID
	}{
		{[]string{"Report.PDF", "report.pdf", "REPORT.pdf"}, []artel.ArtifactID{"report.pdf", "report_1.pdf", "report_2.pdf"}},
		{[]string{"", "", "???"}, []artel.ArtifactID{"upload", "upload_1", "___"}},
		{[]string{"../../etc/passwd"}, []artel.ArtifactID{"_.._.._etc_passwd"}},
		{[]string{".env", ".env"}, []artel.ArtifactID{"_.env", "__1.env"}},
		{[]string{"-rf", "."}, []artel.ArtifactID{"_-rf", "_."}},
		{[]string{"a b (1).tar.gz", "a_b__1_.tar.gz"}, []artel.ArtifactID{"a_b__1_.tar.gz", "a_b__1_.tar_1.gz"}},
		{[]string{"re\u0301sume\u0301.md", "r\u00e9sum\u00e9.md"}, []artel.ArtifactID{"r\u00e9sum\u00e9.md", "r\u00e9sum\u00e9_1.md"}},
		{[]string{"报告.docx", "İ.txt"}, []artel.ArtifactID{"报告.docx", "i.txt"}},
		{[]string{"\u0301a"}, []artel.ArtifactID{"_\u0301a"}},
		{[]string{long + ".tar"}, []artel.ArtifactID{artel.ArtifactID(long[:52] + ".tar")}},
		{[]string{"a." + long}, []artel.ArtifactID{artel.ArtifactID("a." + long[:54])}},
		{[]string{"a\xffb.txt"}, []artel.ArtifactID{"a_b.txt"}},
		{[]string{"x\x00\n<>&\"'.txt"}, []artel.ArtifactID{"x_______.txt"}},
	} {
		b.begin(t)
		var got []artel.ArtifactID
		for i, a := range upload(t, b, tt.names...) {
			got = append(got, a.ID)
			if a.Filename != strings.ToValidUTF8(tt.names[i], "\uFFFD") {
				t.Errorf("the filename %q was kept as %q", tt.names[i], a.Filename)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.names, diff)
		}
	}
}

// An id that only another branch knows is taken all the same.
func TestUploadAvoidsEveryID(t *testing.T) {
	b := newBench(t, "")
	must[artel.Artifact](t)(b.workspace("run_1", b.b).Create(t.Context(), "a.txt", "", "of b", ""))
	if got := upload(t, b, "a.txt"); got[0].ID != "a_1.txt" {
		t.Errorf("got %s", got[0].ID)
	}
}

func TestUploadNamesAreIDs(t *testing.T) {
	b := newBench(t, "")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringN(50, 70, -1),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "name")
		for _, a := range upload(t, b, name, name) {
			if _, err := artel.ParseArtifactID(string(a.ID)); err != nil {
				t.Fatal(err)
			}
			if !norm.NFC.IsNormalString(string(a.ID)) || utf8.RuneCountInString(string(a.ID)) > 62 {
				t.Fatalf("id %q", a.ID)
			}
		}
	})
}

func TestUpload(t *testing.T) {
	b := newBench(t, "")
	ctx := t.Context()
	c := b.collection()
	png := picture(t)
	utf16 := "\xff\xfeh\x00\xe9\x00\r\x00\n\x00"
	staged := []artifact.Staged{
		must[artifact.Staged](t)(c.Uploads.Stage(ctx, strings.NewReader(png), media.Hint{Filename: "P.png"})),
		must[artifact.Staged](t)(c.Uploads.Stage(ctx, strings.NewReader(utf16), media.Hint{Filename: "t.txt"})),
	}
	added := must[[]artel.Artifact](t)(c.Uploads.Add(ctx, artel.Local, b.conv, staged))
	p, text := added[0], added[1]
	if p.MediaType != "image/png" || !p.Binary || p.Width != 3 || p.Height != 2 || p.Size != int64(len(png)) || p.Source != artel.SourceUserUpload || p.Live {
		t.Errorf("the picture: %+v", p)
	}
	if text.Charset != "utf-16le" || text.Size != int64(len(utf16)) || text.Binary || text.Digest != staged[1].Digest {
		t.Errorf("the text: %+v", text)
	}
	for _, at := range []artel.MessageID{"", b.root, b.a, b.b} {
		if got := must[[]artel.Artifact](t)(c.List(ctx, artel.Local, b.conv, at)); len(got) != 2 {
			t.Errorf("at %q: %d artifacts", at, len(got))
		}
	}
	b.text(t, "t.txt", b.a, 1, "hé\r\n")
	if got := read(t, c, text.Ref, b.a); got != utf16 {
		t.Errorf("raw text: %q", got)
	}
	if got := read(t, c, artel.BlobRef(p.Digest), ""); got != png {
		t.Errorf("by digest: %q", got)
	}

	// The first edit makes a UTF-8 version; the upload stays as it was.
	a := update(t, b.workspace("", b.a), "t.txt", "é", "e")
	if a.Charset != "utf-8" || a.Size != 4 || a.Source != artel.SourceUserUpload || a.LastEditor != "lead_agent" || a.Filename != "t.txt" {
		t.Errorf("edited: %+v", a)
	}
	ref := a.Ref
	if got := read(t, c, ref, b.a); got != "he\r\n" {
		t.Errorf("the newest bytes: %q", got)
	}
	if got := read(t, c, artel.BlobRef(a.Digest), b.a); got != "he\r\n" {
		t.Errorf("the newest bytes by digest: %q", got)
	}
	ref.Version = 1
	if got := read(t, c, ref, b.a); got != utf16 {
		t.Errorf("the first bytes: %q", got)
	}
}

func read(t testing.TB, c *artifact.Collection, ref artel.Ref, at artel.MessageID) string {
	t.Helper()
	content, err := c.Open(t.Context(), artel.Local, ref, at)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	all, err := io.ReadAll(content)
	if err != nil || int64(len(all)) != content.Size() {
		t.Fatalf("read %d of %d bytes: %v", len(all), content.Size(), err)
	}
	tail := make([]byte, 1)
	if _, err := content.ReadAt(tail, content.Size()-1); err != nil && err != io.EOF || tail[0] != all[len(all)-1] {
		t.Fatalf("the last byte: %q, %v", tail, err)
	}
	return string(all)
}

func TestOpenWhileARunWrites(t *testing.T) {
	b := newBench(t, "")
	c := b.collection()
	must[artel.Artifact](t)(b.workspace("", b.a).Create(t.Context(), "doc", "", "a b", ""))
	w := b.workspace("run_1", b.a)
	update(t, w, "doc", "a", "A")
	a := update(t, w, "doc", "b", "B")
	if got := read(t, c, a.Ref, b.a); got != "a b" {
		t.Errorf("what is visible: %q", got)
	}
	pinned := a.Ref
	pinned.Version = 2
	if got := read(t, c, pinned, b.a); got != "A b" {
		t.Errorf("pinned to the journal: %q", got)
	}
	if content := must[artifact.Content](t)(c.Open(t.Context(), artel.Local, pinned, b.a)); content.Visible || content.Version.Number != 2 {
		t.Errorf("got %+v", content)
	}
	fresh := must[artel.Artifact](t)(w.Create(t.Context(), "new", "", "fresh", ""))
	if got := read(t, c, fresh.Ref, b.a); got != "fresh" {
		t.Errorf("nothing is visible yet: %q", got)
	}
	for _, ref := range []artel.Ref{{}, {Artifact: "doc"}, {Conversation: b.conv, Artifact: "none"}, {Conversation: b.conv, Artifact: "doc", Version: 9}, artel.BlobRef("sha256-00")} {
		if _, err := c.Open(t.Context(), artel.Local, ref, b.a); artel.CodeOf(err) != artel.CodeArtifactNotFound {
			t.Errorf("%v: %v", ref, err)
		}
	}
}

func TestStageLimits(t *testing.T) {
	b := newBench(t, "")
	b.options.MaxBytes, b.options.MaxText = 100, 10
	c := b.collection()
	png := picture(t)
	for _, tt := range []struct {
		name, content string
		kind          artel.Kind
	}{
		{"bytes.png", png + strings.Repeat("\x00", 100-len(png)), ""},
		{"bytes.png", png + strings.Repeat("\x00", 101-len(png)), artel.TooLarge},
		{"a.txt", strings.Repeat("a", 10), ""},
		{"a.txt", strings.Repeat("a", 100), ""},
		{"a.txt", strings.Repeat("a", 101), artel.TooLarge},
	} {
		_, err := c.Uploads.Stage(t.Context(), strings.NewReader(tt.content), media.Hint{Filename: tt.name})
		if artel.KindOf(err) != tt.kind || err != nil && !strings.Contains(err.Error(), "10") {
			t.Errorf("%d bytes of %s: %v, want %q", len(tt.content), tt.name, err, tt.kind)
		}
	}
	broken := io.MultiReader(strings.NewReader("a"), iotest.ErrReader(errors.New("the line is cut")))
	if _, err := c.Uploads.Stage(t.Context(), broken, media.Hint{}); err == nil {
		t.Error("a broken stream was staged")
	}
}

// TestLargeText: a text that is too large to be edited is kept as a document, of
// which the beginning can be read; a file of editable size takes its place as a
// text again.
func TestLargeText(t *testing.T) {
	b := newBench(t, "")
	b.options.MaxText = 100
	c := b.collection()
	for _, tt := range []struct {
		name, content string
		large         bool
		beginning     string
	}{
		{"a.txt", strings.Repeat("a", 100), false, ""},
		{"b.log", strings.Repeat("line é\n", 13), true, strings.Repeat("line é\n", 12)},
		{"d.csv", strings.Repeat("1;2\n", 26), true, strings.Repeat("1;2\n", 25)},
		{"e.txt", "\xff\xfe" + strings.Repeat("a\x00", 100), false, ""},
		{"f.txt", "\xff\xfe" + strings.Repeat("a\x00", 101), true, strings.Repeat("a", 49)},
		{"g.txt", strings.Repeat("x", 1000), true, strings.Repeat("x", 100)},
	} {
		s := must[artifact.Staged](t)(c.Uploads.Stage(t.Context(), strings.NewReader(tt.content), media.Hint{Filename: tt.name}))
		added := must[[]artel.Artifact](t)(c.Uploads.Add(t.Context(), artel.Local, b.conv, []artifact.Staged{s}))
		a := added[0]
		if a.Binary != tt.large || a.IsLargeText() != tt.large || a.Preview == "" || (s.Text() == nil) != tt.large || !strings.HasPrefix(a.MediaType, "text/") {
			t.Errorf("%s: %+v", tt.name, a)
			continue
		}
		content := must[artifact.Content](t)(c.Open(t.Context(), artel.Local, a.Ref, ""))
		if got := must[[]byte](t)(io.ReadAll(content)); string(got) != tt.content {
			t.Errorf("%s: the bytes are others", tt.name)
		}
		_ = content.Close()
		if !tt.large {
			continue
		}
		d := must[artifact.Derived](t)(c.Derived(t.Context(), artel.Local, a.Ref, ""))
		text, note, _ := strings.Cut(d.Text, "<!-- ")
		if text != tt.beginning || !d.Cut || d.MediaType != a.MediaType || !strings.Contains(note, "of which the first 100 bytes can be read") {
			t.Errorf("%s: %q, %+v", tt.name, text, d.Extracted)
		}
		w := c.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: b.conv, Author: artifact.AuthorUser})
		if _, _, err := w.Edit.Update(t.Context(), a.ID, []edit.Edit{{Old: "a", New: "b"}}, artifact.UpdateOptions{}); artel.KindOf(err) != artel.Unsupported {
			t.Errorf("%s was edited: %v", tt.name, err)
		}
		small := must[artifact.Staged](t)(c.Uploads.Stage(t.Context(), strings.NewReader("short\n"), media.Hint{Filename: tt.name}))
		if a = must[artel.Artifact](t)(w.Edit.Save(t.Context(), a.ID, 1, artifact.Draft{File: &small})); a.Binary || a.Version != 2 {
			t.Errorf("%s: %+v", tt.name, a)
		}
		if a = must[artel.Artifact](t)(w.Edit.Save(t.Context(), a.ID, 2, artifact.Draft{File: &s})); !a.IsLargeText() || a.Version != 3 {
			t.Errorf("%s: %+v", tt.name, a)
		}
	}
}

// failing is a store in which the third append of an update fails.
type failing struct{ store.Store }

type failingJournal struct {
	store.Journal
	left int
}

var errDisk = errors.New("the disk is gone")

func (v *failingJournal) Append(c artel.ConversationID, id artel.ArtifactID, ver artel.Version, text *string) (int, error) {
	if v.left--; v.left < 0 {
		return 0, errDisk
	}
	return v.Journal.Append(c, id, ver, text)
}

func (f failing) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	return f.Store.Update(ctx, o, func(tx store.Tx) error {
		tx.Journal = &failingJournal{tx.Journal, 2}
		return fn(tx)
	})
}

func TestAddIsAllOrNone(t *testing.T) {
	b := newBench(t, "")
	c := artifact.New(failing{b.store}, b.blobs, artifact.Options{})
	var staged []artifact.Staged
	for range 3 {
		staged = append(staged, must[artifact.Staged](t)(c.Uploads.Stage(t.Context(), bytes.NewReader([]byte("a")), media.Hint{Filename: "a"})))
	}
	if _, err := c.Uploads.Add(t.Context(), artel.Local, b.conv, staged); !errors.Is(err, errDisk) {
		t.Fatalf("got %v", err)
	}
	if got := must[[]artel.Artifact](t)(c.List(t.Context(), artel.Local, b.conv, b.a)); len(got) != 0 {
		t.Errorf("left over: %+v", got)
	}
	if got := upload(t, b, "a"); got[0].ID != "a" {
		t.Errorf("the failed upload took the id: %s", got[0].ID)
	}
}

// swept is a store that removes leftovers right before the next update, as another
// goroutine may.
type swept struct {
	store.Store
	done bool
}

func (s *swept) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	if !s.done {
		s.done = true
		if _, err := s.Leftovers(ctx, start.Add(1<<40), true); err != nil {
			return err
		}
	}
	return s.Store.Update(ctx, o, fn)
}

// An artifact is never made of bytes whose last holder was removed meanwhile.
func TestPutOfWhatIsRemoved(t *testing.T) {
	b := newBench(t, "")
	b.options.Now = func() time.Time { return start }
	c := b.collection()
	png := "\x89PNG\r\n\x1a\n some bytes \x00"
	staged := must[artifact.Staged](t)(c.Uploads.Stage(t.Context(), strings.NewReader(png), media.Hint{}))
	found := must[artel.Artifact](t)(b.workspace("", b.a).Store(t.Context(), staged))
	rows := b.store
	for name, ref := range map[string]artel.Ref{
		"version": {Conversation: b.conv, Artifact: found.ID, Version: 1},
		"digest":  {Digest: staged.Digest},
	} {
		b.store = &swept{Store: rows}
		a, err := b.workspace("run_1", b.a).Put(t.Context(), "copy", "", ref)
		if artel.KindOf(err) != artel.NotFound {
			t.Errorf("by its %s: got %+v, %v", name, a, err)
		}
	}
}
