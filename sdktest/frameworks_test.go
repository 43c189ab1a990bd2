// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"testing"

	"github.com/artelhq/artel/sdktest/program"
)

// TestFrameworks: the examples for frameworks keep files, versions and previews on a
// server.
func TestFrameworks(t *testing.T) {
	t.Parallel()
	if out, err := node(nil, "frameworks.mjs", program.Start(t, "..", "")); err != nil || string(out) != "ok\n" {
		t.Errorf("%v: %s", err, out)
	}
}
