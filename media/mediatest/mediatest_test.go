// SPDX-License-Identifier: Apache-2.0

package mediatest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/mediatest"
)

// What is true passes, and each single lie is found.
func TestCheck(t *testing.T) {
	c, err := mediatest.Read(filepath.Join("..", "..", "testdata", "files"))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) mediatest.File {
		f, ok := c.Find(name)
		if !ok {
			t.Fatal("no", name)
		}
		return f
	}
	photo, tone, report, notes := file("photo.jpg"), file("tone.wav"), file("report.pdf"), file("notes.md")
	truth := func(f mediatest.File) artel.MediaInfo {
		return artel.MediaInfo{MediaType: f.Type, Kind: f.Kind, Charset: f.Charset, Size: 7, Width: f.Width, Height: f.Height, Pages: f.Pages, Duration: f.Seconds}
	}
	for _, f := range []mediatest.File{photo, tone, report, notes} {
		if err := f.Check(truth(f), 7, false, true); err != nil {
			t.Error(f.File, err)
		}
	}
	named := truth(notes)
	named.MediaType = "text/markdown"
	if err := notes.Check(named, 7, true, true); err != nil {
		t.Error(err)
	}
	if notes.Check(named, 7, false, true) == nil || notes.Check(truth(notes), 7, true, true) == nil {
		t.Error("the name makes no difference")
	}
	for what, lie := range map[string]struct {
		about mediatest.File
		tell  func(*artel.MediaInfo)
	}{
		"media type": {photo, func(m *artel.MediaInfo) { m.MediaType = "image/png" }},
		"kind":       {photo, func(m *artel.MediaInfo) { m.Kind = artel.KindOther }},
		"text":       {photo, func(m *artel.MediaInfo) { m.Kind = artel.KindText }},
		"charset":    {notes, func(m *artel.MediaInfo) { m.Charset = "koi8-r" }},
		"size":       {photo, func(m *artel.MediaInfo) { m.Size++ }},
		"width":      {photo, func(m *artel.MediaInfo) { m.Width++ }},
		"height":     {photo, func(m *artel.MediaInfo) { m.Height = 0 }},
		"pages":      {report, func(m *artel.MediaInfo) { m.Pages++ }},
		"duration":   {tone, func(m *artel.MediaInfo) { m.Duration *= 2 }},
	} {
		m := truth(lie.about)
		lie.tell(&m)
		if lie.about.Check(m, 7, false, true) == nil {
			t.Error("not found:", what)
		}
	}
	m := truth(photo)
	m.Width = 0
	if err := photo.Check(m, 7, false, false); err != nil {
		t.Error("nobody measured:", err)
	}
	claim := mediatest.Claim{Type: "image/png", Kind: artel.KindImage, By: artel.FromSignature}
	if err := claim.Check(artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage, DetectedBy: artel.FromSignature}); err != nil {
		t.Error(err)
	}
	if claim.Check(artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage, DetectedBy: artel.FromContent}) == nil {
		t.Error("another witness passes")
	}
}

func TestReadFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := mediatest.Read(dir); err == nil {
		t.Error("no manifest")
	}
	for _, text := range []string{"{", `{"files": []}`} {
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := mediatest.Read(dir); err == nil {
			t.Error("read", text)
		}
	}
}
