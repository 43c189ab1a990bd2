// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/store"
)

// A subagent is an execution of its own inside that of its run: with its own
// agent, service, contexts and workspace, and with the run's id, end and cost.
// Its messages hang on the one that called it, so no branch has them.

// threads are the subagents of a run by path.
type threads struct {
	mu sync.Mutex
	of map[artel.CallPath]*execution
}

func (t *threads) put(y *execution) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[artel.CallPath]*execution{}
	}
	t.of[y.within] = y
}

func (t *threads) get(p artel.CallPath) *execution {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[p]
}

// all returns the subagents in the order of their paths.
func (t *threads) all() []*execution {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.of), func(a, b *execution) int { return cmp.Compare(a.within, b.within) })
}

// subagentsOf returns the agents that the execution's agent may delegate to,
// without unknown ones.
func (x *execution) subagentsOf(tx store.Tx) (members []agent.Member) {
	x.runAtStart = x.run
	for _, name := range x.agent.Subagents {
		d, err := x.config.Settings.Agent(tx, name)
		if err != nil {
			x.config.Logger.Warn("an agent names an unknown subagent", "run", x.run.ID, "conversation", x.run.Conversation, "agent", x.agent.Name, "subagent", name)
			continue
		}
		members = append(members, agent.Member{Name: d.Name, Description: d.Description})
	}
	return members
}

// Delegate implements [agent.Host].
func (x *execution) Delegate(ctx context.Context, d agent.Delegation) (agent.Input, error) {
	y := &execution{runs: x.runs, config: x.config, owner: x.owner, run: x.runAtStart, term: x.term, clock: Clock{Seed: x.clock.Seed}, within: d.Within, root: x.outermost(), interrupted: x.outermost().interrupted}
	var history []artel.Message
	err := x.config.Store.View(ctx, x.owner, func(tx store.Tx) (err error) {
		if y.agent, err = x.config.Settings.Agent(tx, d.Agent); err != nil {
			return err
		}
		own := y.agent.Service
		if x.config.chooser().IsAuto(own) { // what its caller works with suits the message
			own = ""
		}
		service, _, err := x.config.chooser().Resolve(own, x.service.ID)
		if err != nil {
			return err
		}
		y.service, y.run.Agent, y.subagents = service.OnWire(), y.agent.Name, y.subagentsOf(tx)
		if history, err = y.threadHistory(tx, d); err != nil {
			return err
		}
		y.buildInput, err = y.runs.config.buildInput(tx, y.owner, y.run.Conversation, &y.agent, y.service, y.clock)
		return err
	})
	if err != nil {
		return agent.Input{}, err
	}
	y.buildInput.At = y.run.Message
	y.buildInput.Variables, y.buildInput.Globals = y.root.buildInput.Variables, y.root.buildInput.Globals
	y.root.threads.put(y)
	in, err := y.input(ctx, history)
	if end, ok := y.root.completed[d.Within]; ok {
		in.Completed = &end
	}
	return in, err
}

// outermost returns the execution of the run itself.
func (x *execution) outermost() *execution {
	if x.root != nil {
		return x.root
	}
	return x
}

// threadHistory returns the history of a subagent: the messages of an earlier
// attempt at the same call and, unless the start is fresh, its messages of
// earlier calls by the same caller on the branch, back to a fresh start.
func (x *execution) threadHistory(tx store.Tx, d agent.Delegation) ([]artel.Message, error) {
	own, err := tx.Messages.Nested(x.run.Conversation, x.run.ID)
	if err != nil {
		return nil, err
	}
	var before []artel.Message
	if !d.Fresh {
		if before, err = x.earlierWork(tx, d, own); err != nil {
			return nil, err
		}
	}
	return append(before, slices.DeleteFunc(own, func(m artel.Message) bool { return m.Within != d.Within })...), nil
}

func (x *execution) earlierWork(tx store.Tx, d agent.Delegation, own []artel.Message) ([]artel.Message, error) {
	all := own
	if d.Within.Outer() == "" {
		branch, err := tx.Messages.Path(x.run.Conversation, x.run.Message, 0)
		if err != nil {
			return nil, err
		}
		all = nil
		read := map[artel.RunID]bool{"": true, x.run.ID: true}
		for _, m := range branch {
			// A run has several such messages: what was added while it worked, and its summaries.
			if m.Role != artel.RoleUser || read[m.Run] {
				continue
			}
			read[m.Run] = true
			nested, err := tx.Messages.Nested(x.run.Conversation, m.Run)
			if err != nil {
				return nil, err
			}
			all = append(all, nested...)
		}
		all = append(all, own...)
	}
	type key struct {
		run    artel.RunID
		within artel.CallPath
	}
	var order []key
	of := map[key][]artel.Message{}
	for _, m := range all {
		k := key{m.Run, m.Within}
		if _, known := of[k]; !known {
			of[k] = nil
			// Subagents that are called at the same time do not see each other.
			if m.Agent == d.Agent && m.Within.Outer() == d.Within.Outer() && m.Parent != d.Caller {
				order, of[k] = append(order, k), []artel.Message{m}
			}
		} else if of[k] != nil {
			of[k] = append(of[k], m)
		}
	}
	var out []artel.Message
	for _, k := range slices.Backward(order) {
		out = append(slices.Clone(of[k]), out...)
		caller, err := tx.Messages.Get(of[k][0].Parent)
		if err != nil {
			return nil, err
		}
		if startedFresh(caller, k.within.Call()) {
			break
		}
	}
	return out, nil
}

// startedFresh reads the call in the message that made it.
func startedFresh(m artel.Message, id artel.CallID) bool {
	for _, c := range artel.CallsOf(m.Parts) {
		if c.ID != id {
			continue
		}
		var args struct {
			Fresh *bool `json:"fresh_start"`
		}
		return json.Unmarshal(c.Arguments, &args) != nil || args.Fresh == nil || *args.Fresh
	}
	return true
}

// handleNested stores a payload of a subagent. An answer is stored together with
// its usage, or at the end of the run if that fails.
func (x *execution) handleNested(ctx context.Context, n agent.Nested) error {
	y := x.threads.get(n.Within)
	if y == nil {
		return artel.Errorf(artel.Internal, "run.Runs", string(n.Within), "the subagent was not started")
	}
	switch p := n.Payload.(type) {
	case artel.MessageDelta:
		x.config.notifier().Stream(x.run.Conversation, event.Delta{
			Run: x.run.ID, Agent: n.Agent, Within: n.Within, Message: p.Message, Text: p.Text, Reasoning: p.Reasoning,
		})
		return nil
	case artel.MessageCompleted:
		if p.Partial && errors.Is(context.Cause(ctx), errShutdown) {
			return nil // the process that continues the run asks again
		}
		if !p.Partial {
			y.pending = append(y.pending, p)
			return nil
		}
	case artel.UsageReported:
		x.run.Usage = x.run.Usage.Add(p.Usage)
	}
	payloads := append(slices.Clip(y.pending), n.Payload)
	if _, usage := n.Payload.(artel.UsageReported); usage && len(y.pending) > 0 {
		y.pending = payloads
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	_, ended := n.Payload.(artel.SubagentCompleted)
	err := x.commit(ctx, func(tx store.Tx) (err error) {
		if ended {
			if err := y.closeQuestions(tx); err != nil {
				return err
			}
		}
		if err := y.write(tx, payloads...); err != nil {
			return err
		}
		if x.run.State, err = x.stateAtWork(tx); err != nil { // another subagent may have a question open
			return err
		}
		return tx.Runs.Update(x.run)
	})
	if err == nil {
		y.pending = nil
		if _, ok := payloads[0].(artel.MessageCompleted); ok {
			x.config.notifier().Discard(x.run.Conversation, n.Within)
		}
		x.config.notifier().Notify(x.run.Conversation)
	}
	return err
}
