// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
)

// Shown limits how much of a result is shown. A longer one is stored as an
// artifact, and the model gets its beginning, its end and how to read the rest.
// Zero fields mean the defaults.
type Shown struct {
	Bytes      int // in events and answers; 0: [DefaultShownBytes]
	Characters int // to a model; 0: [DefaultShownCharacters]
	Page       int // characters of a page of a list, of matches and of a diff, and of a text that is not read page by page; 0 or more than 50,000: 50,000
}

// page is how many characters a page has.
func (s Shown) page() int {
	if s.Page <= 0 {
		return maxShown
	}
	return min(s.Page, maxShown)
}

// The defaults of [Shown].
const (
	DefaultShownBytes      = 102_400
	DefaultShownCharacters = 20_000
)

func (s Shown) orDefault() Shown {
	if s.Bytes == 0 {
		s.Bytes = DefaultShownBytes
	}
	if s.Characters == 0 {
		s.Characters = DefaultShownCharacters
	}
	return s
}

// Exceeded reports whether text exceeds a limit.
func (s Shown) Exceeded(text string) bool {
	s = s.orDefault()
	return len(text) > s.Bytes || len(text) > s.Characters && utf8.RuneCountInString(text) > s.Characters
}

// offload stores a result as an artifact and shows a part of it.
func (e *Env) offload(ctx context.Context, r Result) (Result, error) {
	if e.Artifacts == nil || e.Workspace == nil {
		r.Metadata = withContentType(r)
		return r, nil
	}
	a, err := e.storeText(ctx, r.Content)
	if err != nil {
		if !errors.Is(err, artel.TooLarge) {
			return r, err
		}
		// Too long even for an artifact: the tool has to be asked for less.
		return Failed("%s", e.Locale.Say(phrase.ToolTooLong, map[string]any{"Count": utf8.RuneCountInString(r.Content), "Problem": err.Error()})), nil
	}
	kind, _ := kindOf(r.Content)
	if r.IsError {
		kind = "error"
	}
	m := fileFacts(a)
	m["content_type"] = kind
	for k, v := range r.Metadata {
		m[k] = v
	}
	r.Metadata = m
	r.Content = e.preview(r.Content, a)
	return r, nil
}

// storeText makes an artifact of a text.
func (e *Env) storeText(ctx context.Context, text string) (artel.Artifact, error) {
	staged, err := e.Artifacts.Uploads.Stage(ctx, strings.NewReader(strings.ToValidUTF8(text, "\uFFFD")), media.Hint{DeclaredType: TypeOfText(text)})
	if err != nil {
		return artel.Artifact{}, err
	}
	return e.Workspace.Store(ctx, staged)
}

// preview returns what a model gets of a text that is stored as a: its size and
// shape, its beginning and end, and how to read the rest.
func (e *Env) preview(text string, a artel.Artifact) string {
	x := e.Shown.Excerpt(text, a.MediaType)
	next := readArgs{ID: string(a.ID)}.next(x.end())
	form := x.Shape
	if form != "" {
		form = ": " + form
	}
	intro := e.Locale.Say(phrase.ToolOffloaded, map[string]any{
		"Count": utf8.RuneCountInString(text), "Lines": x.Lines, "Shape": form, "ID": a.ID, "Ref": a.MediaPart().Ref.String(),
		"Next": next, "Grep": fmt.Sprintf("grep_artifacts(pattern='…', id='%s')", a.ID),
	})
	return x.String(intro, e.Locale)
}

// An Excerpt is what is shown of a text that is too long.
type Excerpt struct {
	Head, Tail string // beginning and end of the text
	Left       int    // characters between them
	Lines      int    // of the whole text
	Characters int    // likewise
	Shape      string // short description of the structure; may be empty
}

// end is where the text continues after the head.
func (x Excerpt) end() page {
	return page{line: strings.Count(x.Head, "\n") + 1, column: utf8.RuneCountInString(x.Head[strings.LastIndexByte(x.Head, '\n')+1:]) + 1}
}

// Excerpt returns the shown part of a text that exceeds a limit.
func (s Shown) Excerpt(text, mediaType string) Excerpt {
	limit := s.orDefault()
	head := headOf(withinBytes(text, limit.Bytes/4), limit.Characters/4)
	rest := text[len(head):]
	last := rest[max(0, len(rest)-limit.Bytes/10):]
	for last != "" && !utf8.RuneStart(last[0]) {
		last = last[1:]
	}
	tail := text[len(text)-len(tailOf(last, limit.Characters/10)):]
	lines := strings.Count(text, "\n") + 1
	if strings.HasSuffix(text, "\n") {
		lines--
	}
	left := utf8.RuneCountInString(text) - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	return Excerpt{Head: head, Tail: tail, Left: left, Lines: lines, Characters: utf8.RuneCountInString(text), Shape: shape(text, mediaType)}
}

// String formats the excerpt after an introduction.
func (x Excerpt) String(intro string, l phrase.Locale) string {
	gap := l.Say(phrase.ToolOffloadedGap, map[string]any{"Count": x.Left})
	return intro + "\n\n" + strings.TrimSuffix(x.Head, "\n") + "\n\n" + gap + "\n\n" + x.Tail
}

// withinBytes returns the characters within the first n bytes of a text.
func withinBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// headOf returns the beginning of a text: at most n characters, up to a line
// end in the second half of them if there is one.
func headOf(s string, n int) string {
	s = s[:prefix(s, n)]
	if i := strings.LastIndexByte(s, '\n'); i > len(s)/2 {
		return s[:i+1]
	}
	return s
}

// tailOf returns the end of a text, likewise.
func tailOf(s string, n int) string {
	at := len(s)
	for range n {
		if at == 0 {
			break
		}
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	s = s[at:]
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < len(s)/2 {
		return s[i+1:]
	}
	return s
}

// The bounds of a shape.
const (
	maxKeys    = 40
	maxKeyName = 80
)

// shape describes the structure of a text in a few words: the keys of JSON, the
// columns of a table; "" for other texts.
func shape(text, mediaType string) string {
	switch mediaType {
	case "application/json":
		return jsonShape(text)
	case "text/csv", "text/tab-separated-values":
		r := csv.NewReader(strings.NewReader(text))
		r.LazyQuotes, r.FieldsPerRecord = true, -1
		if mediaType != "text/csv" {
			r.Comma = '\t'
		}
		columns, err := r.Read()
		if err != nil {
			return ""
		}
		rows := 0
		for {
			if _, err := r.Read(); errors.Is(err, io.EOF) {
				break
			}
			rows++
		}
		return fmt.Sprintf("%d rows × %d columns: %s", rows, len(columns), listed(columns))
	}
	return ""
}

func listed(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i == maxKeys {
			fmt.Fprintf(&b, ", … (%d)", len(names))
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(artel.Shorten(n, maxKeyName))
	}
	return b.String()
}

// jsonShape describes the outer level of a document, and the first element of
// an array.
func jsonShape(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	t, err := d.Token()
	if err != nil {
		return ""
	}
	switch t {
	case json.Delim('{'):
		keys, _ := members(d)
		return "{" + listed(keys) + "}"
	case json.Delim('['):
		n, first := 0, ""
		for d.More() {
			var raw json.RawMessage
			if d.Decode(&raw) != nil {
				return ""
			}
			if n == 0 && len(raw) > 0 && raw[0] == '{' {
				first = jsonShape(string(raw))
			}
			n++
		}
		return strings.TrimSpace(fmt.Sprintf("[%d] %s", n, first))
	}
	return ""
}

// members reads the members of an object after its brace, and returns their
// keys with the sizes of arrays.
func members(d *json.Decoder) ([]string, error) {
	var keys []string
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return keys, err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return keys, err
		}
		name := fmt.Sprint(k)
		switch raw = bytes.TrimSpace(raw); {
		case len(raw) > 0 && raw[0] == '[':
			var list []json.RawMessage
			if json.Unmarshal(raw, &list) == nil {
				name += fmt.Sprintf("[%d]", len(list))
			}
		case len(raw) > 0 && raw[0] == '{':
			name += "{}"
		}
		keys = append(keys, name)
	}
	return keys, nil
}
