// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/media/mediatest"
)

// printed carries out a command line in this process, and returns what it printed.
func printed(t *testing.T, args ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out.Bytes()
}

// Every file of the corpus is on the command line what it is, as JSON and for
// people.
func TestDetectCorpus(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "files")
	c, err := mediatest.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	detected := func(args ...string) artel.MediaInfo {
		t.Helper()
		var d httpapi.Detected
		if err := json.Unmarshal(printed(t, append([]string{"detect", "--json"}, args...)...), &d); err != nil {
			t.Fatal(err)
		}
		return artel.MediaInfo{
			MediaType: d.MediaType, DeclaredType: d.DeclaredType, Kind: d.Kind, Charset: d.Charset, DetectedBy: d.Source, Confidence: d.Confidence,
			Size: d.Size, Width: d.Width, Height: d.Height, Pages: d.Pages, Duration: d.Duration,
		}
	}
	for _, f := range c.Files {
		path := filepath.Join(dir, f.File)
		data, err := c.Bytes(f.File)
		if err != nil {
			t.Fatal(err)
		}
		info := detected(path)
		if err := f.Check(info, len(data), true, true); err != nil {
			t.Errorf("%s: %v", f.File, err)
		}
		line := string(printed(t, "detect", path))
		for _, want := range append(details(info), info.MediaType, string(info.Kind)) {
			if !strings.Contains(line, want) || strings.Count(line, "\n") != 1 {
				t.Errorf("%s: no %q in %q", f.File, want, line)
			}
		}
	}
	for _, claim := range c.Claims {
		data, err := c.Bytes(claim.File)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), cmp.Or(claim.Name, "nameless"))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := claim.Check(detected("--type", claim.Declared, path)); err != nil {
			t.Error(err)
		}
	}
}
