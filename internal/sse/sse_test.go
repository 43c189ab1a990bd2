// SPDX-License-Identifier: Apache-2.0

package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/sse"
)

func events(r io.Reader, limit int) (out []sse.Event, err error) {
	for e, err := range sse.Events(r, limit) {
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
	return out, nil
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want []sse.Event
	}{
		"the standard's stocks":   {"data: YHOO\ndata: +2\ndata: 10\n\n", []sse.Event{{Data: "YHOO\n+2\n10"}}},
		"the standard's ids":      {": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n", []sse.Event{{Data: "first event", ID: "1"}, {Data: "second event"}, {Data: " third event"}}},
		"the standard's emptys":   {"data\n\ndata\ndata\n\ndata:", []sse.Event{{}, {Data: "\n"}}},
		"the standard's spaces":   {"data:test\n\ndata: test\n\n", []sse.Event{{Data: "test"}, {Data: "test"}}},
		"all line ends":           {"data: a\r\rdata: b\r\n\r\ndata: c\n\ndata: d\r\n\ndata: e\n\r\n", []sse.Event{{Data: "a"}, {Data: "b"}, {Data: "c"}, {Data: "d"}, {Data: "e"}}},
		"CR then LF is one end":   {"data: a\r\ndata: b\r\n\r\n", []sse.Event{{Data: "a\nb"}}},
		"BOM once":                {"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", []sse.Event{{Data: "a"}}},
		"names":                   {"event: x\ndata: 1\n\ndata: 2\n\nevent: y\n\ndata: 3\n\n", []sse.Event{{Name: "x", Data: "1"}, {Data: "2"}, {Data: "3"}}},
		"unknown fields":          {"foo: 1\nretry: 5\nDATA: x\n data: y\ndata: z\n\n", []sse.Event{{Data: "z"}}},
		"id with NUL is ignored":  {"id: 1\nid: 2\x00\ndata: a\n\n", []sse.Event{{Data: "a", ID: "1"}}},
		"unfinished event":        {"data: a\n\ndata: b\n", []sse.Event{{Data: "a"}}},
		"colons in the value":     {"data: a:b: c\n\n", []sse.Event{{Data: "a:b: c"}}},
		"nothing":                 {"", nil},
		"comments and blanks":     {":\n\n\n: ping\r\r", nil},
		"invalid UTF-8 is passed": {"data: \xff\n\n", []sse.Event{{Data: "\xff"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for way, r := range map[string]io.Reader{
				"whole": strings.NewReader(c.in), "bytewise": iotest.OneByteReader(strings.NewReader(c.in)),
				"error with the data": iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				got, err := events(r, 0)
				if err != nil {
					t.Fatal(way, err)
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("%s: (-want +got)\n%s", way, d)
				}
			}
		})
	}
}

func TestEventsComeAtOnce(t *testing.T) {
	t.Parallel()
	// What follows the event's last CR is never read before the event is out.
	r := io.MultiReader(strings.NewReader("data: a\r\r"), iotest.ErrReader(errors.New("too early")))
	for e, err := range sse.Events(r, 0) {
		if err != nil || e.Data != "a" {
			t.Fatal(e, err)
		}
		return
	}
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"line":  strings.Repeat("x", 2000),
		"lines": strings.Repeat("data: x\n", 2000),
	} {
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			if _, err := events(r, 1000); artel.KindOf(err) != artel.TooLarge {
				t.Errorf("%s: got %v, want too large", name, err)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := events(io.MultiReader(strings.NewReader("data: a\n"), iotest.ErrReader(broken)), 0); !errors.Is(err, broken) {
		t.Errorf("the reader's error is lost: %v", err)
	}
}

// FuzzEvents splits a stream anywhere and wants the same events.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\nevent: x\rdata: b\n\n"), uint8(3))
	f.Add([]byte("\xef\xbb\xbfdata\n\n:c\nid: 1\ndata: \x00\n\n"), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		whole, err := events(strings.NewReader(string(in)), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var pieces []io.Reader
		for rest := in; len(rest) > 0; {
			n := min(int(step)+1, len(rest))
			pieces = append(pieces, strings.NewReader(string(rest[:n])))
			rest = rest[n:]
		}
		split, err := events(io.MultiReader(pieces...), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(whole, split); d != "" {
			t.Error(d)
		}
		for _, e := range whole {
			if strings.ContainsAny(e.Data+e.Name+e.ID, "\r") || strings.Contains(e.Name+e.ID, "\n") {
				t.Errorf("line ends inside %q", e)
			}
		}
	})
}
