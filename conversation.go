// SPDX-License-Identifier: Apache-2.0

package artel

import "time"

// A Conversation is a tree of messages and the artifacts made in it.
type Conversation struct {
	ID        ConversationID `json:"id"`
	Title     string         `json:"title"`
	Agent     AgentName      `json:"agent,omitempty"`   // the default for its messages
	Service   ServiceID      `json:"service,omitempty"` // the default for its messages
	Leaf      MessageID      `json:"leaf,omitempty"`    // the newest message of the active branch
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
}

// A Role says who speaks in a message.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Message is one entry of a conversation's tree. Messages never change,
// except for Muted. The thread of a subagent hangs on the message that called
// it, beside the branch that goes on there.
type Message struct {
	ID           MessageID      `json:"id"`
	Conversation ConversationID `json:"conversation_id"`
	Parent       MessageID      `json:"parent_id,omitempty"` // empty: a root
	Role         Role           `json:"role"`
	Parts        Parts          `json:"parts"`
	Agent        AgentName      `json:"agent,omitempty"`
	Run          RunID          `json:"run_id,omitempty"` // the run that wrote it, or that it started
	Within       CallPath       `json:"within,omitempty"` // the subagent's thread that it belongs to; empty: the conversation's own
	Muted        bool           `json:"muted,omitempty"`
	Summary      bool           `json:"summary,omitempty"` // a compaction boundary: models are sent it in the place of what is before it
	Covers       MessageID      `json:"covers,omitempty"`  // of a summary: the newest message that it stands for; empty: all before it
	CreatedAt    time.Time      `json:"created_at"`
}

// A RunState is where a run stands.
type RunState string

// The states. The last five are final.
const (
	RunQueued      RunState = "queued"
	RunRunning     RunState = "running"
	RunWaiting     RunState = "waiting"
	RunDone        RunState = "done"
	RunFailed      RunState = "failed"
	RunCancelled   RunState = "cancelled"
	RunInterrupted RunState = "interrupted"
	RunTimedOut    RunState = "timed_out"
)

// Final reports whether a run in state s has ended.
func (s RunState) Final() bool {
	switch s {
	case RunQueued, RunRunning, RunWaiting:
		return false
	}
	return true
}

// Active reports whether a run in state s works on its conversation, or waits
// for a person in the middle of that. Of these, a conversation has one at most.
func (s RunState) Active() bool { return s == RunRunning || s == RunWaiting }

// A RunPurpose is what a run is for.
type RunPurpose string

// The purposes.
const (
	RunAnswers  RunPurpose = ""           // it answers its message
	RunTitles   RunPurpose = "title"      // it gave the conversation a title after its first answer, and has only ever ended
	RunCompacts RunPurpose = "compaction" // it puts a summary behind its message, which is the newest of the branch
)

// A Run is one answer to a user message, until rest.
type Run struct {
	ID           RunID          `json:"id"`
	Conversation ConversationID `json:"conversation_id"`
	Message      MessageID      `json:"message_id"`         // the user message it answers
	Reply        MessageID      `json:"reply_id,omitempty"` // the newest message it wrote
	Purpose      RunPurpose     `json:"purpose,omitempty"`
	State        RunState       `json:"state"`
	Service      ServiceID      `json:"service"`
	Agent        AgentName      `json:"agent"`
	Usage        Usage          `json:"usage"`
	Error        *RunError      `json:"error,omitempty"`
	Retrying     *Retrying      `json:"retrying,omitempty"` // the model call that it is at was made again; known where the run is at work
	StartedAt    time.Time      `json:"started_at"`
	FinishedAt   *time.Time     `json:"finished_at,omitempty"`
}

// A RunError says why a run did not end well.
type RunError struct {
	Kind    Kind   `json:"kind"`
	Code    string `json:"code,omitempty"` // says more than Kind, for programs: one of the codes of limits, or that of the cause
	Message string `json:"message"`
}

// The codes of runs that a limit of their agent has ended.
const (
	CodeLimitTurns     = "limit_turns"
	CodeLimitToolCalls = "limit_tool_calls"
	CodeLimitTokens    = "limit_tokens"
	CodeLimitCost      = "limit_cost"
	CodeLimitTime      = "limit_seconds"
)

// Usage counts what model calls took, in tokens as the provider reports them.
type Usage struct {
	Calls         int   `json:"calls"`
	InputTokens   int64 `json:"input_tokens"`
	OutputTokens  int64 `json:"output_tokens"`
	CachedTokens  int64 `json:"cached_tokens,omitempty"`  // of InputTokens, served from the provider's cache
	StoredTokens  int64 `json:"stored_tokens,omitempty"`  // of InputTokens, written to the provider's cache
	ThoughtTokens int64 `json:"thought_tokens,omitempty"` // of OutputTokens, reasoning
	Cost          Cost  `json:"cost,omitzero"`
}

// A Cost is what is known of the price of model calls. Where Calls is less than
// those of the [Usage], the rest cost something that nobody knows.
type Cost struct {
	USD   float64 `json:"usd"`
	Calls int     `json:"calls"` // that USD is the price of; 0: nothing is known
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		u.Calls + v.Calls, u.InputTokens + v.InputTokens, u.OutputTokens + v.OutputTokens,
		u.CachedTokens + v.CachedTokens, u.StoredTokens + v.StoredTokens, u.ThoughtTokens + v.ThoughtTokens,
		Cost{u.Cost.USD + v.Cost.USD, u.Cost.Calls + v.Cost.Calls},
	}
}
