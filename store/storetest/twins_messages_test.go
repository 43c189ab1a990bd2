// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

func messageTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"messages/pages of long ones": nouns(func(tx *store.Tx) { // pages are bounded by their number alone
			real := tx.Messages
			tx.Messages = brokenMessages{Messages: real, list: func(c artel.ConversationID, p store.Page) (all []artel.Message, next string, err error) {
				for {
					some, next, err := real.List(c, p)
					if all = append(all, some...); err != nil || next == "" || len(all) >= p.Limit {
						return all, next, err
					}
					p.Cursor = next
				}
			}}
		}),
	}
}
