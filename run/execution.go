// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/logctx"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/store"
)

// execute runs the agent until it rests, and ends the run in every case but two:
// another process has taken the run over, or the server stops.
func (x *execution) execute(whole context.Context) {
	whole = artel.WithAgent(artel.WithOwner(whole, x.owner), x.agent.Name) // its calls count for both
	whole = logctx.With(whole, slog.String("run", string(x.run.ID)), slog.String("conversation", string(x.run.Conversation)))
	if x.config.OnRun != nil {
		var ended func(artel.Run)
		whole, ended = x.config.OnRun(whole, x.run)
		defer func() { ended(x.run) }()
	}
	x.restorable = nil        // they are restored
	if x.startedAt.IsZero() { // otherwise continueRun has called
		x.startedAt = time.Now()
	}
	ctx, stop := context.WithTimeoutCause(whole, x.agent.Limits.Time()-x.atWork(), errTimedOut)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { x.renewLease(ctx, cancel) })
	err := x.work(ctx)
	cause := context.Cause(ctx)
	cancel(nil)
	wg.Wait()
	switch {
	case errors.Is(cause, errLeaseLost) || errors.Is(err, errLeaseLost):
		x.config.Logger.WarnContext(ctx, "a run was taken over by another process", "run", x.run.ID)
		x.config.notifier().Discard(x.run.Conversation, "")
		return // the other process ends it
	case artel.CodeOf(err) == artel.CodeOutcomeUnknown:
		x.config.Logger.ErrorContext(ctx, "it is not known whether a step of a run was stored; the run goes on from its log once its lease has ended", "run", x.run.ID, "err", err)
		x.config.notifier().Discard(x.run.Conversation, "")
		return // [Runs.Recover] continues it
	case errors.Is(cause, errShutdown) && (err != nil || x.run.State == artel.RunWaiting): // the answer may come after the restart
		x.releaseLease(context.WithoutCancel(ctx))
		return
	}
	if why, ok := errors.AsType[*stopError](cause); ok && err != nil {
		err = why
	}
	// finish logs its errors.
	if err := x.finish(context.WithoutCancel(ctx), stateOf(err, cause), err); errors.Is(err, errInjected) {
		x.continueRun(whole)
		return
	}
	x.ended(whole)
}

// ended starts what waits for the end of the run.
func (x *execution) ended(ctx context.Context) {
	x.runs.freeSlot(x.run.ID)
	x.runs.startNext(context.WithoutCancel(ctx), x.owner, x.run.Conversation)
	x.makeTitle(ctx)
}

// atWork returns how long processes have worked on the run. The time between
// the death of one and the start of the next does not count.
func (x *execution) atWork() time.Duration {
	if x.startedAt.IsZero() {
		return x.workedBefore
	}
	return x.workedBefore + time.Since(x.startedAt)
}

// continueRun continues a run that was at rest when an injection or a request
// for a compaction arrived.
func (x *execution) continueRun(ctx context.Context) {
	x.run.State, x.run.FinishedAt = artel.RunRunning, nil
	var in agent.Inbox
	after, err := x.restsAt(context.WithoutCancel(ctx))
	if err == nil {
		in, err = x.Inbox(context.WithoutCancel(ctx), after)
	}
	if err != nil || len(in.Said) == 0 && !in.Compact {
		_ = x.finish(context.WithoutCancel(ctx), artel.RunFailed, err)
		x.ended(ctx)
		return
	}
	if x.continuesAfter, x.interrupted, x.completed = after, nil, nil; len(in.Said) > 0 {
		x.continuesAfter = in.Said[len(in.Said)-1].ID
	}
	x.execute(ctx)
}

func stateOf(err, cause error) artel.RunState {
	switch {
	case err == nil:
		return artel.RunDone
	case errors.Is(cause, errCancelled):
		return artel.RunCancelled
	case errors.Is(cause, errTimedOut):
		return artel.RunTimedOut
	}
	if _, stopped := errors.AsType[*stopError](cause); stopped {
		return artel.RunInterrupted
	}
	return artel.RunFailed
}

func (x *execution) work(ctx context.Context) (err error) {
	defer x.recoverPanic(&err)
	defer func() { err = cmp.Or(err, x.awaitStored()) }()
	x.threads = &threads{}
	if err := x.chooseService(ctx); err != nil {
		return err
	}
	var history []artel.Message
	focus := ""
	err = x.config.Store.View(ctx, x.owner, func(tx store.Tx) (err error) {
		var before int
		if history, before, err = x.history(tx); err != nil {
			return err
		}
		if x.buildInput, err = x.config.buildInput(tx, x.owner, x.run.Conversation, &x.agent, x.service, x.clock); err != nil {
			return err
		}
		if x.continuesAfter != "" {
			if x.nested, err = tx.Messages.Nested(x.run.Conversation, x.run.ID); err != nil {
				return err
			}
		}
		x.subagents = x.subagentsOf(tx)
		if x.run.Purpose == artel.RunCompacts {
			if focus, err = x.focus(tx); err != nil {
				return err
			}
		}
		return x.loadVariables(tx, history[:before]) // those of the message itself are computed again
	})
	if err != nil {
		return err
	}
	work := x.config.Engine.Run
	if x.run.Purpose == artel.RunCompacts {
		work = x.config.Engine.Compact
	}
	in, err := x.input(ctx, history)
	if err != nil {
		return err
	}
	in.Focus = focus
	for payload, err := range work(ctx, in) {
		if err != nil {
			return err
		}
		if err := x.handle(ctx, payload); err != nil {
			return err
		}
	}
	return nil
}

// recoverPanic turns a panic into an error.
func (x *execution) recoverPanic(err *error) {
	if p := recover(); p != nil {
		*err = artel.Errorf(artel.Internal, "run.Runs", string(x.run.ID), "panic: %v", p)
	}
}

func (x *execution) input(ctx context.Context, history []artel.Message) (agent.Input, error) {
	x.config.Tools.Await(ctx, x.owner)
	env := x.config.Env
	env.Owner, env.Conversation, env.At = x.owner, x.run.Conversation, x.run.Message
	env.Target = TargetOf(x.config.Services, x.config.Renditions, x.service)
	var err error
	if env.Skills, err = x.skills(ctx); err != nil {
		return agent.Input{}, err
	}
	env.Workspace = x.config.Artifacts.Workspace(artifact.WorkspaceConfig{
		Owner: x.owner, Conversation: x.run.Conversation, Run: x.run.ID, Message: x.run.Message,
		Author: string(x.agent.Name),
		OnEdit: func(tx store.Tx, p artel.Payload) error { return x.appendEvents(tx, p) },
	})
	host, err := x.host(ctx, history)
	if err != nil {
		return agent.Input{}, err
	}
	env.Host = host
	var client *agent.ClientRequest
	if x.client != nil {
		client = &x.client.Request
		if len(x.agent.Tools) == 0 { // it could do nothing with the plan and the inventory
			x.buildInput.Placement = pipeline.PlaceNone
		}
	}
	return agent.Input{
		Client: client,
		Run:    x.run, Agent: x.agent, Service: x.service, Tools: x.config.Tools.Set(x.owner), Current: func() *tool.Set { return x.config.Tools.Set(x.owner) }, History: history, CutOff: x.interrupted, Nested: x.nested,
		Context: x.buildInput, Subagents: x.subagents, Permissions: x.config.Permissions, Host: x, Env: env,
	}, env.Workspace.Edit.Begin(ctx)
}

// A Clock is what makes two builds of one draft the same: the time, and the
// seed of all that is random.
type Clock struct {
	Now  time.Time `json:"now"` // zero: that of the build
	Seed uint64    `json:"seed"`
}

// buildInput returns the input of the builds for an agent on a service, without
// the history. It replaces the agent's processors by those that users have set.
func (k *Config) buildInput(tx store.Tx, o artel.Owner, c artel.ConversationID, d *agent.Definition, s model.Service, at Clock) (pipeline.Input, error) {
	settings, err := k.Settings.Pipeline(tx, *d, s)
	if err != nil {
		return pipeline.Input{}, err
	}
	d.Processors = settings.Agent
	books, err := k.Settings.Books(tx, settings.Books())
	if err != nil {
		return pipeline.Input{}, err
	}
	user, err := k.Settings.Profile(tx)
	return pipeline.Input{
		Books: books,
		Owner: o, Conversation: c, Locale: k.localeFor(user), User: user, Now: at.Now, Seed: at.Seed,
		Sources: k.Artifacts, Renditions: k.Renditions, Suggest: k.Services.Suggest,
		Placement: k.Placement, Settings: settings, Machine: k.Machine,
		Refused: func(d artel.Digest) bool { return k.Services.Learned().Refuses(s.ID, d, string(o)) },
	}, err
}

// Learn implements [agent.Learner].
func (x *execution) Learn(marks []model.Mark) {
	for _, m := range marks {
		if m.Ratio > 0 {
			x.config.Logger.Debug("tokens are counted by what a service has reported from now on", "service", x.service.ID, "run", x.run.ID, "conversation", x.run.Conversation, "ratio", m.Ratio)
			continue
		}
		if m.Seen == 0 {
			x.config.Logger.Warn("a model service answered without having seen pictures; they are sent elsewhere from now on",
				"service", x.service.ID, "run", x.run.ID, "conversation", x.run.Conversation, "place", m.Place, "why", m.Evidence)
			continue
		}
		x.config.Logger.Warn("a model service refused a call and took it with less; once confirmed by another, calls go without",
			"service", x.service.ID, "run", x.run.ID, "conversation", x.run.Conversation, "place", m.Place, "media_type", m.MediaType, "limit", m.Limit, "value", m.Value,
			"digest", m.Digest, "said", m.Evidence)
	}
	x.config.Services.Learned().Add(marks...)
}

// handle stores one payload, or adds it to the pending ones.
func (x *execution) handle(ctx context.Context, p artel.Payload) error {
	if n, ok := p.(agent.Nested); ok {
		return x.handleNested(ctx, n)
	}
	if x.run.State == artel.RunWaiting { // a subagent's payload came while a call asked; no call runs now
		x.run.State = artel.RunRunning
	}
	if r, again := p.(artel.Retrying); again || x.retrying {
		if x.retrying = again; again {
			x.runs.setRetrying(x.run.ID, &r)
		} else {
			x.runs.setRetrying(x.run.ID, nil)
		}
	}
	switch p := p.(type) {
	case artel.MessageDelta:
		x.config.notifier().Stream(x.run.Conversation, event.Delta{
			Run: x.run.ID, Agent: x.run.Agent, Message: p.Message, Text: p.Text, Reasoning: p.Reasoning,
		})
		return nil
	case artel.AgentStarted:
		x.pendingStart = append(x.pendingStart, p) // stored with the record of the first call, which comes next
		return nil
	case artel.MessageCompleted:
		if p.Partial && errors.Is(context.Cause(ctx), errShutdown) {
			return nil // the process that continues the run asks again
		}
		x.run.Reply = p.Message.ID
		x.pending = append(x.pending, p) // stored with its usage, or with the end of the run
		return nil
	case artel.CompactionCompleted:
		if !p.OK && errors.Is(context.Cause(ctx), errShutdown) {
			return nil // the process that continues the run compacts
		}
	case artel.UsageReported:
		x.run.Usage = x.run.Usage.Add(p.Usage)
	case artel.ServiceChanged:
		x.run.Service = p.To
	}
	_, usage := p.(artel.UsageReported)
	if len(x.pending) > 0 && (usage || !x.callsTools()) {
		x.pending = append(x.pending, p) // usage of an answer with tool calls is stored with the first call, which comes next
		return nil
	}
	_, changed := p.(artel.ServiceChanged)
	// Results are stored even if the run is being cancelled.
	if done, ok := p.(artel.ToolCompleted); ok && len(x.pendingStart)+len(x.pending) == 0 {
		return x.storeInBackground(context.WithoutCancel(ctx), done)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	err := x.commit(ctx, func(tx store.Tx) error {
		if err := x.storePending(tx, p); err != nil || !changed && !usage || len(x.pending) > 0 {
			return err
		}
		return tx.Runs.Update(x.run)
	})
	if err == nil {
		x.pendingStored()
	}
	return err
}

// storeInBackground stores a tool's result while the agent builds its next
// request. Everything that is stored later waits for it, including the record
// without which the model is not called.
func (x *execution) storeInBackground(ctx context.Context, p artel.ToolCompleted) error {
	if err := x.awaitStored(); err != nil {
		return err
	}
	stored := make(chan error, 1)
	x.storing = stored
	go func() {
		var err error
		defer func() { stored <- err }()
		defer x.recoverPanic(&err)
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if err = x.config.Store.Update(ctx, x.owner, func(tx store.Tx) error { return x.write(tx, p) }); err == nil {
			x.config.notifier().Notify(x.run.Conversation)
		}
	}()
	return nil
}

// awaitStored waits until the background store has finished.
func (x *execution) awaitStored() error {
	if x.storing == nil {
		return nil
	}
	err := <-x.storing
	x.storing = nil
	return err
}

// commit updates the store after the background store has finished.
func (x *execution) commit(ctx context.Context, fn func(store.Tx) error) error {
	if err := x.awaitStored(); err != nil {
		return err
	}
	return x.config.updateRead(ctx, x.owner, fn)
}

// storePending writes the pending payloads, then more. The caller calls
// pendingStored after the transaction.
func (x *execution) storePending(tx store.Tx, more ...artel.Payload) error {
	if err := x.write(tx, slices.Concat(x.pendingStart, x.pending, more)...); err != nil || len(x.pending) == 0 {
		return err
	}
	return tx.Runs.Update(x.run) // so that its usage survives a crash
}

// hasPending reports whether the run or one of its subagents has pending payloads.
func (x *execution) hasPending() bool {
	return len(x.pending) > 0 || slices.ContainsFunc(x.threads.all(), func(y *execution) bool { return len(y.pending) > 0 })
}

// writePending writes the pending payloads of a run that stops working, also those of
// subagents.
func (x *execution) writePending(tx store.Tx) error {
	for _, y := range x.threads.all() {
		if len(y.pending) == 0 {
			continue
		}
		if err := y.write(tx, y.pending...); err != nil {
			return err
		}
	}
	return x.write(tx, slices.Concat(x.pendingStart, x.pending)...)
}

// pendingStored drops the pending payloads and notifies followers.
func (x *execution) pendingStored() {
	if len(x.pending) > 0 {
		x.config.notifier().Discard(x.run.Conversation, "")
	}
	x.pendingStart, x.pending = nil, nil
	x.config.notifier().Notify(x.run.Conversation)
}

// callsTools reports whether the pending answer calls tools, so that the run
// continues.
func (x *execution) callsTools() bool {
	if len(x.pending) == 0 {
		return false
	}
	m, ok := x.pending[0].(artel.MessageCompleted)
	return ok && artel.HasCalls(m.Message.Parts)
}

// write appends payloads to the log and stores the messages that they carry.
func (x *execution) write(tx store.Tx, payloads ...artel.Payload) error {
	for _, p := range payloads {
		switch p := p.(type) {
		case artel.MessageCompleted:
			if err := x.writeMessage(tx, p.Message); err != nil {
				return err
			}
		case artel.ToolCompleted:
			if err := x.writeResult(tx, p); err != nil {
				return err
			}
		case artel.CompactionCompleted:
			if err := x.compacted(tx, p); err != nil {
				return err
			}
			if p.Message == nil {
				continue
			}
			if err := x.writeMessage(tx, *p.Message); err != nil {
				return err
			}
		case artel.SubagentStarted:
			if err := x.writeMessage(tx, p.Message); err != nil {
				return err
			}
		case artel.UsageReported:
			if p.Purpose != artel.CallAnswers && p.Purpose != artel.CallCompacts {
				continue // it has no record
			}
			if err := x.report(tx, p.Usage); err != nil {
				return err
			}
		}
	}
	return x.appendEvents(tx, payloads...)
}

func (x *execution) writeMessage(tx store.Tx, m artel.Message) error {
	if err := tx.Messages.Create(m); err != nil {
		return err
	}
	c, err := tx.Conversations.Get(m.Conversation)
	if err != nil {
		return err
	}
	// A subagent's message is on no branch, and the user may have switched to
	// another branch.
	if c.UpdatedAt = m.CreatedAt; m.Within == "" && c.Leaf == m.Parent {
		c.Leaf = m.ID
	}
	return tx.Conversations.Update(c)
}

// appendEvents writes to the log. It fails if another process has taken the run
// over, so that nothing of the transaction is stored.
func (x *execution) appendEvents(tx store.Tx, payloads ...artel.Payload) error {
	if err := x.checkLease(tx); err != nil {
		return err
	}
	return x.config.Events.Append(tx, x.run.Conversation, artel.Event{Run: x.run.ID, Agent: x.run.Agent, Within: x.within}, payloads...)
}

// finish ends the run in one transaction: folded versions, reply, last events
// and state. If that fails after retries, the run ends as failed without
// folding; the journal keeps the edits, and the next run or start folds them. If
// that fails too, the error is returned and the run stays until [Runs.Recover].
func (x *execution) finish(ctx context.Context, state artel.RunState, cause error) error {
	now := x.config.Now()
	x.run.State, x.run.FinishedAt = state, &now
	if cause != nil && state != artel.RunDone {
		x.run.Error = x.explain(state, cause)
	}
	err := whileUnavailable(ctx, func() error {
		return artifact.FoldRun(ctx, x.config.Store, x.owner, x.run.Conversation, x.run.ID, func(fold func(store.Tx) error) error {
			return x.commit(ctx, func(tx store.Tx) error {
				if err := fold(tx); err != nil {
					return err
				}
				return x.finishTx(tx)
			})
		})
	})
	if errors.Is(err, errInjected) || errors.Is(err, errLeaseLost) {
		return err
	}
	if err != nil {
		x.config.Logger.ErrorContext(ctx, "a run's artifacts could not be folded; its journal is kept", "run", x.run.ID, "err", err)
		x.run.State, x.run.Error = artel.RunFailed, x.explain(artel.RunFailed, err)
		if err = x.retry(ctx, x.finishTx); err != nil {
			x.config.Logger.ErrorContext(ctx, "a run could not be ended; recovery ends it", "run", x.run.ID, "err", err)
		}
	}
	x.config.notifier().Discard(x.run.Conversation, "")
	x.config.notifier().Notify(x.run.Conversation)
	return err
}

// finishTx writes the end of the run, if it has none yet.
func (x *execution) finishTx(tx store.Tx) error {
	current, err := tx.Runs.Get(x.run.ID)
	if err != nil {
		return err
	}
	if current.State.Final() {
		return nil
	}
	last, err := tx.Events.Last(x.run.Conversation)
	if err != nil {
		return err
	}
	finished := artel.RunFinished{State: x.run.State, Reply: x.run.Reply, Error: x.run.Error, Usage: x.run.Usage}
	if err := x.writePending(tx); err != nil {
		return err
	}
	if err := x.answerOpenCalls(tx, last); err != nil {
		return err
	}
	if err := x.closeNotes(tx); err != nil {
		return err
	}
	if err := x.write(tx, finished); err != nil {
		return err
	}
	return tx.Runs.Update(x.run)
}

// retry runs an update up to five times while the store is unavailable.
func (x *execution) retry(ctx context.Context, fn func(store.Tx) error) error {
	return whileUnavailable(ctx, func() error { return x.commit(ctx, fn) })
}

// whileUnavailable calls fn up to five times while the store is unavailable.
func whileUnavailable(ctx context.Context, fn func() error) error {
	wait := 50 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := fn()
		if err == nil || attempt == 5 || artel.KindOf(err) != artel.Unavailable {
			return err
		}
		select {
		case <-time.After(wait):
			wait *= 4
		case <-ctx.Done():
			return err
		}
	}
}

// explain returns the error that users see of a run. Internal errors are logged
// under an id, and only the id is shown.
func (x *execution) explain(state artel.RunState, cause error) *artel.RunError {
	switch state {
	case artel.RunCancelled:
		return &artel.RunError{Kind: artel.Canceled, Message: errCancelled.Error()}
	case artel.RunTimedOut:
		return &artel.RunError{Kind: artel.Canceled, Code: artel.CodeLimitTime, Message: errTimedOut.Error()}
	case artel.RunInterrupted:
		return &artel.RunError{Kind: artel.Unavailable, Message: scrub.Line(cause.Error())}
	}
	kind := artel.KindOf(cause)
	if kind == artel.Internal {
		id := rand.Text()[:8]
		x.config.Logger.Error("a run failed", "run", x.run.ID, "conversation", x.run.Conversation, "error_id", id, "err", cause)
		return &artel.RunError{Kind: kind, Message: "internal error " + id + "; the log says more"}
	}
	out := &artel.RunError{Kind: kind, Message: scrub.Line(cause.Error())} // errors of services may quote the request
	if code := artel.CodeOf(cause); code != string(kind) {
		out.Code = code
	}
	if c, ok := errors.AsType[*model.CallError](cause); ok {
		out.Status = c.Status
	}
	return out
}
