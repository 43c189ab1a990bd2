// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// A FitReport is what the chosen model would receive of the selected files.
type FitReport struct {
	Service model.Service
	Misfits []Misfit        // sent as a description
	Forms   []Misfit        // sent in another form
	Better  []model.Service // services that support all of them unchanged
	Full    string          // says that they do not fit into the user's storage
}

// A Misfit is a file that the model does not support.
type Misfit struct {
	app.Fit
	Icon string
}

// Says describes the form sent instead.
func (m Misfit) Says() phrase.Key { return phrase.Key("page.form_" + string(m.Step)) }

// fit reports in which form a model would receive files, given their
// beginnings: a form with "service", and for each file a part "head" with its
// name, followed by its "size" in bytes.
func (ui *handler) fit(w http.ResponseWriter, r *http.Request) {
	var id artel.ServiceID
	var files []run.Candidate
	for part, err := range form.Parts(r.Body, r.Header.Get("Content-Type")) {
		if err == nil {
			err = takeHead(part, &id, &files)
		}
		if err != nil {
			ui.fail(w, r, brokenForm(r, err))
			return
		}
	}
	f := FitReport{Service: ui.app.Models.Default(r.Context())}
	if id == "" {
		id = ui.app.Models.Preferred(r.Context())
	}
	if id == model.AutoService {
		f.Service = automatic(locale(r))
	}
	fits, err := ui.app.Models.Fit(r.Context(), id, files)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	for _, fit := range fits {
		m := Misfit{fit, iconOf(fit.Info.Kind, fit.Info.MediaType)}
		switch fit.Step {
		case artel.StepNative:
		case artel.StepDescribed:
			f.Misfits = append(f.Misfits, m)
		default:
			f.Forms = append(f.Forms, m)
		}
	}
	for _, s := range ui.app.Models.Services(r.Context()) {
		if s.ID == id {
			f.Service = s
		} else if len(f.Misfits) > 0 && len(f.Better) < maxBetter && ui.takesAll(r, s, files) {
			f.Better = append(f.Better, s)
		}
	}
	if f.Full, err = ui.fullWith(r, files); err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.fragments(w, r, http.StatusOK, part{"fitting", f})
}

// fullWith says what the user's storage lacks for files; empty if they fit.
func (ui *handler) fullWith(r *http.Request, files []run.Candidate) (string, error) {
	stored, err := ui.app.Storage.Mine(r.Context())
	size := int64(0)
	for _, f := range files {
		size += f.Size
	}
	if err != nil || stored.Left() < 0 || size <= stored.Left() {
		return "", err
	}
	return locale(r).Say(phrase.PageStorageFull, map[string]any{"Used": phrase.Size(stored.Used), "Limit": phrase.Size(stored.Limit), "Needs": phrase.Size(size)}), nil
}

// maxBetter is how many other models are suggested.
const maxBetter = 3

// takesAll reports whether a callable model supports every file unchanged. The
// demo is never suggested.
func (ui *handler) takesAll(r *http.Request, s model.Service, files []run.Candidate) bool {
	if !s.Callable() || s.Demo() {
		return false
	}
	fits, err := ui.app.Models.Fit(r.Context(), s.ID, files)
	return err == nil && !slices.ContainsFunc(fits, func(f app.Fit) bool { return !f.Native })
}

// maxHead is how many bytes of a file are read.
const maxHead = 64 << 10

func takeHead(part form.Part, id *artel.ServiceID, files *[]run.Candidate) error {
	switch part.Name {
	case "service":
		s, err := field(part)
		*id = artel.ServiceID(s)
		return err
	case "head":
		b, err := io.ReadAll(io.LimitReader(part, maxHead))
		*files = append(*files, run.Candidate{Filename: part.Filename, DeclaredType: part.ContentType, Head: b, Size: int64(len(b))})
		return err
	case "size":
		s, err := field(part)
		if n, e := strconv.ParseInt(s, 10, 64); e == nil && len(*files) > 0 {
			(*files)[len(*files)-1].Size = n
		}
		return err
	}
	return nil
}
