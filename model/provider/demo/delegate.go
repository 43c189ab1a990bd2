// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/artelhq/artel/internal/phrase"
)

// asksForSubagents matches requests for delegation.
var asksForSubagents = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(delegat|sub-?agent)|委派|子智能体`)
})

// agentsIn returns the agents in the schema of the tool that calls subagents.
func agentsIn(schema json.RawMessage) []string {
	var s struct {
		Properties struct {
			Agent struct {
				Enum []string `json:"enum"`
			} `json:"agent"`
		} `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	return s.Properties.Agent.Enum
}

// parallelAgents is how many subagents work in parallel.
const parallelAgents = 2

// delegate gives work to subagents once, if the message asks for it.
func (h *history) delegate() []move {
	if len(h.agents) == 0 || !asksForSubagents().MatchString(h.text) || len(h.attempts("delegate-1")) > 0 {
		return nil
	}
	moves := []move{h.say(phrase.DemoDelegating, nil)}
	for i, name := range h.agents[:min(parallelAgents, len(h.agents))] {
		moves = append(moves, h.call(fmt.Sprintf("delegate-%d_1", i+1), approach{delegateTool, map[string]string{
			"agent": name, "instruction": h.locale.Say(phrase.DemoInstruction, map[string]any{"Name": name}),
		}}))
	}
	return moves
}

// answered lists the answers of the subagents.
func (h *history) answered() string {
	var lines []string
	for i := range parallelAgents {
		for _, c := range h.attempts(fmt.Sprintf("delegate-%d", i+1)) {
			var args struct{ Agent string }
			if c.result == nil || json.Unmarshal(c.Arguments, &args) != nil {
				continue
			}
			lines = append(lines, "- `"+args.Agent+"`: "+strings.Join(strings.Fields(shorten(c.result.Content, maxQuote)), " "))
		}
	}
	return strings.Join(lines, "\n")
}

// isInstruction reports whether the newest message is an instruction of
// [history.delegate] to a subagent.
func (h *history) isInstruction() bool {
	for _, l := range phrase.Locales() {
		head, _, _ := strings.Cut(l.Say(phrase.DemoInstruction, map[string]any{"Name": "|"}), "|")
		if strings.HasPrefix(h.text, strings.TrimSpace(head)) {
			return true
		}
	}
	return false
}

// subagentTurn is the turn of a subagent: it inspects the attachments and counts
// them.
func (h *history) subagentTurn() []move {
	looked := h.attempts("look")
	if len(looked) == 0 && h.tools[listTool] {
		return []move{h.say(phrase.DemoLooking, nil), h.call("look_1", approach{listTool, struct{}{}})}
	}
	n := 0
	for _, c := range looked {
		if c.ok() {
			n = strings.Count(c.result.Content, "<artifact_slice ")
		}
	}
	return []move{h.say(phrase.DemoServed, map[string]any{"Count": n})}
}
