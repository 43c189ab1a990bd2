// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tiktoken-go/tokenizer"

	arteltoken "github.com/artelhq/artel/pipeline/token"
)

const tokensAbout = "o200k_base, by processor time, each in a process of its own. English is the comments and code the source of Go's library; Chinese is put together at random " +
	"from the product's own texts, so that hardly a run of characters comes twice. A megabyte is counted in texts of the given size: cold at first, and warm when its words have been seen, though not the texts. " +
	"A text seen before is looked up by its digest. The anchors are tiktoken-go/tokenizer, and gpt-tokenizer 4.0.0 in Node (`bench/gpt`), which has no rows where npm cannot install it. " +
	"The budgets are 40, 8 and 40 MB/s cold, and 13 of Chinese warm. All three have to count the same."

const tokensSize = 1_000_000

func measureTokens(ctx context.Context, l *lab) []result {
	english, code := goSource(ctx)
	chinese := chineseWords(l.root)
	c := counters{l: l, ours: filepath.Join(l.dir, "counting"), gpt: installGPT(ctx, l)}
	build(ctx, filepath.Join(l.root, "bench"), "./counting", c.ours)
	var results []result
	for _, t := range []struct {
		name, text string
		cold, warm target
	}{
		{"English", english, target{limit: 40e6, reference: 4.4e6}, target{}},
		{"Chinese", chinese, target{limit: 8e6, reference: 3.8e6}, target{limit: 13e6, reference: 3.8e6}},
		{"Go code", code, target{limit: 40e6, reference: 4.5e6}, target{}},
	} {
		text := cut(t.text, tokensSize)
		file := filepath.Join(l.dir, t.name+".txt")
		check(os.WriteFile(file, []byte(text), 0o600))
		for _, size := range []int{10e3, 100e3, tokensSize} {
			var rows []result
			during(t.name, func() { rows = c.measure(ctx, file, size) })
			for i, row := range rows {
				row.work = t.name + row.work
				if i == 0 {
					row.target = t.cold
				} else if i == 1 {
					row.target = t.warm
				}
				results = append(results, row)
			}
		}
		seen := seenBefore(l, text)
		seen.work = t.name + seen.work
		results = append(results, seen)
	}
	return results
}

// counters are the programs that count.
type counters struct {
	l    *lab
	ours string
	gpt  string // the folder of the anchor in Node; "": it could not be installed
}

// measure runs the programs in turn on pieces of a file.
func (c counters) measure(ctx context.Context, file string, size int) []result {
	programs := [][]string{{c.ours, "artel"}, {c.ours, "tiktoken"}}
	if c.gpt != "" {
		programs = append(programs, []string{"node", filepath.Join(c.gpt, "count.js")})
	}
	cold, warm := make([][]float64, len(programs)), make([][]float64, len(programs))
	var tokens string
	for range c.l.rounds(3) {
		for i, p := range programs {
			out, err := exec.CommandContext(ctx, p[0], append(slices.Clone(p[1:]), file, fmt.Sprint(size))...).Output()
			if err != nil {
				fail("%v: %w", p, err)
			}
			fields := strings.Fields(string(out))
			if len(fields) != 3 {
				fail("%v: %q", p, out)
			}
			first, err1 := strconv.ParseFloat(fields[0], 64)
			again, err2 := strconv.ParseFloat(fields[1], 64)
			check(errors.Join(err1, err2))
			cold[i], warm[i] = append(cold[i], first), append(warm[i], again)
			if tokens == "" {
				tokens = fields[2]
			}
			if fields[2] != tokens {
				fail("%v counts %s tokens, and the one before %s", p, fields[2], tokens)
			}
		}
	}
	amount := bytesOf(int64(size))
	rows := []result{
		{work: ", cold", size: amount, unit: mbPerSec(), artel: median(cold[0]), anchor: median(cold[1])},
		{work: ", warm", size: amount, unit: mbPerSec(), artel: median(warm[0]), anchor: median(warm[1])},
	}
	if c.gpt != "" {
		rows = append(rows,
			result{work: ", cold, beside gpt-tokenizer", size: amount, unit: mbPerSec(), artel: median(cold[0]), anchor: median(cold[2])},
			result{work: ", warm, beside gpt-tokenizer", size: amount, unit: mbPerSec(), artel: median(warm[0]), anchor: median(warm[2])})
	}
	return rows
}

// seenBefore counts the same text repeatedly.
func seenBefore(l *lab, text string) result {
	codec := must(tokenizer.Get(tokenizer.O200kBase))
	counter := arteltoken.NewCounter()
	must(counter.Count(arteltoken.O200k, text))
	const while = 50 * time.Millisecond
	m := interleave(l.rounds(1),
		perBusySecond(float64(len(text)), while, func() error { _, err := counter.Count(arteltoken.O200k, text); return err }),
		perBusySecond(float64(len(text)), while, func() error { _, err := codec.Count(text); return err }))
	return result{work: ", a text seen before", size: bytesOf(tokensSize), unit: mbPerSec(), artel: m[0], anchor: m[1]}
}

// installGPT returns the folder of the anchor in Node, or "".
func installGPT(ctx context.Context, l *lab) string {
	dir := filepath.Join(l.dir, "gpt")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(l.root, "bench", "gpt"))); err != nil {
		fmt.Fprintln(os.Stderr, "no rows for gpt-tokenizer:", err)
		return ""
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "no rows for gpt-tokenizer, npm cannot install it: %v\n%s", err, out)
		return ""
	}
	return dir
}

// cut returns size bytes of text, which is repeated as needed, up to a whole
// character.
func cut(text string, size int) string {
	text = strings.Repeat(text, size/len(text)+1)[:size]
	return strings.ToValidUTF8(text, "")
}

// goSource returns English prose and code, each about a megabyte.
func goSource(ctx context.Context) (prose, code string) {
	var words, source strings.Builder
	for _, name := range goFiles(ctx, "net/http") {
		src := must(os.ReadFile(name))
		f := must(parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution))
		for _, c := range f.Comments {
			words.WriteString(comment(c))
		}
		if !strings.HasSuffix(name, "_bundle.go") {
			source.Write(src)
		}
	}
	if words.Len() == 0 || source.Len() == 0 {
		fail("the source of Go's library is not installed")
	}
	return words.String(), source.String()
}

// goFiles returns the source files of Go's library in the packages that match.
func goFiles(ctx context.Context, packages string) []string {
	root := must(exec.CommandContext(ctx, "go", "env", "GOROOT").Output())
	return must(filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src", packages, "*.go")))
}

// comment returns a comment of several lines as one paragraph.
func comment(c *ast.CommentGroup) string {
	if len(c.List) < 3 {
		return ""
	}
	return strings.Join(strings.Fields(c.Text()), " ") + "\n\n"
}

// chineseText returns sentences of the product's catalogue, shuffled.
func chineseText(root string) string {
	sentences := chinesePassages(root)
	r := rand.New(rand.NewPCG(1, 3))
	var b strings.Builder
	for b.Len() < 1e6 {
		b.WriteString(sentences[r.IntN(len(sentences))] + "。")
	}
	return b.String()
}

// chineseWords returns sentences made of random excerpts of two to four characters
// from the product's catalogue.
func chineseWords(root string) string {
	excerpts := chinesePassages(root)
	r := rand.New(rand.NewPCG(1, 3))
	var b strings.Builder
	for b.Len() < tokensSize {
		for range 2 + r.IntN(4) {
			excerpt := []rune(excerpts[r.IntN(len(excerpts))])
			from := r.IntN(len(excerpt) - 2)
			b.WriteString(string(excerpt[from:min(len(excerpt), from+2+r.IntN(3))]))
		}
		b.WriteString([]string{"，", "。", "；", "。\n"}[r.IntN(4)])
	}
	return b.String()
}

// chinesePassages returns runs of Chinese characters of the product's catalogue.
func chinesePassages(root string) []string {
	src := must(os.ReadFile(filepath.Join(root, "internal", "phrase", "zh.json")))
	var catalogue any
	check(json.Unmarshal(src, &catalogue))
	excerpts := chinese(catalogue)
	slices.Sort(excerpts)
	return excerpts
}

// chinese collects runs of Chinese characters.
func chinese(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		for _, s := range strings.FieldsFunc(v, func(r rune) bool { return !unicode.Is(unicode.Han, r) }) {
			if len(s) > 9 {
				out = append(out, s)
			}
		}
	case []any:
		for _, e := range v {
			out = append(out, chinese(e)...)
		}
	case map[string]any:
		for _, e := range v {
			out = append(out, chinese(e)...)
		}
	}
	return out
}
