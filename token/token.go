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
	"crypto/sha256"
	"fmt"
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
	cacheMin     = 256   // bytes of text from which looking up beats counting
	cacheEntries = 16384 // about 2 MB
)

// A Counter counts tokens. It is safe for concurrent use. Make one per
// process: a loaded vocabulary takes about ten megabytes.
type Counter struct {
	o200k, cl100k func() (tokenizer.Codec, error)
	seen          cache
}

// NewCounter returns a counter that has loaded nothing yet.
func NewCounter() *Counter {
	return &Counter{
		o200k:  lazy(tokenizer.O200kBase),
		cl100k: lazy(tokenizer.Cl100kBase),
		seen:   cache{limit: cacheEntries},
	}
}

func lazy(e tokenizer.Encoding) func() (tokenizer.Codec, error) {
	return sync.OnceValues(func() (tokenizer.Codec, error) {
		c, err := tokenizer.Get(e)
		if err == nil {
			c.SetErrorMode(tokenizer.ErrorModeReplace) // as tiktoken does; set once, before anybody shares it
		}
		return c, err
	})
}

// Count returns how many tokens text has. Text that spells a special token is
// counted as plain text, and invalid UTF-8 as replacement characters. In runs
// of more than five hundred white space characters the count may be a little
// high. An unknown vocabulary is of kind Invalid.
func (c *Counter) Count(vocabulary, text string) (int, error) {
	var load func() (tokenizer.Codec, error)
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
	if len(text) < cacheMin {
		return count(load, text)
	}
	key := cacheKey{vocabulary, sha256.Sum256([]byte(text))}
	if n, ok := c.seen.get(key); ok {
		return n, nil
	}
	n, err := count(load, text)
	if err == nil {
		c.seen.put(key, n)
	}
	return n, err
}

func count(load func() (tokenizer.Codec, error), text string) (int, error) {
	codec, err := load()
	if err != nil {
		return 0, broken(err)
	}
	sum := 0
	for piece := range segments(text, segmentSize, maxBlank) {
		n, err := codec.Count(piece)
		if err != nil {
			return 0, broken(err)
		}
		sum += n
	}
	return sum, nil
}

func broken(err error) error {
	return &artel.Error{Op: "token.Count", Kind: artel.Internal, Err: fmt.Errorf("counting tokens: %w", err)}
}
