// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// fingerprint identifies a result with its call.
func fingerprint(r artel.ToolResult) [sha256.Size]byte { return sha256.Sum256(provider.MustMarshal(r)) }

// dropRepeatedResults removes results that repeat another one of the same call, which some
// clients send and services refuse (a call has exactly one result). Further results with
// other content stay and are sent as text; the changes say so.
func (x *exchange) dropRepeatedResults(r *model.Request) ([]Change, error) {
	var changes []Change
	calls := map[artel.CallID]int{}      // of the last assistant message
	got := map[artel.CallID]int{}        // results of these calls
	seen := map[[sha256.Size]byte]bool{} // these results
	for i, m := range r.Messages {
		if m.Role == artel.RoleAssistant {
			clear(calls)
			clear(got)
			clear(seen)
			for _, c := range artel.CallsOf(m.Parts) {
				calls[c.ID]++
			}
		}
		var kept artel.Parts
		for _, p := range m.Parts {
			res, ok := p.(artel.ToolResult)
			switch {
			case !ok || got[res.CallID] < calls[res.CallID] || calls[res.CallID] == 0:
			case seen[fingerprint(res)]:
				if err := x.noteDrop(model.Drop{Field: "result of tool call " + artel.Shorten(string(res.CallID), 100), Reason: model.TooMany}); err != nil {
					return nil, err
				}
				continue
			default:
				changes = append(changes, Change{Did: DidMove, Call: res.CallID, Service: r.Service.ID})
			}
			if ok && calls[res.CallID] > 0 {
				got[res.CallID]++
				seen[fingerprint(res)] = true
			}
			kept = append(kept, p)
		}
		r.Messages[i].Parts = kept
	}
	r.Messages = slices.DeleteFunc(r.Messages, func(m model.Message) bool { return m.Role == artel.RoleTool && len(m.Parts) == 0 })
	return changes, nil
}
