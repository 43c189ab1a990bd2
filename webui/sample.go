// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"io/fs"
	"mime"
	"net/http"
	"path"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/run"
)

// A Sample is a file to try the page with.
type Sample struct {
	Name, Icon, About string
	Thumb             string // of a picture
	content           []byte
}

// readSamples reads the files of o.Samples, which are small. Unreadable ones
// are skipped.
func readSamples(o Options) []Sample {
	if o.Samples == nil {
		return nil
	}
	entries, err := fs.ReadDir(o.Samples, ".")
	if err != nil {
		o.Log.Warn("the sample files cannot be listed", "err", err)
	}
	var out []Sample
	for _, e := range entries {
		b, err := fs.ReadFile(o.Samples, e.Name())
		if err != nil {
			o.Log.Warn("a sample file cannot be read", "name", e.Name(), "err", err)
			continue
		}
		s := Sample{Name: e.Name(), Icon: "file-text", About: phrase.Size(int64(len(b))), content: b}
		switch path.Ext(s.Name) {
		case ".png", ".jpg", ".webp", ".gif":
			s.Icon, s.Thumb = "image", "/sample/"+s.Name
		}
		out = append(out, s)
	}
	return out
}

// sample serves the bytes of a sample file.
func (ui *handler) sample(w http.ResponseWriter, r *http.Request) {
	for _, s := range ui.samples {
		if s.Name == r.PathValue("name") {
			w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(s.Name)))
			w.Header().Set("Cache-Control", "private, max-age=3600")
			_, _ = w.Write(s.content)
			return
		}
	}
	ui.fail(w, r, artel.Errorf(artel.NotFound, "webui", r.PathValue("name"), "there is no such sample"))
}

// try starts a conversation with the sample files and a message in the reader's
// language.
func (ui *handler) try(w http.ResponseWriter, r *http.Request) {
	c, err := ui.app.Conversations.Create(r.Context(), app.NewConversation{})
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	in := run.Input{Text: locale(r).Say(phrase.PageTryText, nil)}
	for _, s := range ui.samples {
		staged, e := ui.app.Artifacts.Stage(r.Context(), c.ID, app.Upload{Body: bytes.NewReader(s.content), Filename: s.Name})
		if e != nil {
			err = e
			break
		}
		in.Uploads = append(in.Uploads, staged)
	}
	if err == nil {
		_, err = ui.app.Runs.Send(r.Context(), c.ID, in)
	}
	if err != nil {
		ui.abandon(r, c.ID)
		ui.fail(w, r, err)
		return
	}
	redirect(w, r, conversationURL(c.ID))
}
