// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/route"
)

// PreparedMedia is what takes the place of one piece of media in a request that no
// build has made.
type PreparedMedia struct {
	Media    *artel.Media // with the digest of the bytes to send; nil: Text takes its place
	Text     string
	Decision Decision
}

// PrepareMedia decides the form of each piece of media of a request that somebody
// else has written, as a build does, and makes it: as it is, converted, as its
// text, or described. media are in the order of the request, whose text has
// about so many bytes; where the service takes no more of them, the earlier
// ones are described. Of in, what speaks of the service and of media counts.
// The error is of kind Canceled.
func (r *Registry) PrepareMedia(ctx context.Context, in Input, media []artel.Media, text int64) ([]PreparedMedia, error) {
	d := &Draft{
		Input:       in,
		target:      route.Target{Service: in.Service.ID, Capabilities: in.Service.Capabilities, Suggest: in.Suggest, Forms: forms(in)},
		counter:     newMessageCounter(r.counter, in.Service, ""),
		sources:     make(map[artel.Ref]source),
		sentDigests: make(map[artel.Ref]artel.Digest),
	}
	if err := d.transcribeAll(ctx, media, attaching{}, nil); err != nil {
		return nil, err
	}
	d.limitForImageCount(media, nil)
	room := newMediaBudget(d)
	room.bytes -= text
	out := make([]PreparedMedia, len(media))
	for i := len(media) - 1; i >= 0; i-- {
		s, err := d.prepare(ctx, "", media[i], preference{attaching: attaching{InlineLimit: defaultInline}}, room)
		if err != nil {
			return nil, err
		}
		out[i].Decision = s.decision
		switch p := s.parts[len(s.parts)-1].(type) {
		case artel.Media:
			p.Ref.Digest = d.sentDigests[p.Ref]
			out[i].Media = &p
		case artel.Text:
			out[i].Text = p.Text
		}
	}
	return out, nil
}

// Count estimates the tokens of a request in the vocabulary of its service:
// text is counted, and media cost what the service's dialect reckons.
func (r *Registry) Count(req *model.Request) (int, error) {
	m := newMessageCounter(r.counter, req.Service, "")
	n := m.tools(req.Tools)
	for _, x := range req.Messages {
		n += m.parts(x.Parts)
	}
	return n, m.err
}
