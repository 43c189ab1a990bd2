// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/media/mediatest"
)

func corpus(t *testing.T) *mediatest.Corpus {
	t.Helper()
	c, err := mediatest.Read(filepath.Join("..", "testdata", "files"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bytesOf returns a file of the corpus.
func bytesOf(t *testing.T, c *mediatest.Corpus, name string) []byte {
	t.Helper()
	data, err := c.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// detected posts bytes to be detected, and checks what the answer says twice.
func (b *bench) detected(name, declared string, data []byte) artel.MediaInfo {
	b.t.Helper()
	path := "/media/detect"
	if name != "" {
		path += "?filename=" + url.QueryEscape(name)
	}
	var body any
	if data != nil {
		body = bytes.NewReader(data)
	}
	a := b.do("POST", path, body, header{"Content-Type": declared})
	if a.StatusCode != 200 {
		b.t.Fatalf("%s: %d %s", name, a.StatusCode, a.body)
	}
	var d httpapi.Detected
	if err := json.Unmarshal(a.body, &d); err != nil {
		b.t.Fatal(err)
	}
	m := artel.MediaInfo{
		MediaType: d.MediaType, DeclaredType: d.DeclaredType, Kind: d.Kind, Charset: d.Charset, DetectedBy: d.Source, Confidence: d.Confidence,
		Size: d.Size, Width: d.Width, Height: d.Height, Pages: d.Pages, Duration: d.Duration,
	}
	if d.IsBinary != m.IsBinary() || strings.ContainsAny(d.DeclaredType, ` ;"'`) {
		b.t.Errorf("%s: %s", name, a.body)
	}
	return m
}

// Every file of the corpus is over HTTP what it is.
func TestDetectCorpus(t *testing.T) {
	b, c := newBench(t, writes), corpus(t)
	for _, f := range c.Files {
		data := bytesOf(t, c, f.File)
		if err := f.Check(b.detected("", "", data), len(data), false, true); err != nil {
			t.Errorf("%s: %v", f.File, err)
		}
		if err := f.Check(b.detected(f.File, "", data), len(data), true, true); err != nil {
			t.Errorf("%s by name: %v", f.File, err)
		}
	}
	for _, claim := range c.Claims {
		if err := claim.Check(b.detected(claim.Name, claim.Declared, bytesOf(t, c, claim.File))); err != nil {
			t.Error(err)
		}
	}
}

// No bytes are text, unless something else was promised.
func TestDetectNothing(t *testing.T) {
	b := newBench(t, writes)
	for _, tt := range []struct {
		name, declared, mediaType string
		kind                      artel.MediaKind
	}{
		{"", "", "text/plain", artel.KindText},
		{"a.md", "", "text/markdown", artel.KindText},
		{"", "application/json", "application/json", artel.KindText},
		{"a.png", "", "application/octet-stream", artel.KindOther},
		{"", "image/png", "application/octet-stream", artel.KindOther},
		{"", "application/octet-stream", "text/plain", artel.KindText},
	} {
		for _, body := range [][]byte{nil, {}} {
			got := b.detected(tt.name, tt.declared, body)
			if got.Size != 0 || got.MediaType != tt.mediaType || got.Kind != tt.kind {
				t.Errorf("%+v: %+v", tt, got)
			}
		}
	}
}

// What is uploaded comes back byte for byte; text is read as UTF-8, and what is
// no text never as text.
func TestUploadedCorpusComesBack(t *testing.T) {
	b, c := newBench(t, writes), corpus(t)
	for _, f := range c.Files {
		data := bytesOf(t, c, f.File)
		at := "/conversations/" + b.conversation() + "/artifacts"
		a := b.object(b.do("POST", at, bytes.NewReader(data), header{"X-Filename": url.PathEscape(f.File), "Content-Type": "application/octet-stream"}), 201)
		at += "/" + url.PathEscape(a["id"].(string))
		raw := b.do("GET", at+"/raw", nil)
		if raw.StatusCode != 200 || string(raw.body) != string(data) {
			t.Errorf("%s: %d, %d bytes came back of %d", f.File, raw.StatusCode, len(raw.body), len(data))
		}
		_, params, err := mime.ParseMediaType(raw.Header.Get("Content-Type"))
		if err != nil || params["charset"] != f.Charset {
			t.Errorf("%s came back as %q, %v; its charset is %q", f.File, raw.Header.Get("Content-Type"), err, f.Charset)
		}
		m := b.object(b.do("GET", at, nil), 200)
		if m["media_type"] != f.TypeNamed() || m["is_binary"] != (f.Kind != artel.KindText) {
			t.Errorf("%s is kept as %v, %v", f.File, m["media_type"], m["kind"])
		}
		content, ok := m["content"].(string)
		switch {
		case f.Kind != artel.KindText:
			if content != "" {
				t.Errorf("%s is no text, and has this content: %.80q", f.File, content)
			}
		case !ok:
			t.Errorf("%s has no content: %v", f.File, m)
		case f.Text != "":
			if content != string(bytesOf(t, c, f.Text)) {
				t.Errorf("%s means something else: %q", f.File, content)
			}
		case f.Charset == "utf-8" && f.File != "cut_utf8.txt":
			if content != string(data) {
				t.Errorf("%s was changed: %q", f.File, content)
			}
		}
	}
}
