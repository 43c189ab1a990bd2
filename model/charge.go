// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"

	"github.com/artelhq/artel"
)

// A PaidCall is one attempt of a call that is about to be made.
type PaidCall struct {
	Service *Service // not to be changed
	Request *Request // nil: it is not decoded; Input is known
	Input   int64    // tokens of the request, if Request is nil
	Output  int64    // most tokens of each answer, as requested; 0: not said
	Answers int64    // how many are asked for; 0: one
	Least   int64    // fewest tokens of an answer for which the call is worth making; 0: a few
	Fixed   bool     // the limit of the output cannot be lowered

	Unbounded bool // it begins work of any amount, such as a batch, or its usage is not seen, so it may be under no limit
}

// A Charge is a paid call that was admitted.
type Charge struct {
	// MaxOutput is the most tokens that each answer may have; 0: as requested.
	MaxOutput int
	// End is called once, with what the call has used, before the end of the answer
	// is passed on.
	End func(Spent)
}

// A Spent is what an attempt has used.
type Spent struct {
	Usage   artel.Usage // as reported; zero: it was not
	Started bool        // a part of the answer was received, so that it is paid for
	Said    string      // of an answer whose usage was not reported
}

// charged returns yield and the end of a charge, which is settled before the
// [Finish] is passed on, or by end.
func charged(c Charge, yield func(Delta, error) bool) (watched func(Delta, error) bool, end func()) {
	var said strings.Builder
	var spent Spent
	settled := false
	end = func() {
		if !settled {
			settled = true
			spent.Said = said.String()
			c.End(spent)
		}
	}
	return func(d Delta, err error) bool {
		if d != nil {
			spent.Started = true
		}
		switch d := d.(type) {
		case TextDelta:
			said.WriteString(string(d))
		case ReasoningDelta:
			said.WriteString(string(d))
		case CallDelta:
			said.WriteString(d.Name + string(d.Arguments))
		case Finish:
			spent.Usage = d.Usage
			end()
		}
		return yield(d, err)
	}, end
}
