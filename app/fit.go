// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/run"
)

// A Fit is the form in which a model would get a [run.Candidate].
type Fit struct {
	Filename  string            `json:"filename"`
	Info      artel.MediaInfo   `json:"info"`
	Native    bool              `json:"native"` // its content goes: the file itself, its text, or the form that Step names
	Step      artel.Step        `json:"step"`
	Reason    artel.Reason      `json:"reason"`              // why not; of text, that it is text
	Need      artel.Capability  `json:"need,omitempty"`      // the capability that is missing
	Text      string            `json:"text,omitempty"`      // the description that the model gets; empty: it gets the content
	Suggested []artel.ServiceID `json:"suggested,omitempty"` // services that take it
}

// Fit returns the form in which the service would get each file, in order, if
// they were sent now; nothing is stored and no service is called. "" is the
// default service, and [model.AutoService] the one that would be chosen for the files
// by rule. An unknown service, and a non-empty file without its first bytes, are
// of kind Invalid.
func (m *Models) Fit(ctx context.Context, service artel.ServiceID, files []run.Candidate) ([]Fit, error) {
	s := m.core.services.Default()
	if service == "" {
		service = m.Preferred(ctx)
	}
	switch {
	case m.core.chooser().IsAuto(service):
		all := make([]artel.Media, len(files))
		for i, f := range files {
			info := f.Info()
			all[i] = artel.Media{Kind: info.Kind, MediaType: info.MediaType}
		}
		if list := model.Suitable(m.core.chooser().Automatic(), all, nil); len(list) > 0 {
			s = list[0]
		}
	case service != "":
		found, ok := m.core.services.Lookup(service)
		if !ok {
			return nil, m.core.chooser().Unknown(service)
		}
		s = found
	}
	target := run.TargetOf(m.core.services, m.core.renditions, s)
	target.Forms = target.Forms.With(artel.StepExtracted, artel.StepTranscribed) // as the context is built
	fits := make([]Fit, 0, len(files))
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, artel.Errorf(artel.Canceled, "app.Models.Fit", "", "%w", err)
		}
		if len(f.Head) == 0 && f.Size > 0 {
			return nil, artel.Errorf(artel.Invalid, "app.Models.Fit", artel.Shorten(f.Filename, 80), "nobody can say what it is without its first bytes; give up to %d", run.MaxHead)
		}
		fits = append(fits, m.fit(f, target))
	}
	return fits, nil
}

func (m *Models) fit(f run.Candidate, t route.Target) Fit {
	info := f.Info()
	r := route.Decide(info, t)
	out := Fit{
		Filename: f.Filename, Info: info, Native: r.Step == artel.StepNative, Step: r.Step,
		Reason: r.Reason, Need: r.Need, Suggested: r.Suggested,
	}
	if r.Step == artel.StepDescribed {
		out.Text = route.Describe(artel.Media{
			Ref: artel.Ref{Artifact: artifact.UploadID(f.Filename)}, MediaType: info.MediaType, Kind: info.Kind,
			Filename: f.Filename, Size: info.Size,
		}, r, m.core.locale)
	}
	return out
}
