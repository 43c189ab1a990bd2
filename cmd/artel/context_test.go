// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestContextShowsMedia: how each went is told, with the name that stands in the
// request.
func TestContextShowsMedia(t *testing.T) {
	t.Parallel()
	const run = "run_00000000000000000000000000"
	digest := "sha256-" + strings.Repeat("a", 64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"run_id":%q,"number":1,"media":[
			{"artifact":"artifact:photo-png@1","digest":%q,"media_type":"image/png","size":70000,"transport":"bytes"},
			{"digest":%q,"media_type":"application/pdf","size":2000000,"transport":"file_id","name":"file-7"}]}`, run, digest, digest)
	}))
	defer s.Close()
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs([]string{"context", "show", run + "/1", "--server", s.URL})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"media artifact:photo-png@1 image/png, 70000 bytes bytes",
		"media " + digest + " application/pdf, 2000000 bytes file_id file-7",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it says %q, want %q", said, want)
		}
	}
}

// The details of a note are words that people can read, in one order.
func TestNoted(t *testing.T) {
	t.Parallel()
	got := noted(map[string]any{"book": "Skerry lore", "key": "lamp", "tokens": 13.0})
	if want := ` book="Skerry lore" key=lamp tokens=13`; got != want {
		t.Errorf("a note has the details %q, want %q", got, want)
	}
	if got := noted(nil); got != "" {
		t.Errorf("a note without details has %q", got)
	}
}
