// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
)

// plainDiff is what diff is, by looking up every id.
func plainDiff(before, after []Message) (added, removed, changed []string) {
	old := map[string][]Message{}
	for _, m := range before {
		old[m.ID] = append(old[m.ID], m)
	}
	for _, m := range after {
		o := old[m.ID]
		if len(o) == 0 {
			added = append(added, m.ID)
			continue
		}
		if !same(&o[0], &m) {
			changed = append(changed, m.ID)
		}
		old[m.ID] = o[1:]
	}
	for _, m := range before {
		if o := old[m.ID]; len(o) > 0 {
			removed = append(removed, m.ID)
			old[m.ID] = o[1:]
		}
	}
	return added, removed, changed
}

// TestDiff is internal: which way a difference was found cannot be seen from
// outside, but in how long it takes.
func TestDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before []Message
		for i := range rapid.IntRange(0, 120).Draw(t, "n") {
			before = append(before, Message{ID: strconv.Itoa(i), Parts: artel.Parts{artel.Text{}}})
		}
		after := slices.Clone(before)
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			at := rapid.IntRange(0, len(after)).Draw(t, "at")
			to := min(len(after), at+rapid.SampledFrom([]int{0, 1, 2, 40}).Draw(t, "length"))
			switch rapid.SampledFrom([]string{"put in", "take out", "change", "move"}).Draw(t, "how") {
			case "put in":
				after = slices.Insert(after, at, Message{ID: "new" + strconv.Itoa(len(after))})
			case "take out":
				after = slices.Delete(after, at, to)
			case "change":
				for i := at; i < to; i++ {
					after[i].Parts = artel.Parts{artel.Text{}}
				}
			case "move":
				part := slices.Clone(after[at:to])
				after = slices.Delete(after, at, to)
				after = slices.Insert(after, rapid.IntRange(0, len(after)).Draw(t, "there"), part...)
			}
		}
		added, removed, changed := diff(before, after)
		wantAdded, wantRemoved, wantChanged := plainDiff(before, after)
		if !slices.Equal(added, wantAdded) || !slices.Equal(removed, wantRemoved) || !slices.Equal(changed, wantChanged) {
			t.Fatalf("added %q, removed %q, changed %q; want %q, %q, %q", added, removed, changed, wantAdded, wantRemoved, wantChanged)
		}
	})
}

// TestDiffOfTwins: presets may stand in several places under one id.
func TestDiffOfTwins(t *testing.T) {
	preset := func() Message {
		return Message{ID: "p", Origin: OriginDepth, Parts: artel.Parts{artel.Text{}}}
	}
	p, h := preset(), Message{ID: "h", Origin: OriginHistory}
	added, removed, changed := diff([]Message{h}, []Message{p, h, p})
	if !slices.Equal(added, []string{"p", "p"}) || removed != nil || changed != nil {
		t.Errorf("added %q, removed %q, changed %q", added, removed, changed)
	}
	added, removed, changed = diff([]Message{p, h, p}, []Message{h})
	if !slices.Equal(removed, []string{"p", "p"}) || added != nil || changed != nil {
		t.Errorf("added %q, removed %q, changed %q", added, removed, changed)
	}
	added, removed, changed = diff([]Message{p, h}, []Message{h, preset()})
	if !slices.Equal(changed, []string{"p"}) || added != nil || removed != nil {
		t.Errorf("added %q, removed %q, changed %q", added, removed, changed)
	}
}

// surelyDistinct says so only of distinct ids, and of all that are nearly in order.
func TestSurelyDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			id     string
			counts bool
		}
		var list []entry
		for i := range rapid.IntRange(0, 40).Draw(t, "number") {
			list = append(list, entry{strconv.Itoa(1000 + i), rapid.IntRange(0, 5).Draw(t, "counts") > 0})
		}
		for range rapid.IntRange(0, 20).Draw(t, "swaps") { // with the next but one at most
			if len(list) > 2 {
				i := rapid.IntRange(0, len(list)-3).Draw(t, "at")
				j := i + rapid.IntRange(1, 2).Draw(t, "by")
				list[i], list[j] = list[j], list[i]
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "doubles") {
			if len(list) > 0 {
				list[rapid.IntRange(0, len(list)-1).Draw(t, "to")].id = list[rapid.IntRange(0, len(list)-1).Draw(t, "from")].id
			}
		}
		seen, want := map[string]bool{}, true
		for _, e := range list {
			want = want && !(e.counts && seen[e.id])
			seen[e.id] = seen[e.id] || e.counts
		}
		if got := surelyDistinct(len(list), func(i int) (string, bool) { return list[i].id, list[i].counts }); got != want {
			t.Errorf("%v: got %v, want %v", list, got, want)
		}
	})
	reversed := func(n int) bool {
		return surelyDistinct(n, func(i int) (string, bool) { return strconv.Itoa(5000 - i), true })
	}
	if !reversed(maxLate+1) || reversed(maxLate+2) {
		t.Error("ids in any order are to be answered up to maxLate late ones only")
	}
}
