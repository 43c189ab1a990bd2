// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// mostRelents is how often a call is made again with less: first without what
// the refusal speaks of, then without any media.
const mostRelents = 2

// relenting is what was changed about a call that was refused.
type relenting struct {
	times    int
	before   *model.Request // the one that was refused; nil: none was, or it has been looked at
	marks    []model.Mark   // what the refusal shows, if the call goes well now
	suspects []artel.Digest // what was left out in case it was the fault
	evidence string         // the API's words
}

// relent changes what the run sends after a refusal, and reports whether the
// call is worth another attempt. So a conversation goes on whatever is in it:
// what an API does not take becomes a description, at the latest when all of
// the media have.
func (r *run) relent(again *relenting, request *model.Request, refusal error) bool {
	marks, suspects := model.Relent(request, refusal)
	if len(marks) == 0 && len(suspects) == 0 || again.times == mostRelents {
		return false
	}
	again.times++
	again.evidence = refusal.Error()
	if again.times == mostRelents {
		r.refuseAll(again, request)
		return true
	}
	again.before, again.marks, again.suspects = request, marks, suspects
	r.in.Service = r.in.Service.Lowered(marks)
	r.refuse(suspects...)
	return true
}

// changes reports whether request differs from the one that was refused in
// what APIs refuse. It is asked once for each refusal.
func (again *relenting) changes(request *model.Request) bool {
	before := again.before
	again.before = nil
	if before == nil || before.Service.Capabilities.Bridge() != request.Service.Capabilities.Bridge() {
		return true
	}
	return !slices.Equal(placedIn(before), placedIn(request))
}

// A placed is what an API sees of a piece of media.
type placed struct {
	digest artel.Digest
	place  model.Place
}

func placedIn(r *model.Request) []placed {
	var out []placed
	for _, m := range model.MediaIn(r) {
		out = append(out, placed{m.Ref.Digest, m.Place})
	}
	return out
}

// refuseAll describes all media of a request. What the refusal showed is not
// certain then, unless it named a limit or there was one piece alone.
func (r *run) refuseAll(again *relenting, request *model.Request) {
	again.times, again.suspects = mostRelents, nil
	again.marks = slices.DeleteFunc(again.marks, func(m model.Mark) bool { return m.Limit == "" })
	for _, m := range model.MediaIn(request) {
		if !slices.Contains(again.suspects, m.Ref.Digest) {
			again.suspects = append(again.suspects, m.Ref.Digest)
		}
	}
	r.refuse(again.suspects...)
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

// learn tells what was shown by a call that went well after a refusal. Of
// several suspects nobody knows which it was.
func (r *run) learn(again relenting) {
	marks := again.marks
	if len(again.suspects) == 1 && len(marks) == 0 {
		marks = append(marks, model.Damaged(r.in.Service, again.suspects[0], again.evidence))
	}
	if r.in.Learn != nil && len(marks) > 0 {
		r.in.Learn(marks)
	}
}
