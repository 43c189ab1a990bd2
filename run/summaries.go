// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/store"
)

// Summaries are the summaries of the active branches of conversations. Undoing one
// mutes its message: requests have the messages that it stands for again, from the next
// model call on, also that of an active run. Redoing takes that back.
type Summaries struct{ runs *Runs }

// NewSummaries returns the summaries that the runs of rs make.
func NewSummaries(rs *Runs) *Summaries { return &Summaries{rs} }

// A SummaryState says whether requests have a summary.
type SummaryState string

// The states.
const (
	SummaryActive  SummaryState = "active"  // in place of the messages that it stands for
	SummaryCovered SummaryState = "covered" // a newer summary stands for it too
	SummaryUndone  SummaryState = "undone"  // by a user
)

// A Summary is one of the active branch.
type Summary struct {
	ID        artel.MessageID        `json:"id"` // of its message
	State     SummaryState           `json:"state"`
	Agent     artel.AgentName        `json:"agent,omitempty"` // whose requests have it
	Covers    artel.MessageID        `json:"covers"`          // the newest message that it stands for
	Messages  int                    `json:"messages"`        // that it stands for, also through earlier summaries; without muted ones
	Before    int                    `json:"tokens_before"`   // of what it was made from, as that was sent; 0: not known
	After     int                    `json:"tokens_after"`    // of the summary; 0: not known
	Reason    artel.CompactionReason `json:"reason,omitempty"`
	Focus     string                 `json:"focus,omitempty"`
	Artifact  *artel.Ref             `json:"artifact,omitempty"` // the same for users, with the ids of the messages
	CreatedAt time.Time              `json:"created_at"`
	Text      string                 `json:"text"`
}

// A SummaryChange is what undoing or redoing a summary does to the next request, which
// is counted as if nothing was asked in it.
type SummaryChange struct {
	Summary
	Tokens    int  `json:"tokens"`    // of the request; 0: it could not be counted
	Threshold int  `json:"threshold"` // tokens above which the history is compacted; 0: none
	Compacts  bool `json:"compacts"`  // it is above: a new summary is made of the oldest messages first
	Dropped   int  `json:"dropped"`   // messages that do not fit, and are left out if no summary is made
}

// maxSummaryEvents is how many of the newest milestones are read for the facts of
// summaries.
const maxSummaryEvents = 1000

// List returns the summaries of the active branch, oldest first.
func (ss *Summaries) List(ctx context.Context, c artel.ConversationID) (out []Summary, err error) {
	err = ss.runs.config.view(ctx, func(tx store.Tx) error {
		out, err = summariesOf(tx, c)
		return err
	})
	return out, err
}

// Messages returns the messages that a summary stands for, also through earlier
// summaries, oldest first.
func (ss *Summaries) Messages(ctx context.Context, c artel.ConversationID, id artel.MessageID) (out []artel.Message, err error) {
	err = ss.runs.config.view(ctx, func(tx store.Tx) error {
		branch, err := activeBranch(tx, c)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(branch, func(m artel.Message) bool { return m.ID == id && m.Summary })
		if at < 0 {
			return noSummary("run.Summaries.Messages", id)
		}
		out = coveredBy(branch, at)
		return nil
	})
	return out, err
}

// Undo undoes a summary; "": the active one that is newest. One that a newer summary
// covers is of kind Conflict, as is a branch without an active one. What is undone
// already stays so.
func (ss *Summaries) Undo(ctx context.Context, c artel.ConversationID, id artel.MessageID) (SummaryChange, error) {
	return ss.change(ctx, c, id, true)
}

// Redo takes [Summaries.Undo] back; "": of the summary that was undone last.
func (ss *Summaries) Redo(ctx context.Context, c artel.ConversationID, id artel.MessageID) (SummaryChange, error) {
	return ss.change(ctx, c, id, false)
}

func (ss *Summaries) change(ctx context.Context, c artel.ConversationID, id artel.MessageID, undo bool) (out SummaryChange, err error) {
	var all []Summary
	err = ss.runs.config.view(ctx, func(tx store.Tx) error {
		if all, err = summariesOf(tx, c); err == nil && id == "" && !undo {
			id, err = undoneLast(tx, c, all)
		}
		return err
	})
	if err != nil {
		return out, err
	}
	chosen, err := choose(all, id, undo)
	if err != nil {
		return out, err
	}
	if was := chosen.State == SummaryUndone; was != undo {
		err = ss.runs.config.update(ctx, func(tx store.Tx) error {
			_, err := ss.MuteTx(tx, c, chosen.ID, undo)
			return err
		})
		if err != nil {
			return out, err
		}
		ss.runs.config.notifier().Notify(c)
	}
	if all, err = ss.List(ctx, c); err != nil {
		return out, err
	}
	for _, s := range all {
		if s.ID == chosen.ID {
			out.Summary = s
		}
	}
	return out, ss.count(ctx, c, &out)
}

// The error codes of undoing and redoing.
const (
	CodeNothingToUndo = "nothing_to_undo"
	CodeNothingToRedo = "nothing_to_redo"
	CodeNewerSummary  = "newer_summary"
)

func summaryConflict(code string, id artel.MessageID, why string) error {
	return &artel.Error{Op: "run.Summaries", Subject: string(id), Kind: artel.Conflict, Code: code, Err: errors.New(why)}
}

// Bounds of the events that undoneLast reads.
const (
	mutedPage  = 200
	mutedPages = 25
)

// undoneLast returns the summary that was undone last and can be redone; "": it is not
// among the newest events.
func undoneLast(tx store.Tx, c artel.ConversationID, all []Summary) (artel.MessageID, error) {
	can := map[artel.MessageID]bool{}
	for _, s := range all {
		can[s.ID] = s.State == SummaryUndone && !hasNewer(all, s)
	}
	last, err := tx.Events.Last(c)
	for range mutedPages {
		if err != nil || last <= 0 {
			break
		}
		first := max(0, last-mutedPage)
		var found artel.MessageID
		for from := first; from < last; {
			page, err := tx.Events.Read(c, from, int(last-from))
			if err != nil || len(page) == 0 {
				return "", err
			}
			for _, e := range page {
				var p artel.MessageMuted
				if from = e.Seq; e.Type == artel.EventMessageMuted && json.Unmarshal(e.Data, &p) == nil && p.Muted && can[p.Message] {
					found = p.Message
				}
			}
		}
		if found != "" {
			return found, nil
		}
		last = first
	}
	return "", err
}

// choose returns the summary to undo or redo.
func choose(all []Summary, id artel.MessageID, undo bool) (Summary, error) {
	const op = "run.Summaries"
	at := slices.IndexFunc(all, func(s Summary) bool { return s.ID == id })
	if id == "" {
		active := -1
		for i, s := range all {
			if s.State == SummaryActive {
				active = i
			}
		}
		if at = active; !undo {
			at = slices.IndexFunc(all, func(s Summary) bool { return s.State == SummaryUndone && !hasNewer(all, s) })
		}
		switch {
		case at < 0 && undo:
			return Summary{}, summaryConflict(CodeNothingToUndo, id, "there is nothing to undo: no summary stands for messages of this branch")
		case at < 0:
			return Summary{}, summaryConflict(CodeNothingToRedo, id, "there is nothing to redo: no summary of this branch is undone, or a newer one stands in its place")
		}
	}
	if at < 0 {
		return Summary{}, noSummary(op, id)
	}
	s := all[at]
	if s.State == SummaryCovered && undo || s.State == SummaryUndone && !undo && hasNewer(all, s) {
		return Summary{}, summaryConflict(CodeNewerSummary, id, "a newer summary stands in its place; undo that first")
	}
	return s, nil
}

// hasNewer reports whether a newer summary of the same agent is active.
func hasNewer(all []Summary, s Summary) bool {
	at := slices.IndexFunc(all, func(o Summary) bool { return o.ID == s.ID })
	return slices.ContainsFunc(all[at+1:], func(o Summary) bool { return o.Agent == s.Agent && o.State == SummaryActive })
}

func noSummary(op string, id artel.MessageID) error {
	return artel.Errorf(artel.NotFound, op, artel.Shorten(string(id), 60), "the active branch has no summary with this id")
}

// count sets what the next request has.
func (ss *Summaries) count(ctx context.Context, c artel.ConversationID, out *SummaryChange) error {
	in, _, err := ss.runs.previewInput(ctx, c, Input{}, 0, nil)
	if err != nil {
		return ctx.Err() // no service, or one that takes nothing of this: there is no next request to count
	}
	built, err := ss.runs.config.Engine.Preview(ctx, in)
	if err != nil && !errors.Is(err, artel.TooLarge) {
		return ctx.Err()
	}
	t := built.Record.Tokens
	out.Tokens, out.Dropped = t.Total, len(t.Dropped)
	out.Threshold = in.Agent.Compaction.Tokens(t.Budget)
	out.Compacts = out.Threshold > 0 && (err != nil || t.Total > out.Threshold || out.Dropped > 0)
	return nil
}

// summaryNote is the body of the note that tells an active run of a change.
type summaryNote struct {
	Message artel.MessageID `json:"message_id"`
	Muted   bool            `json:"muted"`
}

// MuteTx mutes a message or takes it in again, in a transaction. A change of a summary
// reaches the active run before its next model call.
func (ss *Summaries) MuteTx(tx store.Tx, c artel.ConversationID, id artel.MessageID, muted bool) (artel.Message, error) {
	k := ss.runs.config
	m, err := MessageOf(tx, c, id)
	if err != nil || m.Muted == muted {
		return m, err
	}
	if err := tx.Messages.SetMuted(id, muted); err != nil {
		return m, err
	}
	m.Muted = muted
	if m.Summary {
		active, err := tx.Runs.Active(c)
		if err != nil && !errors.Is(err, artel.NotFound) {
			return m, err
		}
		if err == nil && active.Purpose == artel.RunAnswers {
			n := store.Note{ID: "summary_" + string(id), Conversation: c, Run: active.ID, Kind: noteSummary, Message: id, Open: true, CreatedAt: k.Now()}
			if err := putNote(tx, n, summaryNote{id, muted}); err != nil {
				return m, err
			}
		}
	}
	return m, k.Events.Append(tx, c, artel.Event{Run: m.Run, Agent: m.Agent}, artel.MessageMuted{Message: id, Muted: muted})
}

// mutedSummaries returns the changes that the run was not told yet.
func (x *execution) mutedSummaries(tx store.Tx) (map[artel.MessageID]bool, error) {
	list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Kind: noteSummary, Run: x.run.ID, Open: true})
	if err != nil {
		return nil, err
	}
	out := make(map[artel.MessageID]bool, len(list))
	for _, n := range list {
		change, err := bodyOf[summaryNote](n)
		if err != nil {
			return nil, err
		}
		out[change.Message] = change.Muted
		n.Open = false
		if err := tx.Notes.Put(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func activeBranch(tx store.Tx, c artel.ConversationID) ([]artel.Message, error) {
	found, err := tx.Conversations.Get(c)
	if err != nil {
		return nil, err
	}
	return tx.Messages.Path(c, found.Leaf, 0)
}

// coveredBy returns the messages that the summary at an index of a branch stands for.
func coveredBy(branch []artel.Message, at int) []artel.Message {
	own := slices.Clone(branch[:at+1])
	own[at].Muted = false
	return agent.Covered(own, own[at].Agent)
}

// summariesOf returns the summaries of the active branch, oldest first.
func summariesOf(tx store.Tx, c artel.ConversationID) ([]Summary, error) {
	branch, err := activeBranch(tx, c)
	if err != nil {
		return nil, err
	}
	events, err := tx.Events.Milestones(c, maxSummaryEvents)
	if err != nil {
		return nil, err
	}
	told := map[artel.MessageID]artel.CompactionCompleted{}
	for _, e := range events {
		var p artel.CompactionCompleted
		if e.Type != artel.EventCompactionCompleted || json.Unmarshal(e.Data, &p) != nil || p.Message == nil {
			continue
		}
		told[p.Message.ID] = p
	}
	out := []Summary{}
	newest := map[artel.AgentName]bool{} // has an active one
	for i, m := range slices.Backward(branch) {
		if !m.Summary {
			continue
		}
		covered := coveredBy(branch, i)
		s := Summary{ID: m.ID, State: SummaryActive, Agent: m.Agent, Covers: m.Covers, Messages: len(covered), CreatedAt: m.CreatedAt, Text: artel.TextOf(m.Parts)}
		switch {
		case m.Muted:
			s.State = SummaryUndone
		case newest[m.Agent]:
			s.State = SummaryCovered
		default:
			newest[m.Agent] = true
		}
		if p, ok := told[m.ID]; ok {
			s.Before, s.After, s.Reason, s.Focus = p.Before, p.After, p.Reason, p.Focus
			if p.Artifact != nil {
				s.Artifact = &p.Artifact.Ref
			}
		}
		out = append(out, s)
	}
	slices.Reverse(out)
	return out, nil
}
