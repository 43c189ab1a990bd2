// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
	"github.com/artelhq/artel/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// A bench is a conversation with a root message and two branches below it.
type bench struct {
	store   store.Store
	blobs   blob.Store
	options artifact.Options
	conv    artel.ConversationID
	root    artel.MessageID
	a, b    artel.MessageID // children of root
}

// fatal is what testing.TB and rapid.T have in common.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// newBench makes one on the database of an address of [rowstest.Address]; empty: on a new one.
func newBench(t testing.TB, address string) *bench {
	t.Helper()
	var s store.Store
	if address == "" {
		s = rowstest.Open(t)
	} else {
		s = rowstest.At(t, address)
	}
	b := &bench{store: storetest.Metered(s, t.Errorf), blobs: blob.NewMemory()}
	b.begin(t)
	return b
}

// begin makes the next conversation.
func (b *bench) begin(t fatal) {
	t.Helper()
	b.conv = artel.NewConversationID(start)
	b.root, b.a, b.b = artel.NewMessageID(start), artel.NewMessageID(start), artel.NewMessageID(start)
	err := b.store.Update(background, artel.Local, func(tx store.Tx) error {
		if err := tx.Conversations.Create(artel.Conversation{ID: b.conv, CreatedAt: start, UpdatedAt: start}); err != nil {
			return err
		}
		for _, m := range []artel.Message{{ID: b.root}, {ID: b.a, Parent: b.root}, {ID: b.b, Parent: b.root}} {
			m.Conversation, m.Role, m.CreatedAt = b.conv, artel.RoleUser, start
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) collection() *artifact.Collection {
	return artifact.New(b.store, b.blobs, b.options)
}

func (b *bench) workspace(run artel.RunID, at artel.MessageID) *artifact.Workspace {
	return b.collection().Workspace(artifact.WorkspaceConfig{
		Owner: artel.Local, Conversation: b.conv, Run: run, Message: at, Author: "lead_agent",
	})
}

func (b *bench) beginRun(t fatal, run artel.RunID, at artel.MessageID) {
	t.Helper()
	err := b.store.Update(background, artel.Local, func(tx store.Tx) error {
		return artifact.BeginRun(tx, artel.Run{ID: run, Conversation: b.conv, Message: at, StartedAt: start})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) fold(t fatal, run artel.RunID) {
	t.Helper()
	if err := b.foldRun(run); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) foldRun(run artel.RunID) error {
	return artifact.FoldRun(background, b.store, artel.Local, b.conv, run, func(fold func(store.Tx) error) error {
		return b.store.Update(background, artel.Local, fold)
	})
}

// text checks what the head is at a message, for a reader who knows nothing.
func (b *bench) text(t fatal, id artel.ArtifactID, at artel.MessageID, number int, want string) {
	t.Helper()
	got, v, err := b.collection().Text(background, artel.Local, b.conv, id, 0, at)
	if err != nil || got != want || v.Number != number {
		t.Fatalf("%s is %q at version %d (%v), want %q at %d", id, got, v.Number, err, want, number)
	}
}

func (b *bench) visible(t fatal, id artel.ArtifactID) []artel.Version {
	t.Helper()
	list, err := b.collection().Versions.List(background, artel.Local, b.conv, id)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func must[T any](t fatal) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// swap is one edit.
func swap(old, repl string) []edit.Edit { return []edit.Edit{{Old: old, New: repl}} }

func update(t fatal, w *artifact.Workspace, id artel.ArtifactID, old, repl string) artel.Artifact {
	t.Helper()
	a, _, err := w.Edit.Update(background, id, swap(old, repl), artifact.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRunLeavesOneVersion(t *testing.T) {
	b := newBench(t, "")
	w := b.workspace("run_1", b.a)
	a := must[artel.Artifact](t)(w.Create(t.Context(), "plan", "The plan", "one two three", ""))
	want := artel.Artifact{
		ID: "plan", Conversation: b.conv, Ref: artel.Ref{Conversation: b.conv, Artifact: "plan"}, Version: 1,
		Title: "The plan", Source: artel.SourceAgent, LastEditor: "lead_agent", Live: true,
		MediaInfo: artel.MediaInfo{MediaType: "text/markdown", Kind: artel.KindText, Charset: "utf-8", Confidence: 1, Size: 13},
		Digest:    a.Digest, Preview: "one two three", CreatedAt: a.CreatedAt, UpdatedAt: a.CreatedAt,
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	update(t, w, "plan", "two", "2")
	update(t, w, "plan", "three", "drei")

	// A reader sees the live head; what is visible waits for the fold.
	b.text(t, "plan", b.a, 3, "one 2 drei")
	if got := b.visible(t, "plan"); len(got) != 0 {
		t.Errorf("visible while the run goes on: %+v", got)
	}
	if _, err := b.collection().Versions.Get(t.Context(), artel.Local, b.conv, "plan", 3); artel.CodeOf(err) != artel.CodeArtifactNotFound {
		t.Errorf("version 3 while the run goes on: %v", err)
	}

	b.fold(t, "run_1")
	b.fold(t, "run_1") // once more changes nothing
	b.text(t, "plan", b.a, 3, "one 2 drei")
	got := b.visible(t, "plan")
	if len(got) != 1 {
		t.Fatalf("visible: %+v", got)
	}
	v := got[0]
	if v.Number != 3 || v.Parent != 0 || v.Update != artel.UpdateCreate || v.Run != "run_1" || v.Message != b.a || v.Size != 10 {
		t.Errorf("folded: %+v", v)
	}
	changes := []artel.Change{
		{Layer: artel.LayerExact, Start: 4, End: 7, Old: "two", New: "2"},
		{Layer: artel.LayerExact, Start: 6, End: 11, Old: "three", New: "drei"},
	}
	if diff := cmp.Diff(changes, v.Changes); diff != "" {
		t.Error(diff)
	}
	// A model that was told of version 2 can still read it.
	if text, old, err := b.workspace("run_2", b.a).Text(t.Context(), "plan", 2); err != nil || text != "one 2 three" || old.Version != 2 {
		t.Errorf("version 2: %q, %+v, %v", text, old, err)
	}
}

// A person's tool call between two edits of a run is folded at once.
func TestInterleavedWriters(t *testing.T) {
	b := newBench(t, "")
	run, person := b.workspace("run_1", b.a), b.workspace("", b.a)
	must[artel.Artifact](t)(person.Create(t.Context(), "doc", "", "a b c", ""))
	update(t, run, "doc", "a", "A")
	if a := update(t, person, "doc", "b", "B"); a.Version != 3 || a.Live {
		t.Errorf("the person's edit: %+v", a)
	}
	b.text(t, "doc", b.a, 3, "A B c")
	update(t, run, "doc", "c", "C")
	b.text(t, "doc", b.a, 4, "A B C")
	b.fold(t, "run_1")
	b.text(t, "doc", b.a, 4, "A B C")

	type row struct {
		Number, Parent int
		Update         artel.UpdateType
		Text           string
		News           string
	}
	var got []row
	for _, v := range b.visible(t, "doc") {
		text, _, err := b.collection().Text(t.Context(), artel.Local, b.conv, "doc", v.Number, b.a)
		if err != nil {
			t.Fatal(err)
		}
		r := row{v.Number, v.Parent, v.Update, text, ""}
		for _, c := range v.Changes {
			r.News += c.New
		}
		got = append(got, r)
	}
	want := []row{
		{1, 0, artel.UpdateCreate, "a b c", ""},
		{3, 2, artel.UpdateExact, "A B c", "B"},
		{4, 1, artel.UpdateExact, "A B C", "AC"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The run's last edit comes before the person's: its version is below theirs.
func TestFoldBelowAnotherVersion(t *testing.T) {
	b := newBench(t, "")
	run, person := b.workspace("run_1", b.a), b.workspace("", b.a)
	must[artel.Artifact](t)(run.Create(t.Context(), "doc", "", "a b", ""))
	update(t, run, "doc", "a", "A")
	update(t, person, "doc", "b", "B")
	b.fold(t, "run_1")
	b.text(t, "doc", b.a, 3, "A B")
	if text, _, err := b.collection().Text(t.Context(), artel.Local, b.conv, "doc", 2, ""); err != nil || text != "A b" {
		t.Errorf("the run's version: %q, %v", text, err)
	}
}

// Two runs, where one builds on edits of the other that are folded first.
func TestReplayThroughFoldedEdits(t *testing.T) {
	b := newBench(t, "")
	one, two := b.workspace("run_1", b.a), b.workspace("run_2", b.a)
	must[artel.Artifact](t)(one.Create(t.Context(), "doc", "", "a b c", ""))
	update(t, two, "doc", "a", "A")
	update(t, one, "doc", "b", "B")
	update(t, two, "doc", "c", "C")
	b.fold(t, "run_1")
	b.text(t, "doc", b.a, 4, "A B C")
	b.fold(t, "run_2")
	b.text(t, "doc", b.a, 4, "A B C")
	// Edit 1 is in no version now, and edit 2 builds on it.
	if text, _, err := one.Text(t.Context(), "doc", 2); err != nil || text != "A b c" {
		t.Errorf("edit 2: %q, %v", text, err)
	}
}

func TestBranches(t *testing.T) {
	b := newBench(t, "")
	a, other := b.workspace("run_a", b.a), b.workspace("run_b", b.b)
	must[artel.Artifact](t)(b.workspace("", b.root).Create(t.Context(), "shared", "", "root", ""))
	update(t, a, "shared", "root", "left")
	b.text(t, "shared", b.b, 1, "root")
	b.text(t, "shared", b.root, 1, "root")
	update(t, other, "shared", "root", "right")
	b.text(t, "shared", b.a, 2, "left")
	b.text(t, "shared", b.b, 3, "right")

	// The same id made on two branches shares its numbers.
	must[artel.Artifact](t)(a.Create(t.Context(), "own", "", "of a", ""))
	if v := must[artel.Artifact](t)(other.Create(t.Context(), "own", "", "of b", "")); v.Version != 2 {
		t.Errorf("made on the other branch: %+v", v)
	}
	b.fold(t, "run_a")
	b.fold(t, "run_b")
	b.text(t, "own", b.a, 1, "of a")
	b.text(t, "own", b.b, 2, "of b")
	b.text(t, "shared", b.a, 2, "left")
	b.text(t, "shared", b.b, 3, "right")
	if _, err := b.collection().Get(t.Context(), artel.Local, b.conv, "own", b.root); artel.CodeOf(err) != artel.CodeArtifactNotFound {
		t.Errorf("at the root: %v", err)
	}
}

func TestRefusedWrites(t *testing.T) {
	b := newBench(t, "")
	b.options.MaxText = 20
	w := b.workspace("run_1", b.a)
	ctx := t.Context()
	must[artel.Artifact](t)(w.Create(ctx, "doc", "", "x y x", ""))
	c := b.collection()
	png := must[artifact.Staged](t)(c.Uploads.Stage(ctx, strings.NewReader("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), media.Hint{Filename: "p.png"}))
	must[[]artel.Artifact](t)(c.Uploads.Add(ctx, artel.Local, b.conv, []artifact.Staged{png}))

	create := func(id artel.ArtifactID, title, content, mediaType string) func() error {
		return func() error { _, err := w.Create(ctx, id, title, content, mediaType); return err }
	}
	edit := func(id artel.ArtifactID, old, repl string, version int) func() error {
		return func() error {
			_, _, err := w.Edit.Update(ctx, id, swap(old, repl), artifact.UpdateOptions{IfVersion: version})
			return err
		}
	}
	rewrite := func(id artel.ArtifactID, content string, version int) func() error {
		return func() error { _, err := w.Edit.Rewrite(ctx, id, content, version); return err }
	}
	for _, tt := range []struct {
		name string
		do   func() error
		kind artel.Kind
		text string
	}{
		{"an id that is there", create("doc", "", "a", ""), artel.Conflict, "rewrite_artifact"},
		{"a bad id", create("a b", "", "a", ""), artel.Invalid, "not an artifact id"},
		{"content that is too long", create("new", "", strings.Repeat("é", 11), ""), artel.TooLarge, "at most 20"},
		{"content that is not UTF-8", create("new", "", "\xff", ""), artel.Invalid, "UTF-8"},
		{"a title that is too long", create("new", strings.Repeat("é", 257), "a", ""), artel.Invalid, "256"},
		{"a picture made of text", create("new", "", "a", "image/png"), artel.Unsupported, "image/png"},
		{"no artifact", edit("none", "a", "b", 0), artel.NotFound, "no such artifact"},
		{"a stale version", edit("doc", "y", "z", 7), artel.Conflict, "version 1 now"},
		{"several places", edit("doc", "x", "z", 0), artel.Invalid, "2 places match"},
		{"growth", edit("doc", "y", strings.Repeat("y", 20), 1), artel.TooLarge, "at most 20"},
		{"edits in bytes", edit("p.png", "PNG", "GIF", 0), artel.Unsupported, "image/png"},
		{"text in place of bytes", rewrite("p.png", "a", 0), artel.Unsupported, "image/png"},
		{"a rewrite that is too long", rewrite("doc", strings.Repeat("a", 21), 0), artel.TooLarge, "at most 20"},
		{"a rewrite of a stale version", rewrite("doc", "a", 2), artel.Conflict, "version 1 now"},
		{"reading bytes", func() error { _, _, err := w.Text(ctx, "p.png", 0); return err }, artel.Unsupported, "image/png"},
		{"reading old bytes", func() error { _, _, err := w.Text(ctx, "p.png", 1); return err }, artel.Unsupported, "image/png"},
		{"reading what never was", func() error { _, _, err := w.Text(ctx, "doc", 2); return err }, artel.NotFound, "no version 2"},
		{"reading before the first", func() error { _, _, err := w.Text(ctx, "doc", -1); return err }, artel.NotFound, "from 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.do()
			var e *artel.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.text) || e.Op == "" {
				t.Errorf("got %v (%s), want %s with %q", err, artel.KindOf(err), tt.kind, tt.text)
			}
		})
	}
	b.text(t, "doc", b.a, 1, "x y x")
	var refusal interface{ Error() string }
	_, _, err := w.Edit.Update(ctx, "doc", swap("x", "z"), artifact.UpdateOptions{})
	if !errors.As(err, &refusal) {
		t.Error("no refusal in the chain")
	}
}

// Ids are compared in their normal form, and types follow the id.
func TestNormalFormAndTypes(t *testing.T) {
	b := newBench(t, "")
	w := b.workspace("", b.a)
	a := must[artel.Artifact](t)(w.Create(t.Context(), "re\u0301sume\u0301.py", "", "", ""))
	if a.ID != "r\u00e9sum\u00e9.py" || a.MediaType != "text/x-python" || a.Title != string(a.ID) {
		t.Errorf("got %+v", a)
	}
	if _, err := w.Get(t.Context(), "re\u0301sume\u0301.py"); err != nil {
		t.Error(err)
	}
	for id, tt := range map[artel.ArtifactID][2]string{
		"a.json": {"", "application/json"}, "b": {"text/html; charset=utf-8", "text/html"}, "c": {"", "text/markdown"},
		"report.docx": {"", "text/markdown"}, "d.py": {"text/plain", "text/plain"}, "e.svg": {"image/svg+xml", "image/svg+xml"},
		"f": {"application/octet-stream", "text/markdown"},
	} {
		a, err := w.Create(t.Context(), id, "", "%PDF-1.7", tt[0])
		if err != nil || a.MediaType != tt[1] || a.Binary || a.Charset != "utf-8" {
			t.Errorf("%s: %+v, %v; want %s", id, a, err, tt[1])
		}
	}
}

func TestForeignOwner(t *testing.T) {
	b := newBench(t, "")
	ctx := t.Context()
	c := b.collection()
	staged := must[artifact.Staged](t)(c.Uploads.Stage(ctx, strings.NewReader("hello"), media.Hint{Filename: "a.txt"}))
	added := must[[]artel.Artifact](t)(c.Uploads.Add(ctx, artel.Local, b.conv, []artifact.Staged{staged}))
	const eve artel.Owner = "eve"
	w := c.Workspace(artifact.WorkspaceConfig{Owner: eve, Conversation: b.conv, Author: "eve"})
	_, _, update := w.Edit.Update(ctx, "a.txt", swap("hello", "bye"), artifact.UpdateOptions{})
	_, create := w.Create(ctx, "b", "", "b", "")
	_, add := c.Uploads.Add(ctx, eve, b.conv, []artifact.Staged{staged})
	_, list := c.List(ctx, eve, b.conv, "")
	_, get := c.Get(ctx, eve, b.conv, "a.txt", "")
	_, _, text := c.Text(ctx, eve, b.conv, "a.txt", 0, "")
	_, _, one := c.Text(ctx, eve, b.conv, "a.txt", 1, "")
	_, versions := c.Versions.List(ctx, eve, b.conv, "a.txt")
	_, version := c.Versions.Get(ctx, eve, b.conv, "a.txt", 1)
	_, open := c.Open(ctx, eve, added[0].Ref, "")
	_, digest := c.Open(ctx, eve, artel.BlobRef(staged.Digest), "")
	_, overview := c.Overview(ctx, eve, b.conv, "", 200)
	for name, err := range map[string]error{
		"update": update, "create": create, "add": add, "list": list, "get": get, "text": text, "text 1": one,
		"versions": versions, "version": version, "open": open, "digest": digest, "overview": overview,
	} {
		if !errors.Is(err, artel.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOverview(t *testing.T) {
	b := newBench(t, rowstest.Address(t))
	ctx := t.Context()
	c := b.collection()
	if o, err := c.Overview(ctx, artel.Local, b.conv, b.a, 200); o.Plan.ID != "" || err != nil {
		t.Errorf("before there is a plan: %+v, %v", o, err)
	}
	w := b.workspace("run_1", b.a)
	must[artel.Artifact](t)(w.Create(ctx, artel.TaskPlan, "Plan", "- [ ] a", ""))
	update(t, w, artel.TaskPlan, "[ ]", "[x]")
	if o, err := c.Overview(ctx, artel.Local, b.conv, b.a, 200); o.PlanText != "- [x] a" || o.Plan.ID != artel.TaskPlan || o.Plan.Version != 2 || err != nil {
		t.Errorf("the plan: %+v, %v", o, err)
	}
	if o, err := c.Overview(ctx, artel.Local, b.conv, b.b, 200); o.Plan.ID != "" || err != nil {
		t.Errorf("on the other branch: %+v, %v", o, err)
	}

	must[artel.Artifact](t)(w.Create(ctx, "doc", "", strings.Repeat("世", 300), ""))
	staged := must[artifact.Staged](t)(c.Uploads.Stage(ctx, strings.NewReader("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), media.Hint{Filename: "p.png"}))
	must[[]artel.Artifact](t)(c.Uploads.Add(ctx, artel.Local, b.conv, []artifact.Staged{staged}))
	must[artel.Artifact](t)(w.Create(ctx, "note", "", "brief", ""))
	previews := func(chars int) map[artel.ArtifactID]string {
		m := map[artel.ArtifactID]string{}
		for _, a := range must[artifact.Overview](t)(c.Overview(ctx, artel.Local, b.conv, b.a, chars)).Others {
			m[a.ID] = a.Preview
		}
		return m
	}
	for chars, note := range map[int]string{0: "", 2: "br", 200: "brief", 250: "brief", 1000: "brief"} {
		want := map[artel.ArtifactID]string{"doc": strings.Repeat("世", min(chars, 300)), "p.png": "", "note": note}
		if diff := cmp.Diff(want, previews(chars)); diff != "" {
			t.Errorf("%d characters: %s", chars, diff)
		}
	}
	must[artel.Artifact](t)(w.Edit.Rewrite(ctx, "doc", "short", 1))
	if got := previews(200)["doc"]; got != "short" {
		t.Errorf("after a rewrite: %q", got)
	}
}
