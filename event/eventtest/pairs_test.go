// SPDX-License-Identifier: Apache-2.0

package eventtest

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/contracttest"
)

// pairs break a bus: one tells, other listens.
func pairs() map[string]func(one, other *broken) {
	return map[string]func(one, other *broken){
		"a notification wakes there": func(_, other *broken) { altered(func(n *event.Notification) { n.Grown = false })(other) },
		"text arrives there": func(one, _ *broken) { // loses a piece now and then
			n, real := 0, one.stream
			one.stream = func(c artel.ConversationID, d event.Delta) {
				if n++; n%10 != 0 {
					real(c, d)
				}
			}
		},
		"pieces of a character arrive there": func(one, _ *broken) { // encodes each alone
			real := one.stream
			one.stream = func(c artel.ConversationID, d event.Delta) {
				d.Text = strings.ToValidUTF8(d.Text, "\ufffd")
				real(c, d)
			}
		},
		"a late listener there": func(_, other *broken) { // hears what follows only
			real := other.listen
			other.listen = func(c artel.ConversationID) event.Listener {
				other.Notifier.Discard(c, "")
				return real(c)
			}
		},
		"a late listener to much": func(one, _ *broken) { // keeps the first of it
			left, real := 100_000, one.stream
			one.stream = func(c artel.ConversationID, d event.Delta) {
				d.Text = d.Text[:min(len(d.Text), left)]
				left -= len(d.Text)
				real(c, d)
			}
		},
		"a new message there": func(one, _ *broken) { // adds it to the first
			real := one.stream
			one.stream = func(c artel.ConversationID, d event.Delta) { d.Message = "msg_1"; real(c, d) }
		},
		"discard there":    func(one, _ *broken) { one.discard = func(artel.ConversationID, artel.CallPath) {} },
		"the writer moves": func(_, other *broken) { other.stream = func(artel.ConversationID, event.Delta) {} },
	}
}

// TestBrokenPairs runs every clause of two notifiers on a pair that must fail it.
func TestBrokenPairs(t *testing.T) {
	contracttest.RunTwins(t, sharedClauses(), pairs(), func(t *testing.T, cl sharedClause, breakIt func(one, other *broken)) (err error) {
		synctest.Test(t, func(t *testing.T) {
			local := event.NewNotifier()
			if err := holdShared(t.Context(), cl, local, local); err != nil {
				t.Errorf("the sound pair fails: %v", err)
			}
			one := newBroken()
			other := &broken{Notifier: one.Notifier, notify: one.notify, stream: one.stream, discard: one.discard, listen: one.listen}
			breakIt(one, other)
			err = holdShared(t.Context(), cl, one, other)
		})
		return err
	})
}
