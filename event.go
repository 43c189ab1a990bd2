// SPDX-License-Identifier: Apache-2.0

package artel

import (
	"encoding/json"
	"time"
)

// Seq is the position of an event in its conversation's log, from 1.
type Seq int64

// An EventType names what an event tells; see [Payload].
type EventType string

// The types of events. MessageDelta is live only: it has no Seq and is never
// stored.
const (
	EventRunStarted        EventType = "run_started"
	EventUserInput         EventType = "user_input"
	EventAgentStarted      EventType = "agent_started"
	EventContextBuilt      EventType = "context_built"
	EventMessageDelta      EventType = "message_delta"
	EventMessageCompleted  EventType = "message_completed"
	EventToolStarted       EventType = "tool_started"
	EventToolCompleted     EventType = "tool_completed"
	EventArtifactCreated   EventType = "artifact_created"
	EventArtifactUpdated   EventType = "artifact_updated"
	EventSubagentStarted   EventType = "subagent_started"
	EventSubagentCompleted EventType = "subagent_completed"
	EventUsage             EventType = "usage"
	EventServiceChanged    EventType = "service_changed"
	EventServiceChosen     EventType = "service_chosen"
	EventRetrying          EventType = "retrying"
	EventRunResumed        EventType = "run_resumed"

	EventCompactionRequested EventType = "compaction_requested"
	EventCompactionStarted   EventType = "compaction_started"
	EventCompactionCompleted EventType = "compaction_completed"
	EventRunFinished         EventType = "run_finished"

	EventConversationTitled EventType = "conversation_titled"
)

// An Event is one fact in a conversation's log. Data is the JSON of the
// [Payload] that belongs to Type.
type Event struct {
	Seq    Seq             `json:"seq,omitempty"` // 0: live only
	Type   EventType       `json:"type"`
	Run    RunID           `json:"run_id,omitempty"`
	Agent  AgentName       `json:"agent,omitempty"`
	Within CallPath        `json:"within,omitempty"` // the thread of the subagent that it is about; empty: the run's own agent
	Time   time.Time       `json:"time"`
	Data   json.RawMessage `json:"data"`
}

// NewEvent makes an event from its payload. Seq is given by the log.
func NewEvent(run RunID, agent AgentName, now time.Time, p Payload) (Event, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return Event{}, &Error{Op: "artel.NewEvent", Subject: string(p.EventType()), Kind: Internal, Err: err}
	}
	return Event{Type: p.EventType(), Run: run, Agent: agent, Time: now, Data: data}, nil
}

// A Payload is the data of one type of event.
type Payload interface{ EventType() EventType }

// RunStarted opens a run.
type RunStarted struct {
	Message MessageID  `json:"message_id"`
	Service ServiceID  `json:"service"`
	Purpose RunPurpose `json:"purpose,omitempty"`
}

// UserInput is the message that a run answers.
type UserInput struct {
	Message Message `json:"message"`
}

// AgentStarted tells which agent works on what service.
type AgentStarted struct {
	Service ServiceID `json:"service"`
	Model   string    `json:"model"`
	Demo    bool      `json:"demo,omitempty"` // the answers are scripted, no model is asked
}

// ContextBuilt tells in which form the attachments on the branch were sent with
// a model call. It comes before the first call of a run that has any, and again
// before each call for which the list is another one; each list is complete.
type ContextBuilt struct {
	Service     ServiceID         `json:"service"`
	Attachments []AttachmentRoute `json:"attachments"` // in the order in which they stand on the branch
}

// An AttachmentRoute is the way of one media part to a model: of a user's
// message, or of a tool result.
type AttachmentRoute struct {
	Message   MessageID `json:"message_id"` // that holds the part; of a tool result, the tool message
	Ref       Ref       `json:"ref"`        // pinned to a version where it is an artifact's
	Filename  string    `json:"filename,omitempty"`
	Kind      MediaKind `json:"kind"`
	MediaType string    `json:"media_type"`
	Size      int64     `json:"size"` // bytes of the original
	Route     `json:"route"`
	Sent      *SentForm `json:"sent,omitempty"`    // nil: the bytes as they are, or the description
	Tokens    int       `json:"tokens"`            // of what is sent
	Pending   bool      `json:"pending,omitempty"` // of a preview: Sent will be known when it is sent
	Dropped   bool      `json:"dropped,omitempty"` // the message did not fit into the model's window: nothing of it was sent
}

// A SentForm says what was sent in the place of some bytes: other bytes, or a text.
type SentForm struct {
	MediaType  string    `json:"media_type,omitempty"` // of converted bytes
	Size       int64     `json:"size,omitempty"`       // bytes
	Width      int       `json:"width,omitempty"`
	Height     int       `json:"height,omitempty"`
	Characters int       `json:"characters,omitempty"` // of a text that is sent
	Cut        bool      `json:"cut,omitempty"`        // the text goes on where this ends
	Service    ServiceID `json:"service,omitempty"`    // that made the text
}

// MessageDelta is a piece of the answer being written: text to append, and
// reasoning to append to what the model thought before it. Reset means that
// both are all of it so far, and replace what came before.
type MessageDelta struct {
	Message   MessageID `json:"message_id"`
	Text      string    `json:"text"`
	Reasoning string    `json:"reasoning,omitempty"`
	Reset     bool      `json:"reset,omitempty"`
}

// MessageCompleted is one whole answer of the model: text, tool calls, or both.
type MessageCompleted struct {
	Message Message `json:"message"`
	Partial bool    `json:"partial,omitempty"` // the stream broke or was cancelled; this is what had come
}

// SubagentStarted tells that an agent was given work by the call that ends the
// event's path. Message is what it is to do.
type SubagentStarted struct {
	Call    CallID    `json:"call_id"`
	Service ServiceID `json:"service"`
	Fresh   bool      `json:"fresh_start"` // it knows nothing of what it did before
	Message Message   `json:"message"`
}

// SubagentCompleted tells that a subagent rests, or why it has given up.
type SubagentCompleted struct {
	Call   CallID    `json:"call_id"`
	OK     bool      `json:"ok"`
	Reply  MessageID `json:"reply_id,omitempty"` // the message that its caller reads; empty: none
	Error  string    `json:"error,omitempty"`
	Usage  Usage     `json:"usage"` // with that of its own subagents
	Millis int64     `json:"duration_ms"`
}

// ToolStarted tells that a tool begins.
type ToolStarted struct {
	Call      CallID          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// ToolCompleted carries a tool's result as the model reads it. Message is the
// tool message that holds it.
type ToolCompleted struct {
	Call     CallID         `json:"call_id"`
	Name     string         `json:"name"`
	OK       bool           `json:"ok"`
	Message  Message        `json:"message"`
	Millis   int64          `json:"duration_ms"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// ArtifactCreated tells of a new artifact. Content is there for text of at
// most [SnapshotLimit] characters, on the live stream only.
type ArtifactCreated struct {
	Artifact       Artifact `json:"artifact"`
	Content        *string  `json:"content,omitempty"`
	ContentOmitted bool     `json:"content_omitted,omitempty"`
}

// ArtifactUpdated tells of one edit. Spans are applied in order to the text of
// BaseVersion; a client that does not have it fetches it by ref.
type ArtifactUpdated struct {
	ID             ArtifactID `json:"id"`
	Version        int        `json:"version"`
	BaseVersion    int        `json:"base_version"`
	Update         UpdateType `json:"update_type"`
	Spans          []Change   `json:"spans,omitempty"`
	Artifact       Artifact   `json:"artifact"`
	Content        *string    `json:"content,omitempty"`
	ContentOmitted bool       `json:"content_omitted,omitempty"`
}

// SnapshotLimit is the longest text, in characters, that an event carries.
const SnapshotLimit = 256_000

// UsageReported tells what one model call took.
type UsageReported struct {
	Service ServiceID `json:"service"`
	Usage   Usage     `json:"usage"`
}

// RunResumed tells that a process goes on with a run that another, or itself
// before a restart, has left. What was being written then is written anew.
type RunResumed struct {
	Attempt int `json:"attempt"` // from 1, since the last step of the run that was completed
}

// A CompactionReason says why a history is compacted.
type CompactionReason string

// The reasons.
const (
	CompactThreshold CompactionReason = "threshold" // the request has more tokens than the agent's threshold
	CompactOverflow  CompactionReason = "overflow"  // the service said that the request is too long
	CompactRequested CompactionReason = "requested" // a person or a program asked for it
)

// CompactionRequested tells that a run at work is to sum up, before its next
// model call or its end.
type CompactionRequested struct{}

// CompactionStarted tells that a model is asked to sum up what came before.
type CompactionStarted struct {
	Reason    CompactionReason `json:"reason"`
	Service   ServiceID        `json:"service"`
	Tokens    int              `json:"tokens,omitempty"`    // of the request that was to be sent; 0: not known
	Threshold int              `json:"threshold,omitempty"` // tokens; 0: there is none
}

// CompactionCompleted ends a compaction. Message is the boundary: the summary
// that models are sent from now on in the place of the messages that it covers,
// which stay stored. A compaction that failed has none, and changes nothing.
type CompactionCompleted struct {
	OK       bool             `json:"ok"`
	Reason   CompactionReason `json:"reason"`
	Message  *Message         `json:"message,omitempty"`
	Artifact *Artifact        `json:"artifact,omitempty"` // the summary for people, with the ids of what it stands for
	Replaced int              `json:"replaced,omitempty"` // messages that it stands for
	Millis   int64            `json:"duration_ms"`
	Error    *RunError        `json:"error,omitempty"`
}

// ServiceChanged tells that a run goes on with another service, as the one that
// it had cannot be reached.
type ServiceChanged struct {
	From   ServiceID `json:"from"`
	To     ServiceID `json:"to"`
	Model  string    `json:"model"`
	Demo   bool      `json:"demo,omitempty"`
	Reason string    `json:"reason"`
}

// ServiceChosen tells which service a run has whose service was to be chosen for
// its message, and how that was done.
type ServiceChosen struct {
	Service    ServiceID    `json:"service"`
	Model      string       `json:"model"`
	Demo       bool         `json:"demo,omitempty"`
	By         ChosenBy     `json:"by"`
	Needs      []Capability `json:"needs"`              // what the message's media want of a model
	Candidates []ServiceID  `json:"candidates"`         // that suit it best, in their order
	Selector   ServiceID    `json:"selector,omitempty"` // that was asked to pick one of them
	Problem    string       `json:"problem,omitempty"`  // why it has not
}

// ChosenBy says how a service was chosen.
type ChosenBy string

// The ways.
const (
	ChosenByOrder    ChosenBy = "order"    // the first of the candidates
	ChosenBySelector ChosenBy = "selector" // a model has picked it
)

// ConversationTitled tells the title that a conversation has after a model was
// asked for one. It is told of the conversation, not of a run.
type ConversationTitled struct {
	Title   string    `json:"title"`
	Service ServiceID `json:"service"` // that was asked
	Usage   Usage     `json:"usage"`   // of that call
}

// Retrying tells that a model call has failed before anything was said, and is
// made again after a while: because the API has asked for that, or by itself.
type Retrying struct {
	Service ServiceID `json:"service"`
	Attempt int       `json:"attempt"` // that comes next, from 2
	Of      int       `json:"of"`      // attempts there are at most
	Wait    float64   `json:"wait_seconds"`
	Reason  string    `json:"reason"` // of the failure
}

// RunFinished closes a run; nothing of it follows.
type RunFinished struct {
	State RunState  `json:"state"`
	Reply MessageID `json:"reply_id,omitempty"`
	Error *RunError `json:"error,omitempty"`
	Usage Usage     `json:"usage"`
}

// EventType implements [Payload].
func (RunStarted) EventType() EventType { return EventRunStarted }

// EventType implements [Payload].
func (UserInput) EventType() EventType { return EventUserInput }

// EventType implements [Payload].
func (AgentStarted) EventType() EventType { return EventAgentStarted }

// EventType implements [Payload].
func (ContextBuilt) EventType() EventType { return EventContextBuilt }

// EventType implements [Payload].
func (MessageDelta) EventType() EventType { return EventMessageDelta }

// EventType implements [Payload].
func (MessageCompleted) EventType() EventType { return EventMessageCompleted }

// EventType implements [Payload].
func (ToolStarted) EventType() EventType { return EventToolStarted }

// EventType implements [Payload].
func (ToolCompleted) EventType() EventType { return EventToolCompleted }

// EventType implements [Payload].
func (ArtifactCreated) EventType() EventType { return EventArtifactCreated }

// EventType implements [Payload].
func (ArtifactUpdated) EventType() EventType { return EventArtifactUpdated }

// EventType implements [Payload].
func (CompactionRequested) EventType() EventType { return EventCompactionRequested }

// EventType implements [Payload].
func (SubagentStarted) EventType() EventType { return EventSubagentStarted }

// EventType implements [Payload].
func (SubagentCompleted) EventType() EventType { return EventSubagentCompleted }

// EventType implements [Payload].
func (UsageReported) EventType() EventType { return EventUsage }

// EventType implements [Payload].
func (RunResumed) EventType() EventType { return EventRunResumed }

// EventType implements [Payload].
func (CompactionStarted) EventType() EventType { return EventCompactionStarted }

// EventType implements [Payload].
func (CompactionCompleted) EventType() EventType { return EventCompactionCompleted }

// EventType implements [Payload].
func (ServiceChanged) EventType() EventType { return EventServiceChanged }

// EventType implements [Payload].
func (ServiceChosen) EventType() EventType { return EventServiceChosen }

// EventType implements [Payload].
func (ConversationTitled) EventType() EventType { return EventConversationTitled }

// EventType implements [Payload].
func (Retrying) EventType() EventType { return EventRetrying }

// EventType implements [Payload].
func (RunFinished) EventType() EventType { return EventRunFinished }
