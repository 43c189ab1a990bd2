// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/artelhq/artel/artifact"
)

//go:embed search_artifacts.md
var searchDoc string

// maxFound is the most matches of one search.
const maxFound = 100

type searchArgs struct {
	Words      string `json:"words"`
	Everywhere bool   `json:"everywhere,omitempty"`
	Max        int    `json:"max,omitempty"`
}

func searchArtifacts() Tool {
	t := Func("search_artifacts", searchDoc, func(ctx context.Context, e *Env, in searchArgs) (Result, error) {
		switch {
		case e.Artifacts == nil:
			return Failed("search_artifacts: other artifacts cannot be read here; use grep_artifacts"), nil
		case in.Max < 0 || in.Max > maxFound:
			return Failed("search_artifacts: max is %d, want 1 to %d", in.Max, maxFound), nil
		}
		q := artifact.Query{Words: in.Words, Limit: in.Max, Conversation: e.Conversation}
		if in.Everywhere {
			q.Conversation = ""
		}
		found, err := artifact.Search(ctx, e.Artifacts, e.Owner, q)
		if err != nil {
			return failure(err)
		}
		var b strings.Builder
		for i, m := range found.Matches {
			ref := string(m.ID)
			if m.Conversation != e.Conversation {
				ref = m.MediaPart().Ref.String()
			}
			line := ""
			if m.Line > 0 {
				line = fmt.Sprintf(` line="%d"`, m.Line)
			}
			entry := fmt.Sprintf("<match ref=\"%s\" version=\"%d\" type=\"%s\" updated_at=\"%s\"%s><title>%s</title>%s</match>\n",
				attribute(ref), m.Version, attribute(m.MediaType), m.UpdatedAt.UTC().Format(time.RFC3339), line, attribute(m.Title), attribute(m.Excerpt))
			if i > 0 && b.Len()+len(entry) > e.Shown.page() {
				fmt.Fprintf(&b, "[%d more matches are not shown; give more words.]\n", len(found.Matches)-i)
				found.Incomplete = true
				break
			}
			b.WriteString(entry)
		}
		if len(found.Matches) == 0 {
			b.WriteString("Nothing matches.\n")
		}
		if found.Unread > 0 {
			fmt.Fprintf(&b, "[%d texts were not searched, because one search reads at most 64 MB; leave everywhere out, or use grep_artifacts.]\n", found.Unread)
		}
		text := fmt.Sprintf("<artifact_search words=\"%s\" matches=\"%d\" complete=\"%t\">\n%s</artifact_search>", attribute(in.Words), len(found.Matches), !found.Incomplete, b.String())
		return Result{Content: text, Metadata: map[string]any{"content_type": "list", "count": len(found.Matches), "complete": !found.Incomplete}}, nil
	})
	t.Parallel = true
	return effectOf(t, func(_ context.Context, _ *Env, in searchArgs) (Effect, error) {
		if !in.Everywhere {
			return Effect{}, nil
		}
		return Effect{Kind: EffectElsewhere, Scope: "*", Object: "all conversations: " + in.Words}, nil
	})
}
