// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
)

// The span of a change leads from one text to the other, in code points, and
// is not larger than it has to be.
func TestSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.SampledFrom([]rune("ab世丗é\u0301🧵🧶\r\n")), 0, 6, -1)
		long := strings.Repeat("世丗ab\n", 20)
		head, tail := word.Draw(t, "head")+long, long+word.Draw(t, "tail")
		before, after := head+word.Draw(t, "before")+tail, head+word.Draw(t, "after")+tail
		c, small := span(before, after)
		if !small {
			t.Fatal("a small change is not small")
		}
		got, err := edit.ApplyChanges(before, []artel.Change{c})
		if err != nil || got != after {
			t.Fatalf("%+v leads to %q, %v; want %q", c, got, err, after)
		}
		if before == after && c.Old+c.New != "" {
			t.Fatalf("nothing has changed: %+v", c)
		}
		if o, n := []rune(c.Old), []rune(c.New); len(o) > 0 && len(n) > 0 && (o[0] == n[0] || o[len(o)-1] == n[len(n)-1]) {
			t.Fatalf("more than has changed: %+v", c)
		}
	})
	if _, small := span("a text", "another one altogether"); small {
		t.Error("another text is told as a change")
	}
	if _, small := span("a text", ""); small {
		t.Error("an empty text is told as a change")
	}
}
