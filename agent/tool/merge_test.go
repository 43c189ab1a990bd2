// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestMerge: a write that is based on an older version keeps what others have changed
// since, or is refused with both sides.
func TestMerge(t *testing.T) {
	b := newBench(t)
	b.ok("create_artifact", m{"id": "a", "title": "A", "content": "1\n2\n3\n4\n5\n"})
	b.ok("update_artifact", m{"id": "a", "old_str": "1", "new_str": "one"})
	r := b.ok("rewrite_artifact", m{"id": "a", "content": "1\n2\n3\n4\nfive\n", "if_version": 1})
	if r.Metadata["merged"] != true || !strings.Contains(r.Content, "Merged artifact 'a' (v3)") || !strings.Contains(r.Content, "since version 1") {
		t.Errorf("got %s %v", r.Content, r.Metadata)
	}
	r = b.ok("update_artifact", m{"id": "a", "old_str": "3", "new_str": "three", "if_version": 2})
	if r.Metadata["merged"] != true || r.Metadata["edits"] == nil {
		t.Errorf("got %s %v", r.Content, r.Metadata)
	}
	const want = "one\n2\nthree\n4\nfive\n"
	if got := b.ok("get_artifact", m{"ref": "a"}).Content; got != want {
		t.Errorf("got %q", got)
	}
	b.refused("update_artifact", m{"id": "a", "old_str": "5", "new_str": "V", "if_version": 1}, "Nothing was written", "<conflict line=\"5\">", "<yours>\nV\n</yours>", "<version_4>\nfive\n</version_4>", "if_version=4")
	b.refused("update_artifact", m{"id": "a", "old_str": "absent and nowhere", "new_str": "V", "if_version": 1}, "the old text is not there")
	b.refused("rewrite_artifact", m{"id": "a", "content": "x", "if_version": 99}, "version 4")
	if got := b.ok("get_artifact", m{"ref": "a"}).Content; got != want {
		t.Errorf("a refused write changed the text to %q", got)
	}
	// What others wrote is part of the result, as if it had been written again.
	if r := b.ok("rewrite_artifact", m{"id": "a", "content": want, "if_version": 2}); !strings.Contains(r.Content, "v4") {
		t.Errorf("got %s", r.Content)
	}
}

func TestListVersions(t *testing.T) {
	b := newBench(t)
	b.ok("create_artifact", m{"id": "a", "title": "A", "content": "0"})
	for i := range 60 {
		b.ok("rewrite_artifact", m{"id": "a", "content": fmt.Sprint(i)})
	}
	r := b.ok("list_versions", m{"id": "a"})
	if r.Metadata["count"] != 61 || strings.Index(r.Content, `number="61" made="rewrite"`) > strings.Index(r.Content, `number="1" made="create"`) {
		t.Errorf("got %v %s", r.Metadata, r.Content)
	}
	b.env.Shown.Page = 1000
	r = b.ok("list_versions", m{"id": "a"})
	if len(r.Content) > 1200 || !strings.Contains(r.Content, "to continue: list_versions(id='a', offset=") {
		t.Errorf("got %s", r.Content)
	}
	if r = b.ok("list_versions", m{"id": "a", "offset": 61}); !strings.Contains(r.Content, `number="1"`) || strings.Contains(r.Content, `number="2"`) {
		t.Errorf("got %s", r.Content)
	}
	b.ok("delete_artifact", m{"id": "a"})
	if r = b.ok("list_versions", m{"id": "a"}); !strings.Contains(r.Content, `made="delete"`) {
		t.Errorf("got %s", r.Content)
	}
	b.refused("list_versions", m{"id": "none"}, "none")
}

func TestSearchArtifacts(t *testing.T) {
	b := newBench(t)
	b.ok("create_artifact", m{"id": "bridge", "title": "Die Brücke", "content": "One\nThe river is wide.\n"})
	b.ok("create_artifact", m{"id": "notes", "title": "Notes", "content": "Nothing\nA BRÜCKE over the river\n"})
	b.ok("create_artifact", m{"id": "gone", "title": "Brücke", "content": "river"})
	b.ok("delete_artifact", m{"id": "gone"})
	r := b.ok("search_artifacts", m{"words": "river brücke"})
	if r.Metadata["count"] != 2 || r.Metadata["complete"] != true || !strings.Contains(r.Content, `line="2"><title>Die Brücke</title>The river is wide.</match>`) || !strings.Contains(r.Content, `A BRÜCKE over the river`) {
		t.Errorf("got %v %s", r.Metadata, r.Content)
	}
	if r := b.ok("search_artifacts", m{"words": "notes", "everywhere": true}); r.Metadata["count"] != 1 || strings.Contains(r.Content, "line=") {
		t.Errorf("got %s", r.Content)
	}
	if r := b.ok("search_artifacts", m{"words": "river", "max": 1}); r.Metadata["complete"] != false {
		t.Errorf("got %s", r.Content)
	}
	if r := b.ok("search_artifacts", m{"words": "absent"}); !strings.Contains(r.Content, "Nothing matches") {
		t.Errorf("got %s", r.Content)
	}
	b.refused("search_artifacts", m{"words": " "}, "give what to look for")
	b.refused("search_artifacts", m{"words": "a", "max": 101}, "100")
	e, err := b.box.Effect(t.Context(), &b.env, "search_artifacts", []byte(`{"words":"x","everywhere":true}`))
	if err != nil || e.Kind != "other_conversation" {
		t.Errorf("everywhere has the effect %+v, %v", e, err)
	}
}
