// SPDX-License-Identifier: Apache-2.0

// Package token counts tokens by vocabulary.
//
// Begin with [NewCounter]. A vocabulary is loaded when it is first asked for,
// and counts of longer texts are remembered by their digest, because a context
// is built from the same messages again and again.
//
// Which vocabulary a model uses is not known here. For models whose vocabulary
// is not public, o200k_base is an estimate.
package token

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"

	"github.com/artelhq/artel"
)

// The vocabularies. Characters counts Unicode code points; the others are
// those of OpenAI's tiktoken.
const (
	O200k      = "o200k_base"
	Cl100k     = "cl100k_base"
	Characters = "characters"
)

// Vocabularies returns the names that [Counter.Count] knows.
func Vocabularies() []string { return []string{O200k, Cl100k, Characters} }

const (
	cacheMin     = 64    // bytes of text from which looking up beats counting
	cacheEntries = 32768 // in each of two generations, together about 6 MB
)

// A Counter counts tokens. It is safe for concurrent use. Make one per
// process: a loaded vocabulary takes about twenty megabytes.
type Counter struct {
	o200k, cl100k func() (*table, error)
	seeds         [2]maphash.Seed
	seen          cache
}

// NewCounter returns a counter that has loaded nothing yet.
func NewCounter() *Counter {
	return &Counter{
		o200k:  lazy(tokenizer.O200kBase, splitO200k),
		cl100k: lazy(tokenizer.Cl100kBase, splitCl100k),
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		seen:   cache{limit: cacheEntries},
	}
}

func lazy(e tokenizer.Encoding, split splitter) func() (*table, error) {
	return sync.OnceValues(func() (*table, error) { return newTable(e, split) })
}

// Count returns how many tokens text has. Text that spells a special token is
// counted as plain text, and invalid UTF-8 as replacement characters. It takes
// time in proportion to the text's length, whatever the text is, and for a text
// that was counted lately the time to digest it. An unknown vocabulary is of
// kind Invalid.
func (c *Counter) Count(vocabulary, text string) (int, error) {
	var load func() (*table, error)
	switch vocabulary {
	case Characters:
		return utf8.RuneCountInString(text), nil
	case O200k:
		load = c.o200k
	case Cl100k:
		load = c.cl100k
	default:
		return 0, artel.Errorf(artel.Invalid, "token.Count", artel.Shorten(vocabulary, 60),
			"unknown vocabulary: want one of %q", Vocabularies())
	}
	var key cacheKey
	if len(text) >= cacheMin {
		key = cacheKey{vocabulary, [2]uint64{maphash.String(c.seeds[0], text), maphash.String(c.seeds[1], text)}}
		if n, ok := c.seen.get(key); ok {
			return n, nil
		}
	}
	v, err := load()
	if err != nil {
		return 0, &artel.Error{Op: "token.Count", Kind: artel.Internal, Err: fmt.Errorf("loading %s: %w", vocabulary, err)}
	}
	n := v.count(valid(text))
	if len(text) >= cacheMin {
		c.seen.put(key, n)
	}
	return n, nil
}

// count returns how many tokens s has, which is valid UTF-8.
func (v *table) count(s string) int {
	n := 0
	for i := 0; i < len(s); {
		end := v.split(v.classes, s, i)
		n += v.piece(s, i, end)
		i = end
	}
	return n
}

// piece returns how many tokens s[i:end] is.
func (v *table) piece(s string, i, end int) int {
	if v.rank(s, i, end) != none {
		return 1
	}
	p := s[i:end]
	if len(p) > pieceLongest {
		return v.merged(p)
	}
	slot := &v.pieces.slots[maphash.String(v.pieces.seed, p)%pieceSlots]
	if e := slot.Load(); e != nil && e.piece == p {
		return e.n
	}
	n := v.merged(p)
	slot.Store(&pieceEntry{strings.Clone(p), n})
	return n
}

// valid returns s with a replacement character for every longest beginning of
// a character that is not whole, and for every other byte that is in none.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			n = cut(s)
		}
		b.WriteRune(r)
		s = s[n:]
	}
	return b.String()
}

// cut returns the length of the longest beginning of s that could be the
// beginning of a character, at least 1.
func cut(s string) int {
	n := 1
	for n < len(s) && !utf8.FullRuneInString(s[:n]) && !utf8.FullRuneInString(s[:n+1]) {
		n++
	}
	return n
}
