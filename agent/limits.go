// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"sync"

	"github.com/artelhq/artel"
)

// checkLimits returns an error if the run has reached a limit.
func (r *run) checkLimits(l Limits, turns int) error {
	switch u := r.usage; {
	case turns >= l.turns():
		return r.limitError(artel.CodeLimitTurns, "%d model calls, the agent's limit (limits.turns)", turns)
	case l.Tokens > 0 && u.InputTokens+u.OutputTokens >= int64(l.Tokens):
		return r.limitError(artel.CodeLimitTokens, "%d tokens, where the agent's limit is %d (limits.tokens)", u.InputTokens+u.OutputTokens, l.Tokens)
	case l.Cost > 0 && u.Cost.USD >= l.Cost:
		return r.limitError(artel.CodeLimitCost, "model calls for %.4f dollars, where the agent's limit is %v (limits.cost)", u.Cost.USD, l.Cost)
	}
	return nil
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

// addCalls counts model and tool calls of any run in the tree, and returns an
// error if a shared limit is exceeded.
func (f *runTree) addCalls(name artel.AgentName, turns, calls int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turns += turns
	f.calls += calls
	l, all := f.limits, "of the agent and its subagents"
	var err error
	switch tokens := f.usage.InputTokens + f.usage.OutputTokens; {
	case f.turns > l.turns():
		err = limitReached(name, artel.CodeLimitTurns, "%d model calls %s, the agent's limit (limits.turns)", l.turns(), all)
	case f.calls > l.toolCalls():
		err = limitReached(name, artel.CodeLimitToolCalls, "%d tool calls %s, the agent's limit (limits.tool_calls)", l.toolCalls(), all)
	case turns > 0 && l.Tokens > 0 && tokens >= int64(l.Tokens):
		err = limitReached(name, artel.CodeLimitTokens, "%d tokens %s, where the limit is %d (limits.tokens)", tokens, all, l.Tokens)
	case turns > 0 && l.Cost > 0 && f.usage.Cost.USD >= l.Cost:
		err = limitReached(name, artel.CodeLimitCost, "model calls for %.4f dollars %s, where the limit is %v (limits.cost)", f.usage.Cost.USD, all, l.Cost)
	}
	f.exhausted = f.exhausted || err != nil
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
