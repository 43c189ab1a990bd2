// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/diff"
	"github.com/artelhq/artel/artifact/edit"
)

// A row is one numbered state in the reference.
type row struct {
	number, parent int
	title, text    string
	at             artel.MessageID // "": on every branch
	run            artel.RunID
	update         artel.UpdateType
	edits          int // changes
	folded         int // those of what was folded into it
	visible, live  bool
	strongest      artel.UpdateType // of what was folded into it
	first          int              // parent of the first of them
	order          int              // when it was made
	gone           bool             // the journal has let go of it
}

func (r row) deleted() bool { return r.update == artel.UpdateDelete }

// reference is what artifacts are, by their definition: every state as a whole
// text, and nothing folded that can be looked up.
type reference struct {
	rows map[artel.ArtifactID][]row
	time int
}

// head returns the newest state that is seen at a message, deleted or not.
func (r *reference) head(id artel.ArtifactID, at artel.MessageID) (row, bool) {
	for _, s := range slices.Backward(r.rows[id]) {
		if (s.visible || s.live) && (s.at == "" || s.at == at) {
			return s, true
		}
	}
	return row{}, false
}

func (r *reference) add(id artel.ArtifactID, s row) row {
	r.time++
	s.number, s.order = len(r.rows[id])+1, r.time
	s.visible, s.live = s.run == "", s.run != ""
	s.folded, s.strongest, s.first = s.edits, s.update, s.parent
	r.rows[id] = append(r.rows[id], s)
	return s
}

// fold does what the end of a run does.
func (r *reference) fold(run artel.RunID) {
	order := []artel.UpdateType{
		artel.UpdateDelete, artel.UpdateRename, artel.UpdateExact, artel.UpdateFuzzy, artel.UpdateRewrite, artel.UpdateRestore, artel.UpdateCreate,
	}
	for _, rows := range r.rows {
		var of []*row
		for i := range rows {
			if rows[i].live && rows[i].run == run {
				rows[i].live = false
				of = append(of, &rows[i])
			}
		}
		if len(of) == 0 {
			continue
		}
		last := of[len(of)-1]
		last.visible, last.first, last.folded = true, of[0].parent, 0
		for _, e := range of {
			last.folded += e.edits
			if !last.deleted() && slices.Index(order, e.update) > slices.Index(order, last.strongest) {
				last.strongest = e.update
			}
		}
	}
}

// A writer is one of the hands in a history: a person and two runs on one
// branch, a run on the other.
type writer struct {
	at  artel.MessageID
	run artel.RunID
	*artifact.Workspace
	began int // when its run began
	runs  int // how many runs it has ended
	seen  map[artel.ArtifactID]int
}

// knows reports whether a writer may put something else in the place of head.
func (w *writer) knows(id artel.ArtifactID, head row) bool {
	if n := w.seen[id]; n != 0 {
		return n == head.number
	}
	return head.order <= w.began
}

// wrote notes that w made s on head, which it perhaps knew.
func (w *writer) wrote(id artel.ArtifactID, head, s row) row {
	if s.update == artel.UpdateRewrite || w.knows(id, head) {
		w.seen[id] = s.number
	}
	return s
}

// spans is how many changes a new whole text is told as.
func spans(before, after string) int {
	a, b := []rune(before), []rune(after)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if n := len(string(a)) + len(string(b)); n == 0 || n > len(after)/4 {
		return 0
	}
	return 1
}

func TestHistories(t *testing.T) {
	t.Parallel()
	// Most of the time, one text is edited in turns.
	histories(t, 5, 20, "update", "update", "update", "create", "restore")
}

// TestCondensedHistories holds what is left of a journal to the same reference:
// its runs make many edits, and every version reads as before.
func TestCondensedHistories(t *testing.T) {
	t.Parallel()
	histories(t, 6, 16, "create", "create", "burst", "burst", "burst", "burst", "burst", "burst", "update", "update", "fold", "fold", "fold", "condense", "condense")
}

// histories takes random actions of all kinds, some of them more often.
func histories(t *testing.T, shortest, longest int, often ...string) {
	b := newBench(t, "")
	clock := start
	b.options.Now = func() time.Time {
		clock = clock.Add(time.Millisecond)
		return clock
	}
	rapid.Check(t, func(t *rapid.T) {
		b.begin(t)
		h := &history{
			bench: b, ref: &reference{rows: map[artel.ArtifactID][]row{}},
			writers: []*writer{{at: b.a}, {at: b.a, run: "run_1"}, {at: b.a, run: "run_2"}, {at: b.b, run: "run_3"}},
		}
		for _, w := range h.writers {
			h.beginRun(t, w)
		}
		h.crash(t)
		actions := map[string]func(*rapid.T){
			"create": h.create, "update": h.update, "rewrite": h.rewrite, "rename": h.rename, "delete": h.remove,
			"restore": h.restore, "save": h.save, "read": h.read, "upload": h.upload, "fold": h.fold, "crash": h.crash,
			"condense": h.condense, "burst": h.burst,
			"look": func(t *rapid.T) { h.sameHeads(t, rapid.SampledFrom([]artel.MessageID{b.root, b.a, b.b}).Draw(t, "at")) },
		}
		names := append(slices.Sorted(maps.Keys(actions)), often...)
		for range rapid.IntRange(shortest, longest).Draw(t, "length") {
			h.moments = append(h.moments, moment{clock, h.ref.time})
			actions[rapid.SampledFrom(names).Draw(t, "action")](t)
		}
		for _, at := range []artel.MessageID{b.root, b.a, b.b} {
			h.sameHeads(t, at)
		}
		h.sameVersions(t)
	})
}

// A history is a conversation beside its reference.
type history struct {
	*bench
	ref     *reference
	c       *artifact.Collection
	writers []*writer
	moments []moment
}

// crash loses what is only in memory. What a run has seen of others is lost; what
// was there at its beginning and what it wrote is not.
func (h *history) crash(*rapid.T) {
	h.c = h.collection()
	for _, w := range h.writers {
		h.open(w)
		for id, rows := range h.ref.rows {
			for _, s := range rows {
				if s.live && s.run == w.run && (s.update == artel.UpdateCreate || s.update == artel.UpdateRewrite || w.knows(id, rows[s.parent-1])) {
					w.seen[id] = s.number
				}
			}
		}
	}
}

func (h *history) open(w *writer) {
	w.Workspace = h.c.Workspace(artifact.WorkspaceConfig{
		Owner: artel.Local, Conversation: h.conv, Run: w.run, Message: w.at, Author: "a",
	})
	w.seen = map[artel.ArtifactID]int{}
}

// beginRun begins the run of a writer.
func (h *history) beginRun(t *rapid.T, w *writer) {
	w.began = h.ref.time
	if w.run != "" {
		h.bench.beginRun(t, w.run, w.at)
	}
}

func (h *history) draw(t *rapid.T) (*writer, artel.ArtifactID, row, bool) {
	w := rapid.SampledFrom(h.writers).Draw(t, "writer")
	id := rapid.SampledFrom([]artel.ArtifactID{"one", "one", "one", "two"}).Draw(t, "id")
	head, there := h.ref.head(id, w.at)
	return w, id, head, there
}

func someText(t *rapid.T, name string) string {
	return rapid.StringOfN(rapid.SampledFrom([]rune("abcdefghijklmnopqrsté世\n")), 0, 14, -1).Draw(t, name)
}

func ifVersion(t *rapid.T, head row) int {
	return rapid.SampledFrom([]int{0, 0, head.number, 1}).Draw(t, "if version")
}

// refusedFor says which kind of error a write is to end with, "" for none. knows is
// what a write must that puts something else in the place of the head.
func refusedFor(head row, there, deletedToo bool, n int, knows bool) artel.Kind {
	switch {
	case !there, head.deleted() && !deletedToo:
		return artel.NotFound
	case n != 0 && n != head.number, n == 0 && !knows:
		return artel.Conflict
	}
	return ""
}

func (h *history) create(t *rapid.T) {
	w, id, head, there := h.draw(t)
	content := someText(t, "content")
	a, err := w.Create(background, id, "", content, "")
	if there {
		if artel.CodeOf(err) != artifact.CodeArtifactExists || !strings.Contains(err.Error(), fmt.Sprint(head.number)) ||
			strings.Contains(err.Error(), "restore") != head.deleted() {
			t.Fatalf("made what is there: %v", err)
		}
		return
	}
	s := h.ref.add(id, row{title: string(id), text: content, at: w.at, run: w.run, update: artel.UpdateCreate})
	w.seen[id] = s.number
	agree(t, a, err, s)
}

func (h *history) update(t *rapid.T) {
	w, id, head, there := h.draw(t)
	h.updateBy(t, w, id, head, there, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) edit.Edit {
		return edit.Edit{Old: passage(t, head.text), New: someText(t, "new")}
	}), 1, 2).Draw(t, "edits"))
}

func (h *history) updateBy(t *rapid.T, w *writer, id artel.ArtifactID, head row, there bool, edits []edit.Edit) {
	n := ifVersion(t, head)
	a, result, err := w.Edit.Update(background, id, edits, artifact.UpdateOptions{IfVersion: n})
	if kind := refusedFor(head, there, false, n, true); kind != "" {
		wantKind(t, err, kind)
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
	u := artel.UpdateExact
	if slices.ContainsFunc(want.Hits, func(h edit.Hit) bool { return h.Layer != artel.LayerExact }) {
		u = artel.UpdateFuzzy
	}
	agree(t, a, err, w.wrote(id, head, h.ref.add(id, row{
		title: head.title, text: want.Text, at: w.at, run: w.run, parent: head.number, update: u, edits: len(want.Changes),
	})))
}

func (h *history) rewrite(t *rapid.T) {
	w, id, head, there := h.draw(t)
	content := someText(t, "content")
	n := ifVersion(t, head)
	a, err := w.Edit.Rewrite(background, id, content, n)
	if kind := refusedFor(head, there, false, n, w.run == "" || w.knows(id, head)); kind != "" {
		wantKind(t, err, kind)
		return
	}
	agree(t, a, err, w.wrote(id, head, h.ref.add(id, row{
		title: head.title, text: content, at: w.at, run: w.run, parent: head.number, update: artel.UpdateRewrite, edits: spans(head.text, content),
	})))
}

func (h *history) rename(t *rapid.T) {
	w, id, head, there := h.draw(t)
	title := rapid.SampledFrom([]string{"one", "Zwei", "三"}).Draw(t, "title")
	n := ifVersion(t, head)
	a, err := w.Edit.Rename(background, id, " "+title+"\n", n)
	kind := refusedFor(head, there, false, n, true)
	switch {
	case kind != "":
		wantKind(t, err, kind)
	case title == head.title:
		agree(t, a, err, head)
	default:
		agree(t, a, err, w.wrote(id, head, h.ref.add(id, row{
			title: title, text: head.text, at: w.at, run: w.run, parent: head.number, update: artel.UpdateRename,
		})))
	}
}

func (h *history) remove(t *rapid.T) {
	w, id, head, there := h.draw(t)
	n := ifVersion(t, head)
	a, err := w.Edit.Delete(background, id, n)
	if kind := refusedFor(head, there, false, n, w.run == "" || w.knows(id, head)); kind != "" {
		wantKind(t, err, kind)
		return
	}
	agree(t, a, err, w.wrote(id, head, h.ref.add(id, row{
		title: head.title, text: head.text, at: w.at, run: w.run, parent: head.number, update: artel.UpdateDelete,
	})))
}

func (h *history) restore(t *rapid.T) {
	w, id, head, there := h.draw(t)
	n := ifVersion(t, head)
	to := rapid.IntRange(0, len(h.ref.rows[id])+1).Draw(t, "to")
	a, err := w.Edit.Restore(background, id, to, n)
	kind := refusedFor(head, there, true, n, w.run == "" || w.knows(id, head))
	if to == 0 && head.deleted() {
		to = head.parent
	}
	switch {
	case kind != "":
	case to == 0, to == head.number && !head.deleted():
		kind = artel.Invalid
	case to > len(h.ref.rows[id]), h.ref.rows[id][to-1].gone:
		kind = artel.NotFound
	case h.ref.rows[id][to-1].deleted():
		kind = artel.Invalid
	}
	if kind != "" {
		wantKind(t, err, kind)
		return
	}
	then := h.ref.rows[id][to-1]
	agree(t, a, err, w.wrote(id, head, h.ref.add(id, row{
		title: then.title, text: then.text, at: w.at, run: w.run, parent: head.number, update: artel.UpdateRestore, edits: spans(head.text, then.text),
	})))
}

// save is what a person does, from a version that may be old.
func (h *history) save(t *rapid.T) {
	w, id, head, there := h.draw(t)
	base := rapid.SampledFrom([]int{head.number, head.number, 1, max(1, head.number-1)}).Draw(t, "base")
	content := someText(t, "content")
	d := artifact.Draft{Text: &content}
	title := rapid.SampledFrom([]string{head.title, "Titel"}).Draw(t, "title")
	if title != head.title {
		d.Title = &title
	}
	a, err := w.Edit.Save(background, id, base, d)
	switch {
	case !there || head.deleted():
		wantKind(t, err, artel.NotFound)
	case content == head.text && title == head.title:
		agree(t, a, err, head)
	case base != head.number:
		stale, ok := errors.AsType[*artifact.Stale](err)
		if !ok || artel.CodeOf(err) != artifact.CodeStale || stale.Current.Version != head.number || (stale.Merged == nil) != h.ref.rows[id][base-1].gone {
			t.Fatalf("saved over version %d what was made from %d: %+v", head.number, base, err)
		}
		if stale.Merged == nil {
			return
		}
		want := must[diff.Merged](t)(diff.Merge(background, h.ref.rows[id][base-1].text, content, head.text, diff.MergeOptions{
			Mine: "yours", Base: fmt.Sprintf("version %d", base), Theirs: fmt.Sprintf("version %d", head.number),
		}))
		if diff := cmp.Diff(want, *stale.Merged); diff != "" {
			t.Fatal(diff)
		}
	default:
		u := artel.UpdateRewrite
		if content == head.text {
			u = artel.UpdateRename
		}
		agree(t, a, err, w.wrote(id, head, h.ref.add(id, row{
			title: title, text: content, at: w.at, run: w.run, parent: head.number, update: u, edits: spans(head.text, content),
		})))
	}
}

func (h *history) read(t *rapid.T) {
	w, id, head, there := h.draw(t)
	number := max(0, rapid.IntRange(-2, len(h.ref.rows[id])+1).Draw(t, "number"))
	text, a, err := w.Text(background, id, number)
	if !there || number == 0 && head.deleted() || number > len(h.ref.rows[id]) || number > 0 && h.ref.rows[id][number-1].gone {
		wantKind(t, err, artel.NotFound)
		return
	}
	want := head
	if number > 0 {
		want = h.ref.rows[id][number-1]
	}
	if err != nil || a.Version != want.number || text != want.text {
		t.Fatalf("read version %d %q, %v; want %+v", a.Version, text, err, want)
	}
	if want.number == head.number {
		w.seen[id] = head.number
	}
}

func (h *history) upload(t *rapid.T) {
	if len(h.ref.rows) > 3 {
		return // enough to look at
	}
	for i, a := range upload(t, h.bench, "one", "two") {
		if _, there := h.ref.rows[a.ID]; there {
			t.Fatalf("the upload took the id %s", a.ID)
		}
		h.ref.add(a.ID, row{title: []string{"one", "two"}[i], text: "a", update: artel.UpdateCreate})
	}
}

func (h *history) fold(t *rapid.T) {
	h.endRun(t, rapid.SampledFrom(h.writers).Draw(t, "writer"))
}

// endRun ends the run of a writer, which begins the next one.
func (h *history) endRun(t *rapid.T, w *writer) {
	h.bench.fold(t, w.run)
	if w.run == "" {
		return
	}
	h.ref.fold(w.run)
	name, _, _ := strings.Cut(string(w.run), ".")
	w.runs++
	w.run = artel.RunID(fmt.Sprintf("%s.%s.%d", name, h.conv, w.runs))
	h.open(w)
	h.beginRun(t, w)
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
	if err != nil || a.Version != want.number || a.Live != want.live || a.Size != int64(len(want.text)) || a.Title != want.title || a.Deleted != want.deleted() {
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
func (h *history) sameHeads(t *rapid.T, at artel.MessageID) {
	t.Helper()
	items := must[artifact.Overview](t)(h.c.Overview(background, artel.Local, h.conv, at, 3)).Others
	seen := 0
	for id := range h.ref.rows {
		want, there := h.ref.head(id, at)
		text, v, err := h.c.Text(background, artel.Local, h.conv, id, 0, at)
		if !there || want.deleted() {
			wantKind(t, err, artel.NotFound)
			continue
		}
		seen++
		if err != nil || text != want.text || v.Number != want.number {
			t.Fatalf("%s at %q is %q (%d), %v; want %+v", id, at, text, v.Number, err, want)
		}
		i := slices.IndexFunc(items, func(a artel.Artifact) bool { return a.ID == id })
		if i < 0 {
			t.Fatalf("%s is not among %+v", id, items)
		}
		agree(t, items[i], nil, want)
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
func (h *history) sameVersions(t *rapid.T) {
	t.Helper()
	for id, rows := range h.ref.rows {
		var want [3][]artifact.Entry // by scope; the fields that are compared
		for _, s := range rows {
			if s.gone {
				_, err := h.c.Versions.Text(background, artel.Local, h.conv, id, s.number)
				wantKind(t, err, artel.NotFound)
				continue
			}
			e := artifact.Entry{Visible: s.visible, Live: s.live, Version: artel.Version{
				Number: s.number, Parent: s.parent, Run: s.run, Message: s.at, Update: s.update, Title: s.title,
			}}
			want[artifact.Journal] = append(want[artifact.Journal], e)
			if s.visible {
				e.Parent, e.Update = s.first, s.strongest
				want[artifact.Visible] = append(want[artifact.Visible], e)
			}
			if s.visible || s.live {
				want[artifact.WithLive] = append(want[artifact.WithLive], e)
			}
			h.sameState(t, id, s)
		}
		for scope, want := range want {
			got := must[[]artifact.Entry](t)(h.c.Versions.History(background, artel.Local, h.conv, id, artifact.Scope(scope)))
			for i, e := range got {
				got[i] = artifact.Entry{Visible: e.Visible, Live: e.Live, Version: artel.Version{
					Number: e.Number, Parent: e.Parent, Run: e.Run, Message: e.Message, Update: e.Update, Title: e.Title,
				}}
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s, scope %d (-want +got):\n%s", id, scope, diff)
			}
		}
	}
}

// sameState holds the readers of one state to the reference.
func (h *history) sameState(t *rapid.T, id artel.ArtifactID, s row) {
	t.Helper()
	if text, err := h.c.Versions.Text(background, artel.Local, h.conv, id, s.number); err != nil || text != s.text {
		t.Fatalf("state %d of %s is %q, %v; want %+v", s.number, id, text, err, s)
	}
	e, text, err := h.c.Versions.State(background, artel.Local, h.conv, id, s.number, artifact.Journal)
	if err != nil || *text != s.text || e.Visible != s.visible || e.Live != s.live {
		t.Fatalf("state %d of %s is %+v, %v; want %+v", s.number, id, e, err, s)
	}
	visible, v, err := h.c.Text(background, artel.Local, h.conv, id, s.number, "")
	if !s.visible {
		wantKind(t, err, artel.NotFound)
		return
	}
	if err != nil || visible != s.text || len(v.Changes) != s.folded {
		t.Fatalf("version %d of %s is %q, %+v, %v; want %+v", s.number, id, visible, v, err, s)
	}
}
