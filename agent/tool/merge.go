// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
)

// behind reports whether a write failed because others have changed the artifact since
// the version that it was made from.
func behind(err error, ifVersion int) bool {
	return ifVersion > 0 && artel.CodeOf(err) == artifact.CodeStale
}

// mergedInto makes the version of a write that is behind. stale is the error of the write,
// which stays if the two cannot be compared.
func mergedInto(ctx context.Context, e *Env, id artel.ArtifactID, base int, text string, stale error) (Result, error) {
	a, err := e.Workspace.Edit.Merge(ctx, id, base, text)
	switch {
	case errors.Is(err, artel.NotFound), errors.Is(err, artel.Unsupported):
		return failure(stale)
	case err != nil:
		return conflict(err)
	}
	r := editResult(a, ` merged="true"`, fmt.Sprintf("Merged artifact '%s' (v%d) with what others have changed since version %d; diff_artifact(id='%s', from=%d) shows all of it", a.ID, a.Version, base, a.ID, base))
	r.Metadata["merged"] = true
	return r, nil
}

// maxConflicts is the most bytes of conflicts that are shown.
const maxConflicts = 2500

// conflict shows where both have changed the same lines.
func conflict(err error) (Result, error) {
	r, failure := failure(err)
	s, ok := errors.AsType[*artifact.Stale](err)
	if !ok || s.Merged == nil {
		return r, failure
	}
	var b strings.Builder
	for i, c := range s.Merged.Conflicts {
		entry := fmt.Sprintf("\n<conflict line=\"%d\">\n<yours>\n%s</yours>\n<version_%d>\n%s</version_%d>\n</conflict>", max(c.TheirsStart, 1), endLine(middle(c.Mine)), s.Current.Version, endLine(middle(c.Theirs)), s.Current.Version)
		if i > 0 && b.Len()+len(entry) > maxConflicts {
			fmt.Fprintf(&b, "\n[%d more conflicts]", len(s.Merged.Conflicts)-i)
			break
		}
		b.WriteString(entry)
	}
	r.Content += fmt.Sprintf(". Nothing was written. Read version %d, decide, and write with if_version=%d:%s", s.Current.Version, s.Current.Version, b.String())
	r.Metadata["conflicts"] = len(s.Merged.Conflicts)
	return r, failure
}
