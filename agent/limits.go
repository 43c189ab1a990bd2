// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"github.com/artelhq/artel"
)

// within is the end of a run that has reached a limit.
func (r *run) within(l Limits, turns int) error {
	switch u := r.spent; {
	case turns >= l.turns():
		return r.stopped(artel.CodeLimitTurns, "%d model calls, the agent's limit (limits.turns)", turns)
	case l.Tokens > 0 && u.InputTokens+u.OutputTokens >= int64(l.Tokens):
		return r.stopped(artel.CodeLimitTokens, "%d tokens, where the agent's limit is %d (limits.tokens)", u.InputTokens+u.OutputTokens, l.Tokens)
	case l.Cost > 0 && u.Cost.USD >= l.Cost:
		return r.stopped(artel.CodeLimitCost, "model calls for %.4f dollars, where the agent's limit is %v (limits.cost)", u.Cost.USD, l.Cost)
	}
	return nil
}

func (r *run) stopped(code, format string, args ...any) error {
	return limitReached(r.in.Agent.Name, code, format, args...)
}

func limitReached(name artel.AgentName, code, format string, args ...any) error {
	return &artel.Error{
		Op: "agent.Run", Subject: string(name), Kind: artel.TooLarge, Code: code,
		Err: fmt.Errorf("stopped after "+format+"; send a message to go on", args...),
	}
}
