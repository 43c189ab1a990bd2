// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/artelhq/artel/media"
)

// leastRecall is the share of the words of a recorded answer that a text must have.
const leastRecall = 0.99

// TestCorpus measures the words of each document in testdata/corpus against the answer
// of another program, recorded beside it as NAME.ref: Markdown of pandoc, text of
// pdftotext or CSV of LibreOffice. Recall is the share of the recorded words that the
// text has, precision the share of the text's words that were recorded, and pairs the
// recall of pairs of adjacent words. -v prints the table. To add a document, put it and
// its NAME.ref there; testdata/corpus/README.md says how they are made.
func TestCorpus(t *testing.T) {
	recorded, err := filepath.Glob("testdata/corpus/*.ref")
	if err != nil || len(recorded) == 0 {
		t.Fatal(err, "no recorded answers")
	}
	t.Logf("%-28s %7s %7s %7s %7s", "document", "words", "recall", "prec.", "pairs")
	for _, ref := range recorded {
		file := strings.TrimSuffix(ref, ".ref")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(ref)
		if err != nil {
			t.Fatal(err)
		}
		info := media.Detect(b, media.Hint{Filename: filepath.Base(file)})
		x, err := Text(t.Context(), bytes.NewReader(b), int64(len(b)), info, Options{PDF: engine})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		words, got := wordsOf(string(want)), wordsOf(x.Text)
		recall, missing := share(count1(words), count1(got))
		precision, _ := share(count1(got), count1(words))
		pairs, _ := share(count2(words), count2(got))
		t.Logf("%-28s %7d %7.4f %7.4f %7.4f", filepath.Base(file), len(words), recall, precision, pairs)
		if recall < leastRecall {
			t.Errorf("%s: word recall %.4f, want %.2f; missing: %s", file, recall, leastRecall, strings.Join(missing[:min(len(missing), 20)], " "))
		}
	}
}

// What Markdown adds to words: comments, the targets of links, HTML and marks.
var (
	markdownOnly = regexp.MustCompile("(?s)<!--.*?-->|</?[a-zA-Z][a-zA-Z0-9]*(\\s[^<>\n]{0,200})?/?>|(?m:^[ >]*```[^\n]*$)|\\]\\([^()\\s]*(\\s+\"[^\"]*\")?\\)")
	escapedSign  = regexp.MustCompile(`\\([!-/:-@\[-` + "`" + `{-~])`)
	entities     = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&quot;", `"`, "&nbsp;", " ")
	emphasis     = strings.NewReplacer("**", "", "~~", "")
)

// LaTeX has several commands for one sign, and some that only say how it looks.
var (
	formulas   = regexp.MustCompile(`\$\$?[^$]*\$\$?`)
	layoutOnly = regexp.MustCompile(`\\(begin|end)\{[a-z]*\}|\\(left|right|lbrack|rbrack|quad|qquad|limits|underset)\b`)
	synonyms   = strings.NewReplacer(`\rightarrow`, `\to`, `\overrightarrow`, `\vec`, `\widehat`, `\hat`, `\widetilde`, `\tilde`, `\bot`, `\perp`, `\binom`, `\frac`)
)

// wordsOf returns the words of Markdown in lower case: runs of letters, marks and
// digits, of ideographs and kana each character. Signs are not words.
func wordsOf(text string) []string {
	text = formulas.ReplaceAllStringFunc(text, func(s string) string { return synonyms.Replace(layoutOnly.ReplaceAllString(s, " ")) })
	text = markdownOnly.ReplaceAllString(text, "")
	text = entities.Replace(emphasis.Replace(escapedSign.ReplaceAllString(text, "$1")))
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			words = append(words, string(r))
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			word.WriteRune(r)
		default:
			end()
		}
	}
	end()
	return words
}

func count1(words []string) map[string]int {
	n := map[string]int{}
	for _, w := range words {
		n[w]++
	}
	return n
}

func count2(words []string) map[string]int {
	n := map[string]int{}
	for i := range len(words) - 1 {
		n[words[i]+" "+words[i+1]]++
	}
	return n
}

// share returns which part of want got has, each as often, and what it has not.
func share(want, got map[string]int) (part float64, missing []string) {
	has, all := 0, 0
	for w, n := range want {
		all += n
		has += min(n, got[w])
		if n > got[w] {
			missing = append(missing, w)
		}
	}
	if all == 0 {
		return 1, nil
	}
	return float64(has) / float64(all), missing
}
