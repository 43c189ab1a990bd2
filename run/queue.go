// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Input that arrives while a run is active is stored as notes and survives a
// restart: queued messages, injections for the next model call, questions of
// permission and of tool servers. So do the states of calls.
const (
	noteQueued      = "queued"      // its id is that of the run
	noteInjection   = "injection"   // body: injection
	noteCompaction  = "compaction"  // body: compactionRequest
	notePermission  = "permission"  // body: permission
	noteGrant       = "grant"       // body: grant; holds on the branch of its message
	noteElicitation = "elicitation" // body: elicitation
	noteCallState   = "call_state"  // body: keptState; never open
	noteSummary     = "summary"     // body: summaryNote; a summary is undone or redone
)

// maxWaiting is the limit of notes of one kind that wait in a conversation.
const maxWaiting = 50

// Waiting is what waits in a conversation, in the order of arrival.
type Waiting struct {
	Queued       []QueuedMessage `json:"queued"`
	Injections   []Injection     `json:"injections"`
	Permissions  []Permission    `json:"permissions"`
	Elicitations []Elicitation   `json:"elicitations"`
	Compaction   bool            `json:"compaction"` // the active run compacts before its next model call
}

// A QueuedMessage waits until the runs before it have ended.
type QueuedMessage struct {
	Run         artel.RunID     `json:"run_id"`
	Message     artel.MessageID `json:"message_id"`
	Text        string          `json:"text"`
	Attachments []artel.Ref     `json:"attachments,omitempty"`
	CreatedAt   time.Time       `json:"created_at"`
}

// queued is the body of its note: an Input without bytes.
type queued struct {
	Text        string           `json:"text"`
	Attachments []string         `json:"attachments,omitempty"`
	Refs        []artel.Ref      `json:"refs,omitempty"`
	Parent      *artel.MessageID `json:"parent,omitempty"`
	Agent       artel.AgentName  `json:"agent,omitempty"`
	Service     artel.ServiceID  `json:"service,omitempty"`
	Clock       Clock            `json:"clock"`
	Title       string           `json:"title,omitempty"`
	Replaces    artel.MessageID  `json:"again,omitempty"`
	Client      bool             `json:"client,omitempty"` // its note has the messages
}

// Waiting returns what waits in a conversation.
func (rs *Runs) Waiting(ctx context.Context, c artel.ConversationID) (Waiting, error) {
	w := Waiting{Queued: []QueuedMessage{}, Injections: []Injection{}, Permissions: []Permission{}, Elicitations: []Elicitation{}}
	err := rs.config.view(ctx, func(tx store.Tx) error {
		list, err := tx.Notes.List(store.NoteQuery{Conversation: c, Open: true})
		if err != nil {
			return err
		}
		for _, n := range list {
			switch n.Kind {
			case noteQueued:
				q, err := bodyOf[queued](n)
				if err != nil {
					return err
				}
				w.Queued = append(w.Queued, QueuedMessage{artel.RunID(n.ID), n.Message, q.Text, q.Refs, n.CreatedAt})
			case noteInjection:
				i, err := bodyOf[injection](n)
				if err != nil {
					return err
				}
				w.Injections = append(w.Injections, i.of(n))
			case notePermission:
				p, err := bodyOf[permission](n)
				if err != nil {
					return err
				}
				w.Permissions = append(w.Permissions, p.of(n))
			case noteElicitation:
				q, err := bodyOf[elicitation](n)
				if err != nil {
					return err
				}
				w.Elicitations = append(w.Elicitations, q.of(n))
			case noteCompaction:
				w.Compaction = true
			}
		}
		return nil
	})
	return w, err
}

func bodyOf[T any](n store.Note) (v T, err error) {
	if err := json.Unmarshal(n.Body, &v); err != nil {
		return v, artel.Errorf(artel.Internal, "run.Runs", n.ID, "a note cannot be read: %w", err)
	}
	return v, nil
}

// putNote writes a note with a body.
func putNote(tx store.Tx, n store.Note, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return artel.Errorf(artel.Internal, "run.Runs", n.ID, "a note cannot be written: %w", err)
	}
	n.Body = raw
	return tx.Notes.Put(n)
}

// busy reports whether a message has to wait for others.
func busy(tx store.Tx, c artel.ConversationID) (bool, error) {
	if _, err := tx.Runs.Active(c); !errors.Is(err, artel.NotFound) {
		return err == nil, err
	}
	list, err := tx.Notes.List(store.NoteQuery{Conversation: c, Kind: noteQueued, Open: true})
	return len(list) > 0, err
}

// enqueue stores a message with its attachments for later. It fails if the
// message could not be started now.
func (x *execution) enqueue(tx store.Tx, c artel.Conversation, message artel.MessageID, in Input, media *StagedMedia) error {
	if err := x.choose(tx, c, in); err != nil {
		return err
	}
	waiting, err := tx.Notes.List(store.NoteQuery{Conversation: c.ID, Kind: noteQueued, Open: true})
	if err != nil {
		return err
	}
	if len(waiting) >= maxWaiting {
		return artel.Errorf(artel.TooLarge, "run.Runs.Send", string(c.ID), "%d messages wait already, which is the most; cancel some or wait", maxWaiting)
	}
	parent, err := parentOf(tx, c, in)
	if err != nil {
		return err
	}
	kept, _, err := x.config.Artifacts.Uploads.StoreTx(tx, c.ID, parent, media.staged)
	if err != nil {
		return err
	}
	attached, err := x.attach(tx, c.ID, parent, in, false)
	if err != nil {
		return err
	}
	brought, err := x.config.Artifacts.Uploads.AddTx(tx, c.ID, in.Uploads)
	if err != nil {
		return err
	}
	if x.client != nil {
		x.client.Messages = x.client.withArtifacts(media, kept)
		if err := x.keepClient(tx, c.ID); err != nil {
			return err
		}
	}
	q := queued{
		Client: x.client != nil,
		Text:   media.Replacer(kept).Replace(in.Text), Attachments: slices.Clone(in.Attachments), Parent: in.Parent, Agent: in.Agent, Service: in.Service,
		Clock: x.clock, Title: in.title, Replaces: in.replaces,
	}
	for _, a := range slices.Concat(brought, kept) {
		q.Attachments = append(q.Attachments, string(a.ID))
	}
	for _, a := range slices.Concat(attached, brought, kept) {
		q.Refs = append(q.Refs, a.MediaPart().Ref)
	}
	x.run.State, x.run.Message, x.run.Agent, x.run.Service = artel.RunQueued, message, x.agent.Name, x.service.ID
	if err := tx.Runs.Create(x.run, store.Lease{Owner: x.owner, Run: x.run.ID, Conversation: c.ID, Until: x.runs.leaseNow()}); err != nil {
		return err
	}
	n := store.Note{
		ID: string(x.run.ID), Conversation: c.ID, Run: x.run.ID, Message: message, Kind: noteQueued, Open: true, CreatedAt: x.run.StartedAt,
	}
	if err := putNote(tx, n, q); err != nil {
		return err
	}
	return x.config.Events.Append(tx, c.ID, artel.Event{Run: x.run.ID, Agent: x.run.Agent}, artel.MessageQueued{Message: message, Service: x.service.ID, Text: q.Text, Attachments: q.Refs})
}

// startNext starts the run of the oldest queued message of a conversation, if no
// run is active. One that cannot be started ends as failed, and the next one is
// tried.
func (rs *Runs) startNext(ctx context.Context, owner artel.Owner, c artel.ConversationID) {
	rs.nextMu.Lock() // so that no message is started twice
	defer rs.nextMu.Unlock()
	for {
		var first store.Note
		job := execution{runs: rs, config: rs.config, owner: owner}
		err := rs.config.Store.View(ctx, owner, func(tx store.Tx) error {
			list, err := tx.Notes.List(store.NoteQuery{Conversation: c, Kind: noteQueued, Open: true})
			if err != nil || len(list) == 0 {
				return err
			}
			if _, err := tx.Runs.Active(c); !errors.Is(err, artel.NotFound) {
				return err // the end of the active run calls startNext
			}
			first = list[0]
			job.run, err = tx.Runs.Get(first.Run)
			return err
		})
		if err == nil && first.ID == "" {
			return
		}
		var active *activeRun
		if err == nil {
			active, err = rs.admit(artel.WithOwner(ctx, owner), job.run.ID)
		}
		if artel.KindOf(err) == artel.Denied {
			if err = rs.discardStopped(ctx, owner, job.run, err); err == nil || errors.Is(err, errNotNext) {
				continue
			}
		}
		if errors.Is(err, errRegistered) {
			return // the caller that has it calls startNext
		}
		if err == nil {
			if err := rs.takeSlot(active, c, true); err != nil {
				rs.unregister(active)
				return // the end of another run of the owner calls startNext
			}
		}
		if err != nil {
			if artel.KindOf(err) != artel.Unavailable { // otherwise the server is stopping, and its next start continues
				rs.config.Logger.ErrorContext(ctx, "a queued message could not be started; the next start of the server tries again", "conversation", c, "err", err)
			}
			return
		}
		err = rs.config.updateFolded(ctx, owner, c, func(tx store.Tx) error { return job.startQueued(tx, first.ID) })
		if err == nil {
			rs.config.notifier().Notify(c)
			go func() {
				defer rs.unregister(active)
				job.execute(active.ctx)
			}()
			return
		}
		rs.unregister(active)
		if errors.Is(err, errNotNext) || artel.CodeOf(err) == CodeRunActive {
			return
		}
		if artel.KindOf(err) == artel.Unavailable { // the message stays in the queue
			rs.config.Logger.WarnContext(ctx, "a queued message could not be started yet", "conversation", c, "err", err)
			return
		}
		job.run.Error = job.explain(artel.RunFailed, err)
		if err := rs.discardQueued(ctx, owner, job.run, artel.RunFailed); err != nil {
			rs.config.Logger.ErrorContext(ctx, "a queued message could not be discarded", "run", job.run.ID, "err", err)
			return
		}
	}
}

// errNotNext reports that a queued message was started or discarded meanwhile.
var errNotNext = errors.New("the queued message was started or discarded")

// startQueued starts the run of a queued message.
func (x *execution) startQueued(tx store.Tx, note string) error {
	n, err := tx.Notes.Get(note)
	if err != nil {
		return err
	}
	if _, err := tx.Runs.Active(n.Conversation); !n.Open || err == nil {
		return errNotNext
	}
	q, err := bodyOf[queued](n)
	if err != nil {
		return err
	}
	c, err := tx.Conversations.Get(n.Conversation)
	if err != nil {
		return err
	}
	in := Input{Text: q.Text, Attachments: q.Attachments, Parent: q.Parent, Agent: q.Agent, Service: q.Service, title: q.Title, replaces: q.Replaces}
	if q.Client {
		if in.Client, err = clientOf(tx, n.Run); err != nil {
			return err
		}
		x.client = in.Client
	}
	x.clock, x.run.State = q.Clock, artel.RunQueued // an earlier attempt of the transaction has changed it
	n.Open = false
	if err := tx.Notes.Put(n); err != nil {
		return err
	}
	return x.start(tx, c, n.Message, in, NewStagedMedia(x.config.Artifacts))
}

// discardQueued ends a queued run.
func (rs *Runs) discardQueued(ctx context.Context, owner artel.Owner, r artel.Run, state artel.RunState) error {
	err := rs.config.Store.Update(ctx, owner, func(tx store.Tx) error {
		n, err := tx.Notes.Get(string(r.ID))
		if err != nil {
			return err
		}
		if !n.Open {
			return errNotNext
		}
		n.Open = false
		if err := tx.Notes.Put(n); err != nil {
			return err
		}
		now := rs.config.Now()
		r.State, r.FinishedAt = state, &now
		if err := tx.Runs.Update(r); err != nil {
			return err
		}
		return rs.config.Events.Append(tx, r.Conversation, artel.Event{Run: r.ID, Agent: r.Agent}, artel.RunFinished{State: state, Error: r.Error})
	})
	if err == nil {
		rs.config.notifier().Notify(r.Conversation)
	}
	return err
}
