// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tiktoken-go/tokenizer"

	arteltoken "github.com/artelhq/artel/token"
)

const tokensAbout = "o200k_base. English is the comments and code the source of Go's net/http; Chinese is the product's own texts in random order. " +
	"Cold texts have not been seen before; a text seen before is looked up by its digest. The anchor is tiktoken-go/tokenizer. " +
	"The budgets are 40, 8 and 40 MB/s cold, and 13 of Chinese when its words have been seen."

func measureTokens(ctx context.Context, l *lab) ([]result, error) {
	english, code, err := goSource(ctx)
	if err != nil {
		return nil, err
	}
	chinese, err := chineseText(l.root)
	if err != nil {
		return nil, err
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, err
	}
	counter := arteltoken.NewCounter()
	if _, err := counter.Count(arteltoken.O200k, "load the vocabulary"); err != nil {
		return nil, err
	}
	var results []result
	seen := 0
	for _, t := range []struct{ name, text string }{{"English", english}, {"Chinese", chinese}, {"Go code", code}} {
		for _, size := range []int{10e3, 100e3, 1e6} {
			text := cut(t.text, size)
			fresh := func() string { seen++; return fmt.Sprintf("%d\n%s", seen, text) }
			const while = 50 * time.Millisecond
			m, err := interleave(l.rounds(3),
				perSecond(float64(len(text)), while, func() error { _, err := counter.Count(arteltoken.O200k, fresh()); return err }),
				perSecond(float64(len(text)), while, func() error { _, err := codec.Count(fresh()); return err }),
				perSecond(float64(len(text)), while, func() error { _, err := counter.Count(arteltoken.O200k, text); return err }))
			if err != nil {
				return nil, err
			}
			amount := bytesOf(int64(size))
			results = append(results, result{work: t.name + ", cold", size: amount, unit: mbPerSec(), artel: m[0], anchor: m[1]})
			if size == 1e6 {
				results = append(results, result{work: t.name + ", seen before", size: amount, unit: mbPerSec(), artel: m[2], anchor: m[1]})
			}
		}
	}
	return results, nil
}

// cut returns size bytes of text, which is repeated as needed, up to a whole
// character.
func cut(text string, size int) string {
	text = strings.Repeat(text, size/len(text)+1)[:size]
	return strings.ToValidUTF8(text, "")
}

// goSource returns English prose and code, each about a megabyte.
func goSource(ctx context.Context) (prose, code string, err error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", "", err
	}
	root := strings.TrimSpace(string(out))
	files, err := filepath.Glob(filepath.Join(root, "src", "net", "http", "*.go"))
	if err != nil {
		return "", "", err
	}
	var words, source strings.Builder
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			return "", "", err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return "", "", err
		}
		for _, c := range f.Comments {
			words.WriteString(comment(c))
		}
		if !strings.HasSuffix(name, "_bundle.go") {
			source.Write(src)
		}
	}
	if words.Len() == 0 || source.Len() == 0 {
		return "", "", fmt.Errorf("no source of Go in %s", root)
	}
	return words.String(), source.String(), nil
}

// comment returns a comment of several lines as one paragraph.
func comment(c *ast.CommentGroup) string {
	if len(c.List) < 3 {
		return ""
	}
	return strings.Join(strings.Fields(c.Text()), " ") + "\n\n"
}

// chineseText returns sentences of the product's catalogue, shuffled.
func chineseText(root string) (string, error) {
	src, err := os.ReadFile(filepath.Join(root, "phrase", "zh.json"))
	if err != nil {
		return "", err
	}
	var catalogue any
	if err := json.Unmarshal(src, &catalogue); err != nil {
		return "", err
	}
	sentences := chinese(catalogue)
	slices.Sort(sentences)
	r := rand.New(rand.NewPCG(1, 3))
	var b strings.Builder
	for b.Len() < 1e6 {
		b.WriteString(sentences[r.IntN(len(sentences))] + "。")
	}
	return b.String(), nil
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
