// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"context"
	"errors"
	"html/template"
	"regexp"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
)

// tabText shows the text extracted from a document, as models read it.
const tabText = "text"

// showFile fills in a file that is not text: in a form that browsers display,
// and for documents also as the extracted text.
func (v view) showFile(ctx context.Context, out *Viewer, number int, tab string) error {
	f := File{Name: out.Title, Icon: out.Icon, About: typeName(v.locale, out.Media.MediaType) + " · " + out.SizeText}
	f.Download = template.URL(out.FileURL)            //nolint:gosec // made of a ref
	out.Value = v.fileValue(out.Media, f.Download, f) // with the card where there is nothing to see
	shown := out.Value.Kind != valueFile
	if shown {
		out.Value.File, out.Value.Thumb = File{}, "" // the panel shows both itself
	}
	if out.Media.Kind != artel.KindDocument {
		return nil
	}
	if shown {
		tabs := []string{tabPreview, tabText}
		out.Tabs = v.tabs(out.ID, number, tabs, max(0, slices.Index(tabs, tab)))
		if tab != tabText {
			return nil
		}
	}
	d, err := v.app.Artifacts.Text(ctx, v.conversation, out.ID, number, "")
	switch {
	case err == nil && out.Media.IsLargeText():
		text, cut := shorten(d.Text)
		out.Cut = cut
		if out.Value = v.plain(text); out.Media.MediaType == "text/csv" || out.Media.MediaType == "text/tab-separated-values" {
			out.Value = v.text(text, "table", "", "")
		}
		return nil
	case err == nil:
		text, cut := shorten(commentLine.ReplaceAllString(d.Text, "*$1*"))
		out.Value, out.Cut = Value{}, cut
		out.Blocks, out.Extracted = v.blocks("viewer-body", text), phrase.PageExtracted
		if d.Doubt != "" { // models do not get it if they can get anything better
			out.Extracted = phrase.PageExtractedDoubtful
		}
		return nil
	case errors.Is(err, artel.Unsupported), errors.Is(err, artel.Invalid), errors.Is(err, artel.TooLarge):
		if out.Problem = err.Error(); shown {
			out.Value = Value{}
		}
		return nil
	}
	return err
}

// commentLine is a comment line in extracted text: a position in the document, or an
// omission.
var commentLine = regexp.MustCompile(`(?m)^<!-- (.+?) -->$`)

// tabs are the views of a version.
func (v view) tabs(id artel.ArtifactID, number int, all []string, current int) []Tab {
	self := artifactURL(v.conversation, artel.Ref{Artifact: id, Version: number})
	join := "?"
	if number > 0 {
		join = "&"
	}
	out := make([]Tab, len(all))
	for i, t := range all {
		out[i] = Tab{tabName(t), self + join + "view=" + t, i == current}
	}
	return out
}

func tabName(tab string) phrase.Key {
	switch tab {
	case tabCode:
		return phrase.PageCode
	case tabPlain:
		return phrase.PagePlain
	case tabDiff:
		return phrase.PageChanges
	case tabText:
		return phrase.PageText
	}
	return phrase.PagePreview
}
