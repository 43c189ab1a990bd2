// SPDX-License-Identifier: Apache-2.0

package pipeline

import "github.com/artelhq/artel"

// A Record tells how a request came to be. It names messages and digests and
// holds no copy of what they say.
//
// RequestHash is the SHA-256, in hexadecimal digits, of the canonical form that
// [Manifest] describes. It is empty where the build failed.
type Record struct {
	Processors  []Step     `json:"processors"` // in the order in which they ran
	Decisions   []Decision `json:"decisions,omitempty"`
	Tokens      Tokens     `json:"tokens"`
	RequestHash string     `json:"request_sha256,omitempty"`
}

// A Step is what one processor did.
type Step struct {
	ID       string       `json:"id"`
	Settings SettingLevel `json:"settings,omitempty"` // the level that configured it
	Added    []string     `json:"added,omitempty"`    // ids of messages, in the order of the draft
	Removed  []string     `json:"removed,omitempty"`
	Changed  []string     `json:"changed,omitempty"`

	// Before has the digests of the segments of what the processor changed, or
	// joined to others, as that was before it: each of a message's changes can
	// be told from the others. What was as it is stored is not in it, nor is a
	// message of which nothing is sent.
	Before map[string]artel.Digest `json:"before,omitempty"`

	// Rules has of each message that several rules have worked on what it was
	// behind each of them, in the order in which they ran.
	Rules map[string][]RuleState `json:"rules,omitempty"`

	TokensBefore int     `json:"tokens_before"` // of all messages, without tools
	TokensAfter  int     `json:"tokens_after"`
	Millis       float64 `json:"ms"`
	Logs         []Log   `json:"logs,omitempty"`
}

// A RuleState is a message behind one rule.
type RuleState struct {
	Rule  string       `json:"rule"`
	After artel.Digest `json:"after"` // of its segment
}

// A Log is a note of a processor.
type Log struct {
	Level   Level          `json:"level"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// Level says how grave a note is.
type Level string

// The levels.
const (
	Info  Level = "info"
	Warn  Level = "warn"
	Error Level = "error"
)

// A Decision is how one media part was sent.
type Decision struct {
	artel.AttachmentRoute
	Digest artel.Digest `json:"digest,omitempty"` // of the original's bytes; empty where they could not be found
}

// Tokens sums up what is sent, in tokens of the service's vocabulary.
type Tokens struct {
	Fixed   int      `json:"fixed"`   // whatever is not history, and the tools
	History int      `json:"history"` // what is left of it
	Total   int      `json:"total"`
	Budget  int      `json:"budget"`            // 0: the service's window is not known, nothing is cut
	Dropped []string `json:"dropped,omitempty"` // ids of history messages, oldest first
	Older   int      `json:"beyond,omitempty"`  // of a kept record: still older messages that were dropped, and that it does not name
	Cut     []string `json:"cut,omitempty"`     // ids of messages of which a part is sent
}
