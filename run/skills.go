// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/store"
)

// Skills return the skills that an agent can open, in the versions that they have now;
// nil: none.
type Skills func(tx store.Tx, owner artel.Owner, d agent.Definition) (tool.Skills, error)

// skillsOf returns the skills of an agent.
func (k *Config) skillsOf(tx store.Tx, o artel.Owner, d agent.Definition) (tool.Skills, error) {
	if k.Skills == nil {
		return nil, nil
	}
	return k.Skills(tx, o, d)
}

// skills returns those of the execution's agent. All its calls have the same versions.
func (x *execution) skills(ctx context.Context) (s tool.Skills, err error) {
	err = x.config.Store.View(ctx, x.owner, func(tx store.Tx) (err error) {
		s, err = x.config.skillsOf(tx, x.owner, x.agent)
		return err
	})
	return s, err
}
