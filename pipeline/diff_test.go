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
