// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"context"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/artelhq/artel"
)

// discard is a store that forgets.
type discard struct{ kept int64 }

func (d *discard) Keep(_ context.Context, r io.Reader, _ File) error {
	n, err := io.Copy(io.Discard, r)
	d.kept += n
	return err
}

func (d *discard) Open(context.Context, artel.Digest) (io.ReadCloser, error) {
	return nil, artel.Errorf(artel.NotFound, "test", "", "nothing is kept")
}

// repeated is a reader of a message whose text has that many pieces.
func repeated(before, piece string, n int, after string) io.Reader {
	return io.MultiReader(strings.NewReader(before), &repeatedPiece{piece: piece, left: n * len(piece)}, strings.NewReader(after+"\n"))
}

type repeatedPiece struct {
	piece string
	left  int
}

func (r *repeatedPiece) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	at := (len(r.piece) - r.left%len(r.piece)) % len(r.piece)
	n := copy(p[:min(len(p), r.left)], r.piece[at:])
	r.left -= n
	return n, nil
}

// A result of any length is rewritten with little memory: what is allocated on the way does
// not grow with it.
func TestMemoryIsBounded(t *testing.T) {
	for name, r := range map[string]func(n int) io.Reader{
		"JSON in a text": func(n int) io.Reader {
			return repeated(`{"result":{"content":[{"type":"text","text":"[0`, `,{\"id\":7,\"name\":\"some text in an element\"}`, n, `]"}]},"jsonrpc":"2.0","id":1}`)
		},
		"a log": func(n int) io.Reader {
			return repeated(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`, `2026-01-02 ERROR a line of a log\n`, n, `"}]}}`)
		},
		"audio": func(n int) io.Reader {
			return repeated(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"audio","mimeType":"audio/wav","data":"`, strings.Repeat("QUJDREVGR0hJ", 4), n, `"}]}}`)
		},
		"structured content": func(n int) io.Reader {
			return repeated(`{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"rows":[0`, `,{"id":7,"name":"some text in an element"}`, n, `]}}}`)
		},
		"a resource": func(n int) io.Reader {
			return repeated(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"resource","resource":{"uri":"x:y","text":"`, `words and words and words and words. `, n, `"}}]}}`)
		},
		"a single line": func(n int) io.Reader {
			return repeated(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`, `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`, n, `"}]}}`)
		},
	} {
		store := &discard{}
		p := New(nil, store, Options{Name: "x"})
		rewrite := func(n int) (shown []byte, allocated uint64) {
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			l := newLines(r(n), io.Discard, func(string) {}, nil)
			m, err := l.receive(t.Context())
			if err != nil {
				t.Fatal(name, err)
			}
			out, err := p.callResult(t.Context(), m, "")
			if err != nil {
				t.Fatal(name, err)
			}
			runtime.ReadMemStats(&after)
			shown, err = out.bytes(out.all(), 1<<20)
			if err != nil {
				t.Fatal(name, err)
			}
			_, _ = m.Close(), out.Close()
			return shown, after.TotalAlloc - before.TotalAlloc
		}
		shown, small := rewrite(30_000)
		if !json.Valid(shown) || len(shown) > 2*DefaultLimit {
			t.Errorf("%s: %d bytes: %.300s", name, len(shown), shown)
		}
		_, large := rewrite(600_000) // 20 to 29 MB
		if most := small + 8<<20; large > most {
			t.Errorf("%s: %d MB are allocated for 20 times the result, %d MB for one", name, large>>20, small>>20)
		}
		if store.kept < 15<<20 {
			t.Errorf("%s: only %d bytes were kept", name, store.kept)
		}
	}
}

// Values of a long document are read with buffers of their size.
func TestShortValuesTakeLittle(t *testing.T) {
	s := &spool{}
	defer s.Close()
	const n = 20_000
	for i := range n {
		if _, err := s.WriteString([]string{"[", ","}[min(i, 1)] + `{"id":7,"name":"some text"}`); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.WriteString("]"); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out, err := pick(s, s.all(), "$[*].name")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 8<<10 {
		t.Errorf("%d bytes are allocated for each value", each)
	}
}

// Texts without number are joined, and none is lost.
func TestBlocksWithoutNumber(t *testing.T) {
	store := &discard{}
	p := New(nil, store, Options{Name: "x"})
	m, err := newLines(repeated(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"first"}`, `,{"type":"text","text":"word"}`, 100_000, `]}}`), io.Discard, func(string) {}, nil).receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := p.collector(m)
	defer c.close()
	if err := m.elements(m.member(m.result, "content"), func(_ int, v span) error { return c.block(t.Context(), v) }); err != nil {
		t.Fatal(err)
	}
	if len(c.pieces) > maxPieces || c.text.size != 5+4*100_000 {
		t.Errorf("%d pieces of %d bytes", len(c.pieces), c.text.size)
	}
}
