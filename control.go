// SPDX-License-Identifier: Apache-2.0

package artel

import (
	"encoding/json"
	"time"
)

// The types of events about user control of runs and branches; see [Payload].
const (
	EventMessageQueued       EventType = "message_queued"
	EventInjectionReceived   EventType = "injection_received"
	EventMessageInjected     EventType = "message_injected"
	EventPermissionRequested EventType = "permission_requested"
	EventPermissionResolved  EventType = "permission_resolved"
	EventMessageMuted        EventType = "message_muted"
	EventMessageEdited       EventType = "message_edited"
	EventBranchSwitched      EventType = "branch_switched"
)

type (
	// An InjectionID names a message sent to an active run: "inj_…".
	InjectionID string
	// A PermissionID names a permission request: "prm_…".
	PermissionID string
)

// NewInjectionID mints an identifier from now and the system's randomness.
func NewInjectionID(now time.Time) InjectionID { return InjectionID(mint("inj_", now)) }

// NewPermissionID mints an identifier from now and the system's randomness.
func NewPermissionID(now time.Time) PermissionID { return PermissionID(mint("prm_", now)) }

// ParsePermissionID checks the form of s; see [ParseConversationID].
func ParsePermissionID(s string) (PermissionID, error) {
	return parseID[PermissionID](s, "prm_", "permission request")
}

// A Decision answers a permission request.
type Decision string

// The decisions.
const (
	Allow  Decision = "allow"
	Deny   Decision = "deny"
	Always Decision = "always" // allow this tool on this branch without asking again
)

// A Resolution says how a permission request was resolved.
type Resolution string

// The resolutions.
const (
	ResolvedByPerson  Resolution = "person"
	ResolvedByTimeout Resolution = "timeout" // no answer in time, which denies
	ResolvedByEnd     Resolution = "ended"   // the run ended first
)

// MessageQueued records a message that waits until the runs before it have ended.
// Later the run has RunStarted and UserInput events, or RunFinished if it is
// cancelled first.
type MessageQueued struct {
	Message     MessageID `json:"message_id"`
	Service     ServiceID `json:"service"`
	Text        string    `json:"text,omitempty"`
	Attachments []Ref     `json:"attachments,omitempty"`
}

// InjectionReceived records a message sent to an active run that its model has
// not received yet.
type InjectionReceived struct {
	Injection InjectionID `json:"injection_id"`
	Text      string      `json:"text"`
}

// MessageInjected carries the message made of an injection. The run's next model
// call includes it, or the next run if this one has ended.
type MessageInjected struct {
	Injection InjectionID `json:"injection_id"`
	Message   Message     `json:"message"`
}

// PermissionRequested asks the user whether a tool may be called. The run waits;
// without an answer by ExpiresAt the call is denied.
type PermissionRequested struct {
	Permission PermissionID    `json:"permission_id"`
	Call       CallID          `json:"call_id"`
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"`
	ExpiresAt  time.Time       `json:"expires_at"`
	Effect     string          `json:"effect,omitempty"` // url, other_conversation or user_artifact: why the call needs permission
	Object     string          `json:"object,omitempty"` // what the effect is on, whole: an address, a ref or an id
}

// PermissionResolved carries the answer to a permission request.
type PermissionResolved struct {
	Permission PermissionID `json:"permission_id"`
	Call       CallID       `json:"call_id"`
	Name       string       `json:"name"`
	Decision   Decision     `json:"decision"`
	Reason     Resolution   `json:"reason"`
	Comment    string       `json:"comment,omitempty"` // written by the user for the model
}

// MessageMuted records that a message is hidden from models, or no longer is.
type MessageMuted struct {
	Message MessageID `json:"message_id"`
	Muted   bool      `json:"muted"`
}

// MessageEdited carries an answer that a person has written in place of another
// one, on a branch beside it. BranchSwitched follows.
type MessageEdited struct {
	Replaces MessageID `json:"replaces"`
	Message  Message   `json:"message"`
}

// BranchSwitched records the new last message of the active branch.
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
func (MessageEdited) EventType() EventType { return EventMessageEdited }

// EventType implements [Payload].
func (BranchSwitched) EventType() EventType { return EventBranchSwitched }
