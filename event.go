// SPDX-License-Identifier: Apache-2.0

package artel

import (
	"encoding/json"
	"time"
)

// Seq is the position of an event in its conversation's log, from 1.
type Seq int64

// An EventType is the type of an event; see [Payload].
type EventType string

// The types of events. MessageDelta is never stored and has no Seq.
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

// An Event is one entry of a conversation's log. Data is the JSON of the
// [Payload] for Type.
type Event struct {
	Seq    Seq             `json:"seq,omitempty"` // 0: live only
	Type   EventType       `json:"type"`
	Run    RunID           `json:"run_id,omitempty"`
	Agent  AgentName       `json:"agent,omitempty"`
	Within CallPath        `json:"within,omitempty"` // the subagent's thread; empty: the run's own agent
	Time   time.Time       `json:"time"`
	Data   json.RawMessage `json:"data"`
}

// NewEvent makes an event from its payload. The log assigns Seq.
func NewEvent(run RunID, agent AgentName, now time.Time, p Payload) (Event, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return Event{}, &Error{Op: "artel.NewEvent", Subject: string(p.EventType()), Kind: Internal, Err: err}
	}
	return Event{Type: p.EventType(), Run: run, Agent: agent, Time: now, Data: data}, nil
}

// A Payload is the data of one type of event.
type Payload interface{ EventType() EventType }

// RunStarted is the first event of a run.
type RunStarted struct {
	Message MessageID  `json:"message_id"`
	Service ServiceID  `json:"service"`
	Purpose RunPurpose `json:"purpose,omitempty"`
}

// UserInput is the message that a run answers.
type UserInput struct {
	Message Message `json:"message"`
}

// AgentStarted records the service and model of the run's agent.
type AgentStarted struct {
	Service ServiceID `json:"service"`
	Model   string    `json:"model"`
	Demo    bool      `json:"demo,omitempty"` // the answers are scripted; no model is called
}

// ContextBuilt records the form in which each attachment of the branch is sent.
// It precedes the run's first model call with attachments, and every later call
// with a different list; each list is complete.
type ContextBuilt struct {
	Service     ServiceID         `json:"service"`
	Attachments []AttachmentRoute `json:"attachments"` // in branch order
}

// An AttachmentRoute is the form in which one media part of a user message or
// tool result is sent to a model.
type AttachmentRoute struct {
	Message   MessageID `json:"message_id"` // that holds the part; for a tool result, the tool message
	Ref       Ref       `json:"ref"`        // of an artifact: pinned to a version
	Filename  string    `json:"filename,omitempty"`
	Kind      MediaKind `json:"kind"`
	MediaType string    `json:"media_type"`
	Size      int64     `json:"size"` // bytes of the original
	Route     `json:"route"`
	Sent      *SentForm `json:"sent,omitempty"`    // nil: the unchanged bytes, or the description
	Tokens    int       `json:"tokens"`            // of the sent form
	Pending   bool      `json:"pending,omitempty"` // in a preview: Sent is determined by the real call
	Dropped   bool      `json:"dropped,omitempty"` // the message was left out because it exceeds the context window
}

// A SentForm describes the bytes or the text sent instead of the original.
type SentForm struct {
	MediaType  string    `json:"media_type,omitempty"` // of converted bytes
	Size       int64     `json:"size,omitempty"`       // bytes
	Width      int       `json:"width,omitempty"`
	Height     int       `json:"height,omitempty"`
	Characters int       `json:"characters,omitempty"` // of a text
	Cut        bool      `json:"cut,omitempty"`        // the text was truncated
	Service    ServiceID `json:"service,omitempty"`    // that made the text
	Pages      int       `json:"pages,omitempty"`      // sent as pictures, from the first on
	PagesLeft  int       `json:"pages_left,omitempty"` // that were not sent
}

// MessageDelta is a piece of a streamed answer: text and reasoning to append. With
// Reset both hold everything so far and replace the earlier pieces.
type MessageDelta struct {
	Message   MessageID `json:"message_id"`
	Text      string    `json:"text"`
	Reasoning string    `json:"reasoning,omitempty"`
	Reset     bool      `json:"reset,omitempty"`
}

// MessageCompleted is one whole answer of the model: text, tool calls, or both.
type MessageCompleted struct {
	Message Message `json:"message"`
	Partial bool    `json:"partial,omitempty"` // the stream broke or was cancelled before its end
}

// SubagentStarted records that the last call of the event's path started a
// subagent. Message is its task.
type SubagentStarted struct {
	Call    CallID    `json:"call_id"`
	Service ServiceID `json:"service"`
	Fresh   bool      `json:"fresh_start"` // without the history of its earlier calls
	Message Message   `json:"message"`
}

// SubagentCompleted records that a subagent has finished or failed.
type SubagentCompleted struct {
	Call   CallID    `json:"call_id"`
	OK     bool      `json:"ok"`
	Reply  MessageID `json:"reply_id,omitempty"` // the message that is its result; empty: none
	Error  string    `json:"error,omitempty"`
	Usage  Usage     `json:"usage"` // including its own subagents
	Millis int64     `json:"duration_ms"`
}

// ToolStarted records the start of a tool call.
type ToolStarted struct {
	Call      CallID          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// ToolCompleted records the end of a tool call. Message is the tool message with
// the result.
type ToolCompleted struct {
	Call     CallID         `json:"call_id"`
	Name     string         `json:"name"`
	OK       bool           `json:"ok"`
	Message  Message        `json:"message"`
	Millis   int64          `json:"duration_ms"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// ArtifactCreated records a new artifact. Content is set for text of at most
// [SnapshotLimit] characters, on the live stream only.
type ArtifactCreated struct {
	Artifact       Artifact `json:"artifact"`
	Content        *string  `json:"content,omitempty"`
	ContentOmitted bool     `json:"content_omitted,omitempty"`
}

// ArtifactUpdated records one edit. Spans are applied in order to the text of
// BaseVersion; a client without that text fetches it by ref.
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

// UsageReported carries the usage of one model call.
type UsageReported struct {
	Service ServiceID   `json:"service"`
	Purpose CallPurpose `json:"purpose,omitempty"`
	Usage   Usage       `json:"usage"`
}

// A CallPurpose says what a model call was made for.
type CallPurpose string

// The purposes.
const (
	CallAnswers  CallPurpose = ""           // the agent's next message
	CallCompacts CallPurpose = "compaction" // a summary
	CallSelects  CallPurpose = "selection"  // the choice of a service
	CallRenders  CallPurpose = "rendition"  // a transcript or caption
)

// RunResumed records that a process continues a run after a restart or takeover.
// The answer that was being streamed then is generated again.
type RunResumed struct {
	Attempt int  `json:"attempt"`           // from 1, counted since the last completed step of the run
	Planned bool `json:"planned,omitempty"` // the process before was stopped and gave the run up; it has not crashed
}

// A CompactionReason says why a history is compacted.
type CompactionReason string

// The reasons.
const (
	CompactThreshold CompactionReason = "threshold" // the request has more tokens than the agent's threshold
	CompactOverflow  CompactionReason = "overflow"  // the service said that the request is too long
	CompactRequested CompactionReason = "requested" // a user or client asked for it
)

// CompactionRequested asks an active run to compact its history before its next
// model call or its end.
type CompactionRequested struct {
	Focus string `json:"focus,omitempty"` // what the summary keeps in detail, in the user's words
}

// CompactionStarted records that a model is asked for a summary.
type CompactionStarted struct {
	Reason    CompactionReason `json:"reason"`
	Service   ServiceID        `json:"service"`
	Tokens    int              `json:"tokens,omitempty"`    // of the request that triggered it; 0: not known
	Threshold int              `json:"threshold,omitempty"` // tokens; 0: none
	Undone    MessageID        `json:"undone,omitempty"`    // the summary without which the history is too long, because a user has undone it
}

// CompactionCompleted ends a compaction. Message is the summary, which from now
// on replaces the messages it covers in requests; these stay stored. A failed
// compaction has no Message and changes nothing.
type CompactionCompleted struct {
	OK       bool             `json:"ok"`
	Reason   CompactionReason `json:"reason"`
	Message  *Message         `json:"message,omitempty"`
	Artifact *Artifact        `json:"artifact,omitempty"`      // the summary for users, with the ids of the summarised messages
	Replaced int              `json:"replaced,omitempty"`      // number of summarised messages
	Before   int              `json:"tokens_before,omitempty"` // of the summarised messages as they were sent
	After    int              `json:"tokens_after,omitempty"`  // of the summary
	Focus    string           `json:"focus,omitempty"`         // what it keeps in detail, in the user's words
	Undone   MessageID        `json:"undone,omitempty"`        // see [CompactionStarted]
	Millis   int64            `json:"duration_ms"`
	Error    *RunError        `json:"error,omitempty"`
}

// ServiceChanged records that a run continues with a fallback service because its
// service is unavailable.
type ServiceChanged struct {
	From   ServiceID `json:"from"`
	To     ServiceID `json:"to"`
	Model  string    `json:"model"`
	Demo   bool      `json:"demo,omitempty"`
	Reason string    `json:"reason"`
}

// ServiceChosen records which service the automatic selection chose for a message,
// and how.
type ServiceChosen struct {
	Service    ServiceID    `json:"service"`
	Model      string       `json:"model"`
	Demo       bool         `json:"demo,omitempty"`
	By         ChosenBy     `json:"by"`
	Needs      []Capability `json:"needs"`              // capabilities that the message's media need
	Candidates []ServiceID  `json:"candidates"`         // the best matching services, in order of preference
	Selector   ServiceID    `json:"selector,omitempty"` // the model that was asked to pick one
	Problem    string       `json:"problem,omitempty"`  // why the selector did not pick one
}

// ChosenBy says how a service was chosen.
type ChosenBy string

// The ways of choosing.
const (
	ChosenByOrder    ChosenBy = "order"    // the first of the candidates
	ChosenBySelector ChosenBy = "selector" // the selector's choice
)

// ConversationTitled records a title written by a model. It belongs to the
// conversation, not to a run.
type ConversationTitled struct {
	Title   string    `json:"title"`
	Service ServiceID `json:"service"` // that wrote it
	Usage   Usage     `json:"usage"`   // of the call
}

// Retrying records that a model call failed before its first output and will be
// retried after Wait.
type Retrying struct {
	Service ServiceID `json:"service"`
	Attempt int       `json:"attempt"` // the next attempt, from 2
	Of      int       `json:"of"`      // the most attempts
	Wait    float64   `json:"wait_seconds"`
	Reason  string    `json:"reason"` // of the failure
}

// RunFinished is the last event of a run.
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
