// SPDX-License-Identifier: Apache-2.0

// Package edit replaces old text in a document by new text.
//
// Begin with [Apply]. It searches each old text in layers, the strictest first, and
// the first layer with a match decides: exact; then normalised, which ignores
// differences of spelling such as quotes, line ends and forms of Unicode; then
// approximate, the one substring that differs by the fewest edits, if no other is
// nearly as close. Old text must match in exactly one place, unless all places are
// to be replaced. Otherwise the edit is refused, with a message that says what to
// do. For several calls on the same text use a [Document]. [ApplyChanges] replays
// the changes of Apply, and [Lines] defines what a line is.
//
// The package is pure. Bytes outside the replaced spans never change, several edits
// are applied all or none, the work of a call is bounded for any input, and
// positions are code points of the text before the edit.
package edit

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// Limits of the time and memory of one call.
const (
	DefaultMaxText = 20 << 20  // bytes of a document, before and after
	MaxOld         = 100_000   // code points of an old text
	MaxPlaces      = 100       // places that a Hit or Refusal lists
	maxWork        = 4 << 30   // bytes that all edits of a call may scan
	leastWork      = 1 << 20   // of them for an edit
	maxSteps       = 1 << 30   // steps of the looser layers, of a few nanoseconds each
	hardMaxText    = 100 << 20 // maximum of Options.MaxText: normalised, a text can be eleven times as long
	maxChanges     = 1000      // separate changes of one edit
)

// An Edit replaces Old by New. Old must not be empty, and New must differ from it.
type Edit struct {
	Old string `json:"old"`
	New string `json:"new"`

	// ReplaceAll replaces every place, from left to right, skipping places
	// that overlap one already replaced. An approximate match must still be
	// the only one.
	ReplaceAll bool `json:"replace_all,omitempty"`
}

// A Mode selects the layers.
type Mode string

// The modes.
const (
	Auto       Mode = "auto"       // all layers
	Normalized Mode = "normalized" // no approximate matches
	Exact      Mode = "exact"      // only the exact layer
)

// Options of [Apply].
type Options struct {
	Mode    Mode // "": Auto
	MaxText int  // bytes of the text, before and after; 0: DefaultMaxText

	// Limits are those of the approximate layer; nil: [DefaultLimits].
	Limits *Limits

	// Indent lets the normalised layer ignore indentation. New text then gets
	// the document's indentation.
	Indent bool
}

// A Result is the outcome of edits.
type Result struct {
	Text string
	Hits []Hit // one for each edit, in order

	// Changes turn the text before into Text when they are applied one after
	// the other; the positions of each are in the text that the changes
	// before it left. An edit with very many places gives one change that
	// spans them all.
	Changes []artel.Change
}

// A Hit tells where one edit found its old text. Start and End are code points
// of the text before that edit; with ReplaceAll, of the first place.
type Hit struct {
	Layer      artel.Layer `json:"layer"`
	Similarity float64     `json:"similarity"` // 0 to 1; 1: exact
	Matched    string      `json:"matched"`    // the replaced text
	Start      int         `json:"start"`
	End        int         `json:"end"`
	Count      int         `json:"count"`            // places replaced
	Places     []Place     `json:"places,omitempty"` // with ReplaceAll, the first MaxPlaces
}

// A Place is a span of a text, in code points, and the line it begins on.
type Place struct {
	Line  int `json:"line"` // from 1
	Start int `json:"start"`
	End   int `json:"end"`
}

// Apply applies edits to text in order, all or none. Each edit applies to the
// result of the one before. The error is a [*Refusal], or that of ctx. The Result
// shares memory with the arguments.
func Apply(ctx context.Context, text string, edits []Edit, o Options) (Result, error) {
	return NewDocument(text).Apply(ctx, edits, o)
}

// Apply is like the function Apply on the text of the document, which does not
// change.
func (d *Document) Apply(ctx context.Context, edits []Edit, o Options) (Result, error) {
	ls, err := layersOf(o.Mode)
	if err != nil {
		return Result{}, err
	}
	j := job{doc: d, indent: o.Indent, limits: DefaultLimits(), meter: maxSteps, most: cmp.Or(o.MaxText, DefaultMaxText)}
	if o.Limits != nil {
		j.limits = *o.Limits
	}
	if err := j.limits.check(); err != nil {
		return Result{}, err
	}
	if err := checkText(d.text, edits, j.most); err != nil {
		return Result{}, err
	}
	r := Result{Text: d.text, Hits: make([]Hit, 0, len(edits))}
	work := 0
	for i, e := range edits {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		if work += max(len(r.Text), leastWork); work > maxWork { // earlier edits may have made the text longer
			return Result{}, at(i, tooMany(len(edits), len(r.Text)))
		}
		if err := e.check(); err != nil {
			return Result{}, at(i, err)
		}
		if err := r.apply(ctx, &j, e, ls); err != nil {
			return Result{}, at(i, err)
		}
		j.doc = NewDocument(r.Text)
	}
	return r, nil
}

func checkText(text string, edits []Edit, most int) error {
	switch {
	case len(edits) == 0:
		return refuse(Invalid, "there is no edit: give at least one old and new text")
	case len(text) > min(most, hardMaxText):
		return refuse(TooCostly, "the text has %d bytes, and at most %d can be edited", len(text), min(most, hardMaxText))
	case len(edits) > maxWork/max(len(text), leastWork):
		return tooMany(len(edits), len(text))
	case !valid(text):
		return refuse(Invalid, "the text is not valid UTF-8")
	}
	return nil
}

func tooMany(edits, size int) error {
	return refuse(TooCostly, "%d edits are too many for a text of %d bytes; split them over several calls", edits, size)
}

func (e Edit) check() error {
	switch {
	case e.Old == "":
		return refuse(Invalid, "the old text is empty: give the passage to replace")
	case !utf8.ValidString(e.Old):
		return refuse(Invalid, "the old text is not valid UTF-8")
	case !utf8.ValidString(e.New):
		return refuse(Invalid, "the new text is not valid UTF-8")
	case e.Old == e.New:
		return refuse(Invalid, "old and new text are the same: nothing would change")
	}
	if len(e.Old) > MaxOld {
		if n := utf8.RuneCountInString(e.Old); n > MaxOld {
			return refuse(TooCostly, "the old text has %d characters, and at most %d can be looked for; a shorter part of it is enough", n, MaxOld)
		}
	}
	return nil
}

// apply applies one edit with the first layer that finds a match.
func (r *Result) apply(ctx context.Context, j *job, e Edit, ls []layer) error {
	for _, l := range ls {
		replace := replaceOne
		if e.ReplaceAll {
			replace = replaceAll
		}
		done, err := replace(ctx, j, e, l)
		if err != nil {
			return err
		}
		if done.hit.Count == 0 {
			continue
		}
		r.Text = done.text
		r.Hits = append(r.Hits, done.hit)
		r.Changes = append(r.Changes, done.changes...)
		return nil
	}
	return refuse(NotFound, "the old text is not there; read the text again and copy the passage exactly as it stands, white space and line ends included")
}

// replaced is the result of one edit; the count of its hit is 0 if nothing matched.
type replaced struct {
	text    string
	hit     Hit
	changes []artel.Change
}

func replaceOne(ctx context.Context, j *job, e Edit, l layer) (replaced, error) {
	text := j.doc.text
	var first match
	var places []Place
	count := 0
	cur := cursor{text: text}
	for m, err := range l.find(ctx, j, e, true) {
		if err != nil {
			return replaced{}, err
		}
		if count == 0 {
			first = m
		}
		if count < MaxPlaces {
			places = append(places, cur.place(m))
		}
		count++
	}
	switch {
	case count == 0:
		return replaced{}, nil
	case count > 1:
		return replaced{}, ambiguous(count, places)
	}
	if size := len(text) - (first.end - first.start) + len(first.put); size > j.most {
		return replaced{}, tooLong(size, j.most)
	}
	old := text[first.start:first.end]
	p := places[0]
	return replaced{
		text:    text[:first.start] + first.put + text[first.end:],
		hit:     Hit{Layer: l.name, Similarity: first.similarity, Matched: old, Start: p.Start, End: p.End, Count: 1},
		changes: []artel.Change{{Layer: l.name, Start: p.Start, End: p.End, Old: old, New: first.put}},
	}, nil
}

func replaceAll(ctx context.Context, j *job, e Edit, l layer) (replaced, error) {
	text := j.doc.text
	var d replaced
	var out strings.Builder
	var last match
	firstStart := 0 // bytes, of text and of out alike
	cur := cursor{text: text}
	var p Place
	shift := 0 // code points by which the changes so far moved what follows
	for m, err := range l.find(ctx, j, e, false) {
		if err != nil {
			return replaced{}, err
		}
		p = cur.place(m)
		old := text[m.start:m.end]
		if d.hit.Count == 0 {
			firstStart = m.start
			d.hit = Hit{Layer: l.name, Similarity: m.similarity, Matched: old, Start: p.Start, End: p.End}
		}
		d.hit.Similarity = min(d.hit.Similarity, m.similarity)
		if d.hit.Count++; d.hit.Count <= MaxPlaces {
			d.hit.Places = append(d.hit.Places, p)
		}
		if d.hit.Count <= maxChanges {
			d.changes = append(d.changes, artel.Change{Layer: l.name, Start: p.Start + shift, End: p.End + shift, Old: old, New: m.put})
		}
		shift += utf8.RuneCountInString(m.put) - (p.End - p.Start)
		out.WriteString(text[last.end:m.start])
		out.WriteString(m.put)
		if size := out.Len(); size > j.most {
			return replaced{}, tooLong(size, j.most)
		}
		last = m
	}
	if d.hit.Count == 0 {
		return replaced{}, nil
	}
	end := out.Len()
	if size := end + len(text) - last.end; size > j.most {
		return replaced{}, tooLong(size, j.most)
	}
	out.WriteString(text[last.end:])
	d.text = out.String()
	if d.hit.Count > maxChanges {
		d.changes = []artel.Change{{
			Layer: l.name, Start: d.hit.Start, End: p.End,
			Old: text[firstStart:last.end], New: d.text[firstStart:end],
		}}
	}
	return d, nil
}

// A cursor converts byte positions to code points and lines. It only moves forward,
// so that converting all places costs one pass over the text.
type cursor struct {
	text        string
	byte        int
	char, lines int // before byte
}

func (c *cursor) place(m match) Place {
	skipped := c.text[c.byte:m.start]
	c.char += countChars(skipped)
	c.lines += strings.Count(skipped, lineEnd)
	c.byte = m.start
	return Place{Line: c.lines + 1, Start: c.char, End: c.char + countChars(c.text[m.start:m.end])}
}
