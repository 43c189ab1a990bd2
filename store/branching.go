// SPDX-License-Identifier: Apache-2.0

package store

import "github.com/artelhq/artel"

// Branching says where branches begin.
type Branching interface {
	// Children returns the messages that stand under each of some messages, in
	// the order in which they were created; "" stands for no message, under
	// which the roots are. Those of subagents are left out. It is quick however
	// many messages there are.
	Children(c artel.ConversationID, parents ...artel.MessageID) (map[artel.MessageID][]artel.MessageID, error)
}
