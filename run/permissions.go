// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// A Verdict is the answer to whether a call may be made.
type Verdict = agent.Verdict

// A Permission is a question of a run to its user: whether a tool may be called.
// It waits for [Permissions.Decide] until ExpiresAt, which denies.
type Permission struct {
	ID        artel.PermissionID `json:"id"`
	Run       artel.RunID        `json:"run_id"`
	Agent     artel.AgentName    `json:"agent"`            // that wants to call it
	Within    artel.CallPath     `json:"within,omitempty"` // its thread, if it is a subagent
	Call      artel.CallID       `json:"call_id"`
	Name      string             `json:"name"`
	Arguments json.RawMessage    `json:"arguments"`
	ExpiresAt time.Time          `json:"expires_at"`
	Effect    string             `json:"effect,omitempty"`   // why the call needs permission, if the tool itself does not
	Object    string             `json:"object,omitempty"`   // what the effect is on: an address, a ref or an id
	Decision  artel.Decision     `json:"decision,omitempty"` // "": none yet
	Reason    artel.Resolution   `json:"reason,omitempty"`
	Comment   string             `json:"comment,omitempty"` // of the user, for the model
}

// permission is the body of its note.
type permission struct {
	Agent     artel.AgentName  `json:"agent,omitempty"` // "": the run's own, in older notes
	Within    artel.CallPath   `json:"within,omitempty"`
	Call      artel.CallID     `json:"call_id"`
	Name      string           `json:"name"`
	Arguments json.RawMessage  `json:"arguments"`
	ExpiresAt time.Time        `json:"expires_at"`
	Effect    string           `json:"effect,omitempty"` // kind of a [tool.Effect]
	Object    string           `json:"object,omitempty"`
	Grant     string           `json:"grant,omitempty"` // what "always" allows; "": Name, in older notes
	Decision  artel.Decision   `json:"decision,omitempty"`
	Reason    artel.Resolution `json:"reason,omitempty"`
	Comment   string           `json:"comment,omitempty"`
}

func (p permission) of(n store.Note) Permission {
	return Permission{artel.PermissionID(n.ID), n.Run, p.Agent, p.Within, p.Call, p.Name, p.Arguments, p.ExpiresAt, p.Effect, p.Object, p.Decision, p.Reason, p.Comment}
}

func (p permission) verdict() Verdict {
	return Verdict{Decision: p.Decision, Reason: p.Reason, Comment: p.Comment}
}

// Permissions are the use cases of questions that runs ask users.
type Permissions struct{ runs *Runs }

// NewPermissions returns the permissions of rs.
func NewPermissions(rs *Runs) *Permissions { return &Permissions{rs} }

// List returns all permission questions of the runs of a conversation with their
// answers, oldest first.
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

// grant is the body of a note that allows a tool, or an effect of it, on a
// branch.
type grant struct {
	Name string `json:"name"`
}

// Permit implements [agent.Host], for the run's own agent or a subagent, several
// of which may ask at once. Each question is asked once: a resumed run finds it
// and its answer. The run is waiting while a question is open.
func (x *execution) Permit(ctx context.Context, calls []agent.Question) ([]Verdict, error) {
	if err := x.loadQuestions(ctx); err != nil {
		return nil, err
	}
	verdicts := make([]Verdict, len(calls))
	var open []string // ids of notes
	asked := map[artel.CallID]string{}
	state := x.run.State
	err := x.commit(ctx, func(tx store.Tx) error {
		open, x.run.State = nil, state
		granted, err := x.granted(tx)
		if err != nil {
			return err
		}
		if err := x.storePending(tx); err != nil {
			return err
		}
		for i, call := range calls {
			if id := x.asked[call.ID]; id != "" {
				answered := false
				if verdicts[i], answered, err = answerTo(tx, id); err != nil {
					return err
				}
				if !answered {
					open = append(open, id)
				}
				continue
			}
			if granted[grantOf(call.Name, call.Effect)] {
				verdicts[i] = Verdict{Decision: artel.Always, Reason: artel.ResolvedByPerson}
				continue
			}
			id, err := x.ask(tx, call)
			if err != nil {
				return err
			}
			open, asked[call.ID] = append(open, id), id
		}
		if len(open) == 0 {
			return nil
		}
		return x.updateState(tx)
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(x.asked, asked)
	if x.pendingStored(); len(open) == 0 {
		return verdicts, nil
	}
	if err := x.awaitAnswers(ctx, open); err != nil {
		return nil, err
	}
	err = x.config.Store.Update(ctx, x.owner, func(tx store.Tx) (err error) {
		for i, call := range calls {
			if id := x.asked[call.ID]; id != "" { // otherwise it was granted before
				if verdicts[i], _, err = answerTo(tx, id); err != nil {
					return err
				}
			}
		}
		return x.updateState(tx)
	})
	return verdicts, err
}

// answerTo returns the answer to a question; false: it has none yet.
func answerTo(tx store.Tx, id string) (Verdict, bool, error) {
	n, err := tx.Notes.Get(id)
	if err != nil {
		return Verdict{}, false, err
	}
	p, err := bodyOf[permission](n)
	return p.verdict(), !n.Open, err
}

// updateState sets the run to waiting while a question of its agent or of a
// subagent is open, and to running otherwise. It fails if the lease is lost.
func (x *execution) updateState(tx store.Tx) error {
	if x.root != nil { // the run writes its usage meanwhile, so only the state is changed
		return x.storeState(tx)
	}
	if err := x.checkLease(tx); err != nil {
		return err
	}
	state, err := x.stateAtWork(tx)
	if err != nil {
		return err
	}
	x.run.State = state
	return tx.Runs.Update(x.run)
}

// stateAtWork returns the state of a run that has not ended.
func (x *execution) stateAtWork(tx store.Tx) (artel.RunState, error) {
	open, err := x.openQuestions(tx)
	if len(open) > 0 {
		return artel.RunWaiting, err
	}
	return artel.RunRunning, err
}

// loadQuestions reads, once, which calls of the thread were asked about by earlier
// processes.
func (x *execution) loadQuestions(ctx context.Context) error {
	if x.asked != nil {
		return nil
	}
	asked := map[artel.CallID]string{}
	err := x.config.Store.View(ctx, x.owner, func(tx store.Tx) error {
		list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Kind: notePermission, Run: x.run.ID})
		for _, n := range list {
			p, err := bodyOf[permission](n)
			if err != nil {
				return err
			}
			if p.Within == x.within { // some models reuse the ids of calls
				asked[p.Call] = n.ID
			}
		}
		return err
	})
	if err == nil {
		x.asked = asked
	}
	return err
}

// closeQuestions closes the open questions of a thread that ended and of the threads
// inside it, unanswered.
func (x *execution) closeQuestions(tx store.Tx) error {
	open, err := x.openQuestions(tx)
	if err != nil {
		return err
	}
	for _, n := range open {
		p, err := bodyOf[questionPlace](n)
		if err != nil {
			return err
		}
		if !p.Within.In(x.within) {
			continue
		}
		if err := x.closeQuestion(tx, n, artel.ResolvedByEnd); err != nil {
			return err
		}
	}
	return nil
}

// granted returns the tools that a user has always allowed on the branch.
func (x *execution) granted(tx store.Tx) (map[string]bool, error) {
	granted := map[string]bool{}
	list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Kind: noteGrant})
	for _, n := range list {
		on, err := x.branches.has(tx, x.run.Conversation, x.run.Message, n.Message)
		if err != nil {
			return nil, err
		}
		if !on {
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

// grantOf names what "always" allows.
func grantOf(name string, effect tool.Effect) string {
	if effect.Kind == "" {
		return name
	}
	return effect.Grant(name)
}

// ask stores the question whether a call may be made.
func (x *execution) ask(tx store.Tx, call agent.Question) (id string, err error) {
	now := x.config.Now()
	arguments := x.config.Events.shown(artel.ToolStarted{Arguments: call.Arguments}).(artel.ToolStarted).Arguments
	p := permission{Agent: x.agent.Name, Within: x.within, Call: call.ID, Name: call.Name, Arguments: arguments, ExpiresAt: now.Add(x.agent.Limits.AnswerTime()), Effect: call.Effect.Kind, Object: call.Effect.Object, Grant: grantOf(call.Name, call.Effect)}
	n := store.Note{
		ID: string(artel.NewPermissionID(now)), Conversation: x.run.Conversation, Run: x.run.ID, Message: x.run.Message,
		Kind: notePermission, Open: true, CreatedAt: now,
	}
	if err := putNote(tx, n, p); err != nil {
		return "", err
	}
	return n.ID, x.appendEvents(tx, artel.PermissionRequested{
		Permission: artel.PermissionID(n.ID), Call: call.ID, Name: call.Name, Arguments: p.Arguments, ExpiresAt: p.ExpiresAt, Effect: p.Effect, Object: p.Object,
	})
}

// pollInterval is how often answers are read without a notification.
const pollInterval = 5 * time.Second

// awaitAnswers returns when all the questions are answered. Questions that expire
// are closed.
func (x *execution) awaitAnswers(ctx context.Context, open []string) error {
	listener := x.config.notifier().Listen(x.run.Conversation)
	defer listener.Close()
	for {
		waiting, until, err := x.pendingUntil(ctx, open)
		if err != nil || !waiting {
			return err
		}
		limited, stop := context.WithTimeout(ctx, min(pollInterval, until.Sub(x.config.Now())))
		_, err = listener.Wait(limited)
		stop()
		if err != nil && ctx.Err() != nil {
			return artel.Errorf(artel.Canceled, "run.Runs", string(x.run.ID), "the run ended while it waited for an answer: %w", context.Cause(ctx))
		}
		if err != nil && limited.Err() == nil {
			return err
		}
	}
}

// pendingUntil reports whether a question is open, and when the first of them
// expires. It closes the expired ones.
func (x *execution) pendingUntil(ctx context.Context, open []string) (waiting bool, until time.Time, err error) {
	late := false
	read := func(tx store.Tx, each func(store.Note, questionPlace) error) error {
		for _, id := range open {
			n, err := tx.Notes.Get(id)
			if err != nil {
				return err
			}
			if !n.Open {
				continue
			}
			p, err := bodyOf[questionPlace](n)
			if err != nil {
				return err
			}
			if err := each(n, p); err != nil {
				return err
			}
		}
		return nil
	}
	err = x.config.Store.View(ctx, x.owner, func(tx store.Tx) error {
		return read(tx, func(_ store.Note, p questionPlace) error {
			if !waiting || p.ExpiresAt.Before(until) {
				until = p.ExpiresAt
			}
			waiting, late = true, late || !p.ExpiresAt.After(x.config.Now())
			return nil
		})
	})
	if err != nil || !late {
		return waiting, until, err
	}
	err = x.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
		err := read(tx, func(n store.Note, p questionPlace) error {
			if p.ExpiresAt.After(x.config.Now()) {
				return nil
			}
			return x.closeQuestion(tx, n, artel.ResolvedByTimeout)
		})
		if err != nil {
			return err
		}
		return x.storeState(tx)
	})
	if err != nil {
		return false, until, err
	}
	x.config.notifier().Notify(x.run.Conversation)
	return x.pendingUntil(ctx, open)
}

// decide stores the answer to a question and its event.
func (x *execution) decide(tx store.Tx, n store.Note, v Verdict) error {
	p, err := bodyOf[permission](n)
	if err != nil {
		return err
	}
	p.Decision, p.Reason, p.Comment, n.Open = v.Decision, v.Reason, v.Comment, false
	if err := putNote(tx, n, p); err != nil {
		return err
	}
	if v.Decision == artel.Always {
		g := n
		g.ID, g.Kind = "always_"+n.ID, noteGrant
		if err := putNote(tx, g, grant{cmp.Or(p.Grant, p.Name)}); err != nil {
			return err
		}
	}
	from := artel.Event{Run: x.run.ID, Agent: cmp.Or(p.Agent, x.run.Agent), Within: p.Within}
	return x.config.Events.Append(tx, x.run.Conversation, from, artel.PermissionResolved{
		Permission: artel.PermissionID(n.ID), Call: p.Call, Name: p.Name, Decision: v.Decision, Reason: v.Reason, Comment: v.Comment,
	})
}

// CodePermissionResolved is the error code of an answer to an answered question.
const CodePermissionResolved = "permission_resolved"

// maxComment is the longest comment on a decision in code points.
const maxComment = 4000

// Decide answers a permission question of a run. With Always, the tool is not
// asked about again on this branch. If the call is denied, the model receives the
// comment, which has at most 4,000 code points. A question that is already
// answered, or whose run has ended, is of kind Conflict, code
// "permission_resolved".
func (ps *Permissions) Decide(ctx context.Context, id artel.RunID, question artel.PermissionID, d artel.Decision, comment string) (Permission, error) {
	const op = "run.Permissions.Decide"
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
	q := openQuestion{op: op, run: id, id: string(question), kind: notePermission, resolved: CodePermissionResolved, action: audit.PermissionDecided}
	n, err := ps.runs.answer(ctx, q, func(tx store.Tx, x *execution, n store.Note) (string, error) {
		return string(d), x.decide(tx, n, Verdict{Decision: d, Reason: artel.ResolvedByPerson, Comment: in.Text})
	})
	if err != nil {
		return Permission{}, err
	}
	p, err := bodyOf[permission](n)
	return p.of(n), err
}
