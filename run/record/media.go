// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// CarriedMedia is how some bytes were sent to a model's API. Bytes that occur more
// than once in a request are listed once.
type CarriedMedia struct {
	Artifact  artel.Ref       `json:"artifact,omitzero"` // whose bytes they are, or of which they were made; empty: of none
	Digest    artel.Digest    `json:"digest"`            // of the bytes themselves
	MediaType string          `json:"media_type"`
	Size      int64           `json:"size"`
	Transport model.Transport `json:"transport" enum:"bytes,url,file_id,media_id" doc:"inside the request, or by a name: an address of this server, the id of a file that the service holds, or the id that it has met them by"`
	Name      string          `json:"name,omitempty" doc:"by which they went; of an address without what is signed"`
}

// carriedIn are the media of a request, as they go until it is known that they
// go by names. Where nothing goes over a wire there are none.
func carriedIn(r *model.Request) (out []CarriedMedia) {
	if r == nil || r.Service.Dialect == model.Demo {
		return nil
	}
	met := map[artel.Digest]bool{}
	for _, m := range r.Messages {
		for _, p := range artel.MediaOf(m.Parts) {
			if p.Ref.Digest == "" || met[p.Ref.Digest] {
				continue
			}
			met[p.Ref.Digest] = true
			of := p.Ref
			of.Digest = ""
			out = append(out, CarriedMedia{of, p.Ref.Digest, p.MediaType, p.Size, model.ByBytes, ""})
		}
	}
	return out
}

// WithNames returns media with the names that a call has for them.
func WithNames(media []CarriedMedia, names map[artel.Digest]model.Name) []CarriedMedia {
	out := slices.Clone(media)
	for i := range out {
		out[i].Transport, out[i].Name = model.ByBytes, ""
		if n, ok := names[out[i].Digest]; ok {
			out[i].Transport, out[i].Name = n.By, masked(n)
		}
	}
	return out
}

// masked returns a name without secrets: the query of an address, which has the
// signature, becomes stars of the same length, so that the request keeps its
// length.
func masked(n model.Name) string {
	at := strings.IndexByte(n.Text, '?')
	if n.By != model.ByURL || at < 0 {
		return n.Text
	}
	return n.Text[:at+1] + strings.Repeat("*", len(n.Text)-at-1)
}

// NamesOf are the names that media went by; nil: none did.
func NamesOf(media []CarriedMedia) (out map[artel.Digest]model.Name) {
	for _, m := range media {
		if m.Name != "" {
			if out == nil {
				out = map[artel.Digest]model.Name{}
			}
			out[m.Digest] = model.Name{By: m.Transport, Text: m.Name}
		}
	}
	return out
}
