// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"testing"

	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/macro"
)

// TestUserWithoutName: prompts and greetings stay sentences for a user whose
// profile has no name.
func TestUserWithoutName(t *testing.T) {
	for name, want := range map[string]string{"": "Oh, User.", "Ann": "Oh, Ann."} {
		got, err := pipeline.Agent{Name: "mira"}.ExpandGreeting("Oh, {{user}}.", pipeline.Profile{Name: name}, macro.Context{})
		if err != nil || got != want {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}
