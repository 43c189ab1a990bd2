// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel/artifact"
)

//go:embed list_versions.md
var listVersionsDoc string

type listVersionsArgs struct {
	ID     string `json:"id"`
	Offset int    `json:"offset,omitempty"`
}

func listVersions() Tool {
	t := Func("list_versions", listVersionsDoc, func(ctx context.Context, e *Env, in listVersionsArgs) (Result, error) {
		id, err := parseID(e, in.ID)
		if err != nil {
			return failure(err)
		}
		if e.Artifacts == nil {
			return Failed("list_versions: the versions cannot be read here"), nil
		}
		all, err := e.Artifacts.Versions.History(ctx, e.Owner, e.Conversation, id, artifact.WithLive)
		if err != nil {
			return failure(err)
		}
		slices.Reverse(all)
		var b strings.Builder
		fmt.Fprintf(&b, "<artifact_versions id=\"%s\" total=\"%d\">\n", attribute(string(id)), len(all))
		for i := max(in.Offset, 1) - 1; i < len(all); i++ {
			v := all[i]
			live := ""
			if v.Live {
				live = ` live="true"`
			}
			line := fmt.Sprintf("<version number=\"%d\" made=\"%s\" by=\"%s\" at=\"%s\" type=\"%s\" size=\"%d\"%s><title>%s</title></version>\n",
				v.Number, v.Update, attribute(v.Author), v.CreatedAt.UTC().Format(time.RFC3339), attribute(v.MediaType), v.Size, live, attribute(v.Title))
			if i > max(in.Offset, 1)-1 && b.Len()+len(line) > e.Shown.page() {
				fmt.Fprintf(&b, "%d more; to continue: list_versions(id='%s', offset=%d)\n", len(all)-i, id, i+1)
				break
			}
			b.WriteString(line)
		}
		b.WriteString("</artifact_versions>")
		return Result{Content: b.String(), Metadata: map[string]any{"content_type": "list", "count": len(all)}}, nil
	})
	t.Parallel = true
	return t
}
