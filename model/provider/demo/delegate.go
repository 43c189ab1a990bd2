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

// asksForSubagents finds the words by which people ask for delegation.
var asksForSubagents = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(delegat|sub-?agent)|委派|子智能体`)
})

// agentsIn are the names in the schema of the tool that calls subagents.
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

// atOnce is how many subagents work at the same time.
const atOnce = 2

// delegate gives work to subagents once, where the message asks for that.
func (h *history) delegate() []move {
	if len(h.agents) == 0 || !asksForSubagents().MatchString(h.text) || len(h.attempts("delegate-1")) > 0 {
		return nil
	}
	moves := []move{h.say(phrase.DemoDelegating, nil)}
	for i, name := range h.agents[:min(atOnce, len(h.agents))] {
		moves = append(moves, h.call(fmt.Sprintf("delegate-%d_1", i+1), way{delegateTool, map[string]string{
			"agent": name, "instruction": h.locale.Say(phrase.DemoInstruction, map[string]any{"Name": name}),
		}}))
	}
	return moves
}

// answered is what the subagents have said, as a list.
func (h *history) answered() string {
	var lines []string
	for i := range atOnce {
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

// isInstruction reports whether the newest message is what [history.delegate]
// asks a subagent for.
func (h *history) isInstruction() bool {
	for _, l := range phrase.Locales() {
		head, _, _ := strings.Cut(l.Say(phrase.DemoInstruction, map[string]any{"Name": "|"}), "|")
		if strings.HasPrefix(h.text, strings.TrimSpace(head)) {
			return true
		}
	}
	return false
}

// serve is the turn of a subagent: it looks at what there is, and counts it.
func (h *history) serve() []move {
	looked := h.attempts("look")
	if len(looked) == 0 && h.tools[listTool] {
		return []move{h.say(phrase.DemoLooking, nil), h.call("look_1", way{listTool, struct{}{}})}
	}
	n := 0
	for _, c := range looked {
		if c.ok() {
			n = strings.Count(c.result.Content, "<artifact_slice ")
		}
	}
	return []move{h.say(phrase.DemoServed, map[string]any{"Count": n})}
}
