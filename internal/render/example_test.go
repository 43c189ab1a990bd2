// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/render"
)

func ExampleMarkdown() {
	page := render.Markdown("See the [plan](artifact:task_plan@2). <script>alert(1)</script>", render.Options{
		ArtifactURL: func(r artel.Ref) string { return fmt.Sprintf("/artifacts/%s/%d", r.Artifact, r.Version) },
	})
	fmt.Print(page)
	// Output: <p>See the <a href="/artifacts/task_plan/2" rel="nofollow noreferrer">plan</a>. &lt;script&gt;alert(1)&lt;/script&gt;</p>
}
