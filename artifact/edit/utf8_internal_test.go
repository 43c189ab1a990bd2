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
	"\ue000、。的一是不了人", "，的一是不了人，", "ぁいうえおかきく", "abcdefghijklmnopqrstuvwxyz", strings.Repeat("é", 40), strings.Repeat("的。", 40),
	"a", " ", "\n", "\x00", "\x7f", "abcdefgh", "é", "\u07ff", "\u0800", "丿", "一", "的", "鿿", "\ua000", "\ufffd", "\uffff", "😀", "\U0010ffff",
	"\x80", "\xbf", "\xc0\x80", "\xe4", "\xe4\xb8", "\xe4\xb8a", "\xe5\x80\xc0", "\xe9\xbf\xff", "\xe0\x80\x80", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xff",
	"一丁丂七\xed\xa0\x80万丈三", "一丁丂七\xe0\x80\x80万丈三", "一丁丂七丄丅\xe4\xb8\xc0三", "一丁丂七\xd4\xb8\x80万丈三",
}

func TestUTF8AsTheLibraryHasIt(t *testing.T) {
	for _, part := range parts {
		for _, s := range []string{part, "的一是不了人我在" + part, strings.Repeat("a", four) + part + "a"} {
			if got, want := valid(s), utf8.ValidString(s); got != want {
				t.Errorf("%q is valid: %v, want %v", s, got, want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		some := parts
		if rapid.Bool().Draw(t, "valid") {
			some = parts[:24]
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

// What plainThrees skips, folding leaves alone.
func TestPlainThreesArePlain(t *testing.T) {
	for r := rune(0x800); r < 0x10000; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		skipped := plainThrees(strings.Repeat(string(r), 8)) == octet
		if want := r >= 0x4000 && r <= 0x9fff || r >= 0x3001 && r <= 0x3029; skipped != want {
			t.Errorf("%U is skipped: %v, want %v", r, skipped, want)
		}
		if skipped && computeTraits(r)&plain == 0 {
			t.Errorf("%U is skipped, and folding changes it", r)
		}
	}
	skipped := 0
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"的", "一", "。", "、", "\u3029", "\u4000", "鿿", "は", "\u302a", "，", "é", "a", "😀"}), 8, 30).Draw(t, "characters"), "")
		n := plainThrees(s)
		skipped += n
		for i, r := range s[:n] {
			if computeTraits(r)&plain == 0 {
				t.Fatalf("%q: %U at %d is skipped of %d", s, r, i, n)
			}
		}
		if !utf8.RuneStart((s + "a")[n]) {
			t.Fatalf("%q: skipped to the middle of a character, %d", s, n)
		}
	})
	if skipped < 100 {
		t.Errorf("%d bytes were skipped in all; the test tests nothing", skipped)
	}
}
