// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// A ClientRequest is what a client of the gateway asks of a run beside its messages: the
// instructions, tools and settings of its request. It holds for the run's own thread, not for its
// subagents. The run ends when the model calls one of Tools: the client makes the call, and
// its next request brings the result. Calls of the agent's tools in the same answer are made
// before that.
type ClientRequest struct {
	Instructions string                  `json:"instructions,omitempty"` // sent as they are, after the role prompt
	Tools        []model.ToolSpec        `json:"tools,omitempty"`        // one with the name of a tool of the agent replaces it
	Settings     pipeline.ClientSettings `json:"settings,omitzero"`      // Settings.Choice is of the first model call of the run
}

// PlainName is the name of the agent of [Plain].
const PlainName artel.AgentName = "plain"

// Plain returns the agent of clients that name none: it has no prompt, no tools and no presets of
// its own, so that the model gets what the client has sent.
func Plain() Definition {
	return Definition{Name: PlainName, Description: "Answers with what a client's request brings: it has no prompt and no tools of its own."}
}

// has reports whether the client makes the calls of a tool.
func (c *ClientRequest) has(name string) bool {
	return c != nil && slices.ContainsFunc(c.Tools, func(t model.ToolSpec) bool { return t.Name == name })
}

// specs returns the tools of a model call: those of the agent, then those of the client.
func (c *ClientRequest) specs(own []model.ToolSpec) []model.ToolSpec {
	if c == nil || len(c.Tools) == 0 {
		return own
	}
	out := slices.DeleteFunc(slices.Clone(own), func(t model.ToolSpec) bool { return c.has(t.Name) })
	return append(out, c.Tools...)
}

// settings returns those of the next model call.
func (r *run) settings() *pipeline.ClientSettings {
	c := r.client()
	if c == nil {
		return nil
	}
	s := c.Settings
	if n := len(r.history); n > 0 && r.history[n-1].Run == r.in.Run.ID && r.history[n-1].ID != r.in.Run.Message {
		s.Choice = model.ToolChoice{OneByOne: s.Choice.OneByOne} // a forced call would be made again and again
	}
	return &s
}

// client returns the request of the client; nil: there is none for this thread.
func (r *run) client() *ClientRequest {
	if r.thread != "" {
		return nil
	}
	return r.in.Client
}

// ownCalls returns the calls that are made here.
func (r *run) ownCalls(calls []artel.ToolCall) []artel.ToolCall {
	c := r.client()
	if c == nil {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), func(call artel.ToolCall) bool { return c.has(call.Name) })
}

// waitsForClient reports whether the newest answer of the run calls tools of the client.
func (r *run) waitsForClient() bool {
	c := r.client()
	if c == nil {
		return false
	}
	for _, m := range slices.Backward(r.history) {
		switch {
		case m.Run != r.in.Run.ID || m.Summary:
			return false
		case m.Role == artel.RoleAssistant:
			return slices.ContainsFunc(artel.CallsOf(m.Parts), func(call artel.ToolCall) bool { return c.has(call.Name) })
		case m.Role != artel.RoleTool:
			return false
		}
	}
	return false
}
