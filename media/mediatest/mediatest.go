// SPDX-License-Identifier: Apache-2.0

// Package mediatest reads the corpus of testdata/files: real files with the expected
// facts about each. Begin with [Read].
package mediatest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/artelhq/artel"
)

// A Corpus is the manifest of a folder of files.
type Corpus struct {
	Files  []File  `json:"files"`
	Claims []Claim `json:"claims"`

	dir string
}

// A File holds the expected facts about one file. Zero means none, or not detected.
type File struct {
	File    string          `json:"file"`
	Type    string          `json:"type"`    // by the bytes alone
	Named   string          `json:"named"`   // by the bytes and the file's name; "": the same
	Aliases []string        `json:"aliases"` // synonyms of Type in use
	Kind    artel.MediaKind `json:"kind"`    // by the bytes alone
	Charset string          `json:"charset"` // of text
	Text    string          `json:"text"`    // the file that holds the same text in UTF-8
	Width   int             `json:"width"`   // pixels, as stored
	Height  int             `json:"height"`
	Pages   int             `json:"pages"`
	Seconds float64         `json:"seconds"`
}

// A Claim is the expected result for a file sent with a name and declared type, which
// may be wrong.
type Claim struct {
	File     string            `json:"file"`
	Name     string            `json:"name"`
	Declared string            `json:"declared"` // as in a header
	Type     string            `json:"type"`
	Kind     artel.MediaKind   `json:"kind"`
	By       artel.MediaSource `json:"by"`
}

// Read reads the manifest of dir, which is testdata/files of the module.
func Read(dir string) (*Corpus, error) {
	b, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return nil, err
	}
	c := &Corpus{dir: dir}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	if len(c.Files) == 0 || len(c.Claims) == 0 {
		return nil, errors.New("manifest.json: it names nothing")
	}
	return c, nil
}

// Bytes returns the content of a file of the corpus.
func (c *Corpus) Bytes(name string) ([]byte, error) { return os.ReadFile(filepath.Join(c.dir, name)) }

// Find returns the row of a file.
func (c *Corpus) Find(name string) (File, bool) {
	i := slices.IndexFunc(c.Files, func(f File) bool { return f.File == name })
	if i < 0 {
		return File{}, false
	}
	return c.Files[i], true
}

// TypeNamed returns the media type of the bytes and the name together.
func (f File) TypeNamed() string {
	if f.Named != "" {
		return f.Named
	}
	return f.Type
}

// Check compares a result for the whole file with the expected facts. named says that
// the name was given, measured that the measures are set.
func (f File) Check(got artel.MediaInfo, size int, named, measured bool) error {
	wantType := f.Type
	if named {
		wantType = f.TypeNamed()
	}
	var wrong []error
	differ := func(what string, got, want any) {
		if got != want {
			wrong = append(wrong, fmt.Errorf("%s is %v, want %v", what, got, want))
		}
	}
	differ("media type", got.MediaType, wantType)
	if !named || f.Named == "" {
		differ("kind", got.Kind, f.Kind)
	}
	differ("text", !got.IsBinary(), f.Kind == artel.KindText)
	differ("charset", got.Charset, f.Charset)
	differ("size", got.Size, int64(size))
	if measured {
		differ("width", got.Width, f.Width)
		differ("height", got.Height, f.Height)
		differ("pages", got.Pages, f.Pages)
		if math.Abs(got.Duration-f.Seconds) > 0.02+f.Seconds/20 {
			differ("duration", got.Duration, f.Seconds)
		}
	}
	return errors.Join(wrong...)
}

// Check compares a result with the expected one.
func (c Claim) Check(got artel.MediaInfo) error {
	if got.MediaType != c.Type || got.Kind != c.Kind || got.DetectedBy != c.By {
		return fmt.Errorf("%s sent as %q, %q is %s, %s by %s; want %s, %s by %s",
			c.File, c.Name, c.Declared, got.MediaType, got.Kind, got.DetectedBy, c.Type, c.Kind, c.By)
	}
	return nil
}
