// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// An Answered is an answer that a model has given to a client of the gateway without a run.
type Answered struct {
	Run     artel.Run       // ID, Conversation, Service, Usage and StartedAt
	Parent  artel.MessageID // that the messages of the client follow; "": none
	Client  Client
	Answer  artel.Parts
	Partial bool // it was cut at the output limit
}

// Keep stores an answer with the messages that it answers, as if a run had given it, and returns
// the run, which has ended. It is the newest message of the conversation if a.Parent was.
func (cs *Clients) Keep(ctx context.Context, a Answered) (artel.Run, error) {
	rs := cs.runs
	if err := a.Client.check(); err != nil {
		return artel.Run{}, err
	}
	f := NewStagedMedia(rs.config.Artifacts)
	client, err := rs.config.stageClient(ctx, &a.Client, f)
	if err != nil {
		return artel.Run{}, err
	}
	answer := slices.Clone(a.Answer)
	for i, p := range answer {
		if t, ok := p.(artel.Text); ok {
			if t.Text, err = scrub.Text(ctx, t.Text, f.Keep); err != nil {
				return artel.Run{}, err
			}
			answer[i] = t
		}
	}
	now := rs.config.Now()
	message, reply := artel.NewMessageID(now), artel.NewMessageID(now)
	x := execution{runs: rs, config: rs.config, owner: artel.OwnerOf(ctx), run: a.Run, agent: agent.Plain()}
	err = rs.config.updateRead(ctx, x.owner, func(tx store.Tx) error {
		x.client = client.copied()
		c, err := tx.Conversations.Get(a.Run.Conversation)
		if err != nil {
			return err
		}
		if a.Parent != "" {
			if _, err := OnBranch(tx, c.ID, a.Parent); err != nil {
				return err
			}
		}
		made, _, err := x.config.Artifacts.Uploads.StoreTx(tx, c.ID, a.Parent, f.staged)
		if err != nil {
			return err
		}
		m, title, event, err := x.addClientMessages(tx, c, a.Parent, message, client.withArtifacts(f, made), false)
		if err != nil {
			return err
		}
		texts := Client{Messages: []model.Message{{Role: artel.RoleAssistant, Parts: answer}}}
		said := artel.Message{
			ID: reply, Conversation: c.ID, Parent: m.ID, Role: artel.RoleAssistant, Parts: texts.withArtifacts(f, made)[0].Parts,
			Agent: x.agent.Name, Run: x.run.ID, CreatedAt: now,
		}
		if err := addMessage(tx, said); err != nil {
			return err
		}
		x.run.Message, x.run.Reply, x.run.Agent, x.run.State, x.run.FinishedAt = m.ID, said.ID, x.agent.Name, artel.RunDone, &now
		if err := tx.Runs.Create(x.run, store.Lease{Owner: x.owner, Run: x.run.ID, Conversation: c.ID, Until: rs.leaseNow()}); err != nil {
			return err
		}
		if err := artifact.BeginRun(tx, x.run); err != nil {
			return err
		}
		if c.Leaf == a.Parent {
			c.Leaf = said.ID
		}
		if c.UpdatedAt = now; c.Title == "" {
			c.Title = title
		}
		if err := tx.Conversations.Update(c); err != nil {
			return err
		}
		return x.config.Events.Append(tx, c.ID, artel.Event{Run: x.run.ID, Agent: x.agent.Name},
			artel.RunStarted{Message: m.ID, Service: x.run.Service}, event, artel.MessageCompleted{Message: said, Partial: a.Partial},
			artel.UsageReported{Service: x.run.Service, Usage: x.run.Usage}, artel.RunFinished{State: artel.RunDone, Reply: said.ID, Usage: x.run.Usage})
	})
	if err == nil {
		rs.config.notifier().Notify(a.Run.Conversation)
	}
	return x.run, err
}
