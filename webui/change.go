// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/phrase"
)

// An Editing is a text artifact in the editor.
type Editing struct {
	Text      string
	Base      int    // version that the edit is based on
	Problem   string // why it was not saved; "": not tried
	Conflicts int    // merge conflicts for the user to resolve
	Marked    bool   // Text was not saved because of the marks of a conflict in it
}

// maxEdited is the longest editable text, in bytes.
const maxEdited = maxField

// target parses the artifact and the fields of a form. The field "base" is the
// version that the user has seen.
func (ui *handler) target(r *http.Request) (app.ArtifactAt, map[string]string, error) {
	var at app.ArtifactAt
	var err error
	if at.Conversation, err = artel.ParseConversationID(r.PathValue("cid")); err != nil {
		return at, nil, err
	}
	if at.ID, err = artel.ParseArtifactID(r.PathValue("id")); err != nil {
		return at, nil, noArtifact(r)
	}
	fields := map[string]string{}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		for part, err := range form.Parts(r.Body, r.Header.Get("Content-Type")) {
			var s string
			if err == nil {
				s, err = field(part)
			}
			if err != nil {
				return at, nil, err
			}
			fields[part.Name] = s
		}
	} else {
		for _, name := range []string{"base", "version", "title", "markers"} {
			fields[name] = r.PostFormValue(name)
		}
	}
	at.IfVersion, _ = strconv.Atoi(fields["base"])
	return at, fields, nil
}

func noArtifact(r *http.Request) error {
	return artel.Errorf(artel.NotFound, "webui", artel.Shorten(r.PathValue("id"), 80), "there is no such artifact")
}

// showPanel renders the panel for a URL of this conversation, and further parts.
// Without script it redirects the browser there.
func (ui *handler) showPanel(w http.ResponseWriter, r *http.Request, at app.ArtifactAt, address string, more ...part) {
	if !wantsFragment(r) {
		http.Redirect(w, r, address, http.StatusSeeOther)
		return
	}
	p, err := ui.panelAt(r, at, address)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.fragments(w, r, http.StatusOK, append([]part{{"panel", p}}, more...)...)
}

// panelAt builds the panel for another URL.
func (ui *handler) panelAt(r *http.Request, at app.ArtifactAt, address string) (Panel, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Panel{}, artel.Errorf(artel.Internal, "webui", address, "%w", err)
	}
	other := r.Clone(r.Context())
	other.URL = u
	if !strings.Contains(u.Path, "/a/") {
		other.SetPathValue("id", "")
	}
	return ui.panel(other, at.Conversation)
}

// saveArtifact saves an edited text. On a conflict it merges the newer version
// into the text and shows the editor again.
func (ui *handler) saveArtifact(w http.ResponseWriter, r *http.Request) {
	at, fields, err := ui.target(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	text := fields["text"]
	if _, before, e := ui.app.Versions.State(r.Context(), at.Conversation, at.ID, at.IfVersion, artifact.WithLive); e == nil && before != nil {
		text = withLineEnds(text, *before)
	}
	address := artifactURL(at.Conversation, artel.Ref{Artifact: at.ID})
	_, err = ui.app.Edits.Save(r.Context(), at, artifact.Draft{Text: &text, KeepMarkers: fields["markers"] == "keep"})
	if err == nil {
		ui.showPanel(w, r, at, address)
		return
	}
	status, problem := ui.explain(r, err)
	e := Editing{Text: text, Base: at.IfVersion, Problem: problem}
	if stale, ok := errors.AsType[*artifact.Stale](err); ok {
		e.Problem = locale(r).Say(phrase.PageEditStale, nil)
		if stale.Merged != nil {
			e.Text, e.Base, e.Conflicts = stale.Merged.Text, stale.Current.Version, len(stale.Merged.Conflicts)
			e.Problem = locale(r).Say(phrase.PageEditMerged, map[string]any{"Count": e.Conflicts})
			if e.Conflicts == 0 {
				e.Problem = locale(r).Say(phrase.PageEditMergedClean, nil)
			}
		}
	}
	if marks, ok := errors.AsType[*artifact.Markers](err); ok {
		e.Problem, e.Conflicts, e.Marked = locale(r).Say(phrase.PageEditMarkers, map[string]any{"Line": marks.Line}), marks.Count, true
	}
	p, err := ui.panelAt(r, at, address+"?view="+tabEdit)
	if err != nil || p.Viewer.Editing == nil {
		ui.fail(w, r, err)
		return
	}
	p.Viewer.Editing = &e
	if wantsFragment(r) {
		ui.fragments(w, r, status, part{"panel", p})
		return
	}
	t, err := ui.thread(r, at.Conversation)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	t.Panel = p
	ui.show(w, r, status, "conversation.html", t)
}

// withLineEnds converts the line ends of text to the most frequent kind of
// like. Browsers send every line end as CR LF.
func withLineEnds(text, like string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if windows := strings.Count(like, "\r\n"); windows > 0 && 2*windows >= strings.Count(like, "\n") {
		return strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

func (ui *handler) renameArtifact(w http.ResponseWriter, r *http.Request) {
	at, fields, err := ui.target(r)
	if err == nil {
		at.IfVersion = 0 // a title does not depend on the version
		_, err = ui.app.Edits.Rename(r.Context(), at, fields["title"])
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.showPanel(w, r, at, artifactURL(at.Conversation, artel.Ref{Artifact: at.ID}))
}

func (ui *handler) deleteArtifact(w http.ResponseWriter, r *http.Request) {
	at, _, err := ui.target(r)
	var gone artel.Artifact
	if err == nil {
		gone, err = ui.app.Edits.Delete(r.Context(), at)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.showPanel(w, r, at, conversationURL(at.Conversation)+"/a", part{"toast", Toast{
		ID: toastOf(at), Text: locale(r).Say(phrase.PageArtifactDeleted, map[string]any{"Title": artel.Shorten(gone.Title, 60)}),
		Undo: artifactURL(at.Conversation, artel.Ref{Artifact: at.ID}) + "/restore",
	}})
}

func toastOf(at app.ArtifactAt) string { return "toast-a-" + string(at.ID) }

// restoreArtifact makes an older version the newest or, without a version,
// undoes a deletion.
func (ui *handler) restoreArtifact(w http.ResponseWriter, r *http.Request) {
	at, fields, err := ui.target(r)
	number := 0
	if err == nil && fields["version"] != "" {
		if number, err = strconv.Atoi(fields["version"]); err != nil || number < 1 {
			err = artel.Errorf(artel.Invalid, "webui", artel.Shorten(fields["version"], 40), "a version is a number from 1")
		}
	}
	if err == nil {
		at.IfVersion = 0
		_, err = ui.app.Edits.Restore(r.Context(), at, number)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.showPanel(w, r, at, artifactURL(at.Conversation, artel.Ref{Artifact: at.ID}), part{"gone", toastOf(at)})
}
