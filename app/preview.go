// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"io"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/scrub"
	"github.com/artelhq/artel/store"
)

// A Preview is the request that a message would begin with if it were sent
// now: the same code makes the same bytes. With its clock and seed in
// [Input.Clock], just these are sent.
type Preview struct {
	ContextFacts
	Record pipeline.Record
	Blocks []Block
	// Exact says that sending it gives this RequestHash. It does not where
	// Pending names something that is made only then.
	Exact   bool
	Pending []artel.AttachmentRoute
}

// Preview builds the context of a message that is being written. Nothing is
// stored of it but what is made of its attachments on this machine, and no
// service is asked for anything. What [Runs.Send] would refuse is refused; but
// an empty message, and one beside an active run, can be looked at.
func (rs *Runs) Preview(ctx context.Context, c artel.ConversationID, in Input) (Preview, error) {
	if err := in.check(rs.now()); err != nil && !in.empty() {
		return Preview{}, err
	}
	exact := true
	text, err := scrub.Text(ctx, in.Text, func(ctx context.Context, r io.Reader, h scrub.Hint) (string, error) {
		exact = false // it becomes an artifact, and gets its name, when it is sent
		return (&found{core: rs.core}).keep(ctx, r, h)
	})
	if err != nil {
		return Preview{}, err
	}
	in.Text = text
	p, err := rs.previewing(ctx, c, in)
	if err != nil {
		return Preview{}, err
	}
	built, failed := rs.engine.Preview(ctx, p)
	if failed != nil && ctx.Err() != nil {
		return Preview{}, failed
	}
	call := newCall(p.Agent.Name, built, failed)
	out := Preview{ContextFacts: call.facts, Record: built.Record, Exact: exact && failed == nil}
	for _, d := range built.Record.Decisions {
		if d.Pending {
			out.Exact, out.Pending = false, append(out.Pending, d.AttachmentRoute)
		}
	}
	if failed == nil {
		out.Blocks = previewBlocks(built)
	}
	return out, nil
}

func previewBlocks(b agent.Built) []Block {
	out := make([]Block, len(b.Messages))
	for i, m := range b.Messages {
		added, changed := authors(b.Record, m.ID)
		out[i] = Block{Ingredient: b.Recipe.Messages[i], Parts: m.Parts, Processor: added, Changed: changed}
		if out[i].Parts == nil {
			out[i].Parts = artel.Parts{}
		}
	}
	return out
}

// previewID is the id of a message that is not there yet.
const previewID artel.MessageID = "msg_preview"

// previewing is the input of the run that a message would start.
func (rs *Runs) previewing(ctx context.Context, c artel.ConversationID, in Input) (out agent.Input, err error) {
	x := execution{Runs: rs, owner: ownerOf(ctx), clock: in.clock(), run: artel.Run{Conversation: c}}
	if x.clock.Now.IsZero() {
		x.clock.Now = rs.now()
	}
	err = rs.view(ctx, func(tx store.Tx) error {
		conversation, err := tx.Conversations.Get(c)
		if err != nil {
			return err
		}
		parent, m, err := x.drafted(tx, conversation, in)
		if err != nil {
			return err
		}
		history, err := tx.Messages.Path(c, parent, 0)
		if err != nil {
			return err
		}
		if x.built, err = x.building(tx, x.owner, c, &x.agent, x.service, x.clock); err != nil {
			return err
		}
		if err := x.takeVariables(tx, history); err != nil {
			return err
		}
		x.built.At, x.built.Renditions = parent, rs.renditions.Kept()
		if len(m.Parts) > 0 {
			history = append(history, m)
		}
		out = agent.Input{Run: x.run, Agent: x.agent, Service: x.service, History: history, Context: x.built}
		return nil
	})
	return out, err
}

// drafted fills in who answers, and returns the message as it would be stored.
func (x *execution) drafted(tx store.Tx, c artel.Conversation, in Input) (parent artel.MessageID, m artel.Message, err error) {
	if err := x.choose(c, in); err != nil {
		return "", m, err
	}
	if parent, err = parentOf(tx, c, in); err != nil {
		return "", m, err
	}
	// It has no conversation, as no artifact belongs to it yet.
	m = artel.Message{ID: previewID, Parent: parent, Role: artel.RoleUser}
	if in.Text != "" {
		m.Parts = append(m.Parts, artel.Text{Text: in.Text})
	}
	attached, err := x.attach(tx, c.ID, parent, in.Attachments)
	for _, a := range attached {
		m.Parts = append(m.Parts, a.MediaPart())
	}
	return parent, m, err
}

// choose picks who answers a message.
func (x *execution) choose(c artel.Conversation, in Input) error {
	name := in.Agent
	if name == "" {
		name = c.Agent
	}
	var err error
	if x.agent, err = x.core.agent(name); err != nil {
		return err
	}
	var service model.Service
	if service, err = x.resolve(in.Service, c.Service, x.agent.Service); err != nil {
		return err
	}
	x.service = service.OnWire()
	return nil
}

// parentOf is the message that a new one follows.
func parentOf(tx store.Tx, c artel.Conversation, in Input) (artel.MessageID, error) {
	parent := c.Leaf
	if in.Parent != nil {
		parent = *in.Parent
	}
	if parent == "" {
		return "", nil
	}
	_, err := messageOf(tx, c.ID, parent)
	return parent, err
}
