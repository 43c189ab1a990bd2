// SPDX-License-Identifier: Apache-2.0

package toolindex

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Deferral is what a request has in place of tools: one that finds them, with a list of
// their names, and one that calls them. Together they have at most [Budget] tokens. What has
// been found is in the result of a call, behind everything before, so that a cached beginning
// of the request stays valid. It is safe for concurrent use.
type Deferral struct {
	Find, Call Tool
	index      *Index
}

const (
	maxFound      = 8      // tools of a result
	maxFoundBytes = 12_000 // of them
	minList       = 200    // tokens, whatever is left of the budget
)

// Defer returns what stands for tools under two names; nil if they are within the budget.
// The count is in tokens.
func Defer(tools []Tool, find, call string, count func([]Tool) int) *Deferral {
	size := 0
	for _, t := range tools {
		size += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	if size <= Budget || count(tools) <= Budget { // a token has at least one byte
		return nil
	}
	d := &Deferral{
		index: New(tools),
		Find: Tool{
			Name:        find,
			Description: "Finds further tools by words, and returns what each does with the schema of its arguments. Call them with " + call + ". The further tools, by name as far as there is room:\n",
			Schema:      json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"words for what the tool should do, or names of tools"}},"required":["query"]}`),
		},
		Call: Tool{
			Name:        call,
			Description: "Calls one of the further tools of " + find + ". Find the schema of its arguments first.",
			Schema:      json.RawMessage(`{"type":"object","properties":{"tool":{"type":"string","description":"name of the tool"},"arguments":{"type":"object","description":"its arguments, by its schema"}},"required":["tool","arguments"]}`),
		},
	}
	room := max(Budget-count([]Tool{d.Find, d.Call}), minList)
	d.Find.Description += d.index.List(room, func(text string) int { return count([]Tool{{Description: text}}) })
	return d
}

// Direct returns the tool and the arguments that a call of d.Call means; false if it means
// none that is deferred.
func (d *Deferral) Direct(arguments json.RawMessage) (Tool, json.RawMessage, bool) {
	c := callOf(arguments)
	t, ok := d.index.Get(c.Tool)
	if !ok {
		return Tool{}, nil, false
	}
	return t, object(c.Arguments), true
}

// Result returns what a call of d.Find has found, or why a call that [Deferral.Direct] does
// not know calls nothing.
func (d *Deferral) Result(name string, arguments json.RawMessage) (text string, ok bool) {
	if name == d.Call.Name {
		asked := callOf(arguments).Tool
		text := fmt.Sprintf("There is no tool %q.", cut(asked, 128))
		if near := d.index.Find(asked, 5); len(near) > 0 {
			text += " Similar are " + strings.Join(namesOf(near), ", ") + "."
		}
		return text + " " + d.Find.Name + " finds tools by words.", false
	}
	var in struct {
		Query string `json:"query"`
	}
	_ = json.Unmarshal(object(arguments), &in) // an empty query finds nothing
	found := d.index.Find(in.Query, maxFound)
	if len(found) == 0 {
		return fmt.Sprintf("No tool matches %q. Use other words, or a name from the list.", cut(in.Query, 200)), false
	}
	return Found(found, maxFoundBytes), true
}

type call struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

func callOf(arguments json.RawMessage) (c call) {
	_ = json.Unmarshal(object(arguments), &c) // then it names no tool
	return c
}

// object returns arguments without the string that some models write around them; an empty
// object in place of none.
func object(arguments json.RawMessage) json.RawMessage {
	var written string
	if json.Unmarshal(arguments, &written) == nil {
		arguments = json.RawMessage(written)
	}
	if len(strings.TrimSpace(string(arguments))) == 0 || string(arguments) == "null" {
		return json.RawMessage("{}")
	}
	return arguments
}
