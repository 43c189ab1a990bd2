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

// maxRefusalRetries is how often a refused call is repeated with less: first
// without the refused content, then without any media.
const maxRefusalRetries = 2

// retryWithLess changes what the run sends after a refusal, and reports whether
// to repeat the call.
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

// measureTokens compares the counted tokens with those that the API reported. Those of
// a request with media say nothing about counting text, but whether the model has seen
// the pictures in the results of tools.
func (r *run) measureTokens(built Built, reported artel.Usage) {
	if slices.ContainsFunc(built.Request.Messages, func(m model.Message) bool { return len(artel.MediaOf(m.Parts)) > 0 }) {
		if m, ok := model.MeasureUnseen(built.Request, model.MediaIn(built.Request), r.pipeline.Count, reported.InputTokens); ok {
			r.teach(m)
		}
		return
	}
	if m, ok := built.Service.MeasureRatio(built.Record.Tokens.Total, reported.InputTokens); ok {
		r.teach(m)
	}
}

// learn passes on what a successful call after a refusal has shown.
func (r *run) learn(again model.RefusalPolicy) {
	r.teach(again.Learned(r.in.Service, string(r.in.Context.Owner))...)
}

// teach passes marks to the host, if it is a [Learner].
func (r *run) teach(marks ...model.Mark) {
	if l, ok := r.host.(Learner); ok && len(marks) > 0 {
		l.Learn(marks)
	}
}

// maxReason is the longest reason in a Retrying event, in bytes.
const maxReason = 500

// retrying emits that a call is repeated.
func (r *run) retrying(next model.Retry) error {
	return r.emit(artel.Retrying{
		Service: r.in.Service.ID, Attempt: next.Attempt, Of: next.Of, Wait: next.Wait.Seconds(),
		Reason: artel.Shorten(scrub.Line(next.Failed.Error()), maxReason),
	})
}

// A Fallback is another service to continue a run with.
type Fallback struct {
	Service model.Service
	Context pipeline.Input
	Target  route.Target
}

// fallBack switches to another service if the failed one cannot be reached.
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
	r.in.Context.Renditions = r.rendered.reporting(r.in.Context.Renditions)
	r.refused, r.attachments, r.lastTokens = nil, nil, 0
	return true, r.emit(artel.ServiceChanged{
		From: from.ID, To: next.Service.ID, Model: next.Service.Model, Demo: next.Service.Demo(), Reason: scrub.Line(failed.Error()),
	})
}
