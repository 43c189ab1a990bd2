// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"strings"
	"testing"

	"github.com/artelhq/artel"
)

func TestASearchOpensOnlySoManyBytes(t *testing.T) {
	g := &grep{docs: documents{left: 10}}
	for range 3 {
		large := artel.Artifact{MediaInfo: artel.MediaInfo{MediaType: "application/pdf", Size: 11}}
		if err := g.searchDerived(t.Context(), nil, large); err != nil { // without a workspace, nothing can be opened
			t.Fatal(err)
		}
	}
	if g.docs.unopened != 3 || g.docs.left != 10 || g.skipped != 0 {
		t.Errorf("got %+v", g.docs)
	}
}

func TestDocumentsAreNamedUpToABound(t *testing.T) {
	d := documents{matched: strings.Split("abcdefghijkl", ""), unreadable: []string{"x: why"}}
	want := "[The lines are those of the text taken out of these documents, which cannot be edited: a; b; c; d; e; f; g; h; i; j; and 2 more]\n" +
		"[These documents could not be read: x: why]\n"
	if got := d.notes(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
