// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"maps"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/store"
)

// The variables of macros belong to a branch. A run reads those stored at the
// newest message before its own, and stores its own at its message. So each model
// call of a run starts with the same values, a message that is answered again
// does not count twice, and branches are independent. A preview stores nothing.

// MaxVariables is how many bytes of variables one message has at most.
const MaxVariables = 1 << 20

// loadVariables reads the variables for a build after path.
func (x *execution) loadVariables(tx store.Tx, path []artel.Message) error {
	ids := make([]artel.MessageID, len(path))
	for i, m := range path {
		ids[i] = m.ID
	}
	raw, err := tx.Variables.On(x.run.Conversation, ids)
	if err != nil || raw == nil {
		return err
	}
	var v macro.Variables
	if err := json.Unmarshal(raw, &v); err != nil {
		return artel.Errorf(artel.Internal, "run.Runs", "variables", "%w", err)
	}
	x.buildInput.Variables, x.buildInput.Globals = v.Local, v.Global
	return nil
}

// storeVariables stores the variables at the run's message, if they have changed.
func (x *execution) storeVariables(tx store.Tx, v macro.Variables) error {
	if maps.Equal(v.Local, x.buildInput.Variables) && maps.Equal(v.Global, x.buildInput.Globals) {
		// Those of an earlier run are replaced.
		old, err := tx.Variables.On(x.run.Conversation, []artel.MessageID{x.run.Message})
		if err != nil || old == nil {
			return err
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(raw) > MaxVariables {
		x.config.Logger.Warn("the variables of macros are too large to be stored", "run", x.run.ID, "conversation", x.run.Conversation, "bytes", len(raw), "limit", MaxVariables)
		return nil
	}
	return tx.Variables.Put(x.run.Conversation, x.run.Message, raw)
}
