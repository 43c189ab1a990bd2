// SPDX-License-Identifier: Apache-2.0

package sse_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel/internal/sse"
)

// What was written is read again, however it is cut.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[a-z0-9_]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sse.Event {
			data := rapid.StringOf(rapid.SampledFrom([]rune("a: é\n\ufeff"))).Draw(t, "data")
			return sse.Event{Name: word.Draw(t, "name"), ID: "1" + word.Draw(t, "id"), Data: data}
		}), 1, 5).Draw(t, "events")
		var stream []byte
		for _, e := range sent {
			stream = sse.Append(stream, e)
		}
		var got []sse.Event
		for e, err := range sse.Events(bytes.NewReader(stream), 0) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		if diff := cmp.Diff(sent, got); diff != "" {
			t.Fatalf("sent and got:\n%s", diff)
		}
	})
}

func TestLineBreaksBecomeLF(t *testing.T) {
	t.Parallel()
	if got := string(sse.Append(nil, sse.Event{Data: "a\r\nb\rc"})); got != "data: a\ndata: b\ndata: c\n\n" {
		t.Errorf("got %q", got)
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s, err := sse.NewWriter(w)
		if err != nil {
			t.Error(err)
		}
		if err := s.KeepAlive(); err != nil {
			t.Error(err)
		}
		if err := s.Send(sse.Event{ID: "7", Data: "x"}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	for e, err := range sse.Events(resp.Body, 0) {
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(e.ID + e.Data)
	}
	if b.String() != "7x" || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %q with header %v", b.String(), resp.Header)
	}
}
