// SPDX-License-Identifier: Apache-2.0

// Package token counts tokens by vocabulary.
//
// Begin with [NewCounter]. A vocabulary is loaded at its first use, and counts of
// longer texts are cached, because successive requests share most messages.
//
// Counts in the vocabularies of OpenAI are exact. Those of other families are
// estimates, each with its source and its measured error; see [Known]. The catalog
// of package model knows which vocabulary a model uses. [Media] estimates the cost
// of media.
package token

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// The exact vocabularies. Characters counts Unicode code points; the others belong
// to OpenAI's tiktoken.
const (
	O200k      = "o200k_base"
	Cl100k     = "cl100k_base"
	Characters = "characters"
)

// Vocabularies returns the names that [Counter.Count] accepts.
func Vocabularies() []string {
	var names []string
	for _, v := range Known() {
		names = append(names, v.Name)
	}
	return names
}

// A Vocabulary describes how exact its counts are.
type Vocabulary struct {
	Name   string
	Exact  bool
	Error  float64 // of an estimate: the mean absolute error over many texts, relative to the count
	Source string  // the tokenizer that counts, or that the estimate was measured against
}

// Known returns all vocabularies, the exact ones first.
func Known() []Vocabulary {
	known := []Vocabulary{
		{O200k, true, 0, "OpenAI's tiktoken"},
		{Cl100k, true, 0, "OpenAI's tiktoken"},
		{Characters, true, 0, "Unicode code points"},
	}
	for _, e := range estimates() {
		known = append(known, Vocabulary{e.name, false, e.err, e.source})
	}
	return known
}

// cacheMin is the length of a text, in bytes, from which a lookup is faster
// than counting.
const cacheMin = 64

// A Counter counts tokens. It is safe for concurrent use, and should be shared,
// because it caches counts.
type Counter struct {
	estimates map[string]estimate
	counts    *textCache
}

// The loaded vocabularies, of some ten megabytes each.
var (
	o200k  = sync.OnceValues(func() (*table, error) { return newTable("o200k_base", splitO200k) })
	cl100k = sync.OnceValues(func() (*table, error) { return newTable("cl100k_base", splitCl100k) })
)

// NewCounter returns a counter. It loads vocabularies on demand.
func NewCounter() *Counter {
	c := &Counter{estimates: make(map[string]estimate), counts: newTextCache()}
	for _, e := range estimates() {
		c.estimates[e.name] = e
	}
	return c
}

// Count returns the number of tokens of text. Special tokens in it count as
// plain text, and invalid UTF-8 as replacement characters. The time is linear
// in the length of any text, and that of hashing for a recently counted text.
// An unknown vocabulary is of kind Invalid.
func (c *Counter) Count(vocabulary, text string) (int, error) {
	if vocabulary == Characters {
		return utf8.RuneCountInString(text), nil
	}
	base := vocabulary
	by, estimated := c.estimates[vocabulary]
	if estimated {
		base = by.base
	}
	load := o200k
	switch base {
	case O200k:
	case Cl100k:
		load = cl100k
	default:
		return 0, artel.Errorf(artel.Invalid, "token.Count", artel.Shorten(vocabulary, 60),
			"unknown vocabulary: want one of %q", Vocabularies())
	}
	var key textKey
	if len(text) >= cacheMin {
		key = c.counts.key(vocabulary, text)
		if n, ok := c.counts.get(key); ok {
			return n, nil
		}
	}
	v, err := load()
	if err != nil {
		return 0, &artel.Error{Op: "token.Count", Kind: artel.Internal, Err: fmt.Errorf("loading %s: %w", vocabulary, err)}
	}
	n := 0
	if estimated {
		n = by.of(v.byScript(validUTF8(text)))
	} else {
		n = v.count(validUTF8(text))
	}
	if len(text) >= cacheMin {
		c.counts.put(key, n)
	}
	return n, nil
}

// count returns the number of tokens of s, which is valid UTF-8.
func (v *table) count(s string) int {
	n := 0
	for i := 0; i < len(s); {
		end := v.split(v.classes, s, i)
		n += v.piece(s, i, end)
		i = end
	}
	return n
}

// piece returns the number of tokens of s[i:end].
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

// validUTF8 returns s with a replacement character for every maximal incomplete
// prefix of a character, and for every other invalid byte.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			n = prefixLength(s)
		}
		b.WriteRune(r)
		s = s[n:]
	}
	return b.String()
}

// prefixLength returns the length of the longest beginning of s that could
// begin a character, at least 1.
func prefixLength(s string) int {
	n := 1
	for n < len(s) && !utf8.FullRuneInString(s[:n]) && !utf8.FullRuneInString(s[:n+1]) {
		n++
	}
	return n
}
