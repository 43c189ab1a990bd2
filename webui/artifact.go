// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/phrase"
	"github.com/artelhq/artel/render"
)

// An ArtifactPage shows one artifact: as it is now, or one of its versions.
type ArtifactPage struct {
	frame
	Conversation artel.Conversation
	ID           artel.ArtifactID
	Number       int  // of the shown version
	Live         bool // it is being worked on
	Media        artel.MediaInfo
	SizeText     string
	Body         template.HTML // of text
	Cut          string        // how much of the text is shown; "": all
	FileURL      string        // of the bytes
	Versions     []artel.Version
}

func (ui *face) artifact(w http.ResponseWriter, r *http.Request) {
	page, err := ui.artifactPage(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.show(w, r, http.StatusOK, "artifact.html", page)
}

func (ui *face) artifactPage(r *http.Request) (ArtifactPage, error) {
	ctx := r.Context()
	var page ArtifactPage
	c, err := artel.ParseConversationID(r.PathValue("cid"))
	if err != nil {
		return page, err
	}
	if page.ID, err = artel.ParseArtifactID(r.PathValue("id")); err != nil {
		return page, artel.Errorf(artel.NotFound, "webui", artel.Shorten(r.PathValue("id"), 80), "there is no such artifact")
	}
	if page.Conversation, err = ui.app.Conversations.Find(ctx, c); err != nil {
		return page, err
	}
	var text *string
	number := 0
	if s := r.URL.Query().Get("v"); s != "" {
		if number, err = strconv.Atoi(s); err != nil || number < 1 {
			return page, artel.Errorf(artel.NotFound, "webui", artel.Shorten(s, 40), "a version is a number from 1")
		}
		var v artel.Version
		v, text, err = ui.app.Artifacts.Version(ctx, c, page.ID, number)
		page.Number, page.Media, page.Title = v.Number, v.MediaInfo, v.Title
	} else {
		var a artel.Artifact
		a, text, err = ui.app.Artifacts.Find(ctx, c, page.ID, "")
		page.Number, page.Media, page.Title, page.Live = a.Version, a.MediaInfo, a.Title, a.Live
	}
	if err != nil {
		return page, err
	}
	title := page.Title
	if page.frame, err = ui.frame(r, c); err != nil {
		return page, err
	}
	page.Title, page.SizeText = title, phrase.Size(page.Media.Size)
	page.FileURL = app.FileURL(artel.Ref{Conversation: c, Artifact: page.ID, Version: number})
	if text != nil {
		shown := *text
		if len(shown) > maxShown {
			shown = strings.ToValidUTF8(shown[:maxShown], "")
			page.Cut = phrase.Size(int64(len(shown)))
		}
		page.Body = bodyOf(c, page.Media, shown)
	}
	page.Versions, err = ui.app.Artifacts.Versions(ctx, c, page.ID)
	return page, err
}

// maxShown is how much of a text, in bytes, a page holds: browsers take many
// seconds to lay out megabytes of it.
const maxShown = 200_000

func bodyOf(c artel.ConversationID, m artel.MediaInfo, text string) template.HTML {
	if m.MediaType == "text/markdown" {
		return markdown(c, text)
	}
	return "<pre>" + render.Text(text) + "</pre>"
}
