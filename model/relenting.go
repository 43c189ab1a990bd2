// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/artelhq/artel"
)

// A RefusalPolicy is what changes about one call from refusal to refusal: first what
// [Next] says, and in the end all media are described. So a conversation goes
// on whatever is in it. The zero value allows one more attempt.
type RefusalPolicy struct {
	Most int // attempts that may follow refusals; the last of several goes without any media; 0: 1

	attempts int
	refused  *Request // the one that was refused; nil: none was, or it has been looked at
	marks    []Mark   // what the refusal shows, if the call goes well now
	suspects []artel.Digest
	evidence string // the API's words
}

// Next says what another attempt has to do after r was refused: see the
// service through marks ([Service.Lowered]), and describe bytes. It reports
// false where no other attempt is worth it.
func (l *RefusalPolicy) Next(r *Request, refusal error) (lower []Mark, describe []artel.Digest, again bool) {
	most := max(1, l.Most)
	marks, suspects := Diagnose(r, refusal)
	if len(marks) == 0 && len(suspects) == 0 || l.attempts == most {
		return nil, nil, false
	}
	l.attempts++
	l.evidence = refusal.Error()
	if l.attempts == most && most > 1 {
		return nil, l.DescribeAll(r), true
	}
	l.refused, l.marks, l.suspects = r, marks, suspects
	return marks, suspects, true
}

// Changes reports whether r differs from the request that was refused in what
// APIs refuse. Where it does not, the caller describes [RefusalPolicy.DescribeAll]. It is
// asked once for each refusal.
func (l *RefusalPolicy) Changes(r *Request) bool {
	before := l.refused
	l.refused = nil
	if before == nil || before.Service.Capabilities.NeedsFiller() != r.Service.Capabilities.NeedsFiller() {
		return true
	}
	return !slices.Equal(sentMediaIn(before), sentMediaIn(r))
}

// DescribeAll returns the bytes of all media of a request, which are described from now
// on; no further attempt follows. What the refusal showed is not certain then,
// unless it named a limit or there was one piece alone.
func (l *RefusalPolicy) DescribeAll(r *Request) []artel.Digest {
	l.attempts, l.suspects = max(1, l.Most), nil
	l.marks = slices.DeleteFunc(l.marks, func(m Mark) bool { return m.Limit == "" })
	for _, m := range MediaIn(r) {
		if !slices.Contains(l.suspects, m.Ref.Digest) {
			l.suspects = append(l.suspects, m.Ref.Digest)
		}
	}
	return l.suspects
}

// Learned is what was shown about s by a call that went well after refusals;
// nothing where there were none. Of several suspects nobody knows which it was.
func (l *RefusalPolicy) Learned(s Service) []Mark {
	marks := slices.Clone(l.marks)
	if len(l.suspects) == 1 && len(marks) == 0 {
		marks = append(marks, Damaged(s, l.suspects[0], l.evidence))
	}
	return marks
}

// A spot is what an API sees of a piece of media.
type sentMedia struct {
	digest artel.Digest
	place  Place
}

func sentMediaIn(r *Request) []sentMedia {
	var out []sentMedia
	for _, m := range MediaIn(r) {
		out = append(out, sentMedia{m.Ref.Digest, m.Place})
	}
	return out
}
