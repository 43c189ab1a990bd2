// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/artelhq/artel"
)

func refOf(n int) string { return refPrefix + fmt.Sprintf("%064x", n) }

// TestOriginals: the longest text at a place becomes its ref, each ref is named once,
// and text between them stays.
func TestOriginals(t *testing.T) {
	var o originals
	if text, refs := o.replace("data:image/png;base64,aaaa"); text != "data:image/png;base64,aaaa" || refs != nil {
		t.Errorf("without any: %q %v", text, refs)
	}
	short, long := "data:image/png;base64,aaaa", "data:image/png;base64,aaaabbbb"
	o.add(refOf(1), short)
	o.add(refOf(2), long)
	o.add(refOf(3), "iVBORw0KGgoAAAANSUhEUg==")
	o.add(refOf(3), "another text of the same ref")
	in := "x" + long + short + "é" + short + "data:image/png;bas" + "iVBORw0KGgoAAAANSUhEUg==" + "iVBORw0KGgoAAAA"
	want := "x" + refOf(2) + refOf(1) + "é" + refOf(1) + "data:image/png;bas" + refOf(3) + "iVBORw0KGgoAAAA"
	got, refs := o.replace(in)
	if got != want || len(refs) != 3 {
		t.Errorf("%q\n%v", got, refs)
	}
	if text, refs := o.replace("nothing of them, though it is long"); refs != nil || !strings.HasPrefix(text, "nothing") {
		t.Errorf("%q %v", text, refs)
	}
}

// TestManyOriginals: a text without them costs the same, however many there are.
func TestManyOriginals(t *testing.T) {
	r := &Request{}
	texts := &Texts{r: r, rewriting: Rewriting{Scrub: ScrubParts}, originals: &originals{}}
	plain := strings.Repeat("plain words, ", 100)
	cost := func() float64 {
		return testing.AllocsPerRun(5, func() {
			out, err := texts.Argument(t.Context(), plain)
			if err != nil || out.Text != plain || len(out.Steps) > 0 {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
	texts.originals.add(refOf(0), "data:image/png;base64,0000")
	one := cost()
	for n := range 2000 {
		texts.originals.add(refOf(n), fmt.Sprintf("data:image/png;base64,%08d", n))
	}
	if many := cost(); many != one {
		t.Errorf("%v allocations with one original, %v with many", one, many)
	}
	out, err := texts.Argument(t.Context(), "see data:image/png;base64,00001999 and more text to reach the least length")
	ref, _ := artel.ParseRef(refOf(1999))
	if err != nil || len(out.Steps) != 1 || out.Steps[0].Ref != ref {
		t.Errorf("%+v, %v", out, err)
	}
}
