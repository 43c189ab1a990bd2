// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/artelhq/artel/pipeline/macro"
)

// What is told of the machine is what macros ask for.
func TestThisMachine(t *testing.T) {
	m := thisMachine()
	for _, name := range []string{"os", "platform", "arch", "hostname"} {
		if m[name] == "" {
			t.Errorf("%s is not known", name)
		}
	}
	for name := range m {
		if !slices.Contains(macro.Values(), name) {
			t.Errorf("no macro asks for %s", name)
		}
	}
}
