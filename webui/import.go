// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/internal/phrase"
)

// importForm shows the import form.
func (ui *handler) importForm(w http.ResponseWriter, r *http.Request) {
	ui.showImport(w, r, http.StatusOK, "")
}

func (ui *handler) showImport(w http.ResponseWriter, r *http.Request, status int, problem string) {
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageImport, nil)
	ui.show(w, r, status, "import.html", struct {
		frame
		Error string
	}{f, problem})
}

// importConversation imports an uploaded ZIP and redirects to the new conversation, which
// shows the counts.
func (ui *handler) importConversation(w http.ResponseWriter, r *http.Request) {
	made, err := ui.imported(r)
	if err != nil {
		status, text := ui.explain(r, err)
		if wantsJSON(r) {
			writeJSON(w, status, map[string]string{"error": text})
			return
		}
		ui.showImport(w, r, status, text)
		return
	}
	tellImported(w, r, made)
	url := conversationURL(made.Conversation.ID)
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, map[string]string{"url": ui.place.Prefix + url})
		return
	}
	http.Redirect(w, r, url, http.StatusSeeOther)
}

func (ui *handler) imported(r *http.Request) (app.Imported, error) {
	for part, err := range form.Parts(r.Body, r.Header.Get("Content-Type")) {
		if artel.CodeOf(err) == form.CodeMalformed {
			err = brokenForm(r, err)
		}
		if err != nil {
			return app.Imported{}, err
		}
		if part.Name != "zip" || part.Filename == "" {
			continue // browsers send an empty file input as a part without a name
		}
		ctx, release, err := ui.app.Storage.Reserve(r.Context(), r.ContentLength, max(r.ContentLength, 0))
		if err != nil {
			return app.Imported{}, err
		}
		defer release()
		staged, err := ui.app.Imports.Stage(ctx, part)
		if err != nil {
			return app.Imported{}, err
		}
		made, err := ui.app.Imports.Import(ctx, staged)
		_ = staged.Close() // the spool folder is swept
		return made, err
	}
	return app.Imported{}, artel.Errorf(artel.Invalid, "webui", "", "%s", locale(r).Say(phrase.PageNoImport, nil))
}

// The result of an import is shown once, by the page of the new conversation.
// It travels in a cookie, which no other site can set.
const importedCookie = "artel-imported"

func tellImported(w http.ResponseWriter, r *http.Request, made app.Imported) {
	made.Conversation = artel.Conversation{ID: made.Conversation.ID}
	made.NoAgent = artel.AgentName(artel.Shorten(string(made.NoAgent), 80))
	made.NoService = artel.ServiceID(artel.Shorten(string(made.NoService), 80))
	b, err := json.Marshal(made)
	if err != nil {
		return // only the toast is lost
	}
	http.SetCookie(w, &http.Cookie{
		Name: importedCookie, Value: base64.RawURLEncoding.EncodeToString(b), Path: peer.Of(r).Prefix + conversationURL(made.Conversation.ID),
		MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// importedToast is the result of the import that led to this page; nil: none.
func importedToast(w http.ResponseWriter, r *http.Request, id artel.ConversationID) *Toast {
	c, err := r.Cookie(importedCookie)
	if err != nil {
		return nil
	}
	http.SetCookie(w, &http.Cookie{Name: importedCookie, Path: peer.Of(r).Prefix + conversationURL(id), MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	var made app.Imported
	b, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || json.Unmarshal(b, &made) != nil || made.Conversation.ID != id {
		return nil
	}
	l := locale(r)
	texts := []string{l.Say(phrase.PageImported, map[string]any{"Messages": made.Messages, "Artifacts": made.Artifacts, "Versions": made.Versions})}
	for _, name := range []string{string(made.NoAgent), string(made.NoService)} {
		if name != "" {
			texts = append(texts, l.Say(phrase.PageImportedElsewhere, map[string]any{"Name": artel.Visible(name)}))
		}
	}
	if made.SystemAsUser > 0 {
		texts = append(texts, l.Say(phrase.PageImportedSystem, map[string]any{"Count": made.SystemAsUser}))
	}
	return &Toast{ID: "toast-imported", Text: strings.Join(texts, "\n")}
}
