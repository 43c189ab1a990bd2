// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"

	"github.com/artelhq/artel"
)

// A Notifier wakes the followers of a conversation and carries the text and
// reasoning of answers while they are being written. It stores nothing: a lost
// notification only delays followers, because they read the log. A Notifier is
// safe for concurrent use. The kit event/eventtest tests implementations.
type Notifier interface {
	// Notify says that the log of c has grown. It never blocks.
	Notify(c artel.ConversationID)

	// Stream appends to an answer that is being written in c. A run and its
	// subagents may write at the same time; Within tells their answers apart.
	// The first Delta with a new Message discards the previous answer of the
	// same Within. Stream never blocks.
	Stream(c artel.ConversationID, d Delta)

	// Discard drops the answers being written in the thread within of c and in
	// the threads below it, because the log now has them. "" is the run itself:
	// all answers are dropped.
	Discard(c artel.ConversationID, within artel.CallPath)

	// Listen subscribes to c. The caller must close the listener.
	Listen(c artel.ConversationID) Listener
}

// A Delta is a piece of an answer that is being written. Text and Reasoning
// are appended to the earlier pieces of the same message; either may be empty.
type Delta struct {
	Run       artel.RunID
	Agent     artel.AgentName
	Within    artel.CallPath // the subagent's thread; "" for the run itself
	Message   artel.MessageID
	Text      string
	Reasoning string
}

// A Listener receives the notifications of one conversation. It is used by one
// goroutine.
type Listener interface {
	// Wait blocks until the log may have grown since the last Wait, or until
	// there is text that this listener has not received. The first Wait
	// returns at once. The only error of an open listener is that of ctx.
	Wait(ctx context.Context) (Notification, error)

	// Close ends the subscription.
	Close()
}

// A Notification is the result of [Listener.Wait].
type Notification struct {
	Grown bool // the log may have grown

	// Delta is new text of one answer; zero if there is none. If several
	// answers have new text, each Wait returns one of them. Consecutive pieces
	// may be joined. Within a joined piece, all reasoning came before the
	// text, or the order is not known.
	Delta
	Reset bool // Delta holds the whole answer so far
}

// HasText reports whether the notification carries text or reasoning.
func (n Notification) HasText() bool { return n.Text != "" || n.Reasoning != "" }
