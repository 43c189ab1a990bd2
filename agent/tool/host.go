// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"

	"github.com/artelhq/artel"
)

// A Host is the run of a call: what the call can ask of people, and keep for the time
// after a restart. call is [Env.Call]. It is safe for concurrent use.
type Host interface {
	// Elicit asks people in the name of a server, all at once, and returns the answers in
	// the order of the questions. A question that was asked under the same key of the same
	// call before has the answer of then. The error is that of ctx, or of the store.
	Elicit(ctx context.Context, call artel.CallID, asked []Elicitation) ([]ElicitResult, error)

	// Keep stores what a later attempt at the call needs to continue it after a restart;
	// nil deletes it. A call with a kept state is made again after a restart, whatever its
	// tool's Repeat says.
	Keep(ctx context.Context, call artel.CallID, state json.RawMessage) error

	// Kept returns what was kept; nil: nothing.
	Kept(call artel.CallID) json.RawMessage

	// Ends reports whether the end of ctx ends the call for good. Otherwise a later attempt
	// continues it after a restart.
	Ends(ctx context.Context) bool

	// Report shows people how far the call is. It may leave messages out that follow others
	// quickly.
	Report(call artel.CallID, p Progress)
}

// An Elicitation is a question of a server to a person.
type Elicitation struct {
	Key     string          `json:"key"`  // tells the questions of one call apart
	Name    string          `json:"name"` // of the tool
	Server  string          `json:"server"`
	Mode    string          `json:"mode"`
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema,omitempty"`
	URL     string          `json:"url,omitempty"`
}

// An ElicitResult is the answer to an [Elicitation].
type ElicitResult struct {
	Action  artel.ElicitAction
	Content map[string]any // of an accepted form
}

// Progress is how far a call is.
type Progress struct{ Message string }
