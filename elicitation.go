// SPDX-License-Identifier: Apache-2.0

package artel

import (
	"encoding/json"
	"time"
)

// The types of events about what tool servers ask and tell people during calls; see
// [Payload].
const (
	EventElicitationRequested EventType = "elicitation_requested"
	EventElicitationResolved  EventType = "elicitation_resolved"
	EventToolProgress         EventType = "tool_progress"
)

// An ElicitationID names a question of a tool server: "eli_…".
type ElicitationID string

// NewElicitationID mints an identifier from now and the system's randomness.
func NewElicitationID(now time.Time) ElicitationID { return ElicitationID(mint("eli_", now)) }

// ParseElicitationID checks the form of s; see [ParseConversationID].
func ParseElicitationID(s string) (ElicitationID, error) {
	return parseID[ElicitationID](s, "eli_", "question of a tool server")
}

// An ElicitAction answers a question of a tool server.
type ElicitAction string

// The actions, as the Model Context Protocol names them.
const (
	ElicitAccept  ElicitAction = "accept"
	ElicitDecline ElicitAction = "decline"
	ElicitCancel  ElicitAction = "cancel" // no answer was given
)

// The modes of questions of tool servers.
const (
	ElicitForm = "form" // values by a schema
	ElicitURL  = "url"  // a page that the person opens, whose content stays between the person and the server
)

// ResolvedByServer is the [Resolution] of a question that its server, or the end of the
// call, took back.
const ResolvedByServer Resolution = "withdrawn"

// ElicitationRequested asks a person what a tool server wants to know during a call. The
// run waits; without an answer by ExpiresAt the server gets "cancel".
type ElicitationRequested struct {
	Elicitation ElicitationID   `json:"elicitation_id"`
	Call        CallID          `json:"call_id"`
	Name        string          `json:"name"` // of the tool
	Server      string          `json:"server"`
	Mode        string          `json:"mode"`
	Message     string          `json:"message"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	URL         string          `json:"url,omitempty"`
	ExpiresAt   time.Time       `json:"expires_at"`
}

// ElicitationResolved says how a question of a tool server was answered, without the
// values.
type ElicitationResolved struct {
	Elicitation ElicitationID `json:"elicitation_id"`
	Call        CallID        `json:"call_id"`
	Name        string        `json:"name"`
	Server      string        `json:"server"`
	Action      ElicitAction  `json:"action"`
	Reason      Resolution    `json:"reason"`
}

// ToolProgress says how far a call is, in the words of its server.
type ToolProgress struct {
	Call    CallID `json:"call_id"`
	Message string `json:"message"`
}

// EventType implements [Payload].
func (ToolProgress) EventType() EventType { return EventToolProgress }

// EventType implements [Payload].
func (ElicitationRequested) EventType() EventType { return EventElicitationRequested }

// EventType implements [Payload].
func (ElicitationResolved) EventType() EventType { return EventElicitationResolved }
