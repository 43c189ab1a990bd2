// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

func TestHistoryOfAnArtifact(t *testing.T) {
	b := newBench(t)
	b.ok("create_artifact", m{"id": "notes", "title": "Notes", "content": "one\ntwo\n"})
	b.ok("update_artifact", m{"id": "notes", "old_str": "two", "new_str": "2"})

	r := b.ok("diff_artifact", m{"id": "notes"})
	want := "<artifact_diff id=\"notes\" from=\"1\" to=\"2\" added=\"1\" removed=\"1\" total_lines=\"6\" has_more=\"false\">\n" +
		"--- a/notes\n+++ b/notes\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n</artifact_diff>"
	if r.Content != want || r.Metadata["content_type"] != "diff" {
		t.Errorf("got %s %v", r.Content, r.Metadata)
	}
	if r := b.ok("diff_artifact", m{"id": "notes", "from": 2, "to": 2}); !strings.Contains(r.Content, "The texts are equal.") {
		t.Errorf("equal: %s", r.Content)
	}
	b.refused("diff_artifact", m{"id": "notes", "from": 9}, "no version 9")
	b.refused("diff_artifact", m{"id": "notes", "from": -1}, "from 1")
	b.refused("diff_artifact", m{"id": "nothing"}, "nothing")

	r = b.ok("rename_artifact", m{"id": "notes", "title": "<New>"})
	if want := `<artifact version="3"><id>notes</id> The title of artifact 'notes' is '&lt;New&gt;' (v3)</artifact>`; r.Content != want {
		t.Errorf("got %s", r.Content)
	}
	b.refused("rename_artifact", m{"id": "notes", "title": " \n"}, "title")
	b.refused("rename_artifact", m{"id": "notes", "title": "x", "if_version": 1}, "version 3 now")
	b.refused("rename_artifact", m{"id": "nothing", "title": "x"}, "nothing")

	r = b.ok("delete_artifact", m{"id": "notes", "if_version": 3})
	if !strings.Contains(r.Content, "restore_artifact(id='notes')") || r.Metadata["artifact_snapshot"].(m)["deleted"] != true {
		t.Errorf("deleted: %s %v", r.Content, r.Metadata)
	}
	b.refused("read_artifact", m{"id": "notes"}, "deleted")
	b.refused("delete_artifact", m{"id": "notes"}, "deleted")
	b.refused("create_artifact", m{"id": "notes", "title": "", "content": "x"}, "restore_artifact")
	if got := b.ok("list_artifacts", nil).Content; strings.Contains(got, "notes") {
		t.Errorf("listed: %s", got)
	}
	b.ok("read_artifact", m{"id": "notes", "version": 1})
	r = b.ok("restore_artifact", m{"id": "notes"})
	if want := `<artifact version="5"><id>notes</id> Restored artifact 'notes' as it was before it was deleted (v5)</artifact>`; r.Content != want {
		t.Errorf("got %s", r.Content)
	}
	b.refused("restore_artifact", m{"id": "notes"}, "say which version")
	b.refused("restore_artifact", m{"id": "notes", "version": -1}, "from 1")
	b.ok("restore_artifact", m{"id": "notes", "version": 1})
	if got := b.ok("get_artifact", m{"ref": "notes"}).Content; got != "one\ntwo\n" {
		t.Errorf("restored: %q", got)
	}
}

// The pages of a long diff are the diff.
func TestDiffPages(t *testing.T) {
	b := newBench(t)
	var one, two strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&one, "line %d of the first text\n", i)
		fmt.Fprintf(&two, "line %d of the other text\n", 4000-i)
	}
	b.ok("create_artifact", m{"id": "x", "title": "x", "content": one.String()})
	b.ok("rewrite_artifact", m{"id": "x", "content": two.String()})
	var all strings.Builder
	args := m{"id": "x"}
	for page := 0; ; page++ {
		got := b.ok("diff_artifact", args).Content
		head, body, _ := strings.Cut(got, "\n")
		all.WriteString(strings.TrimSuffix(body, "</artifact_diff>"))
		if strings.Contains(head, `has_more="false"`) {
			break
		}
		var offset int
		_, hint, _ := strings.Cut(head, "offset=")
		if _, err := fmt.Sscanf(hint, "%d)", &offset); err != nil || page > 100 || !strings.Contains(head, "diff_artifact(id='x', from=1, to=2, offset=") {
			t.Fatalf("no way on: %s", head)
		}
		args["offset"] = offset
	}
	d, err := b.env.Workspace.Diff(t.Context(), "x", 1, 2)
	if err != nil || all.String() != d.Unified("x") {
		t.Errorf("the pages are not the diff: %v", err)
	}
}

func TestGrep(t *testing.T) {
	b := newBench(t)
	b.ok("create_artifact", m{"id": "a", "title": "", "content": "alpha\nbeta\ngamma\ndelta\r\nepsilon\n"})
	b.ok("create_artifact", m{"id": "b", "title": "", "content": "Beta\n\nno\n"})
	b.upload("p.png", picture(t))
	for _, c := range []struct {
		args m
		want string
	}{
		{m{"pattern": "^beta$"}, "matches=\"1\" searched=\"2\" complete=\"true\">\na:2:beta\n[1 binary"},
		{m{"pattern": "beta", "ignore_case": true}, "a:2:beta\nb:1:Beta\n"},
		{m{"pattern": "beta", "ignore_case": true, "context": 1}, "a-1-alpha\na:2:beta\na-3-gamma\n--\nb:1:Beta\nb-2-\n["},
		{m{"pattern": "a$|^eps", "context": 1, "id": "a"}, "a:1:alpha\na:2:beta\na:3:gamma\na:4:delta\na:5:epsilon\n</"},
		{m{"pattern": "alpha|epsilon", "context": 1, "id": "a"}, "a:1:alpha\na-2-beta\n--\na-4-delta\na:5:epsilon\n</"},
		{m{"pattern": "beta", "id": "a"}, ">\na:2:beta\n</artifact_matches>"},
		{m{"pattern": "nowhere"}, "Nothing matches.\n"},
		{m{"pattern": "x*"}, "Nothing matches.\n"},
		{m{"pattern": "a*", "id": "b"}, "b:1:Beta\n</"},
		{m{"pattern": "a$", "max": 2}, "complete=\"false\">\na:1:alpha\na:2:beta\n[The search is incomplete"},
		{m{"pattern": "<&"}, `pattern="&lt;&amp;"`},
	} {
		got := b.ok("grep_artifacts", c.args).Content
		if !strings.Contains(got, c.want) {
			t.Errorf("%v: got %s, want %s", c.args, got, c.want)
		}
	}
	cut := b.ok("grep_artifacts", m{"pattern": "a$", "max": 1})
	if !strings.Contains(cut.Content, "The search is incomplete: there are more than the 1 matching lines that are shown; 2 more artifacts were not searched") || cut.Metadata["complete"] != false {
		t.Errorf("cut: %s", cut.Content)
	}
	b.refused("grep_artifacts", m{"pattern": ""}, "empty")
	b.refused("grep_artifacts", m{"pattern": "a(?=b)"}, "RE2")
	b.refused("grep_artifacts", m{"pattern": strings.Repeat("a", 1001)}, "1000")
	b.refused("grep_artifacts", m{"pattern": "a", "context": 101}, "0 to 100")
	b.refused("grep_artifacts", m{"pattern": "a", "max": 1001}, "1 to 1000")
	b.refused("grep_artifacts", m{"pattern": "a", "id": "nothing"}, "nothing")
	b.refused("grep_artifacts", m{"pattern": "a", "id": "p.png"}, "binary")
}

func TestGrepIsBounded(t *testing.T) {
	b := newBench(t)
	b.ok("create_artifact", m{"id": "wide", "title": "", "content": strings.Repeat("é", 5000) + "needle" + strings.Repeat("ü", 5000)})
	got := b.ok("grep_artifacts", m{"pattern": "needle"}).Content
	if len([]rune(got)) > 1300 || !strings.Contains(got, "needle") || !strings.Contains(got, "[… from column 4751] ") || !strings.Contains(got, "10006 characters in all") {
		t.Errorf("a wide line: %s", got)
	}
	b.ok("create_artifact", m{"id": "long", "title": "", "content": strings.Repeat(strings.Repeat("y", 900)+"\n", 500)})
	got = b.ok("grep_artifacts", m{"pattern": "y", "max": 1000}).Content
	if n := len([]rune(got)); n < 50_000 || n > 52_000 || !strings.Contains(got, "incomplete: no more than about 50000 characters") {
		t.Errorf("%d characters: %s", n, got[len(got)-300:])
	}
	// Bad for engines that go back; not for RE2.
	b.ok("create_artifact", m{"id": "hostile", "title": "", "content": strings.Repeat("a", 100_000)})
	b.ok("grep_artifacts", m{"pattern": "(a*)*b", "id": "hostile"})
}

func TestPut(t *testing.T) {
	b := newBench(t)
	data := picture(t)
	a := b.upload("Shot.PNG", data)
	r := b.ok("put_artifact", m{"ref": "blob:" + string(a.Digest), "id": "copy", "title": "Copy"})
	if want := `<artifact version="1"><id>copy</id> Put 'blob:` + string(a.Digest) + `' as artifact 'copy'</artifact>`; r.Content != want {
		t.Errorf("got %s", r.Content)
	}
	if r.Metadata["digest"] != a.Digest || r.Metadata["media_type"] != "image/png" || r.Metadata["filename"] != "Shot.PNG" {
		t.Errorf("got %v", r.Metadata)
	}
	if r := b.ok("put_artifact", m{"ref": "shot.png"}); !strings.Contains(r.Content, "<id>shot_1.png</id>") {
		t.Errorf("without an id: %s", r.Content)
	}
	b.refused("put_artifact", m{"ref": "shot.png", "id": "copy"}, "there already")
	b.refused("put_artifact", m{"ref": "blob:sha256-" + strings.Repeat("0", 64)}, "no artifact has these bytes")
	b.refused("put_artifact", m{"ref": "../../etc"})
	b.refused("put_artifact", m{"ref": "shot.png", "id": "a/b"}, "not an artifact id")
	b.refused("put_artifact", m{"ref": "shot.png", "title": strings.Repeat("x", 257)}, "256")

	// What is on the web is staged by whoever may fetch.
	b.refused("put_artifact", m{"url": "https://example.org/x"}, "not fetched here")
	b.refused("put_artifact", m{"url": "https://example.org/x", "ref": "notes"}, "ref or url")
	b.refused("put_artifact", m{}, "ref or url")
	b.env.Fetch = func(ctx context.Context, address string) (artifact.Staged, error) {
		if address != "https://example.org/a.csv" {
			return artifact.Staged{}, artel.Errorf(artel.NotFound, "fetch", address, "the answer was 404 Not Found")
		}
		return b.files.Uploads.Stage(ctx, strings.NewReader("\xef\xbb\xbfa,b\n"), media.Hint{Filename: "a.csv", DeclaredType: "text/csv"})
	}
	r = b.ok("put_artifact", m{"url": " https://example.org/a.csv "})
	if want := `<artifact version="1"><id>a.csv</id> Put 'https://example.org/a.csv' as artifact 'a.csv' (text/csv, 7 bytes)</artifact>`; r.Content != want {
		t.Errorf("got %s", r.Content)
	}
	b.ok("update_artifact", m{"id": "a.csv", "old_str": "a,b", "new_str": "c,d"})
	b.refused("put_artifact", m{"url": "https://example.org/a.csv", "id": "a.csv"}, "there already")
	b.refused("put_artifact", m{"url": "https://example.org/b.csv"}, "404")

	// A text goes on from an older version, and from another conversation.
	b.ok("create_artifact", m{"id": "notes", "title": "Notes", "content": "one"})
	b.ok("update_artifact", m{"id": "notes", "old_str": "one", "new_str": "two"})
	b.ok("put_artifact", m{"ref": "notes@1", "id": "older"})
	b.ok("update_artifact", m{"id": "older", "old_str": "one", "new_str": "three"})
	if got := b.ok("get_artifact", m{"ref": "older"}).Content; got != "three" {
		t.Errorf("the copy is %q", got)
	}
	if got := b.ok("get_artifact", m{"ref": "notes"}).Content; got != "two" {
		t.Errorf("the original is %q", got)
	}
	const other = artel.ConversationID("cnv_11111111111111111111111111")
	err := b.store.Update(t.Context(), artel.Local, func(tx store.Tx) error { return tx.Conversations.Create(artel.Conversation{ID: other}) })
	if err != nil {
		t.Fatal(err)
	}
	b.env.Conversation = other
	b.env.Workspace = b.files.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: other, Run: "run_1", Author: "lead"})
	b.ok("put_artifact", m{"ref": "artifact:cnv_00000000000000000000000000/notes@2", "id": "mine"})
	if got := b.ok("get_artifact", m{"ref": "mine"}).Content; got != "two" {
		t.Errorf("from another conversation: %q", got)
	}
	b.env.Artifacts = nil
	b.refused("put_artifact", m{"ref": "artifact:cnv_00000000000000000000000000/notes@2"}, "only artifacts of this conversation")
	b.refused("put_artifact", m{"ref": "blob:" + string(a.Digest)}, "only artifacts of this conversation")
}
