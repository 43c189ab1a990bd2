// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/phrase"
)

// A Draft is what the composer shows.
type Draft struct {
	Action string // where the form goes
	Text   string // kept from a try that failed
	Error  string // why it failed
}

// begin starts a conversation with its first message.
func (ui *face) begin(w http.ResponseWriter, r *http.Request) {
	c, err := ui.app.Conversations.Create(r.Context(), app.NewConversation{})
	if err != nil {
		ui.refuse(w, r, Draft{Action: "/c"}, err)
		return
	}
	m, err := ui.take(r, c.ID)
	if err == nil {
		_, err = ui.app.Runs.Send(r.Context(), c.ID, m)
	}
	if err != nil {
		// Nobody has seen the conversation; nothing of it is kept.
		if e := ui.app.Conversations.Delete(r.Context(), c.ID); e != nil {
			ui.o.Log.Warn("an empty conversation stays", "conversation", c.ID, "err", e)
		}
		ui.refuse(w, r, Draft{Action: "/c", Text: m.Text}, err)
		return
	}
	ui.sent(w, r, c.ID)
}

// send adds a message to a conversation.
func (ui *face) send(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	if err == nil {
		_, err = ui.app.Conversations.Find(r.Context(), id)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	m, err := ui.take(r, id)
	if err == nil {
		_, err = ui.app.Runs.Send(r.Context(), id, m)
	}
	if err != nil {
		ui.refuse(w, r, Draft{Action: "/c/" + string(id), Text: m.Text}, err)
		return
	}
	ui.sent(w, r, id)
}

func (ui *face) sent(w http.ResponseWriter, r *http.Request, id artel.ConversationID) {
	url := "/c/" + string(id)
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, map[string]string{"url": url})
		return
	}
	http.Redirect(w, r, url, http.StatusSeeOther)
}

// refuse shows the composer again with what was written and why it failed.
func (ui *face) refuse(w http.ResponseWriter, r *http.Request, d Draft, err error) {
	status, text := ui.explain(r, err)
	d.Error = text
	if wantsJSON(r) {
		writeJSON(w, status, map[string]string{"error": text})
		return
	}
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = "Artel"
	ui.show(w, r, status, "home.html", struct {
		frame
		Draft
	}{f, d})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

const maxField = 1 << 20 // bytes of one text field

// take reads the form as a stream: files go to the store while they arrive.
// They become artifacts together, or not at all.
func (ui *face) take(r *http.Request, id artel.ConversationID) (app.Input, error) {
	var in app.Input
	form, err := r.MultipartReader()
	if err != nil {
		return in, ui.broken(r, err)
	}
	var staged []app.Staged
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return in, ui.broken(r, err)
		}
		switch part.FormName() {
		case "text":
			in.Text, err = field(part)
		case "service":
			var s string
			s, err = field(part)
			in.Service = artel.ServiceID(s)
		case "file":
			if part.FileName() == "" {
				continue // an empty file input is sent as one without a name
			}
			var s app.Staged
			body := &arriving{Reader: part}
			s, err = ui.app.Artifacts.Stage(r.Context(), id, app.Upload{
				Body: body, Filename: part.FileName(), DeclaredType: part.Header.Get("Content-Type"),
			})
			if body.err != nil {
				err = ui.broken(r, body.err) // the sender's failure, not the store's
			}
			staged = append(staged, s)
		}
		if err != nil {
			return in, err
		}
	}
	if len(staged) == 0 {
		return in, nil
	}
	added, err := ui.app.Artifacts.Add(r.Context(), id, staged)
	for _, a := range added {
		in.Attachments = append(in.Attachments, string(a.ID))
	}
	return in, err
}

// arriving remembers why a body could not be read.
type arriving struct {
	io.Reader
	err error
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		a.err = err
	}
	return n, err
}

func field(part *multipart.Part) (string, error) {
	b, err := io.ReadAll(io.LimitReader(part, maxField+1))
	switch {
	case err != nil:
		return "", artel.Errorf(artel.Invalid, "webui", part.FormName(), "the form broke off: %w", err)
	case len(b) > maxField:
		return "", artel.Errorf(artel.TooLarge, "webui", part.FormName(), "more than %d bytes", maxField)
	case !utf8.Valid(b):
		return "", artel.Errorf(artel.Invalid, "webui", part.FormName(), "not UTF-8")
	}
	return string(b), nil
}

func (ui *face) broken(r *http.Request, err error) error {
	return artel.Errorf(artel.Invalid, "webui", "", "%s (%w)", locale(r).Say(phrase.PageBrokenForm, nil), err)
}
