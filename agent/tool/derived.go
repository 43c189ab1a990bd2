// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model/rendition"
)

// resolveText resolves a ref to a target with text: for a document, the
// extracted text, which sets derived; for a recording, the transcript, which
// sets words; for a PDF whose text is doubtful, what a service reads on its pages,
// which sets both. The text of a target that is streamed is left in its place.
func resolveText(ctx context.Context, e *Env, ref artel.Ref) (target, error) {
	f, err := resolve(ctx, e, ref)
	if err != nil || !f.Binary {
		return f, err
	}
	if f.streamed(e) {
		return f, nil
	}
	if !artifact.Derivable(f.MediaInfo) && f.Kind != artel.KindDocument {
		switch {
		case e.Target.Forms.Readable(f.MediaInfo):
			err := f.transcribe(ctx, e, 0)
			return f, err
		case f.Kind == artel.KindImage && e.Target.Forms.Captioner != "":
			return f, artel.Errorf(artel.Unsupported, "tool.Call", f.name(),
				"it is a picture (%s) and has no lines; use get_artifact, with forms=[\"transcribed\"] to have it put into words", f.MediaType)
		}
		return f, artel.Errorf(artel.Unsupported, "tool.Call", f.name(), "it is binary (%s) and has no lines; use get_artifact", f.MediaType)
	}
	d, err := extractText(ctx, e, f)
	if unreadableDocument(err) {
		err = artel.Errorf(artel.KindOf(err), "tool.Call", "", "%w; get_artifact gives the file itself, where you can take it", err)
	}
	f.text, f.derived = d.Text, &d
	if err == nil && recognisable(e, d) {
		err = f.transcribe(ctx, e, d.Pages)
		if err != nil && ctx.Err() == nil {
			f.doubt, err = err, nil // the doubtful text remains
		}
	}
	return f, err
}

// recognisable reports whether the text of d is doubtful and a service can read the
// pages.
func recognisable(e *Env, d artifact.Derived) bool {
	return d.Doubt != "" && e.Target.Forms.Captioner != "" && e.Renditions != nil && e.Renditions.Pages().Of(d.Version.MediaType)
}

// extractText extracts the text of f at its version. An internal failure to
// read a document is reported to the model as a failure of the document, so
// that the run continues.
func extractText(ctx context.Context, e *Env, f target) (d artifact.Derived, err error) {
	if f.ID != "" && f.Conversation == e.Conversation {
		d, err = e.Workspace.Derived(ctx, f.ID, f.Version)
	} else {
		d, err = e.Artifacts.Derived(ctx, e.Owner, f.media().Ref, e.At)
	}
	if ctx.Err() == nil && artel.KindOf(err) == artel.Internal {
		err = artel.Errorf(artel.Unsupported, "tool.Call", f.name(), "its text could not be read")
	}
	return d, err
}

// transcribe has a service transcribe or caption f, or read its pages, of which there
// are that many. A failure of the service is reported to the model, so that the run
// continues.
func (f *target) transcribe(ctx context.Context, e *Env, pages int) error {
	if e.Renditions == nil {
		return artel.Errorf(artel.Unsupported, "tool.Call", f.name(), "no service can put it into words")
	}
	source := f.source()
	source.Pages = pages
	words, err := e.Renditions.Words(ctx, e.Owner, source)
	if err != nil {
		if ctx.Err() == nil {
			err = artel.Errorf(artel.Unsupported, "tool.Call", f.name(), "it could not be put into words: %v", err)
		}
		return err
	}
	f.text, f.words = words.Text, &words
	return nil
}

// unreadableDocument reports whether an error is caused by the document itself,
// not by its storage.
func unreadableDocument(err error) bool {
	return errors.Is(err, artel.Unsupported) || errors.Is(err, artel.Invalid) || errors.Is(err, artel.TooLarge)
}

// origin returns the attribute about the origin of a derived text.
func (f target) origin() string {
	switch {
	case f.words != nil && f.derived != nil:
		s := fmt.Sprintf(` derived="%s, recognised on its pages by %s" pages="%d"`, f.derived.MediaType, attribute(string(f.words.Service)), f.derived.Pages)
		if next := rendition.After(rendition.MaxPages, f.derived.Pages); next != "" {
			s += fmt.Sprintf(` cut="true" note="pages %d to %d are missing; get_artifact(ref='%s', pages='%s') reads on"`,
				rendition.MaxPages+1, f.derived.Pages, attribute(f.media().Ref.String()), next)
		}
		return s
	case f.words != nil:
		return fmt.Sprintf(` derived="text/plain, put into words by %s"`, attribute(string(f.words.Service)))
	case f.derived == nil:
		return ""
	}
	s := fmt.Sprintf(` derived="%s, taken out of %s"`, f.derived.MediaType, attribute(f.MediaType))
	if f.derived.Pages > 0 {
		s += fmt.Sprintf(` pages="%d"`, f.derived.Pages)
	}
	if f.derived.Cut {
		s += ` cut="true"`
	}
	if f.doubt != nil {
		s += fmt.Sprintf(` note="%s"`, attribute(f.doubt.Error()))
	}
	return s
}

// readFacts returns the facts with those of the derived text.
func readFacts(f target) map[string]any {
	m := facts(f)
	if d := f.derived; d != nil {
		derived := map[string]any{"media_type": d.MediaType, "pages": d.Pages, "cut": d.Cut}
		if len(d.LeftOut) > 0 {
			derived["left_out"] = d.LeftOut
		}
		m["derived"] = derived
	}
	switch {
	case f.words != nil && f.derived != nil:
		m["derived"] = map[string]any{"media_type": f.derived.MediaType, "pages": f.derived.Pages, "service": f.words.Service, "recognised": true, "cut": f.derived.Pages > rendition.MaxPages}
	case f.words != nil:
		m["derived"] = map[string]any{"media_type": "text/plain", "service": f.words.Service}
	}
	return m
}

// A documents collects what a search did with documents.
type documents struct {
	left       int64 // remaining bytes of documents to open
	matched    []string
	unreadable []string
	unopened   int
}

// searchDerived searches the extracted text of a document.
func (g *grep) searchDerived(ctx context.Context, e *Env, a artel.Artifact) error {
	if !artifact.Derivable(a.MediaInfo) {
		g.skipped++
		return nil
	}
	if f := (target{Artifact: a}); f.streamed(e) {
		if err := g.searchLarge(ctx, e, f); !errors.Is(err, artel.NotFound) {
			return err
		}
		return nil // deleted meanwhile
	}
	size := a.Size
	if a.IsLargeText() {
		size = min(size, artifact.DefaultMaxText) // no more is read
	}
	if size > g.docs.left {
		g.docs.unopened++
		return nil
	}
	g.docs.left -= size
	f := target{Artifact: a}
	d, err := extractText(ctx, e, f)
	switch {
	case artel.CodeOf(err) == artel.CodeArtifactNotFound: // deleted meanwhile
		return nil
	case unreadableDocument(err), errors.Is(err, artel.NotFound): // its bytes are missing
		g.docs.unreadable = append(g.docs.unreadable, err.Error())
		return nil
	case err != nil:
		return err
	}
	text := d.Text
	if recognisable(e, d) { // what was read before; a search calls no service
		source := f.source()
		source.Pages = d.Pages
		if words, err := e.Renditions.CachedOnly().Words(ctx, e.Owner, source); err == nil {
			text = words.Text
		}
	}
	g.searchDocument(ctx, string(a.ID), a.MediaType, text)
	return ctx.Err()
}

// searchDocument searches a text that was extracted from a document.
func (g *grep) searchDocument(ctx context.Context, id, mediaType, text string) {
	before := g.matches
	if g.searchText(ctx, id, text); g.matches > before {
		g.docs.matched = append(g.docs.matched, fmt.Sprintf("%s (%s)", id, mediaType))
	}
}

// notes returns the notes of the result about documents.
func (d documents) notes() string {
	const most = 10 // documents to name
	var b strings.Builder
	list := func(format string, what []string) {
		if n := len(what); n > most {
			what = append(what[:most:most], fmt.Sprintf("and %d more", n-most))
		}
		if len(what) > 0 {
			fmt.Fprintf(&b, format, strings.Join(what, "; "))
		}
	}
	list("[The lines are those of the text taken out of these documents, which cannot be edited: %s]\n", d.matched)
	list("[These documents could not be read: %s]\n", d.unreadable)
	return b.String()
}
