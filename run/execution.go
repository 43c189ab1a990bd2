// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/store"
)

// execute runs the agent until it rests and ends the run, whatever happens.
func (x *execution) execute(whole context.Context) {
	if x.since.IsZero() { // else it goes on after it was at rest
		x.since = time.Now()
	}
	ctx, stop := context.WithTimeoutCause(whole, x.agent.Limits.Time()-x.atWork(), errTimedOut)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { x.keepLease(ctx, cancel) })
	err := x.work(ctx)
	cause := context.Cause(ctx)
	cancel(nil)
	wg.Wait()
	switch {
	case errors.Is(cause, errLeaseLost) || errors.Is(err, errLeaseLost):
		x.runs.config.Logger.Warn("a run was taken over by another process", "run", x.run.ID)
		x.runs.config.notifier().Discard(x.run.Conversation)
		return // somebody else ends it
	case errors.Is(cause, errShutdown) && (err != nil || x.run.State == artel.RunWaiting): // a person may answer after the restart
		x.leave(context.WithoutCancel(ctx))
		return
	}
	// Of an error, finish says so in the log.
	if err := x.finish(context.WithoutCancel(ctx), stateOf(err, cause), err); errors.Is(err, errInjected) {
		x.goOn(whole)
		return
	}
	x.runs.next(context.WithoutCancel(ctx), x.owner, x.run.Conversation)
	x.entitle(whole)
}

// atWork is how long the run was worked on, by whomever. The time that nobody
// worked on it, as its process had died, is none.
func (x *execution) atWork() time.Duration {
	if x.since.IsZero() {
		return x.worked
	}
	return x.worked + time.Since(x.since)
}

// goOn takes up a run that was at rest when somebody said something to it.
func (x *execution) goOn(ctx context.Context) {
	x.run.State, x.run.FinishedAt = artel.RunRunning, nil
	in, err := x.Inbox(context.WithoutCancel(ctx), x.run.Reply)
	if err != nil || len(in.Said) == 0 && !in.Compact {
		_ = x.finish(context.WithoutCancel(ctx), artel.RunFailed, err)
		return
	}
	if x.from, x.cut = x.run.Reply, nil; len(in.Said) > 0 {
		x.from = in.Said[len(in.Said)-1].ID
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
	return artel.RunFailed
}

func (x *execution) work(ctx context.Context) (err error) {
	defer x.caught(&err)
	defer func() { err = cmp.Or(err, x.stored()) }()
	x.threads = &threads{}
	if err := x.elect(ctx); err != nil {
		return err
	}
	var history []artel.Message
	err = x.runs.config.Store.View(ctx, x.owner, func(tx store.Tx) (err error) {
		var before int
		if history, before, err = x.history(tx); err != nil {
			return err
		}
		if x.built, err = x.runs.config.building(tx, x.owner, x.run.Conversation, &x.agent, x.service, x.clock); err != nil {
			return err
		}
		if x.from != "" {
			if x.nested, err = tx.Messages.Nested(x.run.Conversation, x.run.ID); err != nil {
				return err
			}
		}
		x.mates = x.team(tx)
		return x.takeVariables(tx, history[:before]) // of the message itself they are made anew
	})
	if err != nil {
		return err
	}
	work := x.runs.config.Engine.Run
	if x.run.Purpose == artel.RunCompacts {
		work = x.runs.config.Engine.Compact
	}
	for payload, err := range work(ctx, x.input(history)) {
		if err != nil {
			return err
		}
		if err := x.take(ctx, payload); err != nil {
			return err
		}
	}
	return nil
}

// caught makes an error of a panic.
func (x *execution) caught(err *error) {
	if p := recover(); p != nil {
		*err = artel.Errorf(artel.Internal, "app.Runs", string(x.run.ID), "panic: %v", p)
	}
}

func (x *execution) input(history []artel.Message) agent.Input {
	env := x.runs.config.Env
	env.Owner, env.Conversation, env.At = x.owner, x.run.Conversation, x.run.Message
	env.Target = TargetOf(x.runs.config.Services, x.runs.config.Renditions, x.service)
	env.Workspace = x.runs.config.Artifacts.Workspace(artifact.WorkspaceConfig{
		Owner: x.owner, Conversation: x.run.Conversation, Run: x.run.ID, Message: x.run.Message,
		Author: string(x.agent.Name),
		OnEdit: func(tx store.Tx, p artel.Payload) error { return x.appendEvents(tx, p) },
	})
	return agent.Input{
		Run: x.run, Agent: x.agent, Service: x.service, Tools: x.runs.config.Tools.Box(), History: history, CutOff: x.cut, Nested: x.nested,
		Context: x.built, Subagents: x.mates, Permissions: x.runs.config.Permissions, Host: x, Env: env,
	}
}

// A Clock is what makes two builds of one draft the same: the time, and the
// seed of all that is random.
type Clock struct {
	Now  time.Time `json:"now"` // zero: that of the build
	Seed uint64    `json:"seed"`
}

// building is what the contexts of an agent on a service are built from, but
// for the history. The agent's processors become those that people have set.
func (k *Config) building(tx store.Tx, o artel.Owner, c artel.ConversationID, d *agent.Definition, s model.Service, at Clock) (pipeline.Input, error) {
	settings, err := k.Settings.Pipeline(tx, *d, s)
	if err != nil {
		return pipeline.Input{}, err
	}
	d.Processors = settings.Agent
	user, err := k.Settings.Profile(tx)
	return pipeline.Input{
		Owner: o, Conversation: c, Locale: k.localeFor(user), User: user, Now: at.Now, Seed: at.Seed,
		Sources: k.Artifacts, Renditions: k.Renditions, Suggest: k.Services.Suggest,
		Placement: k.Placement, Settings: settings, Machine: k.Machine,
		Refused: func(d artel.Digest) bool { return k.Services.Refuses(s.ID, d) },
	}, err
}

// localeFor is that of the texts for models: the person's language, where there
// are texts in it.
func (k *Config) localeFor(p pipeline.Profile) phrase.Locale {
	base, _, _ := strings.Cut(strings.ToLower(p.Language), "-")
	if l := phrase.Locale(base); slices.Contains(phrase.Locales(), l) {
		return l
	}
	return k.Locale
}

// Learn implements [agent.Learner]: it keeps what calls have shown about the
// service, for all runs.
func (x *execution) Learn(marks []model.Mark) {
	for _, m := range marks {
		if m.Ratio > 0 {
			x.runs.config.Logger.Debug("tokens are counted by what a service has reported from now on", "service", x.service.ID, "run", x.run.ID, "ratio", m.Ratio)
			continue
		}
		x.runs.config.Logger.Warn("a model service refused a call and took it with less; calls go without from now on",
			"service", x.service.ID, "run", x.run.ID, "place", m.Place, "media_type", m.MediaType, "limit", m.Limit, "value", m.Value,
			"digest", m.Digest, "said", m.Evidence)
	}
	x.runs.config.Services.Learn(marks...)
}

// take stores one payload, or holds it for the end of the run.
func (x *execution) take(ctx context.Context, p artel.Payload) error {
	if n, ok := p.(agent.Nested); ok {
		return x.takeNested(ctx, n)
	}
	if r, again := p.(artel.Retrying); again || x.retrying {
		if x.retrying = again; again {
			x.runs.retries(x.run.ID, &r)
		} else {
			x.runs.retries(x.run.ID, nil)
		}
	}
	switch p := p.(type) {
	case artel.MessageDelta:
		x.runs.config.notifier().Stream(x.run.Conversation, event.Delta{
			Run: x.run.ID, Agent: x.run.Agent, Message: p.Message, Text: p.Text, Reasoning: p.Reasoning,
		})
		return nil
	case artel.AgentStarted:
		x.begun = append(x.begun, p) // it goes with the record of the first call, which comes next
		return nil
	case artel.MessageCompleted:
		x.run.Reply = p.Message.ID
		x.held = append(x.held, p) // with what it has cost, or with the end of the run
		return nil
	case artel.CompactionCompleted:
		if !p.OK && errors.Is(context.Cause(ctx), errShutdown) {
			return nil // whoever goes on with the run does it
		}
	case artel.UsageReported:
		x.run.Usage = x.run.Usage.Add(p.Usage)
	case artel.ServiceChanged:
		x.run.Service = p.To
	}
	_, usage := p.(artel.UsageReported)
	if len(x.held) > 0 && (usage || !x.callsTools()) {
		x.held = append(x.held, p) // of an answer that calls tools, it goes with the first call, which comes next
		return nil
	}
	_, changed := p.(artel.ServiceChanged)
	// What the agent has done is kept even when the run is being cancelled.
	if done, ok := p.(artel.ToolCompleted); ok && len(x.begun)+len(x.held) == 0 {
		return x.storeAside(context.WithoutCancel(ctx), done)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	err := x.commit(ctx, func(tx store.Tx) error {
		if err := x.release(tx, p); err != nil || !changed && !usage || len(x.held) > 0 {
			return err
		}
		return tx.Runs.Update(x.run)
	})
	if err == nil {
		x.released()
	}
	return err
}

// storeAside stores the end of a tool while the agent builds its next request:
// all that is stored after it waits for it, and so the record without which the
// model is not called.
func (x *execution) storeAside(ctx context.Context, p artel.ToolCompleted) error {
	if err := x.stored(); err != nil {
		return err
	}
	aside := make(chan error, 1)
	x.aside = aside
	go func() {
		var err error
		defer func() { aside <- err }()
		defer x.caught(&err)
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if err = x.runs.config.Store.Update(ctx, x.owner, func(tx store.Tx) error { return x.write(tx, p) }); err == nil {
			x.runs.config.notifier().Notify(x.run.Conversation)
		}
	}()
	return nil
}

// stored waits for what is being stored aside.
func (x *execution) stored() error {
	if x.aside == nil {
		return nil
	}
	err := <-x.aside
	x.aside = nil
	return err
}

// commit changes the store after what is being stored aside.
func (x *execution) commit(ctx context.Context, fn func(store.Tx) error) error {
	if err := x.stored(); err != nil {
		return err
	}
	return x.runs.config.Store.Update(ctx, x.owner, fn)
}

// release stores what is held, and more after it. The transaction's caller
// calls released after it.
func (x *execution) release(tx store.Tx, more ...artel.Payload) error {
	if err := x.write(tx, slices.Concat(x.begun, x.held, more)...); err != nil || len(x.held) == 0 {
		return err
	}
	return tx.Runs.Update(x.run) // what it took so far is known also after a crash
}

func (x *execution) released() {
	if len(x.held) > 0 {
		x.runs.config.notifier().Discard(x.run.Conversation)
	}
	x.begun, x.held = nil, nil
	x.runs.config.notifier().Notify(x.run.Conversation)
}

// callsTools reports whether the answer that is held calls tools, so that it is
// not the end of the run.
func (x *execution) callsTools() bool {
	if len(x.held) == 0 {
		return false
	}
	m, ok := x.held[0].(artel.MessageCompleted)
	return ok && artel.HasCalls(m.Message.Parts)
}

// write stores payloads with the messages that they carry.
func (x *execution) write(tx store.Tx, payloads ...artel.Payload) error {
	for _, p := range payloads {
		switch p := p.(type) {
		case artel.MessageCompleted:
			if err := x.writeMessage(tx, p.Message); err != nil {
				return err
			}
		case artel.ToolCompleted:
			if err := x.writeMessage(tx, p.Message); err != nil {
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
	// A subagent's is on no branch; else somebody may have switched to another one.
	if c.UpdatedAt = m.CreatedAt; m.Within == "" && c.Leaf == m.Parent {
		c.Leaf = m.ID
	}
	return tx.Conversations.Update(c)
}

// appendEvents writes to the log, unless somebody has taken the run over: then
// nothing of this transaction may stay.
func (x *execution) appendEvents(tx store.Tx, payloads ...artel.Payload) error {
	if err := x.hold(tx); err != nil {
		return err
	}
	return x.runs.config.Events.Append(tx, x.run.Conversation, artel.Event{Run: x.run.ID, Agent: x.run.Agent, Within: x.within}, payloads...)
}

// keepLease shows that this process works on the run, until ctx ends.
func (x *execution) keepLease(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		lease := x.lease(x.runs.config.Now().Add(leaseTime))
		err := x.runs.config.Store.Update(ctx, x.owner, func(tx store.Tx) error { return tx.Runs.Renew(lease, time.Time{}) })
		switch {
		case errors.Is(err, artel.Conflict), errors.Is(err, artel.NotFound):
			cancel(errLeaseLost)
			return
		case err != nil && ctx.Err() == nil:
			x.runs.config.Logger.Warn("a run's lease could not be renewed", "run", x.run.ID, "err", err)
		}
	}
}

// finish ends the run in one transaction: folded versions, reply, last events
// and state. When that fails for good, the run ends as failed without folding;
// the journal keeps the edits, and the next run or start folds them. An error
// says that not even that was possible: the run stays until [App.Recover].
func (x *execution) finish(ctx context.Context, state artel.RunState, cause error) error {
	now := x.runs.config.Now()
	x.run.State, x.run.FinishedAt = state, &now
	if cause != nil && state != artel.RunDone {
		x.run.Error = x.explain(state, cause)
	}
	err := x.retry(ctx, func(tx store.Tx) error {
		if err := artifact.FoldRun(tx, x.run.Conversation, x.run.ID); err != nil {
			return err
		}
		return x.end(tx)
	})
	if errors.Is(err, errInjected) || errors.Is(err, errLeaseLost) {
		return err
	}
	if err != nil {
		x.runs.config.Logger.Error("a run's artifacts could not be folded; its journal is kept", "run", x.run.ID, "err", err)
		x.run.State, x.run.Error = artel.RunFailed, x.explain(artel.RunFailed, err)
		if err = x.retry(ctx, x.end); err != nil {
			x.runs.config.Logger.Error("a run could not be ended; recovery ends it", "run", x.run.ID, "err", err)
		}
	}
	x.runs.config.notifier().Discard(x.run.Conversation)
	x.runs.config.notifier().Notify(x.run.Conversation)
	return err
}

func (x *execution) end(tx store.Tx) error {
	current, err := tx.Runs.Get(x.run.ID)
	if err != nil {
		return err
	}
	if current.State.Final() {
		return nil
	}
	finished := artel.RunFinished{State: x.run.State, Reply: x.run.Reply, Error: x.run.Error, Usage: x.run.Usage}
	if err := x.write(tx, slices.Concat(x.begun, x.held)...); err != nil {
		return err
	}
	if err := x.settle(tx); err != nil {
		return err
	}
	if err := x.write(tx, finished); err != nil {
		return err
	}
	return tx.Runs.Update(x.run)
}

// retry runs an update up to five times while the store is unavailable.
func (x *execution) retry(ctx context.Context, fn func(store.Tx) error) error {
	wait := 50 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := x.commit(ctx, fn)
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

// explain says for people why a run did not end well. Our own faults go to
// the log under an id, and only the id is shown.
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
		x.runs.config.Logger.Error("a run failed", "run", x.run.ID, "error_id", id, "err", cause)
		return &artel.RunError{Kind: kind, Message: "internal error " + id + "; the log says more"}
	}
	out := &artel.RunError{Kind: kind, Message: scrub.Line(cause.Error())} // others' errors may quote what they were sent
	if code := artel.CodeOf(cause); code != string(kind) {
		out.Code = code
	}
	return out
}
