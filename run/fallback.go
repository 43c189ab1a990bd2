// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// Fallback implements [agent.Host]: it returns the next service that the run has not tried: those that its agent
// names, then those that its service does, in their order. What is not there or
// cannot be called is passed over.
func (x *execution) Fallback(ctx context.Context, failed model.Service) (agent.Fallback, bool) {
	if !slices.Contains(x.attempts.tried, failed.ID) {
		x.attempts.tried = append(x.attempts.tried, failed.ID)
	}
	if x.attempts.others == nil {
		x.attempts.others = slices.Concat(x.agent.Fallbacks, x.service.Fallbacks)
	}
	for _, id := range x.attempts.others {
		s, err := x.runs.config.chooser().Callable(id)
		if err != nil || slices.Contains(x.attempts.tried, id) {
			continue
		}
		s = s.OnWire()
		out := agent.Fallback{Service: s, Target: TargetOf(x.runs.config.Services, x.runs.config.Renditions, s)}
		definition := x.agent
		err = x.runs.config.Store.View(ctx, x.owner, func(tx store.Tx) (err error) {
			built, err := x.runs.config.building(tx, x.owner, x.run.Conversation, &definition, s, x.clock)
			if err != nil {
				return err
			}
			path, err := tx.Messages.Path(x.run.Conversation, x.run.Message, 0)
			if err != nil {
				return err
			}
			before := x.built
			x.built = built
			x.built.At = before.At
			if err := x.takeVariables(tx, path[:max(0, len(path)-1)]); err != nil {
				x.built = before
				return err
			}
			out.Context = x.built
			return nil
		})
		if err != nil {
			x.runs.config.Logger.Warn("a run could not go on with another service", "run", x.run.ID, "service", id, "err", err)
			continue
		}
		x.runs.config.Logger.Warn("a run goes on with another service", "run", x.run.ID, "from", failed.ID, "to", id)
		x.attempts.tried = append(x.attempts.tried, id)
		x.service = s
		return out, true
	}
	return agent.Fallback{}, false
}

// services that a run has tried and may try.
type attempts struct{ tried, others []artel.ServiceID }
