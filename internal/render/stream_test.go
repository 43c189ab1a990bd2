// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/artelhq/artel/internal/render"
)

// rich holds everything that an answer may, and what may become something else
// while it is being written.
const rich = "# A *plan* for `2024`\n\n" +
	"Some **bold** text, ***both***, 3 * 4 = 12, snake_case_name, ~~gone~~ and `code with ** in it`.\n" +
	"More of it with a [link](https://example.com/a_b?c=(d) \"title\"), ![picture](artifact:chart) and [1].\n\n" +
	"- one **two\n  three** four\n- [ ] open\n- [x] done `x`\n  1. deep _down_\n  2. 计划**重要**完成\n\n" +
	"1. first\n2. second\n\n   ```go\n   func main() {} // `a`\n   ```\n3. third\n\n" +
	"```python\ndef f(x):\n    \"\"\"Doc\n    string\"\"\"\n    return x ** 2  # | a |\n\n| not | a table |\n- nor a list\n```\n\n" +
	"| name | value |\n|:-----|------:|\n| `a` | **1** |\n| [b](https://b.c) | 2 |\n\n" +
	"> quoted *text\n> that* goes on\n>\n> - and a list\n\n" +
	"---\n\n~~~\nplain\n~~~\n\n    indented\n    code\n\n" +
	"<details>\n<summary>HTML</summary>\n</details>\n\n" +
	"See [docs][], [docs] and <https://example.com>. AT&amp;T &lt; x. Wow! ![gone](https://x.y/z.png)\n\n" +
	"[docs]: https://example.com/docs \"Docs\"\n\n" +
	"Text before\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end*\n"

// replay applies what a stream returns.
func replay(list []template.HTML, first int, blocks []template.HTML) []template.HTML {
	return append(append([]template.HTML(nil), list[:first]...), blocks...)
}

func TestStreamProperty(t *testing.T) {
	words := append(strings.SplitAfter(rich, " "), strings.SplitAfter(rich, "\n")...)
	words = append(words, "*", "**", "_", "`", "```", "~~~\n", "[", "]", "](", ")", "|", "|-|-|\n", "- ", "1. ", "> ", "# ", "===\n", "---\n", "\n", "\n\n",
		"[docs]: artifact:x\n", "[docs]", "[a]: /b 'c\nd'\n", "<div>\n", "<!-- ", "-->", "\\", "&", "!", "\t", "    ", "\r\n", "\xff", "\x00", "中", "\xe4\xb8")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 60).Draw(t, "words"), "")
		if err := checkStream(text, func(rest int) int { return rapid.IntRange(1, min(rest, 12)).Draw(t, "piece") }); err != nil {
			t.Fatal(err)
		}
	})
}

// checkStream writes text in pieces whose lengths next says.
func checkStream(text string, next func(rest int) int) error {
	s := render.NewStream(linked)
	var list []template.HTML
	for rest := text; rest != ""; {
		n := next(len(rest))
		first, blocks := s.Append(rest[:n])
		rest = rest[n:]
		list = replay(list, first, blocks)
		if !slices.Equal(s.Blocks(), list) {
			return fmt.Errorf("changes lead elsewhere than to the blocks:\n%s", cmp.Diff(s.Blocks(), list))
		}
		for _, b := range blocks {
			if err := inspect(string(b)); err != nil {
				return fmt.Errorf("%w in %q", err, b)
			}
		}
		// After a blank line nothing is open but code, HTML and references.
		if shown := text[:len(text)-len(rest)]; strings.HasSuffix(shown, "\n\n") && len(shown) < 8<<10 && !strings.ContainsAny(shown, "`~<\x00") {
			if d := cmp.Diff(render.Blocks(shown, linked), list, cmpopts.EquateEmpty()); d != "" {
				return fmt.Errorf("after %q: -blocks +stream\n%s", shown, d)
			}
		}
	}
	first, blocks := s.Finish()
	list = replay(list, first, blocks)
	if d := cmp.Diff(render.Blocks(text, linked), list, cmpopts.EquateEmpty()); d != "" {
		return fmt.Errorf("at the end: -blocks +stream\n%s", d)
	}
	return nil
}

func kindOf(b template.HTML) string {
	s := string(b)
	return s[:strings.IndexAny(s, " >")]
}

// TestStreamStaysAsItIs writes a rich text byte by byte. No block may become
// another kind of block, and no text that was shown may vanish.
func TestStreamStaysAsItIs(t *testing.T) {
	var wrong []string
	for range 3 { // coloring has little time, and a machine that stands still takes it
		if wrong = changes(t); len(wrong) == 0 {
			return
		}
	}
	t.Error(strings.Join(wrong, "\n"))
}

// changes returns what does not stay.
func changes(t *testing.T) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	s := render.NewStream(linked)
	var list []template.HTML
	for i := range len(rich) {
		first, blocks := s.Append(rich[i : i+1])
		next := replay(list, first, blocks)
		if len(next) < len(list) {
			say("after %q: %d blocks became %d", rich[max(0, i-30):i+1], len(list), len(next))
		}
		for k := range min(len(list), len(next)) {
			if was, is := kindOf(list[k]), kindOf(next[k]); was != is {
				say("after %q: %s became %s", rich[max(0, i-30):i+1], was, is)
			}
			if was, is := plainText(t, list[k]), plainText(t, next[k]); !isSubsequence(was, is) {
				say("after %q: %q became %q", rich[max(0, i-30):i+1], was, is)
			}
		}
		list = next
	}
	if first, _ := s.Finish(); first < len(list)-1 {
		say("finishing changed block %d of %d", first, len(list))
	}
	return wrong
}

// isSubsequence reports whether all letters and digits of part are still there.
// Brackets may go: what stands in them becomes a link once it is defined where.
func isSubsequence(part, whole string) bool {
	for _, r := range part {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			continue
		}
		i := strings.IndexRune(whole, r)
		if i < 0 {
			return false
		}
		whole = whole[i+len(string(r)):]
	}
	return true
}

func TestStreamShowsWhatWillBe(t *testing.T) {
	tests := []struct{ in, want string }{
		{"a **b", "<p>a <strong>b</strong></p>"},
		{"a **b*", "<p>a <strong>b</strong></p>"},
		{"a **b _c", "<p>a <strong>b <em>c</em></strong></p>"},
		{"a ~~b", "<p>a <del>b</del></p>"},
		{"a `b", "<p>a <code>b</code></p>"},
		{"a ``b`", "<p>a <code>b</code></p>"},
		{"a [b", "<p>a b</p>"},
		{"a [b]", "<p>a b</p>"},
		{"a [b](htt", "<p>a b</p>"},
		{"a **[b](https://x.y \"t", "<p>a <strong>b</strong></p>"},
		{"a ![b](artifact:x", "<p>a b</p>"},
		{"a **[", "<p>a</p>"},
		{"a 3*4", "<p>a 3*4</p>"},
		{"a b_c", "<p>a b_c</p>"},
		{"a\n-", "<p>a</p>"},
		{"a\n--", "<p>a</p>"},
		{"a\n\n1.", "<p>a</p>"},
		{"a\n\n``", "<p>a</p>"},
		{"a\n\n```g", "<p>a</p>"},
		{"a\n\n| b | c |", "<p>a</p>"},
		{"a\n\n| b | c |\n|--", "<p>a</p>"},
		{"a\n\n| b | c |\nd", "<p>a</p>\n<p>| b | c |\nd</p>"},
		{"- a\n- [", "<ul>\n<li>a</li>\n</ul>"},
		{"- a **b\n", "<ul>\n<li>a <strong>b</strong></li>\n</ul>"},
		{"# a *b", "<h1>a <em>b</em></h1>"},
		{"a &am", "<p>a</p>"},
		{"a <https://b", "<p>a</p>"},
		{"a\n\n[b]: htt", "<p>a</p>"},
		{"a\n\n<di", "<p>a</p>"},
	}
	for _, test := range tests {
		s := render.NewStream(linked)
		s.Append(test.in)
		var got strings.Builder
		for _, b := range s.Blocks() {
			got.WriteString(string(b))
		}
		if d := cmp.Diff(test.want, strings.TrimSpace(got.String())); d != "" {
			t.Errorf("%q: -want +got\n%s", test.in, d)
		}
	}
}

// TestStreamOfReferences defines a reference long after it was used.
func TestStreamOfReferences(t *testing.T) {
	s := render.NewStream(linked)
	s.Append("See [a] here.\n\nOther text.\n\nEnd.\n\n")
	if first, blocks := s.Append("[a]: https://example.com\n"); first != 0 || !strings.Contains(string(blocks[0]), `<a href="https://example.com"`) {
		t.Errorf("first %d, blocks %q", first, blocks)
	}
}

func TestStreamOfLongText(t *testing.T) {
	for name, text := range map[string]string{
		"too long": strings.Repeat(strings.Repeat("word ", 5000)+"\n\n", render.MaxMarkdown/25_000+1),
		"too deep": "a\n\n" + strings.Repeat(">", 40) + "b\n\nc\n",
		"one list": strings.Repeat("- an item that is rather long, and goes on\n", 400),
		"one code": "```go\n" + strings.Repeat("func main() { println(1) }\n", 400) + "```\n",
	} {
		if err := checkStream(text, func(rest int) int { return min(rest, 40_009) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, block := range strings.Split(rich, "\n\n") {
		f.Add(block+"\n\n*a", uint8(3))
	}
	f.Add("[a]\n\n[a]: b\n'c\nd'", uint8(1))
	f.Add("a|b\n-|-\n===\n", uint8(2))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		if len(text) > 1<<10 {
			return
		}
		if err := checkStream(text, func(rest int) int { return min(rest, int(size)+1) }); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkStream appends words to an answer of the given length. Each round
// begins a new answer, so that it stays as long as it is said to be; look at
// ns/append.
func BenchmarkStream(b *testing.B) {
	page := strings.Repeat("Some **bold** text with `code`, a [link](https://example.com) and more of it, as answers have.\n\n- one\n- two\n\n```go\nfunc main() {}\n```\n\n", 1000)
	code := "```go\n" + strings.Repeat("\tif err := call(1, \"two\"); err != nil {\n", 5000)
	list := strings.Repeat("- an item that is rather long, and goes on\n", 5000)
	for _, kb := range []int{1, 20, 100} {
		for name, text := range map[string]string{"mixed": page, "code": code, "list": list} {
			b.Run(fmt.Sprintf("%s/%dKB", name, kb), func(b *testing.B) {
				var took, worst time.Duration
				appended := 0
				for b.Loop() {
					s := render.NewStream(linked)
					s.Append(text[:kb<<10])
					begun := time.Now()
					for at := kb << 10; at < (kb+4)<<10; at += 8 {
						s.Append(text[at : at+8])
						appended++
						took, worst, begun = took+time.Since(begun), max(worst, time.Since(begun)), time.Now()
					}
				}
				b.ReportMetric(float64(took.Nanoseconds())/float64(appended), "ns/append")
				b.ReportMetric(float64(worst.Nanoseconds()), "ns-worst")
			})
		}
	}
}
