// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/store"
)

// A Verdict is the answer to whether a call may be made.
type Verdict = agent.Verdict

// A Permission is a question that a run has asked people: whether a tool may be
// called. It waits for [Permissions.Decide] until ExpiresAt, which denies.
type Permission struct {
	ID        artel.PermissionID `json:"id"`
	Run       artel.RunID        `json:"run_id"`
	Agent     artel.AgentName    `json:"agent"`            // that wants to call it
	Within    artel.CallPath     `json:"within,omitempty"` // its thread, where it is a subagent
	Call      artel.CallID       `json:"call_id"`
	Name      string             `json:"name"`
	Arguments json.RawMessage    `json:"arguments"`
	ExpiresAt time.Time          `json:"expires_at"`
	Decision  artel.Decision     `json:"decision,omitempty"` // "": none yet
	Reason    artel.Resolution   `json:"reason,omitempty"`
	Comment   string             `json:"comment,omitempty"` // of whoever answered, for the model
}

// permission is the body of its note.
type permission struct {
	Agent     artel.AgentName  `json:"agent,omitempty"` // "": the run's own, of before subagents could ask
	Within    artel.CallPath   `json:"within,omitempty"`
	Call      artel.CallID     `json:"call_id"`
	Name      string           `json:"name"`
	Arguments json.RawMessage  `json:"arguments"`
	ExpiresAt time.Time        `json:"expires_at"`
	Decision  artel.Decision   `json:"decision,omitempty"`
	Reason    artel.Resolution `json:"reason,omitempty"`
	Comment   string           `json:"comment,omitempty"`
}

func (p permission) of(n store.Note) Permission {
	return Permission{artel.PermissionID(n.ID), n.Run, p.Agent, p.Within, p.Call, p.Name, p.Arguments, p.ExpiresAt, p.Decision, p.Reason, p.Comment}
}

func (p permission) verdict() Verdict {
	return Verdict{Decision: p.Decision, Reason: p.Reason, Comment: p.Comment}
}

// Permissions are the use cases of questions that runs ask users.
type Permissions struct{ runs *Runs }

// NewPermissions returns the permissions of rs.
func NewPermissions(rs *Runs) *Permissions { return &Permissions{rs} }

// List returns all questions of permission that the runs of a conversation
// have asked, in the order in which they were asked, with their answers.
func (ps *Permissions) List(ctx context.Context, c artel.ConversationID) ([]Permission, error) {
	var out []Permission
	err := ps.runs.config.view(ctx, func(tx store.Tx) error {
		list, err := tx.Notes.List(store.NoteQuery{Conversation: c, Kind: notePermission})
		for _, n := range list {
			p, err := bodyOf[permission](n)
			if err != nil {
				return err
			}
			out = append(out, p.of(n))
		}
		return err
	})
	return out, err
}

// grant is the body of a note that says which tool need not be asked about.
type grant struct {
	Name string `json:"name"`
}

// Permit implements [agent.Host], for the run's own agent or a subagent,
// several of which may ask at once. Each question is
// asked once: a run that is taken up again finds it, and its answer. While an
// answer is out, the run is waiting.
func (x *execution) Permit(ctx context.Context, calls []artel.ToolCall) ([]Verdict, error) {
	verdicts := make([]Verdict, len(calls))
	var open []string // ids of notes
	state := x.run.State
	err := x.commit(ctx, func(tx store.Tx) error {
		open, x.run.State = nil, state
		if err := x.release(tx); err != nil {
			return err
		}
		asked, err := x.asked(tx)
		if err != nil {
			return err
		}
		granted, err := x.granted(tx)
		if err != nil {
			return err
		}
		for i, call := range calls {
			if n, ok := asked[call.ID]; ok && n.Open {
				open = append(open, n.ID)
				continue
			} else if ok {
				p, err := bodyOf[permission](n)
				verdicts[i] = p.verdict()
				if err != nil {
					return err
				}
				continue
			}
			if granted[call.Name] {
				verdicts[i] = Verdict{Decision: artel.Always, Reason: artel.ResolvedByPerson}
				continue
			}
			id, err := x.question(tx, call)
			if err != nil {
				return err
			}
			open = append(open, id)
		}
		if len(open) == 0 {
			return nil
		}
		return x.waits(tx)
	})
	if err != nil {
		return nil, err
	}
	if x.released(); len(open) == 0 {
		return verdicts, nil
	}
	if err := x.await(ctx, open); err != nil {
		return nil, err
	}
	err = x.runs.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
		asked, err := x.asked(tx)
		if err != nil {
			return err
		}
		for i, call := range calls {
			n, ok := asked[call.ID]
			if !ok {
				continue // granted before
			}
			p, err := bodyOf[permission](n)
			if err != nil {
				return err
			}
			verdicts[i] = p.verdict()
		}
		return x.waits(tx)
	})
	return verdicts, err
}

// waits makes the run wait where a question of it is open, of its own agent or
// of a subagent, and go on where none is; unless somebody has taken it over.
func (x *execution) waits(tx store.Tx) error {
	if err := x.hold(tx); err != nil {
		return err
	}
	state, err := x.stateAtWork(tx)
	if err != nil {
		return err
	}
	if x.root == nil {
		x.run.State = state
		return tx.Runs.Update(x.run)
	}
	// What subagents take is counted by the run, which writes it meanwhile.
	r, err := tx.Runs.Get(x.run.ID)
	if err != nil || r.State == state {
		return err
	}
	r.State = state
	return tx.Runs.Update(r)
}

// stateAtWork is that of a run that has not ended.
func (x *execution) stateAtWork(tx store.Tx) (artel.RunState, error) {
	open, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Kind: notePermission, Run: x.run.ID, Open: true})
	if len(open) > 0 {
		return artel.RunWaiting, err
	}
	return artel.RunRunning, err
}

// asked returns the questions of the run's thread, by their calls.
func (x *execution) asked(tx store.Tx) (map[artel.CallID]store.Note, error) {
	list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Kind: notePermission, Run: x.run.ID})
	asked := make(map[artel.CallID]store.Note, len(list))
	for _, n := range list {
		p, err := bodyOf[permission](n)
		if err != nil {
			return nil, err
		}
		if p.Within == x.within { // some models give the ids of their calls again
			asked[p.Call] = n
		}
	}
	return asked, err
}

// withdraw closes the questions of a thread that has come to its end, and of
// the threads inside of it.
func (x *execution) withdraw(tx store.Tx) error {
	list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Kind: notePermission, Run: x.run.ID, Open: true})
	if err != nil {
		return err
	}
	for _, n := range list {
		p, err := bodyOf[permission](n)
		if err != nil {
			return err
		}
		if !p.Within.In(x.within) {
			continue
		}
		if err := x.decide(tx, n, Verdict{Decision: artel.Deny, Reason: artel.ResolvedByEnd}); err != nil {
			return err
		}
	}
	return nil
}

// granted returns the tools that somebody has allowed for good on the branch.
func (x *execution) granted(tx store.Tx) (map[string]bool, error) {
	granted := map[string]bool{}
	list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Kind: noteGrant})
	if err != nil || len(list) == 0 {
		return granted, err
	}
	branch, err := tx.Messages.Path(x.run.Conversation, x.run.Message, 0)
	for _, n := range list {
		if !slices.ContainsFunc(branch, func(m artel.Message) bool { return m.ID == n.Message }) {
			continue
		}
		g, err := bodyOf[grant](n)
		if err != nil {
			return nil, err
		}
		granted[g.Name] = true
	}
	return granted, err
}

// question asks people about a call.
func (x *execution) question(tx store.Tx, call artel.ToolCall) (id string, err error) {
	now := x.runs.config.Now()
	arguments := x.runs.config.Events.shown(artel.ToolStarted{Arguments: call.Arguments}).(artel.ToolStarted).Arguments
	p := permission{Agent: x.agent.Name, Within: x.within, Call: call.ID, Name: call.Name, Arguments: arguments, ExpiresAt: now.Add(x.agent.Limits.AnswerTime())}
	n := store.Note{
		ID: string(artel.NewPermissionID(now)), Conversation: x.run.Conversation, Run: x.run.ID, Message: x.run.Message,
		Kind: notePermission, Open: true, CreatedAt: now,
	}
	if err := keep(tx, n, p); err != nil {
		return "", err
	}
	return n.ID, x.appendEvents(tx, artel.PermissionRequested{
		Permission: artel.PermissionID(n.ID), Call: call.ID, Name: call.Name, Arguments: p.Arguments, ExpiresAt: p.ExpiresAt,
	})
}

// glance is how often somebody who waits looks whether an answer came that no
// notification announced.
const glance = 5 * time.Second

// await returns when all the questions are answered. Those that nobody has
// answered in time are denied.
func (x *execution) await(ctx context.Context, open []string) error {
	ear := x.runs.config.notifier().Listen(x.run.Conversation)
	defer ear.Close()
	for {
		waiting, until, err := x.look(ctx, open)
		if err != nil || !waiting {
			return err
		}
		limited, stop := context.WithTimeout(ctx, min(glance, until.Sub(x.runs.config.Now())))
		_, err = ear.Wait(limited)
		stop()
		if err != nil && ctx.Err() != nil {
			return artel.Errorf(artel.Canceled, "app.Runs", string(x.run.ID), "the run ended while it waited for a permission: %w", context.Cause(ctx))
		}
		if err != nil && limited.Err() == nil {
			return err
		}
	}
}

// look reports whether a question is open, and when the first of those ends.
func (x *execution) look(ctx context.Context, open []string) (waiting bool, until time.Time, err error) {
	late := false
	read := func(tx store.Tx, each func(store.Note, permission) error) error {
		for _, id := range open {
			n, err := tx.Notes.Get(id)
			if err != nil {
				return err
			}
			if !n.Open {
				continue
			}
			p, err := bodyOf[permission](n)
			if err != nil {
				return err
			}
			if err := each(n, p); err != nil {
				return err
			}
		}
		return nil
	}
	err = x.runs.config.Store.View(ctx, x.owner, func(tx store.Tx) error {
		return read(tx, func(_ store.Note, p permission) error {
			if !waiting || p.ExpiresAt.Before(until) {
				until = p.ExpiresAt
			}
			waiting, late = true, late || !p.ExpiresAt.After(x.runs.config.Now())
			return nil
		})
	})
	if err != nil || !late {
		return waiting, until, err
	}
	err = x.runs.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
		err := read(tx, func(n store.Note, p permission) error {
			if p.ExpiresAt.After(x.runs.config.Now()) {
				return nil
			}
			return x.decide(tx, n, Verdict{Decision: artel.Deny, Reason: artel.ResolvedByTimeout})
		})
		if err != nil {
			return err
		}
		return x.waits(tx)
	})
	if err != nil {
		return false, until, err
	}
	x.runs.config.notifier().Notify(x.run.Conversation)
	return x.look(ctx, open)
}

// decide keeps the answer to a question, and tells it.
func (x *execution) decide(tx store.Tx, n store.Note, v Verdict) error {
	p, err := bodyOf[permission](n)
	if err != nil {
		return err
	}
	p.Decision, p.Reason, p.Comment, n.Open = v.Decision, v.Reason, v.Comment, false
	if err := keep(tx, n, p); err != nil {
		return err
	}
	if v.Decision == artel.Always {
		g := n
		g.ID, g.Kind = "always_"+n.ID, noteGrant
		if err := keep(tx, g, grant{p.Name}); err != nil {
			return err
		}
	}
	from := artel.Event{Run: x.run.ID, Agent: cmp.Or(p.Agent, x.run.Agent), Within: p.Within}
	return x.runs.config.Events.Append(tx, x.run.Conversation, from, artel.PermissionResolved{
		Permission: artel.PermissionID(n.ID), Call: p.Call, Name: p.Name, Decision: v.Decision, Reason: v.Reason, Comment: v.Comment,
	})
}

// CodePermissionResolved is the error code of an answer to a question that has
// one.
const CodePermissionResolved = "permission_resolved"

// maxComment is the longest comment on a decision in code points.
const maxComment = 4000

// Decide answers a question of permission that a run has asked. With Always,
// the tool is not asked about again on this branch. Where it is denied, the
// model is told the comment, of at most 4,000 code points; it may be empty. A
// question that is answered already, or whose run has ended, is of kind
// Conflict, code "permission_resolved".
func (ps *Permissions) Decide(ctx context.Context, id artel.RunID, question artel.PermissionID, d artel.Decision, comment string) (Permission, error) {
	const op = "app.Permissions.Decide"
	comment = strings.TrimSpace(comment)
	if utf8.RuneCountInString(comment) > maxComment {
		return Permission{}, artel.Errorf(artel.TooLarge, op, "comment", "longer than %d characters", maxComment)
	}
	switch d {
	case artel.Allow, artel.Deny, artel.Always:
	default:
		return Permission{}, artel.Errorf(artel.Invalid, op, "decision", "is %q: want allow, deny or always", artel.Shorten(string(d), 40))
	}
	in, media, err := ps.runs.config.scrubbed(ctx, Input{Text: comment})
	if err == nil && len(media.staged) > 0 {
		err = artel.Errorf(artel.Invalid, op, "comment", "holds a file as text; say it in words")
	}
	if err != nil {
		return Permission{}, err
	}
	var n store.Note
	err = ps.runs.config.update(ctx, func(tx store.Tx) error {
		r, err := tx.Runs.Get(id)
		if err != nil {
			return err
		}
		if n, err = tx.Notes.Get(string(question)); err != nil {
			return err
		}
		if n.Kind != notePermission || n.Run != id {
			return artel.Errorf(artel.NotFound, op, string(question), "the run has asked no such question")
		}
		if !n.Open {
			return &artel.Error{Op: op, Subject: string(question), Kind: artel.Conflict, Code: CodePermissionResolved, Err: errors.New("it is answered already")}
		}
		x := execution{runs: ps.runs, owner: artel.OwnerOf(ctx), run: r}
		if err := x.decide(tx, n, Verdict{Decision: d, Reason: artel.ResolvedByPerson, Comment: in.Text}); err != nil {
			return err
		}
		if n, err = tx.Notes.Get(n.ID); err != nil {
			return err
		}
		if r.State, err = x.stateAtWork(tx); err != nil {
			return err
		}
		return tx.Runs.Update(r)
	})
	if err != nil {
		return Permission{}, err
	}
	ps.runs.config.notifier().Notify(n.Conversation)
	p, err := bodyOf[permission](n)
	return p.of(n), err
}
