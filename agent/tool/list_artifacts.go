// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"
)

//go:embed list_artifacts.md
var listDoc string

type listArgs struct {
	Offset int `json:"offset,omitempty"`
}

func listArtifacts() Tool {
	t := Func("list_artifacts", listDoc, func(ctx context.Context, e *Env, in listArgs) (Result, error) {
		all, err := e.Workspace.List(ctx)
		if err != nil {
			return failure(err)
		}
		var b strings.Builder
		if len(all) == 0 {
			b.WriteString("No artifacts in this conversation yet.")
			return Result{Content: b.String(), Metadata: map[string]any{"content_type": "list", "count": 0}}, nil
		}
		fmt.Fprintf(&b, "%d artifact(s) in this conversation.\n<artifacts_inventory>\n", len(all))
		for i := max(in.Offset, 1) - 1; i >= 0 && i < len(all); i++ {
			a := all[i]
			entry := fmt.Sprintf("<artifact_slice id=\"%s\" version=\"%d\" type=\"%s\" kind=\"%s\" source=\"%s\" size=\"%d\" updated_at=\"%s\"><title>%s</title></artifact_slice>\n",
				attribute(string(a.ID)), a.Version, attribute(a.MediaType), a.Kind, a.Source, a.Size, a.UpdatedAt.UTC().Format(time.RFC3339), attribute(a.Title))
			if b.Len()+len(entry) > e.Shown.page() {
				fmt.Fprintf(&b, "%d more; to continue: list_artifacts(offset=%d)\n", len(all)-i, i+1)
				break
			}
			b.WriteString(entry)
		}
		b.WriteString("</artifacts_inventory>")
		return Result{Content: b.String(), Metadata: map[string]any{"content_type": "list", "count": len(all)}}, nil
	})
	t.Parallel = true
	return t
}
