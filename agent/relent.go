// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
)

// mostRelents is how often a call is made again with less: first without what
// the refusal speaks of, then without any media.
const mostRelents = 2

// relent changes what the run sends after a refusal, and reports whether the
// call is worth another attempt.
func (r *run) relent(again *model.RefusalPolicy, request *model.Request, refusal error) bool {
	lower, describe, ok := again.Next(request, refusal)
	if ok {
		r.in.Service = r.in.Service.Lowered(lower)
		r.refuse(describe...)
	}
	return ok
}

func (r *run) refuse(digests ...artel.Digest) {
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
func (r *run) compare(built Built, reported artel.Usage) {
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

// mostReason is how much is told of a failure that another attempt follows, in
// bytes.
const mostReason = 500

// retrying tells that a call is made again.
func (r *run) retrying(next model.Retry) error {
	return r.tell(artel.Retrying{
		Service: r.in.Service.ID, Attempt: next.Attempt, Of: next.Of, Wait: next.Wait.Seconds(),
		Reason: artel.Shorten(scrub.Line(next.Failed.Error()), mostReason),
	})
}
