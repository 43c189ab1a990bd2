// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"context"
	"fmt"

	"github.com/artelhq/artel/artifact/edit"
)

func ExampleApply() {
	plan := "- [ ] read\n- [ ] write\n"
	r, err := edit.Apply(context.Background(), plan, []edit.Edit{{Old: "[ ] read", New: "[x] read"}}, edit.Options{})
	fmt.Printf("%q %v\n", r.Text, err)

	_, err = edit.Apply(context.Background(), plan, []edit.Edit{{Old: "[ ]", New: "[x]"}}, edit.Options{})
	fmt.Println(err)
	// Output:
	// "- [x] read\n- [ ] write\n" <nil>
	// 2 places match; give more of the line: lines 1, 2
}
