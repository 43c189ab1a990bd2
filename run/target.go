// SPDX-License-Identifier: Apache-2.0

package run

import (
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/model/route"
)

// TargetOf returns what a run on s routes to.
func TargetOf(services *model.Registry, r *rendition.Maker, s model.Service) route.Target {
	return route.Target{Service: s.ID, Capabilities: s.OnWire().Capabilities, Suggest: services.Suggest, Forms: FormsOf(r)}
}

// FormsOf returns the forms of media that are made unasked, and the services
// that could make more.
func FormsOf(r *rendition.Maker) route.Forms {
	f := route.Forms{Converted: true, Pages: r.Pages() != nil}
	if id, most, ok := r.Transcriber(); ok {
		f.Transcriber, f.MaxRecording = id, most
	}
	f.Captioner, _ = r.Captioner()
	return f
}
