// SPDX-License-Identifier: Apache-2.0

package toolindex

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// terms returns the words of a text in lower case, without English endings: words end at
// every character that is no letter and no digit, and before a capital after a small letter.
// Of scripts without spaces between words, each pair of neighbouring characters is a term.
func terms(text string) []string {
	var out []string
	var word, run []rune
	endWord := func() {
		if len(word) > 0 {
			out = append(out, stem(strings.ToLower(string(word))))
			word = word[:0]
		}
	}
	endRun := func() {
		if len(run) == 1 {
			out = append(out, string(run))
		}
		for i := 1; i < len(run); i++ {
			out = append(out, string(run[i-1:i+1]))
		}
		run = run[:0]
	}
	var before rune
	for _, r := range norm.NFKC.String(strings.ToValidUTF8(text, " ")) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai):
			endWord()
			run = append(run, r)
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			endRun()
			switch {
			case unicode.IsUpper(r) && (unicode.IsLower(before) || unicode.IsDigit(before)):
				endWord()
			case unicode.IsLower(r) && unicode.IsUpper(before) && len(word) > 1: // the P of HTTPProxy
				word = word[:len(word)-1]
				endWord()
				word = append(word, before)
			}
			word = append(word, r)
		default:
			endWord()
			endRun()
		}
		before = r
	}
	endWord()
	endRun()
	return out
}

// stem cuts the English endings of verbs and plurals, so that "creates", "created" and
// "creating" are one term.
func stem(w string) string {
	for _, r := range w {
		if r >= 0x80 {
			return w
		}
	}
	const shortest = 3
	for _, end := range []string{"ies", "ing", "ed", "es", "s", "e"} {
		rest, ok := strings.CutSuffix(w, end)
		if !ok || len(rest) < shortest || !strings.ContainsAny(rest, "aeiouy") || end == "s" && strings.HasSuffix(rest, "s") {
			continue
		}
		if end == "ies" {
			return rest + "y"
		}
		if n := len(rest); (end == "ing" || end == "ed") && n > shortest && rest[n-1] == rest[n-2] && !strings.ContainsRune("lsz", rune(rest[n-1])) {
			rest = rest[:n-1] // running
		}
		return rest
	}
	return w
}
