// SPDX-License-Identifier: Apache-2.0

package artel

import (
	"encoding/json"
	"time"
)

// The types of events by which people steer runs and branches; see [Payload].
const (
	EventMessageQueued       EventType = "message_queued"
	EventInjectionReceived   EventType = "injection_received"
	EventMessageInjected     EventType = "message_injected"
	EventPermissionRequested EventType = "permission_requested"
	EventPermissionResolved  EventType = "permission_resolved"
	EventMessageMuted        EventType = "message_muted"
	EventBranchSwitched      EventType = "branch_switched"
)

type (
	// An InjectionID names something that was said to a run at work: "inj_…".
	InjectionID string
	// A PermissionID names a question of permission: "prm_…".
	PermissionID string
)

// NewInjectionID mints an identifier from now and the system's randomness.
func NewInjectionID(now time.Time) InjectionID { return InjectionID(mint("inj_", now)) }

// NewPermissionID mints an identifier from now and the system's randomness.
func NewPermissionID(now time.Time) PermissionID { return PermissionID(mint("prm_", now)) }

// ParsePermissionID checks the form of s; see [ParseConversationID].
func ParsePermissionID(s string) (PermissionID, error) {
	return parseID[PermissionID](s, "prm_", "question of permission")
}

// A Decision is an answer to a question of permission.
type Decision string

// The decisions.
const (
	Allow  Decision = "allow"
	Deny   Decision = "deny"
	Always Decision = "always" // allow, and do not ask again about this tool on this branch
)

// A Resolution says how a question came to its answer.
type Resolution string

// The resolutions.
const (
	ResolvedByPerson  Resolution = "person"
	ResolvedByTimeout Resolution = "timeout" // nobody answered in time
	ResolvedByEnd     Resolution = "ended"   // the run ended before
)

// MessageQueued tells of a message that waits until the runs before it have ended.
// The run's RunStarted and UserInput follow when its turn comes; where it is
// cancelled before, its RunFinished.
type MessageQueued struct {
	Message     MessageID `json:"message_id"`
	Service     ServiceID `json:"service"`
	Text        string    `json:"text,omitempty"`
	Attachments []Ref     `json:"attachments,omitempty"`
}

// InjectionReceived tells of something that was said to a run at work, and that
// its model has not been told yet.
type InjectionReceived struct {
	Injection InjectionID `json:"injection_id"`
	Text      string      `json:"text"`
}

// MessageInjected carries the message that an injection became. The next model
// call of the run has it; where the run has ended meanwhile, the next run.
type MessageInjected struct {
	Injection InjectionID `json:"injection_id"`
	Message   Message     `json:"message"`
}

// PermissionRequested asks people whether a tool may be called. The run waits;
// when nobody has answered by ExpiresAt, that denies.
type PermissionRequested struct {
	Permission PermissionID    `json:"permission_id"`
	Call       CallID          `json:"call_id"`
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"`
	ExpiresAt  time.Time       `json:"expires_at"`
}

// PermissionResolved tells the answer to a question of permission.
type PermissionResolved struct {
	Permission PermissionID `json:"permission_id"`
	Call       CallID       `json:"call_id"`
	Name       string       `json:"name"`
	Decision   Decision     `json:"decision"`
	Reason     Resolution   `json:"reason"`
	Comment    string       `json:"comment,omitempty"` // of the person, for the model
}

// MessageMuted tells that models are no longer sent a message, or are again.
type MessageMuted struct {
	Message MessageID `json:"message_id"`
	Muted   bool      `json:"muted"`
}

// BranchSwitched tells that the active branch ends in another message.
type BranchSwitched struct {
	Leaf MessageID `json:"leaf"`
}

// EventType implements [Payload].
func (MessageQueued) EventType() EventType { return EventMessageQueued }

// EventType implements [Payload].
func (InjectionReceived) EventType() EventType { return EventInjectionReceived }

// EventType implements [Payload].
func (MessageInjected) EventType() EventType { return EventMessageInjected }

// EventType implements [Payload].
func (PermissionRequested) EventType() EventType { return EventPermissionRequested }

// EventType implements [Payload].
func (PermissionResolved) EventType() EventType { return EventPermissionResolved }

// EventType implements [Payload].
func (MessageMuted) EventType() EventType { return EventMessageMuted }

// EventType implements [Payload].
func (BranchSwitched) EventType() EventType { return EventBranchSwitched }
