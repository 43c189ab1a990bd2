// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"io"
	"net/http"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/form"
)

// A Fitting tells what the chosen model would get of the chosen files.
type Fitting struct {
	Service app.Service
	Misfits []Misfit
	Better  []app.Service // those that take all of them as they are
}

// A Misfit is a file that the model cannot take, and what it gets instead.
type Misfit struct {
	app.Fit
	Icon string
}

// fit answers what a model would get of files, by their beginnings: a form of
// "service", and for each file a part "head" with its name, followed by its
// whole "size" in bytes.
func (ui *face) fit(w http.ResponseWriter, r *http.Request) {
	var id artel.ServiceID
	var files []app.Candidate
	for part, err := range form.Parts(r.Body, r.Header.Get("Content-Type")) {
		if err == nil {
			err = takeHead(part, &id, &files)
		}
		if err != nil {
			ui.fail(w, r, brokenForm(r, err))
			return
		}
	}
	f := Fitting{Service: ui.app.Models.Default(r.Context())}
	if id == "" {
		id = f.Service.ID
	}
	fits, err := ui.app.Models.Fit(r.Context(), id, files)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	takes := map[artel.ServiceID]int{}
	for i, fit := range fits {
		if fit.Native {
			continue
		}
		f.Misfits = append(f.Misfits, Misfit{fit, iconOf(fit.Info.Kind, fit.Info.MediaType)})
		for _, s := range fits[i].Suggested {
			takes[s]++
		}
	}
	for _, s := range ui.app.Models.Services(r.Context()) {
		if s.ID == id {
			f.Service = s
		}
		if s.Callable() && len(f.Misfits) > 0 && takes[s.ID] == len(f.Misfits) {
			f.Better = append(f.Better, s)
		}
	}
	ui.fragments(w, r, http.StatusOK, part{"fitting", f})
}

// maxHead is how much of a file, in bytes, is looked at.
const maxHead = 64 << 10

func takeHead(part form.Part, id *artel.ServiceID, files *[]app.Candidate) error {
	switch part.Name {
	case "service":
		s, err := field(part)
		*id = artel.ServiceID(s)
		return err
	case "head":
		b, err := io.ReadAll(io.LimitReader(part, maxHead))
		*files = append(*files, app.Candidate{Filename: part.Filename, DeclaredType: part.ContentType, Head: b, Size: int64(len(b))})
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
