// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"maps"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/store"
)

// The variables of macros belong to a branch: a run begins with those that the
// newest message before its own was answered with, and leaves what its prompts
// have set at its own message. So each model call of a run begins with the
// same ones, a message that is answered again does not count twice, and
// branches know nothing of each other. A preview leaves nothing.

// MaxVariables is how many bytes of variables are kept at one message.
const MaxVariables = 1 << 20

// takeVariables reads the variables that a build behind path begins with.
func (x *execution) takeVariables(tx store.Tx, path []artel.Message) error {
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
		return artel.Errorf(artel.Internal, "app.Runs", "variables", "%w", err)
	}
	x.built.Variables, x.built.Globals = v.Local, v.Global
	return nil
}

// keepVariables leaves the variables at the run's message, where they are not
// those that it began with.
func (x *execution) keepVariables(tx store.Tx, v macro.Variables) error {
	if maps.Equal(v.Local, x.built.Variables) && maps.Equal(v.Global, x.built.Globals) {
		// What an earlier run left here does not hold any more.
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
		x.runs.config.Logger.Warn("the variables of macros are too large to be kept", "run", x.run.ID, "bytes", len(raw), "limit", MaxVariables)
		return nil
	}
	return tx.Variables.Put(x.run.Conversation, x.run.Message, raw)
}
