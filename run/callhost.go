// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/store"
)

// A callHost is the [tool.Host] of a thread. Its methods are called while the engine's
// goroutine waits for the calls, so they leave the fields of the execution that the
// engine changes alone.
type callHost struct {
	x *execution

	mu      sync.Mutex
	kept    map[artel.CallID]json.RawMessage
	reports map[artel.CallID]reported
}

// keptState is the body of its note.
type keptState struct {
	Within artel.CallPath  `json:"within,omitempty"`
	Call   artel.CallID    `json:"call_id"`
	State  json.RawMessage `json:"state"`
}

// host returns the host of the thread's calls, with what earlier processes have kept.
func (x *execution) host(ctx context.Context, history []artel.Message) (*callHost, error) {
	h := &callHost{x: x, kept: map[artel.CallID]json.RawMessage{}, reports: map[artel.CallID]reported{}}
	if x.outermost().continuesAfter == "" {
		return h, nil
	}
	err := x.config.Store.View(ctx, x.owner, func(tx store.Tx) error {
		list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Kind: noteCallState, Run: x.run.ID})
		for _, n := range list {
			s, err := bodyOf[keptState](n)
			if err != nil {
				return err
			}
			if s.Within == x.within {
				h.kept[s.Call] = s.State
			}
		}
		return err
	})
	if err == nil {
		h.awaitTools(ctx, history)
	}
	return h, err
}

// How long a resumed run waits for the server of a call that continues, and how often it
// looks.
const (
	serverWait = 10 * time.Minute
	serverLook = 100 * time.Millisecond
)

// awaitTools waits for the tools of calls that continue, because their servers may be
// restarted too. Without them the calls fail.
func (h *callHost) awaitTools(ctx context.Context, history []artel.Message) {
	ctx, stop := context.WithTimeout(ctx, serverWait)
	defer stop()
	for _, c := range agent.Unanswered(history) {
		for h.kept[c.ID] != nil && !h.x.config.Tools.Set(h.x.owner).Has(c.Name) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(serverLook):
			}
		}
	}
}

// Kept implements [tool.Host].
func (h *callHost) Kept(call artel.CallID) json.RawMessage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kept[call]
}

// maxKept is the longest kept state of a call, in bytes.
const maxKept = 256 << 10

// Keep implements [tool.Host].
func (h *callHost) Keep(ctx context.Context, call artel.CallID, state json.RawMessage) error {
	if len(state) > maxKept {
		return artel.Errorf(artel.TooLarge, "run.Runs", string(call), "the state of a call has %d bytes; at most %d are kept", len(state), maxKept)
	}
	x := h.x
	digest := sha256.Sum256([]byte(string(x.within) + "\x00" + string(call)))
	n := store.Note{
		ID: "call_" + string(x.run.ID) + "_" + hex.EncodeToString(digest[:12]), Conversation: x.run.Conversation, Run: x.run.ID,
		Kind: noteCallState, CreatedAt: x.config.Now(),
	}
	err := x.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
		if err := x.checkLease(tx); err != nil {
			return err
		}
		if state != nil {
			return putNote(tx, n, keptState{x.within, call, state})
		}
		if err := tx.Notes.Delete(n.ID); !errors.Is(err, artel.NotFound) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept[call] = state; state == nil {
		delete(h.kept, call)
	}
	return nil
}

// Ends implements [tool.Host].
func (h *callHost) Ends(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return !errors.Is(cause, errShutdown) && !errors.Is(cause, errLeaseLost)
}

// Bounds of the reports of a call in the log.
const (
	reportEvery = 2 * time.Second
	maxReports  = 200
)

// reported is what was reported of a call.
type reported struct {
	message string
	at      time.Time
	count   int
}

// Report implements [tool.Host].
func (h *callHost) Report(call artel.CallID, p tool.Progress) {
	x, now := h.x, h.x.config.Now()
	h.mu.Lock()
	r := h.reports[call]
	if p.Message == r.message || r.count >= maxReports || r.count > 0 && now.Sub(r.at) < reportEvery {
		h.mu.Unlock()
		return
	}
	h.reports[call] = reported{p.Message, now, r.count + 1}
	h.mu.Unlock()
	x.runs.setProgress(x.run.ID, call, p.Message)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	err := x.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
		return x.appendEvents(tx, artel.ToolProgress{Call: call, Message: p.Message})
	})
	if err != nil && !errors.Is(err, errLeaseLost) {
		x.config.Logger.Warn("how far a call is could not be stored", "run", x.run.ID, "err", err)
		return
	}
	x.config.notifier().Notify(x.run.Conversation)
}

// Elicit implements [tool.Host].
func (h *callHost) Elicit(ctx context.Context, call artel.CallID, asked []tool.Elicitation) ([]tool.ElicitResult, error) {
	x := h.x
	var ids []string
	err := x.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
		ids = ids[:0]
		list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Kind: noteElicitation, Run: x.run.ID})
		if err != nil {
			return err
		}
		for _, q := range asked {
			id, err := h.find(tx, list, call, q)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return x.storeState(tx)
	})
	if err != nil {
		return nil, err
	}
	x.config.notifier().Notify(x.run.Conversation)
	if err := x.awaitAnswers(ctx, ids); err != nil {
		if !errors.Is(context.Cause(ctx), errShutdown) { // the answer may come after a restart
			h.withdraw(ctx, ids)
		}
		return nil, err
	}
	results := make([]tool.ElicitResult, len(ids))
	err = x.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
		for i, id := range ids {
			n, err := tx.Notes.Get(id)
			if err != nil {
				return err
			}
			q, err := bodyOf[elicitation](n)
			if err != nil {
				return err
			}
			results[i] = tool.ElicitResult{Action: q.Action, Content: q.Content}
		}
		return x.storeState(tx)
	})
	return results, err
}

// find returns the note of a question. It is asked if no earlier attempt at the call has.
func (h *callHost) find(tx store.Tx, list []store.Note, call artel.CallID, asked tool.Elicitation) (string, error) {
	x, now := h.x, h.x.config.Now()
	q := elicitation{
		Agent: x.agent.Name, Within: x.within, Call: call, Key: asked.Key, Name: asked.Name, Server: asked.Server, Mode: asked.Mode, Message: asked.Message,
		Schema: asked.Schema, URL: asked.URL, ExpiresAt: now.Add(x.agent.Limits.AnswerTime()),
	}
	q.Key = keyOf(q)
	for _, n := range list {
		old, err := bodyOf[elicitation](n)
		if err != nil {
			return "", err
		}
		if old.Within == q.Within && old.Call == q.Call && old.Key == q.Key && old.Reason != artel.ResolvedByServer {
			return n.ID, nil
		}
	}
	n := store.Note{
		ID: string(artel.NewElicitationID(now)), Conversation: x.run.Conversation, Run: x.run.ID, Message: x.run.Message,
		Kind: noteElicitation, Open: true, CreatedAt: now,
	}
	if err := putNote(tx, n, q); err != nil {
		return "", err
	}
	return n.ID, x.appendEvents(tx, artel.ElicitationRequested{
		Elicitation: artel.ElicitationID(n.ID), Call: call, Name: q.Name, Server: q.Server, Mode: q.Mode, Message: q.Message, Schema: q.Schema, URL: q.URL, ExpiresAt: q.ExpiresAt,
	})
}

// withdraw closes questions whose call does not wait any more.
func (h *callHost) withdraw(ctx context.Context, ids []string) {
	x := h.x
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	err := x.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
		for _, id := range ids {
			n, err := tx.Notes.Get(id)
			if err == nil && n.Open {
				err = x.closeQuestion(tx, n, artel.ResolvedByServer)
			}
			if err != nil {
				return err
			}
		}
		return x.storeState(tx)
	})
	if err != nil && !errors.Is(err, errLeaseLost) {
		x.config.Logger.WarnContext(ctx, "the questions of a call that has ended could not be closed; the end of the run closes them", "run", x.run.ID, "err", err)
	}
	x.config.notifier().Notify(x.run.Conversation)
}

// writeResult stores the message of a result. Questions of a call that a restart cut off
// and that is not made again are closed: nothing waits for their answers.
func (x *execution) writeResult(tx store.Tx, p artel.ToolCompleted) error {
	if err := x.writeMessage(tx, p.Message); err != nil || p.Metadata["interrupted"] != true {
		return err
	}
	open, err := x.openQuestions(tx)
	if err != nil {
		return err
	}
	for _, n := range open {
		at, err := bodyOf[questionPlace](n)
		if err == nil && at.Within == p.Message.Within && at.Call == p.Call {
			err = x.closeQuestion(tx, n, artel.ResolvedByServer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// storeState sets the stored run to waiting while a question is open, and to running
// otherwise. It fails if the lease is lost.
func (x *execution) storeState(tx store.Tx) error {
	if err := x.checkLease(tx); err != nil {
		return err
	}
	state, err := x.stateAtWork(tx)
	if err != nil {
		return err
	}
	r, err := tx.Runs.Get(x.run.ID)
	if err != nil || r.State == state || r.State.Final() {
		return err
	}
	r.State = state
	return tx.Runs.Update(r)
}

// setProgress notes what a server said last of a call.
func (rs *Runs) setProgress(id artel.RunID, call artel.CallID, message string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if a := rs.active[id]; a != nil {
		if a.progress == nil {
			a.progress = map[artel.CallID]string{}
		}
		a.progress[call] = message
	}
}

// Progress returns what servers said last of the calls of a run of this process.
func Progress(rs *Runs, id artel.RunID) map[artel.CallID]string {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if a := rs.active[id]; a != nil {
		return maps.Clone(a.progress)
	}
	return nil
}
