// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"math/bits"
	"unicode/utf8"
)

// Texts are long and scanned more than once, so the scans take eight bytes at a time.

const tops = 0x80_80_80_80_80_80_80_80 // the highest bit of each of eight bytes

// valid reports whether s is valid UTF-8.
func valid(s string) bool {
	const odd = 1<<0x0 | 1<<0xd // some sequences that begin with e0 or ed are invalid
	for i := 0; i < len(s); {
		if i+gram <= len(s) {
			x := load(s, i)
			if x&tops == 0 {
				i += gram
				continue
			}
			if threeTwice(x) && (odd>>(x&0xf)|odd>>(x>>24&0xf))&1 == 0 {
				i += 6
				continue
			}
		}
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return false
		}
		i += n
	}
	return true
}

// threeTwice reports whether the bytes begin with two characters of three bytes
// each, as most Chinese text does.
func threeTwice(x uint64) bool { return x&0xc0c0f0_c0c0f0 == 0x8080e0_8080e0 }

// threeAt returns the three-byte character at the beginning of x.
func threeAt(x uint64) uint16 { return uint16(x)<<12 | uint16(x>>8&0x3f)<<6 | uint16(x>>16&0x3f) }

// countChars returns the number of characters in s, which must be valid UTF-8.
func countChars(s string) int {
	n, i := len(s), 0
	for ; i+gram <= len(s); i += gram {
		x := load(s, i)
		n -= bits.OnesCount64(x & ^(x << 1) & tops) // 10… is a continuation byte
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
