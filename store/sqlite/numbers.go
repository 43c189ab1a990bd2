// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"strings"

	"github.com/artelhq/artel"
)

// A numbers remembers the newest edits of artifacts in conversations that are there, on
// the writing session, so that an append does not look them up: that takes a sixth of
// its time. It forgets all when a batch or an update is rolled back, when a statement
// writes to one of the tables otherwise, and when another process has written.
type numbers struct {
	newest  map[numberKey]int
	version int64 // of the data, when newest was filled
}

type numberKey struct {
	owner        artel.Owner
	conversation artel.ConversationID
	artifact     artel.ArtifactID
}

// maxNumbers bounds the artifacts that are remembered.
const maxNumbers = 10_000

func (n *numbers) put(k numberKey, number int) {
	if n.newest == nil || len(n.newest) >= maxNumbers {
		n.newest = map[numberKey]int{}
	}
	n.newest[k] = number
}

func (n *numbers) forget() { n.newest = nil }

// changedBy reports whether a statement may change what is remembered. An append says
// itself what it changes.
func changedBy(query string) bool {
	if query == insertEdit || strings.HasPrefix(query, "SELECT") {
		return false
	}
	for _, table := range []string{"edits", "artifacts", "conversations"} {
		if strings.Contains(query, table) {
			return true
		}
	}
	return false
}

// refreshNumbers forgets the numbers if another connection has written. It is called
// when no other can write any more.
func (c *session) refreshNumbers() error {
	if c.numbers.newest == nil {
		return nil
	}
	version, _, err := c.number("PRAGMA data_version")
	if err != nil || version != c.numbers.version {
		c.numbers.forget()
		c.numbers.version = version
	}
	return err
}
