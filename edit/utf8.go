// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"math/bits"
	"unicode/utf8"
)

// Texts are long and looked at more than once, so that what is asked of all of
// their bytes is asked of eight at a time.

const tops = 0x80_80_80_80_80_80_80_80 // the highest bit of each of eight bytes

// valid reports whether s is valid UTF-8.
func valid(s string) bool {
	for i := 0; i < len(s); {
		if i+gram <= len(s) {
			x := load(s, i)
			if x&tops == 0 {
				i += gram
				continue
			}
			if hanPair(x) {
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

// hanPair reports whether the bytes begin with two characters that Chinese is
// mostly made of, U+4E00 to U+9FFF.
func hanPair(x uint64) bool {
	const lowest, highest, size = 0xe4b880, 0xe9bfbf, 24
	x = bits.ReverseBytes64(x)
	a, b := x>>(word-size), x>>(word-2*size)&(1<<size-1)
	return a-lowest <= highest-lowest && b-lowest <= highest-lowest && x&0x00c0c0_00c0c0_0000 == 0x008080_008080_0000
}

// countChars returns how many characters s has, which is valid UTF-8.
func countChars(s string) int {
	n, i := len(s), 0
	for ; i+gram <= len(s); i += gram {
		x := load(s, i)
		n -= bits.OnesCount64(x & ^(x << 1) & tops) // 10… goes on
	}
	for ; i < len(s); i++ {
		if !utf8.RuneStart(s[i]) {
			n--
		}
	}
	return n
}

// firstForeign returns where the first byte beyond ASCII is, or len(s).
func firstForeign(s string) int {
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
