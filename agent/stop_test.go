// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A consumer may stop at any payload, also inside an answer of which a part is
// held back: nothing is yielded after that.
func TestStopInsideAnAnswer(t *testing.T) {
	held := "data:image/png;base64,iVBORw0KGgo" // more of the picture may follow
	b := newBench(t, []turn{{say("Look at this: "), say("it is " + held), model.ReasoningDelta("so"), end}})
	n := 0
	for p, err := range b.engine.Run(t.Context(), b.in) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := p.(artel.MessageDelta); ok {
			if n++; n == 2 {
				break
			}
		}
	}
	if n != 2 {
		t.Errorf("%d pieces", n)
	}
}
