// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// originals are the texts that refs stand for. They are found in a text in one pass
// over it, however many there are: a filter of the first bytes of each says at which
// positions one may begin.
type originals struct {
	of     map[string]string   // by ref
	begins map[string][]string // the refs of texts by their first bytes; the longest text first
	filter *[1 << 10]uint64    // a bit for each hash of first bytes; nil: there are no texts
}

// firstBytes is how many bytes of a text are its key; shorter texts are not replaced.
const firstBytes = 16

// bitOf returns the place of the filter's bit for a text that begins with s.
func bitOf(s string) (word int, bit uint64) {
	var first [8]byte
	copy(first[:], s)
	h := binary.LittleEndian.Uint64(first[:]) * 0x9e3779b97f4a7c15 >> 48
	return int(h >> 6), 1 << (h & 63)
}

// add records what a ref stands for.
func (o *originals) add(ref, text string) {
	if _, known := o.of[ref]; known {
		return
	}
	if o.filter == nil {
		*o = originals{map[string]string{}, map[string][]string{}, new([1 << 10]uint64)}
	}
	o.of[ref] = text
	if len(text) < firstBytes {
		return
	}
	refs := o.begins[text[:firstBytes]]
	at, _ := slices.BinarySearchFunc(refs, ref, func(a, b string) int {
		return cmp.Or(len(o.of[b])-len(o.of[a]), strings.Compare(a, b)) // one may be in another
	})
	o.begins[text[:firstBytes]] = slices.Insert(refs, at, ref)
	word, bit := bitOf(text)
	o.filter[word] |= bit
}

// replace returns text with refs in place of the texts that they stand for, and the
// refs, each once.
func (o *originals) replace(text string) (string, []artel.Ref) {
	if o.filter == nil {
		return text, nil
	}
	var out strings.Builder
	var refs []artel.Ref
	done := 0
	for i := 0; i+firstBytes <= len(text); i++ {
		if word, bit := bitOf(text[i : i+8]); o.filter[word]&bit == 0 {
			continue
		}
		for _, s := range o.begins[text[i:i+firstBytes]] {
			if !strings.HasPrefix(text[i:], o.of[s]) {
				continue
			}
			out.WriteString(text[done:i])
			out.WriteString(s)
			done = i + len(o.of[s])
			i = done - 1
			if ref, err := artel.ParseRef(s); err == nil && !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
			break
		}
	}
	if done == 0 {
		return text, nil
	}
	out.WriteString(text[done:])
	return out.String(), refs
}
