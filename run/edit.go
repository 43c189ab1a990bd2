// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// An Edit is what takes the place of a message on a branch of its own.
type Edit struct {
	Text        *string   // nil: that of the message
	Attachments *[]string // nil: those of the message
	Agent       artel.AgentName
	Service     artel.ServiceID
	Queue       bool // wait where a run is at work, in the place of a refusal
}

// Edit sends a message in the place of one that a person wrote, on a branch
// that begins where that one did. What it had attached is there too, as it was
// then. Of a message that a run wrote, it is the message which that run answers
// that is sent again: with an empty Edit, the model is asked for another
// answer. Errors are those of [Runs.Send].
func (rs *Runs) Edit(ctx context.Context, c artel.ConversationID, id artel.MessageID, e Edit) (artel.Run, error) {
	var m artel.Message
	err := rs.config.view(ctx, func(tx store.Tx) (err error) {
		m, err = answered(tx, c, id)
		return err
	})
	if err != nil {
		return artel.Run{}, err
	}
	in := Input{Parent: &m.Parent, Agent: e.Agent, Service: e.Service, Queue: e.Queue, again: m.ID}
	if e.Text != nil {
		in.Text = *e.Text
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case artel.Text:
			if e.Text == nil {
				in.Text += p.Text
			}
		case artel.Media:
			if e.Attachments == nil && !p.Ref.IsBlob() {
				in.Attachments = append(in.Attachments, p.Ref.String())
			}
		}
	}
	if e.Attachments != nil {
		in.Attachments = *e.Attachments
	}
	return rs.Send(ctx, c, in)
}

// answered is the message of a person that id is, or that the run answers which
// wrote id.
func answered(tx store.Tx, c artel.ConversationID, id artel.MessageID) (artel.Message, error) {
	m, err := MessageOf(tx, c, id)
	if err != nil || m.Role == artel.RoleUser {
		return m, err
	}
	if m.Run != "" {
		r, err := tx.Runs.Get(m.Run)
		if err == nil {
			return MessageOf(tx, c, r.Message)
		}
		if !errors.Is(err, artel.NotFound) {
			return m, err
		}
	}
	for m.Role != artel.RoleUser { // it was imported, without its run
		if m.Parent == "" {
			return m, artel.Errorf(artel.Invalid, "app.Runs.Edit", string(id), "no message of a person comes before it")
		}
		if m, err = MessageOf(tx, c, m.Parent); err != nil {
			return m, err
		}
	}
	return m, nil
}

// again finds an attachment on the branch of the message that a new one takes
// the place of. With make, that branch's version becomes one which the new
// message can claim.
func (x *execution) again(tx store.Tx, c artel.ConversationID, ref artel.Ref, from artel.MessageID, make bool) (artel.Artifact, error) {
	a, err := tx.Artifacts.Head(c, ref.Artifact, from)
	if err == nil && a.Deleted && ref.Version == 0 {
		err = artel.NotFound
	}
	if err == nil && ref.Version > 0 && ref.Version != a.Version {
		a, err = pinned(tx, a, ref.Version, from)
	}
	if err != nil || !make {
		return a, err
	}
	return x.runs.config.Artifacts.RestoreTx(tx, c, a.ID, a.Version)
}
