// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"io"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// Previews build requests that are not sent.
type Previews struct{ runs *Runs }

// NewPreviews returns the previews of what rs would send.
func NewPreviews(rs *Runs) *Previews { return &Previews{rs} }

// A Preview is the request that a message would begin with if it were sent
// now: the same code makes the same bytes. With its clock and seed in
// [Input.Clock], just these are sent.
type Preview struct {
	record.ContextFacts
	Record pipeline.Record
	Blocks []record.Block
	// Exact says that sending it gives this RequestHash. It does not where
	// Pending names something that is made only then.
	Exact   bool
	Pending []artel.AttachmentRoute
}

// Build builds the context of a message that is being written. Nothing is
// stored of it but what is made of its attachments on this machine, and no
// service is asked for anything. What [Runs.Send] would refuse is refused; but
// an empty message, and one beside an active run, can be looked at.
//
// files are those that somebody has chosen and not yet sent. Of one that is
// longer than its Head only that is known, so it is among Pending. An empty c
// is a conversation that would begin with the message.
func (p *Previews) Build(ctx context.Context, c artel.ConversationID, in Input, files ...Candidate) (Preview, error) {
	out, _, err := p.runs.preview(ctx, c, in, 0, files)
	return out, err
}

// glanced is how many messages [Previews.Estimate] reads first; each time that they
// do not fill the window, it reads so many times as many, and in the end all.
const glanced, glancedMore, glancedMost = 500, 4, 8000

// Estimate is [Previews.Build] for somebody who is typing: of a long conversation
// it reads only the end that surely fills the window, so that it costs about the
// same at any length. It is never Exact, and of what is dropped it names what it
// has read.
func (p *Previews) Estimate(ctx context.Context, c artel.ConversationID, in Input, files ...Candidate) (Preview, error) {
	for limit := glanced; ; limit *= glancedMore {
		if limit > glancedMost {
			limit = 0
		}
		out, oldest, err := p.runs.preview(ctx, c, in, limit, files)
		if out.Exact = false; err != nil || oldest == "" || out.Tokens.Budget > 0 && slices.Contains(out.Tokens.Dropped, string(oldest)) {
			return out, err
		}
		if out.Tokens.Budget == 0 {
			limit = glancedMost
		}
	}
}

// preview makes a preview of the last limit messages; 0: of all. oldest is the
// first of them where there may be others before it.
func (rs *Runs) preview(ctx context.Context, c artel.ConversationID, in Input, limit int, files []Candidate) (out Preview, oldest artel.MessageID, err error) {
	if err := in.check(rs.config.Now()); err != nil && !in.empty() {
		return out, "", err
	}
	if len(files)+len(in.Attachments) > maxAttachments {
		return out, "", artel.Errorf(artel.TooLarge, "app.Runs.Preview", "files", "a message takes at most %d", maxAttachments)
	}
	exact := len(files) == 0
	text, err := scrub.Text(ctx, in.Text, func(ctx context.Context, r io.Reader, h scrub.Hint) (string, error) {
		exact = false // it becomes an artifact, and gets its name, when it is sent
		return NewStagedMedia(rs.config.Artifacts).Keep(ctx, r, h)
	})
	if err != nil {
		return out, "", err
	}
	in.Text = text
	p, chosen, err := rs.previewing(ctx, c, in, limit, files)
	if err != nil {
		return out, "", err
	}
	built, failed := rs.config.Engine.Preview(ctx, p)
	if failed != nil && ctx.Err() != nil {
		return out, "", failed
	}
	call := record.New(p.Agent.Name, built, failed)
	out = Preview{ContextFacts: call.Facts, Record: built.Record, Exact: exact && failed == nil}
	for _, d := range built.Record.Decisions {
		if d.Pending || chosen.partly(d.Ref) {
			out.Exact, out.Pending = false, append(out.Pending, d.AttachmentRoute)
		}
	}
	if failed == nil {
		out.Blocks = previewBlocks(built)
	}
	if limit > 0 && len(p.History) >= limit {
		oldest = p.History[0].ID
	}
	return out, oldest, nil
}

func previewBlocks(b agent.Built) []record.Block {
	out := make([]record.Block, len(b.Messages))
	for i, m := range b.Messages {
		added, changed := record.Authors(b.Record, m.ID)
		out[i] = record.Block{ManifestMessage: b.Manifest.Messages[i], Parts: m.Parts, Processor: added, Changed: changed}
		if out[i].Parts == nil {
			out[i].Parts = artel.Parts{}
		}
	}
	return out
}

// PreviewID is the id that the message of a preview has.
const PreviewID artel.MessageID = "msg_preview"

// previewing is the input of the run that a message would start.
func (rs *Runs) previewing(ctx context.Context, c artel.ConversationID, in Input, limit int, files []Candidate) (out agent.Input, chosen *chosenFiles, err error) {
	x := execution{runs: rs, owner: artel.OwnerOf(ctx), clock: in.clock(), run: artel.Run{Conversation: c}}
	if x.clock.Now.IsZero() {
		x.clock.Now = rs.config.Now()
	}
	err = rs.config.view(ctx, func(tx store.Tx) error {
		var conversation artel.Conversation
		var history []artel.Message
		if c != "" {
			if conversation, err = tx.Conversations.Get(c); err != nil {
				return err
			}
		}
		parent, m, err := x.drafted(tx, conversation, in)
		if err != nil {
			return err
		}
		if parent != "" {
			if history, err = tx.Messages.Path(c, parent, limit); err != nil {
				return err
			}
		}
		if chosen, err = rs.config.choosing(ctx, tx, c, files); err != nil {
			return err
		}
		m.Parts = append(m.Parts, chosen.parts...)
		if x.selection != nil { // the selector is not asked for a preview
			suited := m
			suited.Conversation = c
			if err := x.shortlist(tx, suited); err != nil {
				return err
			}
		}
		if x.built, err = x.runs.config.building(tx, x.owner, c, &x.agent, x.service, x.clock); err != nil {
			return err
		}
		if c != "" {
			if err := x.takeVariables(tx, history); err != nil {
				return err
			}
		}
		x.built.At, x.built.Renditions = parent, rs.config.Renditions.CachedOnly()
		if len(files) > 0 || c == "" {
			chosen.Sources, x.built.Sources = x.built.Sources, chosen
		}
		if len(m.Parts) > 0 {
			history = append(history, m)
		}
		out = agent.Input{
			Run: x.run, Agent: x.agent, Service: x.service, Tools: x.runs.config.Tools.Box(), History: history,
			Context: x.built, Subagents: x.team(tx), Permissions: x.runs.config.Permissions,
		}
		return nil
	})
	return out, chosen, err
}

// drafted fills in who answers, and returns the message as it would be stored.
func (x *execution) drafted(tx store.Tx, c artel.Conversation, in Input) (parent artel.MessageID, m artel.Message, err error) {
	if err := x.choose(tx, c, in); err != nil {
		return "", m, err
	}
	if parent, err = parentOf(tx, c, in); err != nil {
		return "", m, err
	}
	// It has no conversation, as no artifact belongs to it yet.
	m = artel.Message{ID: PreviewID, Parent: parent, Role: artel.RoleUser}
	if in.Text != "" {
		m.Parts = append(m.Parts, artel.Text{Text: in.Text})
	}
	attached, err := x.attach(tx, c.ID, parent, in, false)
	for _, a := range attached {
		m.Parts = append(m.Parts, a.MediaPart())
	}
	return parent, m, err
}

// choose picks who answers a message.
func (x *execution) choose(tx store.Tx, c artel.Conversation, in Input) error {
	name := in.Agent
	if name == "" {
		name = c.Agent
	}
	var err error
	if x.agent, err = x.runs.config.Settings.Agent(tx, name); err != nil {
		return err
	}
	x.selection = nil
	service, auto, err := x.runs.config.chooser().Resolve(in.Service, c.Service, x.agent.Service)
	if err != nil {
		return err
	}
	x.service = service.OnWire()
	if auto {
		x.selection = &selection{}
	}
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
	_, err := MessageOf(tx, c.ID, parent)
	return parent, err
}
