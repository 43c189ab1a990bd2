// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"math/bits"
	"unicode/utf8"
)

// Texts are long and scanned more than once, so the scans take many bytes at a time.

const (
	ones  = 0x01_01_01_01_01_01_01_01
	tops  = ones << 7 // the highest bit of each of eight bytes
	four  = 4 * gram  // bytes taken at a time, of most texts
	octet = 3 * gram  // bytes of eight characters of three bytes each, as in most Chinese text
)

// valid reports whether s is valid UTF-8.
func valid(s string) bool {
	const odd = 1<<0x0 | 1<<0xd // some sequences that begin with e0 or ed are invalid
	for i := 0; ; {
		if i += firstNonASCII(s[i:]); i == len(s) {
			return true
		}
		i += validThrees(s[i:])
		if i+gram <= len(s) {
			x := load(s, i)
			if threeTwice(x) && (odd>>(x&0xf)|odd>>(x>>24&0xf))&1 == 0 {
				i += 6
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n <= 1 {
			return i == len(s)
		}
		i += n
	}
}

// Of eight characters of three bytes each, in three words, these are the first bytes.
// Each is in another byte of its word, so that one word can hold all of them. The
// second and third bytes are in the next byte and the one after that, of the same
// word or of the next.
const (
	firstOfX = 0x00_ff_00_00_ff_00_00_ff // of characters 0, 1 and 2
	firstOfY = 0xff_00_00_ff_00_00_ff_00 // of characters 3, 4 and 5
	firstOfZ = 0x00_00_ff_00_00_ff_00_00 // of characters 6 and 7
)

// validThrees returns the length of a valid beginning of s that has only characters
// of three bytes, eight at a time.
func validThrees(s string) int {
	const top2, high, low7 = ones * 0xc0, ones * 0xf0, ones * 0x7f
	i := 0
	for ; i+octet <= len(s); i += octet {
		b := s[i : i+octet]
		x, y, z := load(b, 0), load(b, gram), load(b, 2*gram)
		if (x&top2^tops)&^firstOfX|(y&top2^tops)&^firstOfY|(z&top2^tops)&^firstOfZ != 0 {
			break
		}
		// All that begins with e1 to ef is valid, except with ed.
		first := x&firstOfX | y&firstOfY | z&firstOfZ
		low := first & (ones * 0xf)
		if first&high != ones*0xe0 || (low+low7)&((low^ones*0xd)+low7)&tops != tops {
			break
		}
	}
	return i
}

// plainThrees returns the length of a beginning of s, which is valid, that has only
// characters which folding does not change: Han characters from U+4000 to U+9FFF and
// punctuation from U+3001 to U+3029. There may be more.
func plainThrees(s string) int {
	const low7 = ones * 0x7f
	i := 0
	for ; i+octet <= len(s); i += octet {
		b := s[i : i+octet]
		x, y, z := load(b, 0), load(b, gram), load(b, 2*gram)
		first := x&firstOfX | y&firstOfY | z&firstOfZ
		second := bits.RotateLeft64(x&firstOfY|y&firstOfZ|z&firstOfX, -8)
		third := bits.RotateLeft64(x&firstOfZ|y&firstOfX|z&firstOfY, -16) &^ tops
		// The highest bit of each byte of a term says whether the byte is what the
		// term is called. No addition carries from one byte to the next.
		low := first &^ tops
		han := (low + ones*(0x100-0xe4)) &^ (low + ones*(0x100-0xea))
		three := ^(((low ^ ones*0x63) + low7) | ((second ^ tops) + low7))
		mark := three & (third + low7) &^ (third + ones*(0x80-0x2a))
		if all := first & (han | mark) & tops; all != tops {
			if all&firstOfX == tops&firstOfX {
				i += octet - 5*3
				if all&firstOfY == tops&firstOfY {
					i += 3 * 3
				}
			}
			break
		}
	}
	return i
}

// threeTwice reports whether the bytes begin with two characters of three bytes each.
func threeTwice(x uint64) bool { return x&0xc0c0f0_c0c0f0 == 0x8080e0_8080e0 }

// threeAt returns the three-byte character at the beginning of x.
func threeAt(x uint64) uint16 { return uint16(x)<<12 | uint16(x>>8&0x3f)<<6 | uint16(x>>16&0x3f) }

// countChars returns the number of characters in s, which must be valid UTF-8.
func countChars(s string) int {
	n, i := len(s), 0
	for i+four <= len(s) {
		// Each byte of sum counts, in one of eight columns, at most 4*63 bytes 10…,
		// which continue a character.
		sum := uint64(0)
		for range 63 {
			if i+four > len(s) {
				break
			}
			b := s[i : i+four]
			w, x, y, z := load(b, 0), load(b, gram), load(b, 2*gram), load(b, 3*gram)
			sum += w>>7&^(w>>6)&ones + x>>7&^(x>>6)&ones + y>>7&^(y>>6)&ones + z>>7&^(z>>6)&ones
			i += four
		}
		const pairs = 0x00ff_00ff_00ff_00ff
		sum = sum&pairs + sum>>8&pairs
		n -= int(sum * 0x0001_0001_0001_0001 >> 48)
	}
	for ; i < len(s); i++ {
		if !utf8.RuneStart(s[i]) {
			n--
		}
	}
	return n
}

// firstNonASCII returns the index of the first non-ASCII byte, or len(s).
func firstNonASCII(s string) int {
	i := 0
	for ; i+four <= len(s); i += four {
		b := s[i : i+four]
		if (load(b, 0)|load(b, gram)|load(b, 2*gram)|load(b, 3*gram))&tops != 0 {
			break
		}
	}
	for ; i+gram <= len(s); i += gram {
		if x := load(s, i) & tops; x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < len(s) && s[i] < utf8.RuneSelf {
		i++
	}
	return i
}
