// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/artelhq/artel"
)

func TestCallStatesAreBounded(t *testing.T) {
	s := newCallStates()
	key := func(n int) callKey { return callKey{"o", artel.CallID(fmt.Sprint(n))} }
	for n := range maxCallStates + 10 {
		s.put(&callState{key(n), "s", json.RawMessage("1")})
	}
	if len(s.of) != maxCallStates || s.bytes != maxCallStates {
		t.Errorf("%d states of %d bytes", len(s.of), s.bytes)
	}
	if _, ok := s.get(key(9)); ok {
		t.Error("the oldest is still there")
	}
	s.put(&callState{key(maxCallStates), "s", make(json.RawMessage, maxCallStateBytes)})
	if _, ok := s.get(key(maxCallStates)); !ok || len(s.of) != 1 {
		t.Errorf("after a large one there are %d", len(s.of))
	}
	if _, ok := s.get(callKey{"other", key(maxCallStates).call}); ok {
		t.Error("another owner gets it too")
	}
}
