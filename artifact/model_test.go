// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/edit"
	"github.com/artelhq/artel/store/sqlite"
)

// A row is one numbered state in the reference.
type row struct {
	number, parent int
	text           string
	at             artel.MessageID // "": on every branch
	run            artel.RunID
	update         artel.UpdateType
	edits          int // changes
	visible, live  bool
}

// reference is what artifacts are, by their definition: every state as a whole
// text, and nothing folded that can be looked up.
type reference map[artel.ArtifactID][]row

// head returns the newest state that is seen at a message.
func (r reference) head(id artel.ArtifactID, at artel.MessageID) (row, bool) {
	for _, s := range slices.Backward(r[id]) {
		if (s.visible || s.live) && (s.at == "" || s.at == at) {
			return s, true
		}
	}
	return row{}, false
}

func (r reference) add(id artel.ArtifactID, s row) row {
	s.number = len(r[id]) + 1
	s.visible, s.live = s.run == "", s.run != ""
	r[id] = append(r[id], s)
	return s
}

// fold does what the end of a run does.
func (r reference) fold(run artel.RunID) {
	order := []artel.UpdateType{artel.UpdateExact, artel.UpdateRewrite, artel.UpdateCreate}
	for id, rows := range r {
		first, last, strongest, edits := -1, -1, artel.UpdateExact, 0
		for i, s := range rows {
			if !s.live || s.run != run {
				continue
			}
			if first < 0 {
				first = i
			}
			last = i
			edits += s.edits
			strongest = order[max(slices.Index(order, strongest), slices.Index(order, s.update))]
			r[id][i].live = false
		}
		if last >= 0 {
			s := &r[id][last]
			s.visible, s.parent, s.update, s.edits = true, rows[first].parent, strongest, edits
		}
	}
}

// A writer is one of the hands in a history: a person and two runs on one
// branch, a run on the other.
type writer struct {
	at  artel.MessageID
	run artel.RunID
	*artifact.Workspace
}

func TestHistories(t *testing.T) {
	t.Parallel()
	b := newBench(t, sqlite.Memory)
	rapid.Check(t, func(t *rapid.T) {
		b.begin(t)
		ref := reference{}
		var c *artifact.Collection
		writers := []*writer{{at: b.a}, {at: b.a, run: "run_1"}, {at: b.a, run: "run_2"}, {at: b.b, run: "run_3"}}
		// What is only in memory is lost in a crash.
		crash := func(*rapid.T) {
			c = b.collection()
			for _, w := range writers {
				w.Workspace = c.Workspace(artifact.WorkspaceConfig{
					Owner: artel.Local, Conversation: b.conv, Run: w.run, Message: w.at, Author: "a",
				})
			}
		}
		crash(nil)
		ids := []artel.ArtifactID{"one", "one", "one", "two"}
		draw := func(t *rapid.T) (*writer, artel.ArtifactID) {
			return rapid.SampledFrom(writers).Draw(t, "writer"), rapid.SampledFrom(ids).Draw(t, "id")
		}
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abcdefghijklmnopqrsté世\n")), 0, 12, -1)
		ifVersion := func(t *rapid.T, head row) int {
			return rapid.SampledFrom([]int{0, 0, head.number, 1}).Draw(t, "if version")
		}
		actions := map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				w, id := draw(t)
				content := text.Draw(t, "content")
				a, err := w.Create(background, id, "", content, "")
				if head, there := ref.head(id, w.at); there {
					if artel.CodeOf(err) != artifact.CodeArtifactExists || !strings.Contains(err.Error(), fmt.Sprint(head.number)) {
						t.Fatalf("made what is there: %v", err)
					}
					return
				}
				agree(t, a, err, ref.add(id, row{text: content, at: w.at, run: w.run, update: artel.UpdateCreate}))
			},
			"update": func(t *rapid.T) {
				w, id := draw(t)
				head, there := ref.head(id, w.at)
				if !there {
					_, _, err := w.Update(background, id, swap("a", "b"), 0)
					wantKind(t, err, artel.NotFound)
					return
				}
				edits := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) edit.Edit {
					return edit.Edit{Old: passage(t, head.text), New: text.Draw(t, "new")}
				}), 1, 2).Draw(t, "edits")
				n := ifVersion(t, head)
				a, result, err := w.Update(background, id, edits, n)
				if n != 0 && n != head.number {
					wantKind(t, err, artel.Conflict)
					return
				}
				want, refused := edit.Apply(background, head.text, edits, edit.Options{})
				if refused != nil {
					var r *edit.Refusal
					if !errors.As(err, &r) || r.Error() != refused.Error() {
						t.Fatalf("got %v, want %v", err, refused)
					}
					return
				}
				if err == nil && result.Text != want.Text {
					t.Fatalf("the result is %q, want %q", result.Text, want.Text)
				}
				agree(t, a, err, ref.add(id, row{
					text: want.Text, at: w.at, run: w.run, parent: head.number, update: artel.UpdateExact, edits: len(edits),
				}))
			},
			"rewrite": func(t *rapid.T) {
				w, id := draw(t)
				content := text.Draw(t, "content")
				head, there := ref.head(id, w.at)
				n := ifVersion(t, head)
				a, err := w.Rewrite(background, id, content, n)
				switch {
				case !there:
					wantKind(t, err, artel.NotFound)
				case n != 0 && n != head.number:
					wantKind(t, err, artel.Conflict)
				default:
					agree(t, a, err, ref.add(id, row{text: content, at: w.at, run: w.run, parent: head.number, update: artel.UpdateRewrite}))
				}
			},
			"upload": func(t *rapid.T) {
				if len(ref) > 3 {
					return // enough to look at
				}
				for _, a := range upload(t, b, "one", "two") {
					if _, there := ref[a.ID]; there {
						t.Fatalf("the upload took the id %s", a.ID)
					}
					ref.add(a.ID, row{text: "a", update: artel.UpdateCreate})
				}
			},
			"fold": func(t *rapid.T) {
				run := rapid.SampledFrom(writers).Draw(t, "writer").run
				b.fold(t, run)
				if run != "" {
					ref.fold(run)
				}
			},
			"crash": crash,
			"look": func(t *rapid.T) {
				sameHeads(t, c, b, ref, rapid.SampledFrom([]artel.MessageID{b.root, b.a, b.b}).Draw(t, "at"))
			},
		}
		// Most of the time, one text is edited in turns.
		names := append(slices.Sorted(maps.Keys(actions)), "update", "update", "update")
		for range rapid.IntRange(5, 15).Draw(t, "length") {
			actions[rapid.SampledFrom(names).Draw(t, "action")](t)
		}
		for _, at := range []artel.MessageID{b.root, b.a, b.b} {
			sameHeads(t, c, b, ref, at)
		}
		sameVersions(t, c, b, ref)
	})
}

// passage draws old text, most of which is in the text and stands there once.
func passage(t *rapid.T, text string) string {
	runes := []rune(text)
	if len(runes) == 0 || rapid.IntRange(0, 9).Draw(t, "anything") == 0 {
		return rapid.SampledFrom([]string{"a", "b", "世", "no such text", ""}).Draw(t, "old")
	}
	from := rapid.IntRange(0, len(runes)-1).Draw(t, "from")
	return string(runes[from:rapid.IntRange(from+1, len(runes)).Draw(t, "to")])
}

func agree(t *rapid.T, a artel.Artifact, err error, want row) {
	t.Helper()
	if err != nil || a.Version != want.number || a.Live != want.live || a.Size != int64(len(want.text)) {
		t.Fatalf("got %+v, %v; want %+v", a, err, want)
	}
}

func wantKind(t *rapid.T, err error, k artel.Kind) {
	t.Helper()
	if artel.KindOf(err) != k {
		t.Fatalf("got %v, want kind %s", err, k)
	}
}

// sameHeads holds the readers of heads to the reference.
func sameHeads(t *rapid.T, c *artifact.Collection, b *bench, ref reference, at artel.MessageID) {
	t.Helper()
	items := must[[]artifact.InventoryItem](t)(c.Inventory(background, artel.Local, b.conv, at, 3))
	seen := 0
	for id := range ref {
		want, there := ref.head(id, at)
		text, v, err := c.Text(background, artel.Local, b.conv, id, 0, at)
		if !there {
			wantKind(t, err, artel.NotFound)
			continue
		}
		seen++
		if err != nil || text != want.text || v.Number != want.number {
			t.Fatalf("%s at %q is %q (%d), %v; want %+v", id, at, text, v.Number, err, want)
		}
		i := slices.IndexFunc(items, func(i artifact.InventoryItem) bool { return i.Artifact.ID == id })
		if i < 0 || items[i].Artifact.Version != want.number || items[i].Artifact.Live != want.live {
			t.Fatalf("%s is listed among %+v, want %+v", id, items, want)
		}
		runes := []rune(want.text)
		if got, want := items[i].Preview, string(runes[:min(3, len(runes))]); got != want {
			t.Fatalf("the preview of %s is %q, want %q", id, got, want)
		}
	}
	if seen != len(items) {
		t.Fatalf("at %q: %d artifacts are listed, there are %d", at, len(items), seen)
	}
}

// sameVersions holds the readers of versions to the reference: the visible
// ones, and every state there ever was.
func sameVersions(t *rapid.T, c *artifact.Collection, b *bench, ref reference) {
	t.Helper()
	for id, rows := range ref {
		visible := b.visible(t, id)
		for _, s := range rows {
			if !s.visible {
				if text, err := c.TextAt(background, artel.Local, b.conv, id, s.number); err != nil || text != s.text {
					t.Fatalf("edit %d of %s is %q, %v; want %+v", s.number, id, text, err, s)
				}
				continue
			}
			text, v, err := c.Text(background, artel.Local, b.conv, id, s.number, "")
			if err != nil || text != s.text || v.Parent != s.parent || v.Update != s.update || v.Run != s.run || len(v.Changes) != s.edits {
				t.Fatalf("version %d of %s is %q, %+v, %v; want %+v", s.number, id, text, v, err, s)
			}
			if len(visible) == 0 || visible[0].Number != s.number {
				t.Fatalf("version %d is not next in %+v", s.number, visible)
			}
			visible = visible[1:]
		}
		if len(visible) > 0 {
			t.Fatalf("unexpected versions: %+v", visible)
		}
	}
}
