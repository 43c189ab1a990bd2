// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"iter"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// digestTwins are those of the clauses about digests.
func digestTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"store/digests": func(t *twin) { // what is in an answer is forgotten
			t.digests = func(ctx context.Context) iter.Seq2[store.Use, error] {
				return func(yield func(store.Use, error) bool) {
					for u, err := range t.Store.Digests(ctx) {
						if (u.Conversation != "" || err != nil) && !yield(u, err) {
							return
						}
					}
				}
			}
		},
		"store/digests until the loop ends": func(t *twin) { // goes on to the end
			t.digests = func(ctx context.Context) iter.Seq2[store.Use, error] {
				return func(yield func(store.Use, error) bool) {
					for u, err := range t.Store.Digests(ctx) {
						yield(u, err)
					}
				}
			}
		},
		"store/digests of one state": func(t *twin) { // bytes and texts each of their own
			last := byte(200)
			t.digests = func(ctx context.Context) iter.Seq2[store.Use, error] {
				return func(yield func(store.Use, error) bool) {
					var conv artel.ConversationID
					for _, bytes := range []bool{true, false} {
						for u, err := range t.Store.Digests(ctx) {
							conv = u.Conversation
							if (u.Bytes == bytes || err != nil) && !yield(u, err) {
								return
							}
						}
						last++ // somebody else comes between
						if err := t.Store.Update(ctx, me, both(conv, numbered(last))); err != nil {
							yield(store.Use{}, err)
							return
						}
					}
				}
			}
		},
	}
}
