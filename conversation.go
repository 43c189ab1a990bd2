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

// A Role is the role of a message's author.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Message is one node of a conversation's tree. Messages are immutable except
// for Muted. A subagent's thread is a side branch below the message that called
// it.
type Message struct {
	ID           MessageID      `json:"id"`
	Conversation ConversationID `json:"conversation_id"`
	Parent       MessageID      `json:"parent_id,omitempty"` // empty: a root
	Role         Role           `json:"role"`
	Parts        Parts          `json:"parts"`
	Agent        AgentName      `json:"agent,omitempty"`
	Run          RunID          `json:"run_id,omitempty"` // the run that wrote it, or the run it started
	Within       CallPath       `json:"within,omitempty"` // the subagent thread of the message; empty: the main thread
	Muted        bool           `json:"muted,omitempty"`
	Summary      bool           `json:"summary,omitempty"` // a compaction boundary: replaces the messages before it for models
	Covers       MessageID      `json:"covers,omitempty"`  // of a summary: the newest message it replaces; empty: all before it
	Edited       bool           `json:"edited,omitempty"`  // an answer that a person has written in place of a model's
	CreatedAt    time.Time      `json:"created_at"`
}

// A RunState is the state of a run.
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

// Active reports whether a run in state s is executing or waits for a user's
// permission. A conversation has at most one active run.
func (s RunState) Active() bool { return s == RunRunning || s == RunWaiting }

// A RunPurpose says why a run was started.
type RunPurpose string

// The purposes.
const (
	RunAnswers  RunPurpose = ""           // answer the message
	RunTitles   RunPurpose = "title"      // generate the conversation's title after its first answer; such a run is stored when it has ended
	RunCompacts RunPurpose = "compaction" // add a summary after its message, the newest of the branch
)

// A Run is the agent's work on one user message, up to its final answer.
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
	Retrying     *Retrying      `json:"retrying,omitempty"` // the current model call is being retried; set while the run is active
	StartedAt    time.Time      `json:"started_at"`
	FinishedAt   *time.Time     `json:"finished_at,omitempty"`
}

// A RunError says why a run failed.
type RunError struct {
	Kind    Kind   `json:"kind"`
	Code    string `json:"code,omitempty"` // more precise than Kind, for programs: a limit code or the code of the cause
	Message string `json:"message"`
	Status  int    `json:"status,omitempty"` // of the HTTP response with which a model service refused the last call
}

// The codes of runs that reached a limit of their agent.
const (
	CodeLimitTurns     = "limit_turns"
	CodeLimitToolCalls = "limit_tool_calls"
	CodeLimitTokens    = "limit_tokens"
	CodeLimitCost      = "limit_cost"
	CodeLimitTime      = "limit_seconds"
	// CodeLimitCostUnknown: the agent limits the cost, and its service has no
	// price.
	CodeLimitCostUnknown = "limit_cost_unknown"
)

// Usage counts model calls and their tokens, as the provider reported them. With
// Estimated, Artel counted the tokens of some calls itself: their provider
// reported none, or their answer broke off.
type Usage struct {
	Calls         int   `json:"calls"`
	Estimated     bool  `json:"estimated,omitempty"`
	InputTokens   int64 `json:"input_tokens"`
	OutputTokens  int64 `json:"output_tokens"`
	CachedTokens  int64 `json:"cached_tokens,omitempty"`  // of InputTokens, served from the provider's cache
	StoredTokens  int64 `json:"stored_tokens,omitempty"`  // of InputTokens, written to the provider's cache
	ThoughtTokens int64 `json:"thought_tokens,omitempty"` // of OutputTokens, reasoning
	Cost          Cost  `json:"cost,omitzero"`
}

// A Cost is the known cost of model calls. If Calls is less than the Calls of the
// [Usage], the cost of the other calls is unknown.
type Cost struct {
	USD   float64 `json:"usd"`
	Calls int     `json:"calls"` // calls included in USD; 0: no cost is known
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		u.Calls + v.Calls, u.Estimated || v.Estimated, u.InputTokens + v.InputTokens, u.OutputTokens + v.OutputTokens,
		u.CachedTokens + v.CachedTokens, u.StoredTokens + v.StoredTokens, u.ThoughtTokens + v.ThoughtTokens,
		Cost{u.Cost.USD + v.Cost.USD, u.Cost.Calls + v.Cost.Calls},
	}
}
