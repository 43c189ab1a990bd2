// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/pipeline"
)

// A Fallback is a service that goes on with a run.
type Fallback struct {
	Service model.Service
	Context pipeline.Input
	Target  route.Target
}

// fall goes on with another service, where the one that failed cannot be
// reached and there is another.
func (r *run) fall(ctx context.Context, failed error) (bool, error) {
	if ctx.Err() != nil || !errors.Is(failed, artel.Unavailable) && !errors.Is(failed, artel.Denied) {
		return false, nil
	}
	next, ok := r.host.Fallback(ctx, r.in.Service)
	if !ok {
		return false, nil
	}
	from := r.in.Service
	r.in.Service, r.in.Context, r.in.Env.Target = next.Service, next.Context, next.Target
	r.refused, r.sent, r.taken = nil, nil, 0
	return true, r.tell(artel.ServiceChanged{
		From: from.ID, To: next.Service.ID, Model: next.Service.Model, Demo: next.Service.Demo(), Reason: scrub.Line(failed.Error()),
	})
}
