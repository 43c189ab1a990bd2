// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/route"
)

// A Candidate is a file that somebody may send: what is known of it before its
// bytes are.
type Candidate struct {
	Filename     string
	DeclaredType string // as a browser states it; empty: nothing is claimed
	Size         int64  // bytes of the whole file
	Head         []byte // its first bytes; more than [MaxHead] are not looked at
}

// MaxHead is how much of a [Candidate] is looked at, in bytes.
const MaxHead = 64 << 10

// A Fit says what a model would get of a [Candidate].
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

// Fit says what the service would get of each file, in their order, if they
// were sent now; nothing is kept and nobody is asked. "" is the default
// service, and [AutoService] the one that would be chosen for the files by rule;
// one that is not there, and a file of some size without its first bytes, are of
// kind Invalid.
//
// A run decides by the same rule. It knows all of the bytes, though: a file
// that is text as far as [MaxHead] and binary after it turns out as binary, and
// one that is damaged, so that no other form of it can be made, is described.
func (m *Models) Fit(ctx context.Context, service artel.ServiceID, files []Candidate) ([]Fit, error) {
	s := m.core.services.Default()
	if service == "" {
		service = m.Preferred(ctx)
	}
	switch {
	case m.core.isAuto(service):
		all := make([]artel.Media, len(files))
		for i, f := range files {
			info := f.info()
			all[i] = artel.Media{Kind: info.Kind, MediaType: info.MediaType}
		}
		if list := suitable(m.core.automatic(), all, nil); len(list) > 0 {
			s = list[0]
		}
	case service != "":
		found, ok := m.core.services.Lookup(service)
		if !ok {
			return nil, m.core.noService(service)
		}
		s = found
	}
	target := m.core.onWire(s)
	target.Forms = target.Forms.With(artel.StepExtracted, artel.StepTranscribed) // as the context is built
	fits := make([]Fit, 0, len(files))
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, artel.Errorf(artel.Canceled, "app.Models.Fit", "", "%w", err)
		}
		if len(f.Head) == 0 && f.Size > 0 {
			return nil, artel.Errorf(artel.Invalid, "app.Models.Fit", artel.Shorten(f.Filename, 80), "nobody can say what it is without its first bytes; give up to %d", MaxHead)
		}
		fits = append(fits, m.fit(f, target))
	}
	return fits, nil
}

// info is what the file is by its first bytes.
func (f Candidate) info() artel.MediaInfo {
	info := media.Detect(f.Head[:min(len(f.Head), MaxHead)], media.Hint{DeclaredType: f.DeclaredType, Filename: f.Filename})
	info.Size = max(f.Size, int64(len(f.Head)))
	return info
}

func (m *Models) fit(f Candidate, t route.Target) Fit {
	info := f.info()
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

// onWire is what a run on s routes to, and what tools in it do.
func (k *core) onWire(s model.Service) route.Target {
	return route.Target{Service: s.ID, Capabilities: s.OnWire().Capabilities, Suggest: k.services.Suggest, Forms: k.forms()}
}

// forms is what is made without being asked for, and who could make more.
func (k *core) forms() route.Forms {
	f := route.Forms{Converted: true}
	if id, most, ok := k.renditions.Transcriber(); ok {
		f.Transcriber, f.MaxRecording = id, most
	}
	f.Captioner, _ = k.renditions.Captioner()
	return f
}
