// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
)

// blockSize is the size of the generated block. Longer content repeats it with a
// different number at the beginning of each copy.
const blockSize = 1 << 20

// randomBytes returns size bytes of no known format, the same for equal seeds.
func randomBytes(size int64, seed uint64) io.Reader {
	r := rand.New(rand.NewPCG(seed, 1))
	block := make([]byte, blockSize)
	for i := 0; i < len(block); i += 8 {
		binary.LittleEndian.PutUint64(block[i:], r.Uint64())
	}
	block[0] = 0xfe // begins no signature
	return io.LimitReader(&repeated{block: block, number: func(b []byte, n uint64) { binary.LittleEndian.PutUint64(b[8:], seed<<32+n) }}, size)
}

// jpeg returns size bytes with the header of a JPEG.
func jpeg(size int64) io.Reader {
	head := "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
	return io.MultiReader(strings.NewReader(head), randomBytes(size-int64(len(head)), 1))
}

// prose returns size bytes of English lines.
func prose(size int64, seed uint64) io.Reader {
	words := strings.Fields("the a of and to in is it that was for on are with as his they be at one have this from or had by hot but some what there we can out other were all your when up use word how said an each she which do their time if will way about many then them would write like so these her long make thing see him two has look more day could go come did my sound no most number who over know water than call first people may down side been now find")
	r := rand.New(rand.NewPCG(seed, 2))
	var b strings.Builder
	b.WriteString("Page 00000000000000000000\n")
	for line := 0; b.Len() < blockSize-80; b.WriteByte('\n') {
		for line = 0; line < 70; {
			w := words[r.IntN(len(words))]
			line += len(w) + 1
			b.WriteString(w + " ")
		}
	}
	number := func(b []byte, n uint64) {
		s := strconv.FormatUint(seed<<24+n, 10)
		copy(b[25-len(s):], s)
	}
	return io.LimitReader(&repeated{block: []byte(b.String()), number: number}, size)
}

// repeated reads one block repeatedly, numbered.
type repeated struct {
	block  []byte
	number func(block []byte, n uint64)
	n      uint64
	rest   []byte
}

func (r *repeated) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		r.n++
		r.number(r.block, r.n)
		r.rest = r.block
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
