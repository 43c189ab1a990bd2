// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/pipeline"
)

// maxRefusalRetries is how often a call is made again with less: first without what
// the refusal speaks of, then without any media.
const maxRefusalRetries = 2

// relent changes what the run sends after a refusal, and reports whether the
// call is worth another attempt.
func (r *run) retryWithLess(again *model.RefusalPolicy, request *model.Request, refusal error) bool {
	lower, describe, ok := again.Next(request, refusal)
	if ok {
		r.in.Service = r.in.Service.Lowered(lower)
		r.addRefused(describe...)
	}
	return ok
}

func (r *run) addRefused(digests ...artel.Digest) {
	if r.refused == nil {
		r.refused = map[artel.Digest]bool{}
	}
	for _, d := range digests {
		r.refused[d] = true
	}
}

// isRefused reports whether bytes are described because the service refused
// them, in this run or before.
func (r *run) isRefused(d artel.Digest) bool {
	before := r.in.Context.Refused
	return r.refused[d] || before != nil && before(d)
}

// compare tells how far what was counted is from what the API reported. What
// media cost is another matter than how text is counted.
func (r *run) measureRatio(built Built, reported artel.Usage) {
	if slices.ContainsFunc(built.Request.Messages, func(m model.Message) bool { return len(artel.MediaOf(m.Parts)) > 0 }) {
		return
	}
	if m, ok := built.Service.MeasureRatio(built.Record.Tokens.Total, reported.InputTokens); ok {
		r.teach(m)
	}
}

// learn tells what was shown by a call that went well after a refusal.
func (r *run) learn(again model.RefusalPolicy) {
	r.teach(again.Learned(r.in.Service)...)
}

// teach gives marks to the host, if it wants them.
func (r *run) teach(marks ...model.Mark) {
	if l, ok := r.host.(Learner); ok && len(marks) > 0 {
		l.Learn(marks)
	}
}

// maxReason is how much is told of a failure that another attempt follows, in
// bytes.
const maxReason = 500

// retrying tells that a call is made again.
func (r *run) retrying(next model.Retry) error {
	return r.emit(artel.Retrying{
		Service: r.in.Service.ID, Attempt: next.Attempt, Of: next.Of, Wait: next.Wait.Seconds(),
		Reason: artel.Shorten(scrub.Line(next.Failed.Error()), maxReason),
	})
}

// A Fallback is a service that goes on with a run.
type Fallback struct {
	Service model.Service
	Context pipeline.Input
	Target  route.Target
}

// fall goes on with another service, where the one that failed cannot be
// reached and there is another.
func (r *run) fallBack(ctx context.Context, failed error) (bool, error) {
	if ctx.Err() != nil || !errors.Is(failed, artel.Unavailable) && !errors.Is(failed, artel.Denied) {
		return false, nil
	}
	next, ok := r.host.Fallback(ctx, r.in.Service)
	if !ok {
		return false, nil
	}
	from := r.in.Service
	r.in.Service, r.in.Context, r.in.Env.Target = next.Service, next.Context, next.Target
	r.refused, r.attachments, r.lastTokens = nil, nil, 0
	return true, r.emit(artel.ServiceChanged{
		From: from.ID, To: next.Service.ID, Model: next.Service.Model, Demo: next.Service.Demo(), Reason: scrub.Line(failed.Error()),
	})
}
