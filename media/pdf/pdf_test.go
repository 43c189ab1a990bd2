// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// document makes a PDF of one page of 200 by 100 points.
func document(content string, objects ...string) []byte {
	var b strings.Builder
	b.WriteString("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>/XObject<</X1 21 0 R>>>>>>endobj\n" +
		"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold>>endobj\n")
	fmt.Fprintf(&b, "4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n", len(content), content)
	b.WriteString(strings.Join(objects, "\n") + "\ntrailer<</Root 1 0 R>>\n")
	return []byte(b.String())
}

// endless is a document whose forms show each other for hours.
func endless() []byte {
	var objects []string
	for i := range 9 {
		content := strings.Repeat(fmt.Sprintf("/X%d Do ", i+2), 50)
		objects = append(objects, fmt.Sprintf("%d 0 obj<</Subtype/Form/BBox[0 0 1 1]/Resources<</XObject<</X%d %d 0 R>>>>/Length %d>>stream\n%s\nendstream endobj", 21+i, i+2, 22+i, len(content), content))
	}
	return document("/X1 Do", objects...)
}

func open(t *testing.T, e *Engine, b []byte) *Document {
	t.Helper()
	d, err := e.Open(t.Context(), bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func engine(t *testing.T, o Options) *Engine {
	e := New(o)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestEngine says that an engine starts at the first document and ends when it is idle.
func TestEngine(t *testing.T) {
	e := engine(t, Options{Idle: 1})
	if e.Running() {
		t.Error("it runs before it is needed")
	}
	for range 2 {
		d := open(t, e, document("BT /F 10 Tf 20 50 Td (Hi) Tj ET"))
		if !e.Running() {
			t.Error("it does not run")
		}
		p, err := d.Page(t.Context(), 0)
		if err != nil || len(p.Chars) != 2 || p.Chars[0].Rune != 'H' || !p.Chars[0].Font.Bold || p.Chars[1].X != p.Chars[0].Box.X1 {
			t.Errorf("%+v, %v", p, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		for e.Running() {
			runtime.Gosched()
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Open(t.Context(), bytes.NewReader(nil), 0); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("closed: %v", err)
	}
}

// TestLimits says that a document that would take hours ends with the context, at the
// time limit and at the limit on memory.
func TestLimits(t *testing.T) {
	hostile := endless()
	ctx, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		o    Options
		kind artel.Kind
		text string
	}{
		"context": {Options{}, artel.Canceled, "stopped"},
		"time":    {Options{MaxTime: 50 * time.Millisecond}, artel.TooLarge, "longer than 50ms"},
		"memory":  {Options{MaxMemory: 20 << 20}, artel.TooLarge, "memory"},
	} {
		e := engine(t, c.o)
		d, err := e.Open(t.Context(), bytes.NewReader(hostile), int64(len(hostile)))
		if err == nil {
			within := t.Context()
			if name == "context" {
				within = ctx
				time.AfterFunc(time.Millisecond, cancel)
			}
			_, err = d.Page(within, 0)
			_ = d.Close()
		}
		if artel.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cancel()
}

// TestOpenErrors says what is told about documents that cannot be opened.
func TestOpenErrors(t *testing.T) {
	e := engine(t, Options{MaxOpen: 1})
	locked, err := os.ReadFile("../../testdata/files/locked.pdf")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    []byte
		kind artel.Kind
		text string
	}{
		"locked":   {locked, artel.Unsupported, "password"},
		"empty":    {nil, artel.Invalid, "damaged"},
		"no PDF":   {[]byte("%PDF-1.4\nnothing"), artel.Invalid, "damaged"},
		"no pages": {[]byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]>>endobj"), artel.Invalid, "pages"},
	} {
		_, err := e.Open(t.Context(), bytes.NewReader(c.b), int64(len(c.b)))
		if artel.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := artel.Errorf(artel.Unavailable, "blob.Open", "x", "the disk is gone")
	if _, err := e.Open(t.Context(), failing{gone}, 1000); !errors.Is(err, gone) {
		t.Errorf("a reader that fails: %v", err)
	}
	d := open(t, e, document(""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Open(ctx, bytes.NewReader(nil), 0); artel.KindOf(err) != artel.Canceled {
		t.Errorf("a second document while another is open: %v", err)
	}
	_ = d.Close()
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// TestRender says how large pages are drawn and that their contents are.
func TestRender(t *testing.T) {
	d := open(t, engine(t, Options{}), document("1 0 0 rg 0 0 100 100 re f"))
	defer func() { _ = d.Close() }()
	for _, c := range []struct{ width, height, resolution, w, h int }{
		{400, 0, 0, 400, 200}, {0, 50, 0, 100, 50}, {400, 100, 0, 200, 100}, {0, 0, 144, 400, 200}, {1000, 1000, 72, 200, 100},
	} {
		img, err := d.Render(t.Context(), 0, c.width, c.height, c.resolution)
		if err != nil {
			t.Fatal(err)
		}
		if s := img.Bounds().Size(); s.X != c.w || s.Y != c.h {
			t.Errorf("%+v: %v", c, s)
		}
		if left, right := img.At(c.w/4, c.h/2), img.At(3*c.w/4, c.h/2); left != (color.RGBA{255, 0, 0, 255}) || right != (color.RGBA{255, 255, 255, 255}) {
			t.Errorf("%+v: %v, %v", c, left, right)
		}
	}
	if _, err := d.Render(t.Context(), 0, 0, 0, 0); artel.KindOf(err) != artel.Invalid {
		t.Error(err)
	}
	if _, err := d.Render(t.Context(), 7, 10, 0, 0); artel.KindOf(err) != artel.Invalid {
		t.Error(err)
	}
}

// TestDamagedCache says that compiled code that cannot be loaded is made again.
func TestDamagedCache(t *testing.T) {
	o := Options{CacheDir: t.TempDir()}
	dir, err := o.cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, []byte("no folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Without the time of a second compilation: what fails is only the folder.
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Fatal("it is a folder")
	}
	d := open(t, engine(t, o), document(""))
	_ = d.Close()
}

// TestOldCode removes code that other versions have compiled and not used for long, and
// nothing else.
func TestOldCode(t *testing.T) {
	o := Options{CacheDir: t.TempDir()}
	dir, err := o.cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-keepCode - time.Hour)
	for name, age := range map[string]time.Time{"0123456789abcdef": long, "fedcba9876543210": time.Now(), "notes": long, filepath.Base(dir): long} {
		path := filepath.Join(o.CacheDir, name)
		if err := os.MkdirAll(filepath.Join(path, "wazero"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, age, age); err != nil {
			t.Fatal(err)
		}
	}
	removeOld(dir)
	var left []string
	all, err := os.ReadDir(o.CacheDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		left = append(left, e.Name())
	}
	want := []string{"fedcba9876543210", "notes", filepath.Base(dir)}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("got %q, want %q", left, want)
	}
	if i, err := os.Stat(dir); err != nil || time.Since(i.ModTime()) > keepCode {
		t.Errorf("the code in use counts as unused: %v", err)
	}
}
