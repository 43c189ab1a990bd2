// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// checkLimits returns an error if no further model call may be made. counted: the
// call was counted already.
func (r *run) checkLimits(counted bool) error {
	if err := r.in.Agent.Limits.reached(r.in.Agent.Name, r.in.Service, r.usage, r.turns, counted, ""); err != nil {
		return err
	}
	return r.tree.mayCall(r.in.Agent.Name, r.in.Service, counted)
}

// beginCall is checkLimits before a model call, which it counts.
func (r *run) beginCall(counted bool) error {
	if err := r.checkLimits(counted); err != nil || counted {
		return err
	}
	r.turns++
	return r.tree.addTurn(r.in.Agent.Name)
}

// reached returns an error if a run of the agent name that has made these model
// calls may make no other on service s. all says whose calls they are.
func (l Limits) reached(name artel.AgentName, s model.Service, u artel.Usage, turns int, counted bool, all string) error {
	if !counted {
		turns++ // the next one
	}
	switch tokens := u.InputTokens + u.OutputTokens; {
	case turns > l.turns():
		return limitReached(name, artel.CodeLimitTurns, "%d model calls%s, the agent's limit (limits.turns)", l.turns(), all)
	case l.Tokens > 0 && tokens >= int64(l.Tokens):
		return limitReached(name, artel.CodeLimitTokens, "%d tokens%s, where the limit is %d (limits.tokens)", tokens, all, l.Tokens)
	case l.Cost > 0 && u.Cost.USD >= l.Cost:
		return limitReached(name, artel.CodeLimitCost, "model calls for %.4f dollars%s, where the limit is %v (limits.cost)", u.Cost.USD, all, l.Cost)
	case l.Cost > 0 && !s.Priced():
		return unpriced(name, s, l.Cost)
	}
	return nil
}

// unpriced returns the error for a limited cost on a service without a price.
func unpriced(name artel.AgentName, s model.Service, limit float64) error {
	return &artel.Error{
		Op: "agent.Run", Subject: string(name), Kind: artel.Invalid, Code: artel.CodeLimitCostUnknown,
		Err: fmt.Errorf("the agent limits the cost to %v dollars (limits.cost), and the price of the service %s is not known; "+
			model.SetPrice+"; or limit tokens instead (limits.tokens)", limit, s.ID),
	}
}

func (r *run) limitError(code, format string, args ...any) error {
	return limitReached(r.in.Agent.Name, code, format, args...)
}

func limitReached(name artel.AgentName, code, format string, args ...any) error {
	return &artel.Error{
		Op: "agent.Run", Subject: string(name), Kind: artel.TooLarge, Code: code,
		Err: fmt.Errorf("stopped after "+format+"; send a message to go on", args...),
	}
}

// A runTree is the state shared by a run and its subagents.
type runTree struct {
	limits Limits // of the outermost agent, for the whole tree

	mu        sync.Mutex
	seen      map[artel.CallID]bool // ids of calls on the branch
	turns     int
	calls     int
	usage     artel.Usage
	exhausted bool // a shared limit is reached
}

// ofAll names the calls that count toward a shared limit.
const ofAll = " of the agent and its subagents"

// mayCall returns an error if a shared limit allows no further model call on s.
func (f *runTree) mayCall(name artel.AgentName, s model.Service, counted bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.limits.reached(name, s, f.usage, f.turns, counted, ofAll)
	f.exhausted = f.exhausted || err != nil
	return err
}

// addTurn counts a model call of any run in the tree, and returns an error if
// there are too many.
func (f *runTree) addTurn(name artel.AgentName) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.turns++; f.turns > f.limits.turns() { // another subagent was faster
		f.exhausted, err = true, limitReached(name, artel.CodeLimitTurns, "%d model calls%s, the agent's limit (limits.turns)", f.limits.turns(), ofAll)
	}
	return err
}

// addToolCalls counts tool calls of any run in the tree, and returns an error if
// there are too many.
func (f *runTree) addToolCalls(name artel.AgentName, n int) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls += n; f.calls > f.limits.toolCalls() {
		f.exhausted, err = true, limitReached(name, artel.CodeLimitToolCalls, "%d tool calls%s, the agent's limit (limits.tool_calls)", f.limits.toolCalls(), ofAll)
	}
	return err
}

// restoreCounts adds the calls of earlier attempts.
func (f *runTree) restoreCounts(turns, calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turns += turns
	f.calls += calls
}

// addUsage adds the usage of a call to that of the tree and to own.
func (f *runTree) addUsage(own *artel.Usage, u artel.Usage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.usage, *own = f.usage.Add(u), own.Add(u)
}

// addOwnUsage adds the usage of a subagent to own.
func (f *runTree) addOwnUsage(own *artel.Usage, u artel.Usage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*own = own.Add(u)
}

func (f *runTree) isExhausted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.exhausted
}

// claim reserves the id of a call, and reports whether it was unused on the
// branch.
func (f *runTree) claim(id artel.CallID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == "" || f.seen[id] {
		return false
	}
	f.seen[id] = true
	return true
}

// reserveIDs reserves the ids of the calls of a history.
func (f *runTree) reserveIDs(history []artel.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range history {
		for _, c := range artel.CallsOf(m.Parts) {
			f.seen[c.ID] = true
		}
	}
}
