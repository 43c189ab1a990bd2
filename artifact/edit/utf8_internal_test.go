// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// parts are what valid and invalid texts are made of: all lengths, the bounds of
// what is looked at in pairs, surrogates, overlong forms, pieces of characters.
var parts = []string{
	"a", " ", "\n", "\x00", "\x7f", "abcdefgh", "é", "\u07ff", "\u0800", "丿", "一", "的", "鿿", "\ua000", "\ufffd", "\uffff", "😀", "\U0010ffff",
	"\x80", "\xbf", "\xc0\x80", "\xe4", "\xe4\xb8", "\xe4\xb8a", "\xe5\x80\xc0", "\xe9\xbf\xff", "\xe0\x80\x80", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xff",
}

func TestUTF8AsTheLibraryHasIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := parts
		if rapid.Bool().Draw(t, "valid") {
			some = parts[:18]
		}
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(some), 0, 40).Draw(t, "parts"), "")
		if got, want := valid(s), utf8.ValidString(s); got != want {
			t.Fatalf("%q is valid: %v, want %v", s, got, want)
		}
		if got, want := countChars(s), utf8.RuneCountInString(s); utf8.ValidString(s) && got != want {
			t.Fatalf("%q has %d characters, want %d", s, got, want)
		}
		want := strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
		if got := firstNonASCII(s); got != want && (want >= 0 || got != len(s)) {
			t.Fatalf("%q: the first beyond ASCII is at %d, want %d", s, got, want)
		}
	})
}
