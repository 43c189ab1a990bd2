// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"crypto/sha256"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/openai"
)

// Finds are what models looked for among deferred tools, which clients do not get.
type Finds struct{ r *Request }

// Remember caches the messages in which a model looked for the tool of a call.
func (f Finds) Remember(c artel.ToolCall, finds []model.Message) {
	r := f.r
	if len(finds) == 0 || r.conversation() == ([sha256.Size]byte{}) {
		return
	}
	for _, id := range []artel.CallID{c.ID, artel.CallID(provider.CallID(c.ID, openai.MaxCallID))} {
		r.b.calls.put(&callState{key: callKey{client: r.key.Holder(r.owner), call: id, content: contentOf(c), conversation: r.conversation(), finds: true}, finds: finds})
	}
}

// Restore adds the cached messages before those with the calls, so that a service
// reads a conversation as its model wrote it.
func (f Finds) Restore(to *model.Request) {
	r := f.r
	var out []model.Message
	for _, m := range to.Messages {
		for _, c := range artel.CallsOf(m.Parts) {
			if s, ok := r.b.calls.get(callKey{client: r.key.Holder(r.owner), call: c.ID, content: contentOf(c), conversation: r.conversation(), finds: true}); ok {
				out = append(out, s.finds...)
				break
			}
		}
		out = append(out, m)
	}
	to.Messages = out
}
