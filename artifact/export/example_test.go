// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"os"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/export"
)

func ExampleMarkdown() {
	_ = export.Markdown(os.Stdout, export.Document{
		Text: "The [plan](artifact:task_plan) and the `artifact:task_plan` in code.\n",
		Link: func(ref artel.Ref) string { return "files/" + string(ref.Artifact) + ".md" },
	})
	// Output: The [plan](files/task_plan.md) and the `artifact:task_plan` in code.
}
