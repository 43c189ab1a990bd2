// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
)

//go:embed grep_artifacts.md
var grepDoc string

// Limits of one search.
const (
	maxPattern     = 1000      // characters
	maxContext     = 100       // lines on each side of a match
	maxMatches     = 1000      // lines that match
	defaultMatches = 200       // if the model gives no number
	maxSearched    = 64 << 20  // bytes of text
	maxOpened      = 256 << 20 // bytes of documents to extract text from
	maxGrepLine    = 1000      // characters of a line that are shown
)

type grepArgs struct {
	Pattern    string `json:"pattern"`
	ID         string `json:"id,omitempty"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Context    int    `json:"context,omitempty" jsonschema:"lines around each match"`
	Max        int    `json:"max,omitempty"`
}

func grepArtifacts() Tool {
	t := Func("grep_artifacts", grepDoc, func(ctx context.Context, e *Env, in grepArgs) (Result, error) {
		re, err := in.compile()
		if err != nil {
			return failure(err)
		}
		g := &grep{re: re, around: in.Context, left: cmp.Or(in.Max, defaultMatches), bytes: maxSearched, docs: documents{left: maxOpened}, last: -1, most: e.Shown.page()}
		if err := g.search(ctx, e, in.ID); err != nil {
			return failure(err)
		}
		return Result{Content: g.result(in), Metadata: map[string]any{
			"content_type": "list", "count": g.matches, "complete": len(g.caps) == 0,
		}}, nil
	})
	t.Parallel, t.ShowsContent = true, true
	return readsRef(t, func(in grepArgs) string { return in.ID })
}

func (in grepArgs) compile() (*regexp.Regexp, error) {
	const op = "tool.Call"
	switch {
	case in.Pattern == "":
		return nil, artel.Errorf(artel.Invalid, op, "pattern", "is empty; give what to look for")
	case utf8.RuneCountInString(in.Pattern) > maxPattern:
		return nil, artel.Errorf(artel.TooLarge, op, "pattern", "has more than %d characters", maxPattern)
	case in.Context < 0 || in.Context > maxContext:
		return nil, artel.Errorf(artel.Invalid, op, "context", "is %d, want 0 to %d lines", in.Context, maxContext)
	case in.Max < 0 || in.Max > maxMatches:
		return nil, artel.Errorf(artel.Invalid, op, "max", "is %d, want 1 to %d lines", in.Max, maxMatches)
	}
	pattern := in.Pattern
	if in.IgnoreCase {
		pattern = "(?i:" + pattern + ")"
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, op, "pattern", "not a regular expression of RE2: %w; write \\ before signs that stand for themselves", err)
	}
	return re, nil
}

// A grep is one search. It reads one text at a time.
type grep struct {
	re     *regexp.Regexp
	around int // lines on each side
	left   int // remaining matches to show
	bytes  int // remaining bytes of text to search

	out                     strings.Builder
	chars, most             int // in out, and at most
	matches, texts, skipped int
	caps                    []string // the limits that were reached
	docs                    documents
	artifact                string
	last                    int // last shown line of artifact; -1: none
}

func (g *grep) search(ctx context.Context, e *Env, only string) error {
	if only != "" {
		ref, err := artel.ParseRef(strings.TrimSpace(only))
		if err != nil {
			return err
		}
		if here := !ref.IsBlob() && (ref.Conversation == "" || ref.Conversation == e.Conversation); here && ref.Version == 0 {
			text, a, err := e.Workspace.Peek(ctx, ref.Artifact)
			if err == nil {
				g.searchText(ctx, string(a.ID), text)
			}
			if !errors.Is(err, artel.Unsupported) {
				return err
			}
		}
		f, err := resolveText(ctx, e, ref)
		switch {
		case err != nil:
			return err
		case f.streamed(e):
			return g.searchLarge(ctx, e, f)
		case f.derived != nil:
			g.searchDocument(ctx, f.name(), f.MediaType, f.text)
		default:
			g.searchText(ctx, f.name(), f.text)
		}
		return ctx.Err()
	}
	all, err := e.Workspace.List(ctx)
	if err != nil {
		return err
	}
	for i, a := range all {
		if err := g.searchArtifact(ctx, e, a); err != nil {
			return err
		}
		if len(g.caps) > 0 {
			if rest := len(all) - i - 1; rest > 0 {
				g.cap(fmt.Sprintf("%d more artifacts were not searched", rest))
			}
			break
		}
	}
	if n := g.docs.unopened; n > 0 {
		g.cap(fmt.Sprintf("%d documents were not searched, because one search opens at most %d bytes of them", n, maxOpened))
	}
	return ctx.Err()
}

// searchArtifact searches an artifact of this conversation.
func (g *grep) searchArtifact(ctx context.Context, e *Env, a artel.Artifact) error {
	if a.Binary {
		return g.searchDerived(ctx, e, a)
	}
	text, _, err := e.Workspace.Peek(ctx, a.ID)
	if errors.Is(err, artel.NotFound) || errors.Is(err, artel.Unsupported) {
		return nil // deleted or replaced meanwhile
	}
	if err == nil {
		g.searchText(ctx, string(a.ID), text)
	}
	return err
}

func (g *grep) cap(what string) { g.caps = append(g.caps, what) }

// searchText searches one text.
func (g *grep) searchText(ctx context.Context, id, searchText string) {
	if len(searchText) > g.bytes {
		g.cap(fmt.Sprintf("only the first %d bytes of '%s' were searched", g.bytes, id))
		searchText = strings.ToValidUTF8(searchText[:g.bytes], "")
	}
	g.bytes -= len(searchText)
	g.searchLines(ctx, id, edit.Lines(searchText).All())
}

// searchLines searches the numbered lines of one text.
func (g *grep) searchLines(ctx context.Context, id string, lines iter.Seq2[int, string]) {
	g.texts++
	g.artifact, g.last = id, -1
	before := make([]string, 0, g.around) // candidates for the lines before a match
	after := 0                            // remaining lines after a match
	for n, line := range lines {
		if n%4096 == 0 && ctx.Err() != nil {
			return
		}
		if !g.hit(line) {
			switch {
			case after > 0:
				after--
				g.line('-', n, line)
			case g.around > 0:
				if len(before) == g.around {
					copy(before, before[1:])
					before = before[:g.around-1]
				}
				before = append(before, line)
			}
			continue
		}
		if g.left == 0 {
			g.cap(fmt.Sprintf("there are more than the %d matching lines that are shown", g.matches))
			return
		}
		first := n - len(before)
		if g.around > 0 && (g.last >= 0 && first > g.last+1 || g.last < 0 && g.matches > 0) {
			g.write("--\n")
		}
		for i, s := range before {
			g.line('-', first+i, s)
		}
		before = before[:0]
		g.left--
		g.matches++
		g.line(':', n, line)
		after = g.around
		if g.chars > g.most {
			g.cap(fmt.Sprintf("no more than about %d characters are shown", g.most))
			return
		}
	}
}

// hit reports whether the line has a nonempty match.
func (g *grep) hit(line string) bool {
	at := g.re.FindStringIndex(line)
	if at == nil || at[1] > at[0] {
		return at != nil
	}
	for _, at := range g.re.FindAllStringIndex(line, -1) {
		if at[1] > at[0] {
			return true
		}
	}
	return false
}

// line shows a line; of a long one, the part around the match.
func (g *grep) line(mark byte, n int, line string) {
	g.last = n
	if utf8.RuneCountInString(line) > maxGrepLine {
		from := 0
		if at := g.re.FindStringIndex(line); mark == ':' && at != nil {
			from = utf8.RuneCountInString(line[:at[0]]) - maxGrepLine/4
		}
		r := []rune(line)
		from = max(0, min(from, len(r)-maxGrepLine))
		line = string(r[from : from+maxGrepLine])
		if from > 0 {
			line = fmt.Sprintf("[… from column %d] %s", from+1, line)
		}
		if from+maxGrepLine < len(r) {
			line += fmt.Sprintf(" [… %d characters in all]", len(r))
		}
	}
	g.write(fmt.Sprintf("%s%c%d%c%s\n", g.artifact, mark, n, mark, line))
}

func (g *grep) write(s string) {
	g.out.WriteString(s)
	g.chars += utf8.RuneCountInString(s)
}

// result formats the result for the model.
func (g *grep) result(in grepArgs) string {
	head := fmt.Sprintf(`<artifact_matches pattern="%s" matches="%d" searched="%d" complete="%t">`, attribute(in.Pattern), g.matches, g.texts, len(g.caps) == 0)
	var b strings.Builder
	b.WriteString(head + "\n" + g.out.String())
	if g.matches == 0 && len(g.caps) == 0 {
		b.WriteString("Nothing matches.\n")
	}
	b.WriteString(g.docs.notes())
	if g.skipped > 0 {
		fmt.Fprintf(&b, "[%d binary artifacts have no text and were not searched]\n", g.skipped)
	}
	if len(g.caps) > 0 {
		fmt.Fprintf(&b, "[The search is incomplete: %s. Narrow the pattern, or search one artifact with id.]\n", strings.Join(g.caps, "; "))
	}
	return b.String() + "</artifact_matches>"
}
