// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// An Edit replaces a message on a new branch.
type Edit struct {
	Text        *string   // nil: that of the message
	Attachments *[]string // nil: those of the message
	Agent       artel.AgentName
	Service     artel.ServiceID
	Queue       bool // wait while a run is active, instead of being refused
}

// Edit sends a message in place of a user's message, as its sibling, with the
// attachments that the old one had. If id is a message of a run, the message that
// the run answers is replaced: an empty Edit asks the model for another answer.
// Errors are those of [Runs.Send].
func (rs *Runs) Edit(ctx context.Context, c artel.ConversationID, id artel.MessageID, e Edit) (artel.Run, error) {
	var m artel.Message
	err := rs.config.view(ctx, func(tx store.Tx) (err error) {
		m, err = answered(tx, c, id)
		return err
	})
	if err != nil {
		return artel.Run{}, err
	}
	in := Input{Parent: &m.Parent, Agent: e.Agent, Service: e.Service, Queue: e.Queue, replaces: m.ID}
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

// answered returns the user's message id, or the one answered by the run that
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
			return m, artel.Errorf(artel.Invalid, "run.Runs.Edit", string(id), "no message of a user comes before it")
		}
		if m, err = MessageOf(tx, c, m.Parent); err != nil {
			return m, err
		}
	}
	return m, nil
}

// attachedBefore finds an attachment on the branch of the message from, which the
// new one replaces. With make, it restores that version so that the new message
// can claim it.
func (x *execution) attachedBefore(tx store.Tx, c artel.ConversationID, ref artel.Ref, from artel.MessageID, make bool) (artel.Artifact, error) {
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
	return x.config.Artifacts.RestoreTx(tx, c, a.ID, a.Version)
}
