// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"strings"

	"github.com/artelhq/artel"
)

// Numbers remembers the newest edits of artifacts in conversations that are there, on a
// connection that all updates use, so that an append does not look them up: that takes a
// sixth of its time. The caller must call Forget when an update is rolled back, when a
// statement that [ChangesNumbers] has run, and when another connection has written. A
// nil Numbers remembers nothing.
type Numbers struct{ newest map[numberKey]int }

type numberKey struct {
	owner        artel.Owner
	conversation artel.ConversationID
	artifact     artel.ArtifactID
}

// maxNumbers bounds the artifacts that are remembered.
const maxNumbers = 10_000

func (n *Numbers) get(k numberKey) int {
	if n == nil {
		return 0
	}
	return n.newest[k]
}

func (n *Numbers) put(k numberKey, number int) {
	if n == nil {
		return
	}
	if n.newest == nil || len(n.newest) >= maxNumbers {
		n.newest = map[numberKey]int{}
	}
	n.newest[k] = number
}

// Forget forgets all.
func (n *Numbers) Forget() { n.newest = nil }

// Empty reports whether nothing is remembered.
func (n *Numbers) Empty() bool { return n.newest == nil }

// ChangesNumbers reports whether a statement may change what is remembered. An append
// says itself what it changes.
func ChangesNumbers(query string) bool {
	if query == InsertEdit || strings.HasPrefix(query, "SELECT") {
		return false
	}
	for _, table := range []string{"edits", "artifacts", "conversations"} {
		if strings.Contains(query, table) {
			return true
		}
	}
	return false
}
