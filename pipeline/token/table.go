// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"embed"
	"fmt"
	"hash/maphash"
	"math/bits"

	"github.com/klauspost/compress/zstd"
)

const (
	none       = ^uint32(0) // the rank of texts that are not tokens
	filterBits = 21
)

// A table finds tokens by their bytes. It is built from the tokenizer library's
// and is immutable.
type table struct {
	split   splitter
	classes *classes

	slots      []slot     // a power of two of them, at most half of them taken
	shift      int        // of a hash, to an index of slots
	text       string     // all tokens
	pairs      []uint32   // rank by two bytes
	chars      []uint32   // rank by the code point of three bytes
	parts      []uint8    // tokens of a character by its code point of three bytes
	boundaries boundaries // between characters that may be merged before they are whole
	filter     []uint64   // a bit for the hash of every token; most lookups are misses
	tokens     int
	longest    int

	pieces pieceCache
}

// A slot holds a token. It is small, and complete for short tokens, because
// counting is bound by memory access.
type slot struct {
	head  uint64 // the first eight bytes, padded with zeros
	rank  uint32
	where uint32 // of the bytes in text, above eight bits of length; 0: free
}

// The vocabularies, in the format of [unpackVocabulary]. TestVocabularies holds
// them to those of github.com/tiktoken-go/tokenizer and writes them anew with
// the flag -update. Packed they add 1.2 MB to the program, and as the library's
// Go maps 14 MB.
//
//go:embed o200k_base.zst cl100k_base.zst
var vocabularies embed.FS

// unpackVocabulary returns all tokens of a vocabulary in the order of their
// ranks, one after the other, and where each ends. Packed, it is a zstd stream (RFC 8878)
// of the lengths, a byte per token, a zero byte, and the bytes of all tokens.
func unpackVocabulary(name string) (text string, ends []int, err error) {
	packed, err := vocabularies.ReadFile(name + ".zst")
	if err != nil {
		return "", nil, err
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return "", nil, err
	}
	defer z.Close()
	b, err := z.DecodeAll(packed, nil)
	if err != nil {
		return "", nil, err
	}
	lengths, tokens, ok := bytes.Cut(b, []byte{0})
	if !ok {
		return "", nil, fmt.Errorf("vocabulary %s has no end of its lengths", name)
	}
	ends = make([]int, len(lengths))
	end := 0
	for i, n := range lengths {
		end += int(n)
		ends[i] = end
	}
	if end != len(tokens) || end >= 1<<24 || len(ends) < 1<<16 {
		return "", nil, fmt.Errorf("vocabulary %s has %d tokens with %d bytes instead of %d", name, len(ends), end, len(tokens))
	}
	return string(tokens), ends, nil
}

func newTable(name string, split splitter) (*table, error) {
	text, ends, err := unpackVocabulary(name)
	if err != nil {
		return nil, err
	}
	width := bits.Len(uint(len(ends))) + 1
	v := &table{
		split: split, classes: classTable(),
		slots: make([]slot, 1<<width), shift: 64 - width,
		text:   text,
		pairs:  make([]uint32, 1<<16),
		chars:  make([]uint32, 1<<16),
		filter: make([]uint64, 1<<(filterBits-6)),
		tokens: len(ends),
		pieces: pieceCache{seed: maphash.MakeSeed()},
	}
	for i := range v.pairs {
		v.pairs[i], v.chars[i] = none, none
	}
	from := 0
	for rank, to := range ends {
		v.add(uint32(rank), from, to)
		from = to
	}
	v.learnCharacters(ends)
	return v, nil
}

func (v *table) add(rank uint32, from, to int) {
	n := to - from
	v.longest = max(v.longest, n)
	head := load(v.text, from, min(n, 8))
	if n == 2 {
		v.pairs[head] = rank
	}
	if i, ok := char(head); ok && n == 3 {
		v.chars[i] = rank
	}
	h := hash(v.text, from, n, head)
	v.filter[h>>(64-filterBits)/64] |= 1 << (h >> (64 - filterBits) % 64)
	i := h >> v.shift
	for v.slots[i].where != 0 {
		i = (i + 1) & uint64(len(v.slots)-1)
	}
	v.slots[i] = slot{head, rank, uint32(from<<8 | n)}
}

// rank returns the rank of s[i:j], or none. It needs j > i.
func (v *table) rank(s string, i, j int) uint32 {
	n := j - i
	if n > v.longest {
		return none
	}
	head := load(s, i, min(n, 8))
	if i, ok := char(head); ok && n == 3 {
		return v.chars[i]
	}
	h := hash(s, i, n, head)
	if v.filter[h>>(64-filterBits)/64]>>(h>>(64-filterBits)%64)&1 == 0 {
		return none
	}
	slots := v.slots
	for at := h >> v.shift; ; at++ {
		t := &slots[at&uint64(len(slots)-1)]
		switch {
		case t.where == 0:
			return none
		case t.head != head || int(t.where&0xFF) != n:
		case n <= 8 || v.text[t.where>>8:][8:n] == s[i+8:j]:
			return t.rank
		}
	}
}

// char returns the code point of three bytes, if they are one character.
func char(head uint64) (uint16, bool) {
	return uint16(head&0x0F<<12 | head>>8&0x3F<<6 | head>>16&0x3F), head&0xC0C0F0 == 0x8080E0
}

// load returns n <= 8 bytes of s as a little-endian number.
func load(s string, i, n int) uint64 {
	if i+8 <= len(s) {
		b := s[i : i+8]
		x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		return x & (^uint64(0) >> (64 - 8*uint(n)))
	}
	var x uint64
	for k := n - 1; k >= 0; k-- {
		x = x<<8 | uint64(s[i+k])
	}
	return x
}

// hash mixes the length and the bytes of s[i:i+n], of which head holds the
// first eight.
func hash(s string, i, n int, head uint64) uint64 {
	h := (head ^ uint64(n)*0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93
	h ^= h >> 32
	for k := 8; k < n; k += 8 {
		h = (bits.RotateLeft64(h, 23) ^ load(s, i+k, min(8, n-k))) * 0xD6E8FEB86659FD93
		h ^= h >> 32
	}
	return h * 0x9E3779B97F4A7C15
}
