// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCount(t *testing.T) {
	c := token.NewCounter()
	for _, tt := range []struct {
		vocabulary, text string
		want             int
	}{
		{token.O200k, "", 0},
		{token.Cl100k, "", 0},
		{token.Characters, "", 0},
		{token.O200k, "hello world", 2},
		{token.Cl100k, "hello world", 2},
		{token.Characters, "hello world", 11},
		{token.Characters, "你好, 世界", 6},
		{token.Characters, "a\xff\xfe", 3},
		// Texts that spell special tokens are plain text: seven pieces, not one.
		{token.O200k, "<|endoftext|>", 7},
		{token.Cl100k, "<|endoftext|>", 7},
	} {
		got, err := c.Count(tt.vocabulary, tt.text)
		if err != nil || got != tt.want {
			t.Errorf("Count(%s, %q) = %d, %v; want %d", tt.vocabulary, tt.text, got, err, tt.want)
		}
	}
}

func TestUnknownVocabulary(t *testing.T) {
	_, err := token.NewCounter().Count("p50k_base", "x")
	if !errors.Is(err, artel.Invalid) {
		t.Fatalf("error %v, want kind invalid", err)
	}
	for _, name := range token.Vocabularies() {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %s", err, name)
		}
	}
}

func TestInvalidUTF8(t *testing.T) {
	c := token.NewCounter()
	for _, v := range []string{token.O200k, token.Cl100k} {
		// The three bytes of a cut character are one replacement, as in tiktoken.
		cut, err := c.Count(v, strings.Repeat("x\xf0\x9f\x98 ", 9))
		one, err2 := c.Count(v, strings.Repeat("x\ufffd ", 9))
		if err != nil || err2 != nil || cut != one {
			t.Errorf("%s: a cut character has %d tokens, want %d", v, cut, one)
		}
		bad, err := c.Count(v, "a\xc3(\xff"+strings.Repeat("\x80", 400))
		if err != nil {
			t.Errorf("%s: %v", v, err)
		}
		good, err := c.Count(v, "a\ufffd(\ufffd"+strings.Repeat("\ufffd", 400))
		if err != nil || bad != good {
			t.Errorf("%s: %d tokens, %d with replacement characters (%v)", v, bad, good, err)
		}
	}
}

// deviation matches what the library's generated expressions cut otherwise
// than tiktoken does: they pass over U+007F, and end at the first line end of
// white space that has several, apart from one another.
var deviation = regexp.MustCompile(`\x7f|[\r\n][\t\v\f \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+[\r\n]`)

// TestEqualsLibrary holds counts, whether fresh or remembered, to the library.
func TestEqualsLibrary(t *testing.T) {
	c := token.NewCounter()
	for v, e := range map[string]tokenizer.Encoding{token.O200k: tokenizer.O200kBase, token.Cl100k: tokenizer.Cl100kBase} {
		codec, err := tokenizer.Get(e)
		if err != nil {
			t.Fatal(err)
		}
		codec.SetErrorMode(tokenizer.ErrorModeReplace)
		pieces := rapid.SampledFrom([]string{
			"the ", "I'LL've", "  \n\n", "\r\n\t", "12345", "上下文", "名字。", "🎉👩‍👩‍👧", "e\u0301", "<|endofprompt|>", "日A", "'ſ", "İı", "\u0301AB", "\u0301'd",
			"func main() {", "\x00", "ʼn", "ÀÉ", strings.Repeat("a", 120), "base64/+==", "   x", "\xe4\xb8", "\xf0\x9f\x98", "ǅ", "Ⅷ", "\u3000", "\u0085", "-/\n/",
		})
		rapid.Check(t, func(t *rapid.T) {
			text := strings.Join(rapid.SliceOfN(rapid.OneOf(pieces, rapid.String()), 0, 60).Draw(t, "pieces"), "")
			for deviation.MatchString(text) {
				text = deviation.ReplaceAllString(text, "")
			}
			want, err := codec.Count(text)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got, err := c.Count(v, text); err != nil || got != want {
					t.Fatalf("Count(%s, %q) = %d, %v; want %d", v, text, got, err, want)
				}
			}
		})
	}
}

// TestEqualsTiktoken holds counts to what OpenAI's tiktoken said (1.0.22 of
// npm, compiled from its Rust), of texts of every class of character.
func TestEqualsTiktoken(t *testing.T) {
	src, err := os.ReadFile("testdata/tiktoken.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][3]any
	if err := json.Unmarshal(src, &rows); err != nil {
		t.Fatal(err)
	}
	c := token.NewCounter()
	for _, row := range rows {
		for i, v := range []string{token.O200k, token.Cl100k} {
			if n, err := c.Count(v, row[0].(string)); err != nil || float64(n) != row[i+1] {
				t.Errorf("Count(%s, %q) = %d, %v; want %v", v, row[0], n, err, row[i+1])
			}
		}
	}
	if len(rows) < 300 {
		t.Errorf("only %d texts", len(rows))
	}
}

// TestLongTexts: texts of one long piece, and of many, count as the library
// counts them, and white space, where the library's time grows with the square
// of the length, in proportion.
func TestLongTexts(t *testing.T) {
	c := token.NewCounter()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{"He said \"it's done\", and left. ", "工件系统，保存一切内容；\n", "\tx := f(a, b)\n", "QUJDREVGRw0K", "a", "=-", "上下文"} {
		text := strings.Repeat(unit, (24<<10)/len(unit))
		want, err := codec.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Count(token.O200k, text); err != nil || got != want {
			t.Errorf("%q…: %d, %v; want %d", unit, got, err, want)
		}
	}
	for _, unit := range []string{"\n ", " ", "\t", "\u3000", "日A", "\u0301A", "'", "\x80"} {
		text := strings.Repeat(unit, (128<<10)/len(unit))
		if n, err := c.Count(token.O200k, text); err != nil || n < len(text)/256 || n > len(text) {
			t.Errorf("%q…: %d, %v", unit, n, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	c := token.NewCounter()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			v := token.Vocabularies()[i%3]
			text := strings.Repeat(fmt.Sprintf("word %d ", i/3), 100)
			first, err := c.Count(v, text)
			if err != nil {
				t.Error(err)
			}
			if again, err := c.Count(v, text); err != nil || again != first {
				t.Errorf("%d, then %d (%v)", first, again, err)
			}
		})
	}
	wg.Wait()
}

func FuzzCount(f *testing.F) {
	c := token.NewCounter()
	f.Add("hello <|endoftext|> 世界\xff")
	f.Add(strings.Repeat(" \n", 200))
	f.Fuzz(func(t *testing.T, text string) {
		for _, v := range token.Vocabularies() {
			n, err := c.Count(v, text)
			if err != nil {
				t.Fatalf("%s: %v", v, err)
			}
			if valid := utf8.ValidString(text); n < 0 || valid && n > len(text) || (n == 0) != (text == "") {
				t.Fatalf("%s: %d tokens in %d bytes", v, n, len(text))
			}
		}
	})
}

func BenchmarkCount(b *testing.B) {
	texts := map[string]string{
		"english": "The artel was a workshop of craftsmen who shared their tools, and divided what they earned by custom. ",
		"chinese": "工件系统保存智能体写下的一切内容，并把每个版本交给合适的模型阅读；名称不会改变。",
		"code":    "\tfor i, r := range s {\n\t\tif r == '\\n' { // a line ends\n\t\t\tlines = append(lines, s[start:i+1])\n\t\t}\n\t}\n",
	}
	c := token.NewCounter()
	for name, text := range texts {
		for _, size := range []int{1 << 10, 100 << 10, 1 << 20} {
			body := strings.Repeat(text, size/len(text)+1)
			b.Run(fmt.Sprintf("%s/%dK", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				for i := 0; b.Loop(); i++ {
					// Each text is new, so that the count is not remembered.
					if _, err := c.Count(token.O200k, fmt.Sprint(i)+body); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	b.Run("remembered/100K", func(b *testing.B) {
		body := strings.Repeat(texts["english"], 1000)
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := c.Count(token.O200k, body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
