// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"io"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// Previews build requests that are not sent.
type Previews struct{ runs *Runs }

// NewPreviews returns the previews of what rs would send.
func NewPreviews(rs *Runs) *Previews { return &Previews{rs} }

// A Preview is the first request that a message would lead to if it were sent
// now. If the message is sent with the preview's clock and seed in [Input.Clock],
// the same bytes are sent.
type Preview struct {
	record.ContextFacts
	Record pipeline.Record
	Blocks []record.Block
	// Exact says that sending the message gives this RequestHash. It is false if
	// Pending has attachments, whose text or form is made only then.
	Exact   bool
	Pending []artel.AttachmentRoute
}

// Build builds the context of a draft. It calls no service, and stores nothing
// but renditions that this machine makes of attachments. It refuses what
// [Runs.Send] would refuse, except for an empty message and an active run.
//
// files are chosen and not yet uploaded. One that is longer than its Head is among
// Pending. An empty c is a conversation that would begin with the message.
func (p *Previews) Build(ctx context.Context, c artel.ConversationID, in Input, files ...Candidate) (Preview, error) {
	out, _, err := p.runs.preview(ctx, c, in, 0, files)
	return out, err
}

// firstEstimate is how many messages Estimate reads first. While they do not fill the window,
// it reads estimateFactor times as many, and beyond mostEstimated all.
const firstEstimate, estimateFactor, mostEstimated = 500, 4, 8000

// Estimate is a cheaper [Previews.Build], for every key press: of a long
// conversation it reads only the end that fills the window, so that its cost does
// not grow with the length. It is never Exact, and names only those dropped
// messages that it has read.
func (p *Previews) Estimate(ctx context.Context, c artel.ConversationID, in Input, files ...Candidate) (Preview, error) {
	for limit := firstEstimate; ; limit *= estimateFactor {
		if limit > mostEstimated {
			limit = 0
		}
		out, oldest, err := p.runs.preview(ctx, c, in, limit, files)
		if out.Exact = false; err != nil || oldest == "" || out.Tokens.Budget > 0 && slices.Contains(out.Tokens.Dropped, string(oldest)) {
			return out, err
		}
		if out.Tokens.Budget == 0 {
			limit = mostEstimated
		}
	}
}

// preview makes a preview of the last limit messages; 0: of all. oldest is the
// first message that was read, if there may be older ones.
func (rs *Runs) preview(ctx context.Context, c artel.ConversationID, in Input, limit int, files []Candidate) (out Preview, oldest artel.MessageID, err error) {
	if err := in.check(rs.config.Now()); err != nil && !in.empty() {
		return out, "", err
	}
	if len(files)+len(in.Attachments) > maxAttachments {
		return out, "", artel.Errorf(artel.TooLarge, "run.Previews.Build", "files", "a message takes at most %d", maxAttachments)
	}
	exact := len(files) == 0
	text, err := scrub.Text(ctx, in.Text, func(ctx context.Context, r io.Reader, h scrub.Hint) (string, error) {
		exact = false // it becomes an artifact with a name when it is sent
		return NewStagedMedia(rs.config.Artifacts).Keep(ctx, r, h)
	})
	if err != nil {
		return out, "", err
	}
	in.Text = text
	p, chosen, err := rs.previewInput(ctx, c, in, limit, files)
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
		if d.Pending || chosen.isPartial(d.Ref) {
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

// PreviewID is the id of the message in a preview.
const PreviewID artel.MessageID = "msg_preview"

// previewInput returns the input of the run that a message would start.
func (rs *Runs) previewInput(ctx context.Context, c artel.ConversationID, in Input, limit int, files []Candidate) (out agent.Input, chosen *candidateFiles, err error) {
	x := execution{runs: rs, config: rs.config, owner: artel.OwnerOf(ctx), clock: in.clock(), run: artel.Run{Conversation: c}}
	x.branches.inView = true
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
		if chosen, err = rs.config.stageCandidates(ctx, tx, c, files); err != nil {
			return err
		}
		m.Parts = append(m.Parts, chosen.parts...)
		if x.selection != nil { // a preview does not call the selector
			suited := m
			suited.Conversation = c
			if err := x.shortlist(tx, suited); err != nil {
				return err
			}
		}
		if x.buildInput, err = x.config.buildInput(tx, x.owner, c, &x.agent, x.service, x.clock); err != nil {
			return err
		}
		if c != "" {
			if err := x.loadVariables(tx, history); err != nil {
				return err
			}
		}
		x.buildInput.At, x.buildInput.Renditions = parent, rs.config.Renditions.CachedOnly()
		if len(files) > 0 || c == "" {
			chosen.Sources, x.buildInput.Sources = x.buildInput.Sources, chosen
		}
		if len(m.Parts) > 0 {
			history = append(history, m)
		}
		skills, err := x.config.skillsOf(tx, x.owner, x.agent)
		if err != nil {
			return err
		}
		out = agent.Input{
			Env: tool.Env{Skills: skills},
			Run: x.run, Agent: x.agent, Service: x.service, Tools: x.config.Tools.Set(x.owner), History: history,
			Context: x.buildInput, Subagents: x.subagentsOf(tx), Permissions: x.config.Permissions,
		}
		return nil
	})
	return out, chosen, err
}

// drafted chooses agent and service, and returns the message that would be stored.
func (x *execution) drafted(tx store.Tx, c artel.Conversation, in Input) (parent artel.MessageID, m artel.Message, err error) {
	if err := x.choose(tx, c, in); err != nil {
		return "", m, err
	}
	if parent, err = parentOf(tx, c, in); err != nil {
		return "", m, err
	}
	// Without a conversation, as it has no artifacts of its own yet.
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

// choose picks the agent and the service that answer a message.
func (x *execution) choose(tx store.Tx, c artel.Conversation, in Input) error {
	name := in.Agent
	if name == "" {
		name = c.Agent
	}
	var err error
	if x.client != nil && (name == "" || name == agent.PlainName) {
		x.agent = agent.Plain()
	} else if x.agent, err = x.config.Settings.Agent(tx, name); err != nil {
		return err
	}
	x.selection = nil
	service, auto, err := x.config.chooser().Resolve(in.Service, c.Service, x.agent.Service)
	if err != nil {
		return err
	}
	x.service = service.OnWire()
	if auto {
		x.selection = &selection{}
	}
	return nil
}

// parentOf returns the message that a new one follows.
func parentOf(tx store.Tx, c artel.Conversation, in Input) (artel.MessageID, error) {
	parent := c.Leaf
	if in.Parent != nil {
		parent = *in.Parent
	}
	if parent == "" {
		return "", nil
	}
	_, err := OnBranch(tx, c.ID, parent)
	return parent, err
}
