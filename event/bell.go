// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"

	"github.com/artelhq/artel"
)

// A Bell wakes the followers of a conversation and carries the answer that is
// being written, text and reasoning. It is no store: a lost ring costs time,
// never truth, because followers read the log. It is safe for concurrent use,
// and the kit event/eventtest holds an implementation to this contract.
type Bell interface {
	// Ring says that the log of c has grown. It never blocks.
	Ring(c artel.ConversationID)

	// Say appends to an answer that is being written in c. A run and its
	// subagents write at the same time; of each of them, by Within, the first
	// call with a new message drops what it said before. It never blocks.
	Say(c artel.ConversationID, s Speech)

	// Hush drops the answers being written in c; the log has them now.
	Hush(c artel.ConversationID)

	// Listen begins to listen to c. The caller closes the listener.
	Listen(c artel.ConversationID) Listener
}

// A Speech is a piece of an answer that is being written. Text and Reasoning
// are appended to what was said of the same message; either may be empty.
type Speech struct {
	Run       artel.RunID
	Agent     artel.AgentName
	Within    artel.CallPath // the thread of the subagent that speaks
	Message   artel.MessageID
	Text      string
	Reasoning string
}

// A Listener is one follower's ear. Its methods are called by one goroutine.
type Listener interface {
	// Wait returns when the log may have grown since the last Wait (at once
	// the first time), or when something was said that this listener has not
	// had, or with ctx's error.
	Wait(ctx context.Context) (News, error)

	// Close stops listening.
	Close()
}

// News is what a listener is told.
type News struct {
	Grown bool // the log may hold more than before

	// Speech is what was said of one answer being written and this listener
	// has not had; zero where there is nothing. Where there are several, the
	// next Wait has the next. Pieces may have been joined;
	// then all reasoning came before the text, or the listener cannot tell.
	Speech
	Reset bool // the speech is the whole answer so far
}

// Said reports whether the news has something of the answer being written.
func (n News) Said() bool { return n.Text != "" || n.Reasoning != "" }
