// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A conversation is a tree. Who edits a message or asks for another answer
// makes a branch beside it: a new message under the same parent. Artifacts,
// variables, permissions and summaries are those of the branch, so that none of
// them knows of what happened beside it.

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
	err := rs.core.view(ctx, func(tx store.Tx) (err error) {
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
	m, err := messageOf(tx, c, id)
	if err != nil || m.Role == artel.RoleUser {
		return m, err
	}
	if m.Run != "" {
		r, err := tx.Runs.Get(m.Run)
		if err == nil {
			return messageOf(tx, c, r.Message)
		}
		if !errors.Is(err, artel.NotFound) {
			return m, err
		}
	}
	for m.Role != artel.RoleUser { // it was imported, without its run
		if m.Parent == "" {
			return m, artel.Errorf(artel.Invalid, "app.Runs.Edit", string(id), "no message of a person comes before it")
		}
		if m, err = messageOf(tx, c, m.Parent); err != nil {
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
	return x.runs.core.artifacts.RestoreTx(tx, c, a.ID, a.Version)
}

// A BranchMessage is one message of a branch, with what stands beside it.
type BranchMessage struct {
	artel.Message
	// Siblings are the messages under the same parent, the oldest first, this
	// one among them. Where there are several, branches begin here.
	Siblings []artel.MessageID `json:"siblings"`
}

// Turns returns the messages of the branch that ends in leaf ("": the active
// one), root first, with their siblings: of them the last limit, or all where
// limit is 0.
func (cs *Conversations) Turns(ctx context.Context, id artel.ConversationID, leaf artel.MessageID, limit int) ([]BranchMessage, error) {
	turns := []BranchMessage{}
	err := cs.core.view(ctx, func(tx store.Tx) error {
		c, err := tx.Conversations.Get(id)
		if err != nil {
			return err
		}
		if leaf == "" {
			leaf = c.Leaf
		}
		path, err := tx.Messages.Path(id, leaf, limit)
		if err != nil {
			return err
		}
		parents := make([]artel.MessageID, len(path))
		for i, m := range path {
			parents[i] = m.Parent
		}
		children, err := tx.Messages.Children(id, parents...)
		for _, m := range path {
			turns = append(turns, BranchMessage{m, children[m.Parent]})
		}
		return err
	})
	return turns, err
}

// childrenOf returns the messages under each message, the oldest first, and the
// newest message of all.
func childrenOf(tx store.Tx, c artel.ConversationID) (children map[artel.MessageID][]artel.MessageID, newest map[artel.MessageID]int, err error) {
	children, newest = map[artel.MessageID][]artel.MessageID{}, map[artel.MessageID]int{}
	for cursor, n := "", 0; ; {
		list, next, err := tx.Messages.List(c, store.Page{Cursor: cursor, Limit: 500})
		if err != nil {
			return nil, nil, err
		}
		for _, m := range list {
			n++
			if m.Within != "" {
				continue // of a subagent, and on no branch
			}
			children[m.Parent] = append(children[m.Parent], m.ID)
			newest[m.ID] = n
		}
		if cursor = next; cursor == "" {
			return children, newest, nil
		}
	}
}

// Switch makes the branch active that goes through a message: to its end, and
// where that branches again, to the newest message. A run at work goes on where
// it is.
func (cs *Conversations) Switch(ctx context.Context, id artel.ConversationID, through artel.MessageID) (c artel.Conversation, err error) {
	err = cs.core.update(ctx, func(tx store.Tx) error {
		if c, err = tx.Conversations.Get(id); err != nil {
			return err
		}
		if _, err := messageOf(tx, id, through); err != nil {
			return err
		}
		children, newest, err := childrenOf(tx, id)
		if err != nil {
			return err
		}
		leaf := through
		for open := []artel.MessageID{through}; len(open) > 0; {
			m := open[len(open)-1]
			open = append(open[:len(open)-1], children[m]...)
			if newest[m] > newest[leaf] {
				leaf = m
			}
		}
		if c.Leaf == leaf {
			return nil
		}
		c.Leaf = leaf
		if err := tx.Conversations.Update(c); err != nil {
			return err
		}
		return appendEvents(cs.core, tx, id, "", "", artel.BranchSwitched{Leaf: leaf})
	})
	if err == nil {
		cs.core.log.Notifier().Notify(id)
	}
	return c, err
}

// Mute leaves a message out of what models are sent, or takes it in again. Of a
// summary, what it stands for comes back. The message itself stays.
func (cs *Conversations) Mute(ctx context.Context, id artel.ConversationID, message artel.MessageID, muted bool) (m artel.Message, err error) {
	err = cs.core.update(ctx, func(tx store.Tx) error {
		if m, err = messageOf(tx, id, message); err != nil || m.Muted == muted {
			return err
		}
		if err := tx.Messages.SetMuted(message, muted); err != nil {
			return err
		}
		m.Muted = muted
		return appendEvents(cs.core, tx, id, m.Run, m.Agent, artel.MessageMuted{Message: message, Muted: muted})
	})
	if err == nil {
		cs.core.log.Notifier().Notify(id)
	}
	return m, err
}
