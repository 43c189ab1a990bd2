// SPDX-License-Identifier: Apache-2.0

package pipeline

import "github.com/artelhq/artel"

// A Record describes how a request was built. It names messages and digests and
// holds no copy of their text.
//
// RequestHash is the SHA-256, in hexadecimal digits, of the canonical form
// described at [Manifest]. It is empty if the build failed.
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

	// Before maps ids of messages that the processor changed, or merged into
	// others, to the digests of the segments with their earlier content, so
	// that each change can be attributed to its processor. It omits
	// messages that were as stored, and messages of which nothing is sent.
	Before map[string]artel.Digest `json:"before,omitempty"`

	// Rules holds, for each message that several rules changed, its state after
	// each of them, in the order in which they ran.
	Rules map[string][]RuleState `json:"rules,omitempty"`

	TokensBefore int     `json:"tokens_before"` // of all messages, without tools
	TokensAfter  int     `json:"tokens_after"`
	Millis       float64 `json:"ms"`
	Logs         []Log   `json:"logs,omitempty"`
}

// A RuleState is a message after one rule.
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

// Level is the severity of a note.
type Level string

// The levels.
const (
	Info  Level = "info"
	Warn  Level = "warn"
	Error Level = "error"
)

// A Decision is the form in which one media part was sent.
type Decision struct {
	artel.AttachmentRoute
	Digest artel.Digest `json:"digest,omitempty"` // of the original's bytes; empty if they could not be found
}

// Tokens counts the request, in tokens of the service's vocabulary.
type Tokens struct {
	Fixed   int      `json:"fixed"`   // everything but the history, including the tools
	History int      `json:"history"` // the history that is sent
	Total   int      `json:"total"`
	Budget  int      `json:"budget"`            // 0: the service's window is unknown and nothing is cut
	Dropped []string `json:"dropped,omitempty"` // ids of history messages, oldest first
	Older   int      `json:"beyond,omitempty"`  // of a stored record: number of still older messages that were dropped and are not named
	Cut     []string `json:"cut,omitempty"`     // ids of messages of which only the beginning is sent
}
