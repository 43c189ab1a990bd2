// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/store"
)

// A Rewriting says what is changed in the texts of tools and in their list. Zero fields of a request's
// Rewriting have the values of the key's, and those of the key's the values of
// [Options].
type Rewriting struct {
	Scrub   Scrub
	Offload *int  // the most characters of a result that are shown whole; 0: any number
	Repair  *bool // content parts that a client library has turned into text become parts again; nil: true
	Defer   *bool // tools beyond a budget are listed, found and called by two others; nil: false
	Dedupe  *bool // bodies hold whole conversations, of which what is stored is found; nil: false
}

// A Scrub says which base64 in the results of tools becomes a ref.
type Scrub string

// The values of Scrub.
const (
	ScrubAll   Scrub = "all"   // all of a known media type or in a data URI, wherever it stands; the default
	ScrubParts Scrub = "parts" // only that which is the whole text of a part
	ScrubOff   Scrub = "off"   // none
)

// ParseScrub reads a value of Scrub; "" is no value.
func ParseScrub(s string) (Scrub, error) {
	switch v := Scrub(s); v {
	case "", ScrubAll, ScrubParts, ScrubOff:
		return v, nil
	}
	return "", fmt.Errorf("%q is not one of all, parts and off", artel.Shorten(s, 40))
}

// ParseOffload reads a number of characters, or off; "" is no value.
func ParseOffload(s string) (*int, error) {
	switch s {
	case "":
		return nil, nil
	case "off":
		return new(int), nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < minOffload {
		return nil, fmt.Errorf("%q is neither off nor a number of characters from %d", artel.Shorten(s, 40), minOffload)
	}
	return &n, nil
}

// ParseSwitch reads true or false; "" is no value.
func ParseSwitch(s string) (*bool, error) {
	if s == "" {
		return nil, nil
	}
	v, err := strconv.ParseBool(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not one of true and false", artel.Shorten(s, 40))
	}
	return &v, nil
}

func (w Rewriting) repairs() bool { return w.Repair == nil || *w.Repair }

// minOffload leaves room for the words about what is not shown.
const minOffload = 1000

// or returns w with the fields of broader where it has none.
func (w Rewriting) or(broader Rewriting) Rewriting {
	if w.Scrub == "" {
		w.Scrub = broader.Scrub
	}
	if w.Offload == nil {
		w.Offload = broader.Offload
	}
	if w.Repair == nil {
		w.Repair = broader.Repair
	}
	if w.Defer == nil {
		w.Defer = broader.Defer
	}
	if w.Dedupe == nil {
		w.Dedupe = broader.Dedupe
	}
	return w
}

// Texts rewrites the results and the calls of tools in one request, and puts back
// what it took out. They must be rewritten in the order of the request.
type Texts struct {
	r         *Request
	rewriting Rewriting
	originals *originals // what refs stand for
}

// Rewrite sets how texts are rewritten, before any is.
func (t *Texts) Rewrite(w Rewriting) { t.rewriting = w.or(t.rewriting) }

// Dedupes reports whether the body holds the whole conversation, of which what is stored is found.
func (t *Texts) Dedupes() bool { return t.rewriting.Dedupe != nil && *t.rewriting.Dedupe }

// Defers reports whether the request's tools beyond the budget are deferred.
func (t *Texts) Defers() bool { return t.rewriting.Defer != nil && *t.rewriting.Defer }

// A Rewritten is the text of a tool's result for models.
type Rewritten struct {
	Text  string
	Media []FoundMedia // taken out of the text
	Steps []Step       // none: the text is unchanged
}

// A Step is one change to the text of a tool's result.
type Step struct {
	Did Action
	Ref artel.Ref // to what was taken out
}

// An Action names a change to a text. The log shows it.
type Action string

// The actions.
const (
	Repaired  Action = "repaired"  // a list of content parts that a client library had turned into text became parts
	Scrubbed  Action = "scrubbed"  // base64 became a ref
	Restored  Action = "restored"  // in a call, a ref became the base64 again
	Offloaded Action = "offloaded" // the whole text is stored, and its beginning and end are shown
)

// minRewrite is the length of the shortest text that can hold media.
const minRewrite = 64

// Result takes media, and text beyond the limit, out of the text of a tool's result.
// It is deterministic: requests of one conversation repeat the text, and services cache
// by prefix.
func (t *Texts) Result(ctx context.Context, text string) (Rewritten, error) {
	out := Rewritten{Text: text}
	if len(text) < minRewrite {
		return out, nil
	}
	r := t.r
	if t.rewriting.repairs() {
		if texts, blocks, ok := parseParts(text); ok {
			out.Text = texts
			for _, b := range blocks {
				m, err := r.storeBlock(ctx, b)
				if err != nil {
					return out, err
				}
				out.Media = append(out.Media, m)
				out.Steps = append(out.Steps, Step{Repaired, m.Media.Ref})
			}
		}
	}
	if err := t.scrub(ctx, &out); err != nil {
		return out, err
	}
	if limit := t.rewriting.Offload; limit != nil && *limit > 0 {
		if shown := (tool.Shown{Characters: *limit, Bytes: 4 * *limit}); shown.Exceeded(out.Text) {
			return out, t.offload(ctx, &out, shown)
		}
	}
	return out, nil
}

// Argument takes media out of a string among the arguments of an earlier call: those
// that were put back there, so that the model reads what it wrote, and with ScrubAll
// others, whose result the conversation may have lost.
func (t *Texts) Argument(ctx context.Context, text string) (Rewritten, error) {
	out := Rewritten{Text: text}
	if len(text) < minRewrite || t.rewriting.Scrub == ScrubOff {
		return out, nil
	}
	var refs []artel.Ref
	out.Text, refs = t.originals.replace(out.Text)
	for _, ref := range refs {
		out.Steps = append(out.Steps, Step{Scrubbed, ref})
	}
	if t.rewriting.Scrub == ScrubParts {
		return out, nil
	}
	err := t.scrub(ctx, &out)
	out.Media = nil // the model has seen them
	return out, err
}

// scrub replaces media in out.Text by refs, and remembers what they stand for.
func (t *Texts) scrub(ctx context.Context, out *Rewritten) error {
	if t.rewriting.Scrub == ScrubOff {
		return nil
	}
	r := t.r
	var found []FoundMedia
	var steps []Step
	fresh := map[string]string{}
	var failed error
	sink := func(ctx context.Context, body io.Reader, h scrub.Hint) (string, error) {
		d, _, err := r.Store(ctx, body)
		if err != nil {
			return "", err
		}
		hint := tool.HintOf(h)
		m, _ := r.Media(ctx, d, hint.DeclaredType, hint.Filename)
		if !slices.ContainsFunc(slices.Concat(out.Media, found), func(b FoundMedia) bool { return b.Media.Ref == m.Ref }) {
			found = append(found, FoundMedia{Media: m})
		}
		steps = append(steps, Step{Scrubbed, m.Ref})
		return m.Ref.String(), nil
	}
	replaced := func(original, ref string) string {
		before, known := t.originals.of[ref]
		if !known {
			before, known = fresh[ref]
		}
		if known && before != original {
			// The same bytes, written in another way: the ref of that text.
			d, _, err := r.Store(ctx, strings.NewReader(original))
			if err != nil {
				failed = err
			}
			ref = artel.BlobRef(d).String()
		}
		fresh[ref] = original
		return ref
	}
	text, err := scrub.Media(ctx, out.Text, sink, replaced)
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case t.rewriting.Scrub == ScrubParts && !isOneRef(strings.TrimSpace(text)):
		return nil // the text is more than media
	}
	for ref, original := range fresh {
		t.originals.add(ref, original)
	}
	out.Text, out.Media, out.Steps = text, append(out.Media, found...), append(out.Steps, steps...)
	return nil
}

// offload stores a long text and shows its beginning and end.
func (t *Texts) offload(ctx context.Context, out *Rewritten, shown tool.Shown) error {
	p := t.r.b.parts
	s, err := p.Artifacts.Uploads.Stage(ctx, strings.NewReader(strings.ToValidUTF8(out.Text, "\uFFFD")), media.Hint{DeclaredType: tool.TypeOfText(out.Text)})
	if artel.KindOf(err) == artel.TooLarge && err != nil {
		return nil // too long even for an artifact; the service decides
	}
	if err != nil {
		return err
	}
	if err := t.putFile(ctx, s); err != nil {
		return err
	}
	ref := artel.BlobRef(s.Digest)
	x := shown.Excerpt(out.Text, s.Info.MediaType)
	shape := x.Shape
	if shape != "" {
		shape = ": " + shape
	}
	intro := p.Locale.Say(phrase.GatewayOffloaded, map[string]any{
		"Count": x.Characters, "Lines": x.Lines, "Shape": shape, "Ref": ref.String(), "URL": t.r.Origin + app.FileURL(ref),
	})
	out.Text = x.String(intro, p.Locale)
	out.Steps = append(out.Steps, Step{Offloaded, ref})
	return nil
}

// putFile makes staged bytes readable for their owner by their ref.
func (t *Texts) putFile(ctx context.Context, s artifact.Staged) error {
	p, owner := t.r.b.parts, t.r.owner
	err := p.Store.View(ctx, owner, func(tx store.Tx) error {
		_, err := gatewaylog.File(tx, s.Digest)
		return err
	})
	if artel.KindOf(err) != artel.NotFound || err == nil {
		return err
	}
	return p.Store.Update(ctx, owner, func(tx store.Tx) error { return gatewaylog.PutFile(tx, s.Digest, s.Info, p.Now()) })
}
