// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"

	"github.com/artelhq/artel"
)

// A Bell wakes the followers of a conversation and carries the text of the
// answer being written. It is no store: a lost ring costs time, never truth,
// because followers read the log. It is safe for concurrent use, and the kit
// event/eventtest holds an implementation to this contract.
type Bell interface {
	// Ring says that the log of c has grown. It never blocks.
	Ring(c artel.ConversationID)

	// Say appends text to the answer that is being written in c. The first
	// call with a new message drops what was said before. It never blocks.
	Say(c artel.ConversationID, run artel.RunID, agent artel.AgentName, m artel.MessageID, text string)

	// Hush drops the answer being written in c; the log has it now.
	Hush(c artel.ConversationID)

	// Listen begins to listen to c. The caller closes the listener.
	Listen(c artel.ConversationID) Listener
}

// A Listener is one follower's ear. Its methods are called by one goroutine.
type Listener interface {
	// Wait returns when the log may have grown since the last Wait (at once
	// the first time), or when there is text that this listener has not had,
	// or with ctx's error.
	Wait(ctx context.Context) (News, error)

	// Close stops listening.
	Close()
}

// News is what a listener is told.
type News struct {
	Grown bool // the log may hold more than before

	// Text of the answer being written that this listener has not had; ""
	// where there is none. Reset means that it is the whole text so far.
	// Pieces may have been joined.
	Text    string
	Reset   bool
	Run     artel.RunID
	Agent   artel.AgentName
	Message artel.MessageID
}
