// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/store"
)

// An Injection is a message to an active run that its model has not received
// yet.
type Injection struct {
	ID        artel.InjectionID `json:"id"`
	Run       artel.RunID       `json:"run_id"`
	Text      string            `json:"text"`
	CreatedAt time.Time         `json:"created_at"`
}

// injection is the body of its note: the message that it becomes.
type injection struct {
	Text  string             `json:"text"`
	Parts artel.Parts        `json:"parts"`
	Media []artel.ArtifactID `json:"media,omitempty"`
}

func (i injection) of(n store.Note) Injection {
	return Injection{artel.InjectionID(n.ID), n.Run, i.Text, n.CreatedAt}
}

// CodeRunNotActive is the error code of operations that need an active run.
const CodeRunNotActive = "run_not_active"

func notActive(op string, r artel.Run) error {
	return &artel.Error{
		Op: op, Subject: string(r.ID), Kind: artel.Conflict, Code: CodeRunNotActive,
		Err: errors.New("the run does not work on an answer; its state is " + string(r.State)),
	}
}

// Inject sends a message to an active run. Its next model call receives it, or
// an additional one that is made before the run ends. If the run fails before,
// the message is stored at the end of its branch. A run that is not active is of
// kind Conflict, code "run_not_active".
func (rs *Runs) Inject(ctx context.Context, id artel.RunID, text string) (Injection, error) {
	const op = "run.Runs.Inject"
	if strings.TrimSpace(text) == "" {
		return Injection{}, artel.Errorf(artel.Invalid, op, "text", "is empty")
	}
	if len(text) > maxMessageText {
		return Injection{}, artel.Errorf(artel.TooLarge, op, "text", "a message holds at most %d bytes; upload longer text as an artifact", maxMessageText)
	}
	in, media, err := rs.config.scrubbed(ctx, Input{Text: text})
	if err != nil {
		return Injection{}, err
	}
	now := rs.config.Now()
	n := store.Note{ID: string(artel.NewInjectionID(now)), Run: id, Kind: noteInjection, Open: true, CreatedAt: now}
	var body injection
	err = rs.config.update(ctx, func(tx store.Tx) error {
		r, err := tx.Runs.Get(id)
		if err != nil {
			return err
		}
		if !r.State.Active() || r.Purpose != artel.RunAnswers {
			return notActive(op, r)
		}
		waiting, err := tx.Notes.List(store.NoteQuery{Conversation: r.Conversation, Kind: noteInjection, Run: id, Open: true})
		if err != nil {
			return err
		}
		if len(waiting) >= maxWaiting {
			return artel.Errorf(artel.TooLarge, op, string(id), "%d messages wait already, which is the most", maxWaiting)
		}
		kept, _, err := rs.config.Artifacts.Uploads.StoreTx(tx, r.Conversation, r.Message, media.staged)
		if err != nil {
			return err
		}
		body = injection{Text: media.Replacer(kept).Replace(in.Text)}
		body.Parts = artel.Parts{artel.Text{Text: body.Text}}
		for _, a := range kept {
			body.Media, body.Parts = append(body.Media, a.ID), append(body.Parts, a.MediaPart())
		}
		n.Conversation = r.Conversation
		if err := putNote(tx, n, body); err != nil {
			return err
		}
		return rs.config.Events.Append(tx, r.Conversation, artel.Event{Run: id, Agent: r.Agent}, artel.InjectionReceived{Injection: artel.InjectionID(n.ID), Text: body.Text})
	})
	if err != nil {
		return Injection{}, err
	}
	rs.config.notifier().Notify(n.Conversation)
	return body.of(n), nil
}

// Inbox implements [agent.Host]. It stores the pending payloads first. Subagents
// get nothing, as users write to the run's own agent.
func (x *execution) Inbox(ctx context.Context, after artel.MessageID) (in agent.Inbox, err error) {
	if x.root != nil {
		return in, nil
	}
	said, muted := false, false
	err = x.config.Store.View(ctx, x.owner, func(tx store.Tx) error {
		list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Run: x.run.ID, Open: true})
		if err != nil {
			return err
		}
		for _, n := range list {
			switch n.Kind {
			case noteInjection:
				said = true
			case noteSummary:
				muted = true
			case noteCompaction:
				asked, err := bodyOf[compactionRequest](n)
				if err != nil {
					return err
				}
				in.Compact, in.Focus = true, asked.Focus
			}
		}
		return nil
	})
	if err != nil || !said && !muted && !in.Compact {
		return in, err
	}
	err = x.commit(ctx, func(tx store.Tx) error {
		if err := x.storePending(tx); err != nil {
			return err
		}
		if in.Muted, err = x.mutedSummaries(tx); err != nil {
			return err
		}
		in.Said, err = x.storeInjections(tx, after)
		return err
	})
	if err != nil {
		return in, err
	}
	x.pendingStored()
	return in, nil
}

// storeInjections makes messages of the run's open injections, as children of
// the message after and of each other.
func (x *execution) storeInjections(tx store.Tx, after artel.MessageID) ([]artel.Message, error) {
	c := x.run.Conversation
	list, err := tx.Notes.List(store.NoteQuery{Conversation: c, Kind: noteInjection, Run: x.run.ID, Open: true})
	if err != nil {
		return nil, err
	}
	var said []artel.Message
	for _, n := range list {
		body, err := bodyOf[injection](n)
		if err != nil {
			return nil, err
		}
		now := x.config.Now()
		m := artel.Message{
			ID: artel.NewMessageID(now), Conversation: c, Parent: after, Role: artel.RoleUser, Parts: body.Parts,
			Run: x.run.ID, CreatedAt: now,
		}
		if err := x.writeMessage(tx, m); err != nil {
			return nil, err
		}
		if err := tx.Versions.Claim(c, body.Media, m.ID); err != nil {
			return nil, err
		}
		n.Open, n.Message = false, m.ID
		if err := tx.Notes.Put(n); err != nil {
			return nil, err
		}
		if err := x.appendEvents(tx, artel.MessageInjected{Injection: artel.InjectionID(n.ID), Message: m}); err != nil {
			return nil, err
		}
		said, after = append(said, m), m.ID
	}
	return said, nil
}

// errInjected reports that a run cannot end yet: an injection or a request for a
// compaction has just arrived.
var errInjected = errors.New("the run has an injection")

// closeNotes closes the open notes of a run that ends: injections become messages
// of the branch, questions are closed unanswered, a requested compaction fails. A run that
// would end as done continues instead, with errInjected, unless it waits for its client.
func (x *execution) closeNotes(tx store.Tx) error {
	list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Run: x.run.ID, Open: true})
	if err != nil {
		return err
	}
	said, compact := false, false
	for _, n := range list {
		switch n.Kind {
		case noteInjection:
			said = true
		case noteCompaction:
			compact = true
		case noteStop, noteSummary:
			n.Open = false
			if err := tx.Notes.Put(n); err != nil {
				return err
			}
		case notePermission, noteElicitation:
			if err := x.closeQuestion(tx, n, artel.ResolvedByEnd); err != nil {
				return err
			}
		}
	}
	if (said || compact) && x.run.State == artel.RunDone {
		if waits, err := x.waitsForClient(tx); err != nil || !waits { // otherwise they follow the results of the client's tools
			return cmp.Or(err, errInjected)
		}
	}
	if compact {
		err := x.write(tx, artel.CompactionCompleted{Reason: artel.CompactRequested, Error: &artel.RunError{
			Kind: artel.Conflict, Message: "the run ended before it could sum up; ask again",
		}})
		if err != nil {
			return err
		}
	}
	if !said {
		return nil
	}
	tip, err := x.newestMessage(tx)
	if err == nil {
		_, err = x.storeInjections(tx, tip)
	}
	return err
}

// maxFollowed is how many messages of a run an update follows to the newest one.
const maxFollowed = 16

// newestMessage returns the newest stored message of the run, for an update. If it is
// more than maxFollowed messages behind the last one that was found, the error is an
// [*unreadError].
func (x *execution) newestMessage(tx store.Tx) (artel.MessageID, error) {
	c, err := tx.Conversations.Get(x.run.Conversation)
	if err != nil {
		return "", err
	}
	if c.Leaf != "" {
		if m, err := tx.Messages.Get(c.Leaf); err == nil && m.Run == x.run.ID {
			return m.ID, nil
		}
	}
	tip, ended, err := x.follow(tx, cmp.Or(x.newest, x.run.Message), maxFollowed)
	if err == nil && !ended {
		err = &unreadError{func(tx store.Tx) (err error) {
			x.newest, _, err = x.follow(tx, tip, math.MaxInt)
			return err
		}}
	}
	return tip, err
}

// restsAt returns the newest message of a run at rest: its reply, or a summary that it has
// stored since.
func (x *execution) restsAt(ctx context.Context) (id artel.MessageID, err error) {
	if len(x.pending) > 0 { // the reply, which is not stored yet
		return x.run.Reply, nil
	}
	err = x.config.Store.View(ctx, x.owner, func(tx store.Tx) (err error) {
		id, err = x.newestMessage(tx)
		if unread, ok := errors.AsType[*unreadError](err); ok {
			if err = unread.read(tx); err == nil {
				id, err = x.newestMessage(tx)
			}
		}
		return err
	})
	return id, err
}

// follow returns the newest message of the run behind its message tip, at most steps
// behind it, and whether none is newer. While the user looks at another branch, the
// conversation does not tell it.
func (x *execution) follow(tx store.Tx, tip artel.MessageID, steps int) (newest artel.MessageID, ended bool, err error) {
	for range steps {
		children, err := tx.Messages.Children(x.run.Conversation, tip)
		if err != nil {
			return "", false, err
		}
		before := tip
		for _, id := range children[before] {
			m, err := tx.Messages.Get(id)
			if err != nil {
				return "", false, err
			}
			if m.Run == x.run.ID {
				tip = id
			}
		}
		if tip == before {
			return tip, true, nil
		}
	}
	return tip, false, nil
}
