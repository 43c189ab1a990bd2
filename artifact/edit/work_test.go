// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/artelhq/artel/artifact/edit"
)

// TestEditsOfAGrownText: edits are too many for the text that earlier ones have made, not
// only for the one that they began with.
func TestEditsOfAGrownText(t *testing.T) {
	var text strings.Builder
	edits := []edit.Edit{{Old: "grow", New: strings.Repeat("x", 19<<20)}}
	for i := range 4000 {
		fmt.Fprintf(&text, "<%d>", i)
		edits = append(edits, edit.Edit{Old: fmt.Sprintf("<%d>", i), New: fmt.Sprintf("(%d)", i)})
	}
	_, err := edit.Apply(t.Context(), text.String()+"grow", edits, edit.Options{})
	r, ok := errors.AsType[*edit.Refusal](err)
	if !ok || r.Kind != edit.TooCostly || r.Edit < 200 || r.Edit > 220 {
		t.Fatalf("the error is %v, of edit %+v", err, r)
	}
}
