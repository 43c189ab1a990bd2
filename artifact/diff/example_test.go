// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"context"
	"fmt"

	"github.com/artelhq/artel/artifact/diff"
)

func ExampleLines() {
	d, err := diff.Lines(context.Background(), "one\nthe quick fox\n", "one\nthe slow fox\n", diff.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(d.Unified("a/fox.md", "b/fox.md"))
	for _, s := range d.Hunks[0].Lines[1].Spans {
		fmt.Println(s)
	}
	// Output:
	// --- a/fox.md
	// +++ b/fox.md
	// @@ -1,2 +1,2 @@
	//  one
	// -the quick fox
	// +the slow fox
	// {0 4 false}
	// {4 9 true}
	// {9 13 false}
}

func ExampleMerge() {
	base := "title\n\ntext\n\nend\n"
	mine := "My title\n\ntext\n\nend\n"
	theirs := "title\n\ntext\n\nthe end\n"
	m, err := diff.Merge(context.Background(), base, mine, theirs, diff.MergeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(m.Clean(), "\n", m.Text)
	// Output:
	// true
	// My title
	//
	// text
	//
	// the end
}
