// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
)

// randomChanges returns changes of about ten characters each, at random places or
// from the end to the beginning, and the text after them.
func randomChanges(text string, n int, backwards bool) ([]artel.Change, string) {
	r := rand.New(rand.NewPCG(1, 2))
	runes := []rune(text)
	var changes []artel.Change
	for i := range n {
		at := r.IntN(len(runes) - 20)
		if backwards {
			at = (len(runes) - 20) * (n - 1 - i) / n
		}
		c := artel.Change{Start: at, End: at + 10, Old: string(runes[at : at+10]), New: string(rune('a'+i%26)) + "中文 new text"[:r.IntN(3)*3+2]}
		c.New = strings.ToValidUTF8(c.New, "")
		changes = append(changes, c)
		runes = append(runes[:at:at], append([]rune(c.New), runes[at+10:]...)...)
	}
	return changes, string(runes)
}

// Changes in any order cost little beside the text itself. The test counts the
// bytes allocated, which are those copied.
func TestApplyChangesCopiesLittle(t *testing.T) {
	text := strings.Repeat("0123456789 abc 中文 é\n", 100_000)
	for name, backwards := range map[string]bool{"random": false, "backwards": true} {
		changes, want := randomChanges(text[:200_000], 200, backwards)
		want += text[200_000:]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := edit.ApplyChanges(text, changes)
		runtime.ReadMemStats(&after)
		if err != nil || got != want {
			t.Fatalf("%s: wrong, %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(3*len(text)) {
			t.Errorf("%s: %d bytes are copied for a text of %d", name, n, len(text))
		}
	}
}

// TestApplyChangesInAnyOrder holds changes at all kinds of places, and of all sizes,
// to the plain definition.
func TestApplyChangesInAnyOrder(t *testing.T) {
	unit := []string{"a", "é", "中", "🧵", "\n"}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(most int, name string) string {
			n := rapid.IntRange(0, most).Draw(t, name)
			return strings.Repeat(rapid.SampledFrom(unit).Draw(t, name+" of"), n) + rapid.SampledFrom(unit).Draw(t, name+" end")
		}
		text := draw(9000, "text")
		runes := []rune(text)
		var changes []artel.Change
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			start := rapid.IntRange(0, len(runes)).Draw(t, "start")
			end := min(len(runes), start+rapid.SampledFrom([]int{0, 1, 7, 3000, 9000}).Draw(t, "length"))
			repl := ""
			if rapid.Bool().Draw(t, "with new text") {
				repl = draw(rapid.SampledFrom([]int{1, 5, 6000}).Draw(t, "most"), "new")
			}
			changes = append(changes, artel.Change{Start: start, End: end, Old: string(runes[start:end]), New: repl})
			runes = append(append(append([]rune{}, runes[:start]...), []rune(repl)...), runes[end:]...)
		}
		got, err := edit.ApplyChanges(text, changes)
		if err != nil || got != string(runes) {
			t.Fatalf("%d characters, %v, want %d", utf8.RuneCountInString(got), err, len(runes))
		}
	})
}
