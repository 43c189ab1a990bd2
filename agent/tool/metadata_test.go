// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
)

// TestEveryToolSaysWhatItsResultIs: the class of the result, and for a file
// all that is needed to show it.
func TestEveryToolSaysWhatItsResultIs(t *testing.T) {
	b := newBench(t)
	shot := string(b.upload("Shot.PNG", picture(t)).ID)
	sheet := string(b.upload("t.csv", []byte("a,b\n1,2\n")).ID)
	b.upload("blob.bin", []byte{0, 1, 2, 255})
	results := map[string]tool.Result{
		"list":     b.ok("list_artifacts", nil),
		"markdown": b.ok("create_artifact", m{"id": "notes", "title": "Notes", "content": "# a\n"}),
		"edited":   b.ok("update_artifact", m{"id": "notes", "old_str": "a", "new_str": "b"}),
		"rewrite":  b.ok("rewrite_artifact", m{"id": "notes", "content": "c"}),
		"code":     b.ok("create_artifact", m{"id": "run.py", "title": "", "content": "1\n", "media_type": "text/x-python"}),
		"json":     b.ok("create_artifact", m{"id": "j", "title": "", "content": "{}", "media_type": "application/json"}),
		"text":     b.ok("create_artifact", m{"id": "t", "title": "", "content": "x", "media_type": "text/plain"}),
		"diff":     b.ok("create_artifact", m{"id": "d", "title": "", "content": "x", "media_type": "text/x-diff"}),
		"read":     b.ok("read_artifact", m{"id": "notes"}),
		"table":    b.ok("get_artifact", m{"ref": sheet}),
		"image":    b.ok("get_artifact", m{"ref": shot}),
		"file":     b.ok("get_artifact", m{"ref": "blob.bin"}),
		"missing":  b.refused("get_artifact", m{"ref": "nothing"}),
		"refused":  b.refused("update_artifact", m{"id": "notes", "old_str": "absent and nowhere", "new_str": "2"}),
		"unknown":  b.refused("no_tool", nil),
		"wrong":    b.refused("read_artifact", m{"id": "x", "offset": -1}),
	}
	want := map[string]any{
		"list": "list", "markdown": "markdown", "edited": "markdown", "rewrite": "markdown", "code": "code", "json": "json",
		"text": "text", "diff": "diff", "read": "markdown", "table": "table", "image": "image", "file": "file",
		"missing": "error", "refused": "error", "unknown": "error", "wrong": "error",
	}
	got := map[string]any{}
	for name, r := range results {
		got[name] = r.Metadata["content_type"]
		if want[name] == "error" || want[name] == "list" {
			continue
		}
		for _, key := range []string{"media_type", "filename", "url", "ref"} {
			if s, _ := r.Metadata[key].(string); s == "" {
				t.Errorf("%s: its metadata have no %s: %v", name, key, r.Metadata)
			}
		}
		if size, _ := r.Metadata["size"].(int64); size == 0 || r.Metadata["digest"] == artel.Digest("") {
			t.Errorf("%s: its metadata have no size or digest: %v", name, r.Metadata)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if results["image"].Metadata["filename"] != "Shot.PNG" || results["edited"].Metadata["edits"] == nil || results["refused"].Metadata["refused"] == nil {
		t.Errorf("%v\n%v\n%v", results["image"].Metadata, results["edited"].Metadata, results["refused"].Metadata)
	}
}
