// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"fmt"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/rendition"
)

// getPages returns pages of a document as pictures, each after a text with its number,
// or what a service reads on them if the model sees none and the document has no text.
func getPages(ctx context.Context, e *Env, f target, pages string) (Result, error) {
	first, last, err := rendition.ParsePages(pages)
	switch {
	case err != nil:
		return Failed("get_artifact: %v", err), nil
	case e.Renditions == nil || !e.Renditions.Pages().Of(f.MediaType):
		return Failed("get_artifact: pages are shown of PDFs only, and %s is %s; read_artifact gives its text", f.name(), f.MediaType), nil
	case !e.Target.Capabilities.Takes(artel.CanVision, "image/png"):
		if d, err := extractText(ctx, e, f); err == nil && recognisable(e, d) {
			f.derived = &d
			return f.recognisePages(ctx, e, first, last)
		}
		return Failed("get_artifact: this model sees no pictures; read_artifact gives the text of %s", f.name()), nil
	}
	all, err := e.Renditions.Pages().Pictures(ctx, e.Owner, f.source(), first, last, e.Target.Capabilities.PictureForm())
	if err != nil {
		return failure(err)
	}
	return f.pages(first, all), nil
}

// recognisePages returns the text that a service reads on pages.
func (f target) recognisePages(ctx context.Context, e *Env, first, last int) (Result, error) {
	source := f.source()
	source.Pages = f.derived.Pages
	words, err := e.Renditions.Pages().Words(ctx, e.Owner, source, first, last)
	if err != nil {
		return failure(err)
	}
	f.words = &words
	metadata := readFacts(f)
	metadata["pages"] = []int{first, min(last, f.derived.Pages)}
	return Result{Content: fmt.Sprintf("%s: pages recognised by %s\n\n%s", f.name(), words.Service, words.Text), Metadata: metadata}, nil
}

// pages returns pages from first on as pictures, each after a text with its number.
func (f target) pages(first int, all []rendition.Rendition) Result {
	var parts artel.Parts
	for i, p := range all {
		parts = append(parts, artel.Text{Text: fmt.Sprintf("%s, page %d", f.name(), first+i)}, p.Media())
	}
	last := first + len(all) - 1
	shown := fmt.Sprintf("page %d", first)
	if last > first {
		shown = fmt.Sprintf("pages %d to %d", first, last)
	}
	if f.derived != nil && last < f.derived.Pages {
		shown += fmt.Sprintf(" of %d", f.derived.Pages)
	}
	metadata := readFacts(f)
	metadata["pages"] = []int{first, last}
	return Result{Content: fmt.Sprintf("%s: %s as pictures", f.name(), shown), Parts: parts, Metadata: metadata}
}

// source returns the bytes of f for a maker of renditions.
func (f target) source() rendition.Source {
	return rendition.Source{Digest: f.Digest, MediaInfo: f.MediaInfo}
}
