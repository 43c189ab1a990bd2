// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
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

// Edit replaces a message by a sibling on a new branch. A user's message is sent
// with the new text, and with the attachments that the old one had. With a text,
// an answer of the model is replaced by that text: no run is started, and the
// result has no ID, only the new Message. Without a text, the model is asked for
// another answer to the message that the run of id answers.
//
// Summaries, results of tools, answers that call tools and the messages of
// subagents cannot be edited; the error is of kind Invalid. Other errors are
// those of [Runs.Send].
func (rs *Runs) Edit(ctx context.Context, c artel.ConversationID, id artel.MessageID, e Edit) (artel.Run, error) {
	var m artel.Message
	answer := false
	err := rs.config.view(ctx, func(tx store.Tx) (err error) {
		if m, err = OnBranch(tx, c, id); err != nil {
			return err
		}
		if err = editable(m, e.Text != nil || e.Attachments != nil); err != nil {
			return err
		}
		if answer = m.Role == artel.RoleAssistant && (e.Text != nil || e.Attachments != nil); !answer {
			m, err = answered(tx, c, id)
		}
		return err
	})
	if err != nil {
		return artel.Run{}, err
	}
	if answer {
		return rs.editAnswer(ctx, m, e)
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

// editable refuses messages that cannot be replaced. changed: by another text.
func editable(m artel.Message, changed bool) error {
	refuse := func(format string, args ...any) error {
		return artel.Errorf(artel.Invalid, "run.Runs.Edit", string(m.ID), format, args...)
	}
	switch {
	case m.Summary:
		return refuse("a summary cannot be edited; mute it to send the messages that it covers, or compact again")
	case !changed:
		return nil
	case m.Role == artel.RoleTool:
		return refuse("the result of a tool cannot be edited; edit the answer after it, or mute it")
	case m.Role == artel.RoleAssistant && artel.HasCalls(m.Parts):
		return refuse("an answer that calls tools cannot be edited, because their results belong to it; edit the final answer, or the question")
	case m.Role != artel.RoleUser && m.Role != artel.RoleAssistant:
		return refuse("a message of the role %s cannot be edited", m.Role)
	}
	return nil
}

// editAnswer stores an answer with another text beside m, and activates its
// branch. Attachments of m stay; reasoning, which led to the old text, does not.
func (rs *Runs) editAnswer(ctx context.Context, m artel.Message, e Edit) (artel.Run, error) {
	const op = "run.Runs.Edit"
	switch {
	case e.Attachments != nil:
		return artel.Run{}, artel.Errorf(artel.Invalid, op, "attachments", "those of an answer cannot be changed; leave them out")
	case strings.TrimSpace(*e.Text) == "":
		return artel.Run{}, artel.Errorf(artel.Invalid, op, "text", "an answer needs text; to leave the answer out, mute it")
	case len(*e.Text) > maxMessageText:
		return artel.Run{}, artel.Errorf(artel.TooLarge, op, "text", "a message holds at most %d bytes; write longer text into an artifact", maxMessageText)
	}
	in, media, err := rs.config.scrubbed(ctx, Input{Text: *e.Text})
	if err != nil {
		return artel.Run{}, err
	}
	now := rs.config.Now()
	edited := artel.Message{
		ID: artel.NewMessageID(now), Conversation: m.Conversation, Parent: m.Parent, Role: m.Role, Agent: m.Agent, Edited: true, CreatedAt: now,
	}
	err = rs.config.update(ctx, func(tx store.Tx) error {
		c, err := tx.Conversations.Get(m.Conversation)
		if err != nil {
			return err
		}
		kept, _, err := rs.config.Artifacts.Uploads.StoreTx(tx, c.ID, m.Parent, media.staged)
		if err != nil {
			return err
		}
		edited.Parts = artel.Parts{artel.Text{Text: media.Replacer(kept).Replace(in.Text)}}
		for _, p := range m.Parts {
			if _, ok := p.(artel.Media); ok {
				edited.Parts = append(edited.Parts, p)
			}
		}
		ids := make([]artel.ArtifactID, len(kept))
		for i, a := range kept {
			ids[i] = a.ID
			edited.Parts = append(edited.Parts, a.MediaPart())
		}
		if err := tx.Messages.Create(edited); err != nil {
			return err
		}
		if err := tx.Versions.Claim(c.ID, ids, edited.ID); err != nil {
			return err
		}
		c.Leaf, c.UpdatedAt = edited.ID, now
		if err := tx.Conversations.Update(c); err != nil {
			return err
		}
		return rs.config.Events.Append(tx, c.ID, artel.Event{Agent: m.Agent}, artel.MessageEdited{Replaces: m.ID, Message: edited}, artel.BranchSwitched{Leaf: edited.ID})
	})
	if err != nil {
		return artel.Run{}, err
	}
	rs.config.notifier().Notify(m.Conversation)
	return artel.Run{Conversation: m.Conversation, Message: edited.ID, Agent: m.Agent, State: artel.RunDone, StartedAt: now, FinishedAt: &now}, nil
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
	for m.Role != artel.RoleUser || m.Summary { // it was imported or edited, and has no run
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
		a, err = x.pinned(tx, a, ref.Version, from)
	}
	if err != nil || !make {
		return a, err
	}
	which := artel.Ref{Artifact: a.ID, Version: a.Version}
	content, ok := x.restorable[which] // versions do not change
	if !ok {
		return a, &unreadError{func(tx store.Tx) error {
			content, err := x.config.Artifacts.Uploads.ReadTx(tx, c, a.ID, a.Version)
			if err == nil {
				if x.restorable == nil {
					x.restorable = map[artel.Ref]artifact.Restorable{}
				}
				x.restorable[which] = content
			}
			return err
		}}
	}
	return x.config.Artifacts.Uploads.RestoreTx(tx, c, content)
}
