// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
)

func encodedFile(t *testing.T, name string) (b []byte, encoded string) {
	t.Helper()
	b, err := os.ReadFile("../../testdata/files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b, base64.StdEncoding.EncodeToString(b)
}

type says struct {
	Text string `json:"text,omitempty"`
}

// returning is a box with a tool that returns text, and the built-in ones.
func returning(t *testing.T, b *bench, r tool.Result) {
	t.Helper()
	box, err := tool.NewSet(append(tool.BuiltIn(), tool.Func("say", "says it", func(context.Context, *tool.Env, says) (tool.Result, error) { return r, nil }))...)
	if err != nil {
		t.Fatal(err)
	}
	b.box = box
}

func TestResultsLoseTheirMedia(t *testing.T) {
	png, encoded := encodedFile(t, "red.png")
	const ref = "artifact:cnv_00000000000000000000000000/image_1.png@1"
	for name, c := range map[string]struct{ content, want, kind string }{
		"whole":     {"data:image/png;base64," + encoded, ref, "image"},
		"bare":      {encoded + "\n", ref + "\n", "image"},
		"anthropic": {`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + encoded + `"}}]`, `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + ref + `"}}]`, "image"},
		"mcp":       {`{"content":[{"type":"text","text":"Two words."},{"type":"image","data":"` + encoded + `","mimeType":"image/png"}]}`, `{"content":[{"type":"text","text":"Two words."},{"type":"image","data":"` + ref + `","mimeType":"image/png"}]}`, "json"},
		"markdown":  {"# Chart\n\n![c](data:image/png;base64," + encoded + ")", "# Chart\n\n![c](" + ref + ")", "markdown"},
	} {
		b := newBench(t)
		returning(t, b, tool.Result{Content: c.content})
		for range 2 { // the second time it is there already
			r := b.ok("say", says{})
			if r.Content != c.want || len(r.Parts) != 1 {
				t.Fatalf("%s: got %q with %d parts", name, r.Content, len(r.Parts))
			}
			m := r.Parts[0].(artel.Media)
			if m.Ref.String() != ref || m.MediaType != "image/png" || m.Width != 8 || m.Size != int64(len(png)) {
				t.Errorf("%s: part %+v", name, m)
			}
			if r.Metadata["content_type"] != c.kind {
				t.Errorf("%s: metadata %v, want %s", name, r.Metadata, c.kind)
			}
			facts := r.Metadata
			if c.kind != "image" {
				facts = r.Metadata["media"].([]map[string]any)[0]
			}
			file := artel.NewDigest(sha256.Sum256(png)).Hex() + ".png"
			want := map[string]any{
				"content_type": "image", "media_type": "image/png", "file_path": "tool_results/" + file, "url": "/api/v1/files/tool_results/" + file,
				"size": int64(len(png)), "digest": artel.NewDigest(sha256.Sum256(png)), "saved_to_file": true, "ref": ref, "filename": "image_1.png",
			}
			if diff := cmp.Diff(want, facts); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		list, err := b.env.Workspace.List(t.Context())
		if err != nil || len(list) != 1 || list[0].Source != artel.SourceToolResult {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
}

func TestTheSameBytesAreKeptOnce(t *testing.T) {
	b := newBench(t)
	_, encoded := encodedFile(t, "red.png")
	returning(t, b, tool.Result{Content: "see " + encoded})
	var wg sync.WaitGroup
	said := make([]string, 8)
	for i := range said {
		wg.Go(func() {
			env := b.env
			r, err := b.box.Call(t.Context(), &env, "say", nil)
			if err != nil {
				t.Error(err)
			}
			said[i] = r.Content
		})
	}
	wg.Wait()
	if slices.Sort(said); said[0] != said[7] || !strings.Contains(said[0], "image_1.png@1") {
		t.Errorf("said %q", said)
	}
	if list, err := b.env.Workspace.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d artifacts, %v", len(list), err)
	}
}

func TestTextsOfArtifactsStayAsTheyAre(t *testing.T) {
	b := newBench(t)
	_, encoded := encodedFile(t, "red.png")
	page := `<img src="data:image/png;base64,` + encoded + `">` + strings.Repeat("\nline", 9000)
	args, _ := json.Marshal(map[string]any{"id": "page", "title": "A " + encoded, "content": page, "media_type": "text/html"})
	told, given, err := b.box.Arguments(t.Context(), &b.env, "create_artifact", args)
	if err != nil || string(given) != string(args) || strings.Contains(string(told), encoded[:30]) || !strings.Contains(string(told), "[image/png, 96 bytes]") {
		t.Fatalf("told %.300s, %v", told, err)
	}
	if _, err := b.box.Call(t.Context(), &b.env, "create_artifact", given); err != nil {
		t.Fatal(err)
	}
	text, a, err := b.env.Workspace.Text(t.Context(), "page", 0)
	if err != nil || text != page || a.Title != "A [image/png, 96 bytes]" {
		t.Errorf("title %q, %d characters, %v", a.Title, len(text), err)
	}
	for name, args := range map[string]any{
		"read_artifact": map[string]any{"id": "page"}, "get_artifact": map[string]any{"ref": "page"}, "grep_artifacts": map[string]any{"pattern": "img"},
	} {
		if r := b.ok(name, args); !strings.Contains(r.Content, encoded[:100]) {
			t.Errorf("%s: %.200s", name, r.Content)
		}
	}
	b.env.Fetch = func(ctx context.Context, _ string) (artifact.Staged, error) {
		return b.files.Uploads.Stage(ctx, strings.NewReader("a,b\n"), media.Hint{Filename: "a.csv"})
	}
	for name, args := range map[string]map[string]any{
		"rename_artifact": {"id": "page"}, "put_artifact": {"ref": "page", "id": "copy"}, "put_artifact of an address": {"url": "https://example.org/a.csv", "id": "fetched"},
	} {
		args["title"] = "B " + encoded
		name, _, _ = strings.Cut(name, " ")
		b.ok(name, args)
	}
	list, err := b.env.Workspace.List(t.Context())
	if err != nil || len(list) != 3 {
		t.Errorf("there are %d artifacts, %v", len(list), err)
	}
	for _, a := range list {
		if a.Title != "B [image/png, 96 bytes]" {
			t.Errorf("the title of %s is %q", a.ID, a.Title)
		}
	}
	// Other tools get what is told.
	args, _ = json.Marshal(map[string]any{"pattern": encoded})
	told, given, err = b.box.Arguments(t.Context(), &b.env, "grep_artifacts", args)
	if want := `{"pattern":"artifact:cnv_00000000000000000000000000/image_1.png@1"}`; err != nil || string(told) != want || string(given) != want {
		t.Errorf("told %s, given %s, %v", told, given, err)
	}
}

func TestLongResultsAreKept(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("id,name,score\n")
	for i := range 3000 {
		fmt.Fprintf(&rows, "%d,name %d,%d\n", i, i, i*7)
	}
	var items []map[string]any
	for i := range 1500 {
		items = append(items, map[string]any{"id": i, "tags": []string{"a", "b"}, "inner": map[string]any{"x": 1}})
	}
	list, _ := json.Marshal(items)
	object, _ := json.Marshal(map[string]any{"items": items, "next": "x", "error": nil})
	for name, c := range map[string]struct{ content, kind, id, shape string }{
		"table":  {rows.String(), "table", "result_1.csv", "3000 rows × 3 columns: id, name, score"},
		"list":   {string(list), "list", "result_1.json", "[1500] {id, inner{}, tags[2]}"},
		"object": {string(object), "json", "result_1.json", "{error, items[1500], next}"},
		"text":   {strings.Repeat("Words and more words; 日本語.\n", 2000), "text", "result_1.txt", "2000 lines"},
		"a line": {strings.Repeat("x y ", 20_000), "text", "result_1.txt", "1 lines"},
	} {
		b := newBench(t)
		returning(t, b, tool.Result{Content: c.content})
		r := b.ok("say", says{})
		if n := len([]rune(r.Content)); n > tool.DefaultShownCharacters || n < 2000 || len(r.Content) > tool.DefaultShownBytes {
			t.Errorf("%s: shown are %d characters", name, n)
		}
		for _, want := range []string{c.shape, "read_artifact(id='" + c.id + "', offset=", "grep_artifacts(pattern='…', id='" + c.id + "')", c.content[:500], c.content[len(c.content)-500:]} {
			if !strings.Contains(r.Content, want) {
				t.Errorf("%s: there is no %.80q in %.400s", name, want, r.Content)
			}
		}
		if r.Metadata["content_type"] != c.kind || r.Metadata["saved_to_file"] != true || r.Metadata["size"] != int64(len(c.content)) || len(r.Parts) != 0 {
			t.Errorf("%s: metadata %v", name, r.Metadata)
		}
		text, a, err := b.env.Workspace.Text(t.Context(), artel.ArtifactID(c.id), 0)
		if err != nil || text != c.content || a.Source != artel.SourceToolResult {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	b := newBench(t)
	b.env.Shown = tool.Shown{Characters: 2000}
	returning(t, b, tool.Result{Content: strings.Repeat("a b\n", 1000), IsError: true})
	if r := b.call("say", says{}); !r.IsError || r.Metadata["content_type"] != "error" || len(r.Content) > 2000 {
		t.Errorf("an error: %v, %d", r.Metadata, len(r.Content))
	}
}

func TestContentTypes(t *testing.T) {
	for content, want := range map[string]string{
		"": "text", "Plain words.": "text", "https://example.com/a.png?x=1": "image", "https://example.com/": "url", "https://example.com/x.mp3": "audio", "https://example.com/x.mp4": "video",
		"https://example.com/x.pdf": "document", "https://example.com/x.zip": "archive", "/api/v1/files/tool_results/abc.png": "image", "/api/v1/files/x": "file", `{"url":"https://x/y.pdf"}`: "json",
		"[1,2]": "list", "- a\n- b\n- c": "list", "1. a\n2. b": "list", "# Title\n\nWords.": "markdown", "```\nx\n```": "markdown", "| a | b |\n|---|---|\n| 1 | 2 |": "markdown",
		"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n": "diff", "a,b,c\n1,2,3\n4,5,6\n": "table", "package main\n\nfunc main() {\n\tprintln(1)\n}\n": "code", "#!/bin/sh\necho hi\n": "code",
		"<!DOCTYPE html><html><body>x</body></html>": "code", "see https://example.com/a.png for it": "text", "{not json": "text",
	} {
		b := newBench(t)
		returning(t, b, tool.Result{Content: content})
		if r := b.ok("say", says{}); r.Metadata["content_type"] != want {
			t.Errorf("%q is %v, want %s", content, r.Metadata["content_type"], want)
		}
	}
	b := newBench(t)
	if r := b.call("read_artifact", map[string]any{"id": "nothing"}); r.Metadata["content_type"] != "error" {
		t.Errorf("a failure is %v", r.Metadata)
	}
	if r := b.ok("list_artifacts", map[string]any{}); r.Metadata["content_type"] == nil {
		t.Errorf("a list is %v", r.Metadata)
	}
}
