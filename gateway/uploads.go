// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// withUploads returns text with the names of uploaded media instead of their
// payloads.
func (x *exchange) withUploads(text string, r *model.Request) string {
	if len(r.Names) == 0 {
		return text
	}
	types := map[artel.Digest]artel.Media{}
	for _, m := range mediaOf(r) {
		types[m.Ref.Digest] = m
	}
	var edits []provider.Edit
	l := x.scan(text)
	for _, m := range l.Media {
		found, ok := x.extraction.Find(m.Value)
		name := r.Names[found.Digest]
		if !ok || name.Text == "" || m.Result >= 0 && l.Split {
			continue // results of Gemini's functions hold bytes only
		}
		if part, ok := x.d.NameMedia(m.Part.Of(text), types[found.Digest], name); ok {
			edits = append(edits, provider.Edit{Span: m.Part, With: part})
		}
	}
	return provider.ApplyEdits(text, edits)
}

// mediaOf returns the media of a request, in order.
func mediaOf(r *model.Request) []artel.Media {
	var out []artel.Media
	for _, message := range r.Messages {
		for _, part := range message.Parts {
			switch p := part.(type) {
			case artel.Media:
				out = append(out, p)
			case artel.ToolResult:
				for _, part := range p.Parts {
					if m, ok := part.(artel.Media); ok {
						out = append(out, m)
					}
				}
			}
		}
	}
	return out
}

// noteNames returns a function that records which media of r are sent by name.
func (x *exchange) noteNames(r *model.Request) func(map[artel.Digest]model.Name) {
	return func(names map[artel.Digest]model.Name) {
		var all []Change
		seen := map[artel.Digest]bool{}
		for _, m := range mediaOf(r) {
			name, ok := names[m.Ref.Digest]
			if !ok || seen[m.Ref.Digest] {
				continue
			}
			seen[m.Ref.Digest] = true
			did := DidName
			switch name.By {
			case model.ByURL:
				did = DidAddress
			case model.ByMediaID:
				did = DidRemind
			}
			all = append(all, Change{Did: did, Ref: m.Ref, MediaType: m.MediaType, Service: r.Service.ID})
		}
		x.namedMu.Lock()
		x.named = all
		x.namedMu.Unlock()
	}
}

func (x *exchange) clearNamed() {
	x.namedMu.Lock()
	x.named = nil
	x.namedMu.Unlock()
}
