// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/artelhq/artel"
)

func TestStatesAreBounded(t *testing.T) {
	s := newStates()
	key := func(n int) stateKey { return stateKey{"o", artel.CallID(fmt.Sprint(n))} }
	for n := range maxStates + 10 {
		s.put(&callState{key(n), "s", json.RawMessage("1")})
	}
	if len(s.of) != maxStates || s.bytes != maxStates {
		t.Errorf("%d states of %d bytes", len(s.of), s.bytes)
	}
	if _, ok := s.get(key(9)); ok {
		t.Error("the oldest is still there")
	}
	s.put(&callState{key(maxStates), "s", make(json.RawMessage, maxStateBytes)})
	if _, ok := s.get(key(maxStates)); !ok || len(s.of) != 1 {
		t.Errorf("after a large one there are %d", len(s.of))
	}
	if _, ok := s.get(stateKey{"other", key(maxStates).call}); ok {
		t.Error("it is somebody else's too")
	}
}
