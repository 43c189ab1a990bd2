// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	client "github.com/artelhq/artel/agent/mcp"
)

// showing are the options of a host that shows apps.
func showing() *mcp.ClientOptions {
	c := &mcp.ClientCapabilities{}
	c.AddExtension(client.AppExtension, map[string]any{"mimeTypes": []string{client.AppMediaType}})
	return &mcp.ClientOptions{Capabilities: c}
}

// ui returns what the metadata of a tool say about apps.
func ui(t *mcp.Tool) string {
	b, _ := json.Marshal(t.Meta["ui"])
	return string(b)
}

// TestAppsAreForHostsThatShowThem: a host that announces the extension gets pages with the
// tools, and the tool of the page; for others nothing changes. Results are the same for both.
func TestAppsAreForHostsThatShowThem(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		b := newBench(t, nil)
		shows := b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp"}, version, showing())
		plain := b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp"}, version, nil)
		call(t, plain, "create_artifact", map[string]any{"id": "doc", "title": "D", "content": "one\n"})
		want := map[string]string{
			"read_artifact": `{"resourceUri":"ui://artel/artifact"}`, "create_artifact": `{"resourceUri":"ui://artel/artifact"}`,
			"update_artifact": `{"resourceUri":"ui://artel/diff"}`, "diff_artifact": `{"resourceUri":"ui://artel/diff"}`,
			"list_artifacts": "null", "artel_show": `{"resourceUri":"ui://artel/artifact","visibility":["app"]}`,
		}
		lists := map[*mcp.ClientSession]map[string]*mcp.Tool{}
		for _, c := range []*mcp.ClientSession{shows, plain} {
			lists[c] = map[string]*mcp.Tool{}
			list, err := c.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range list.Tools {
				lists[c][tool.Name] = tool
			}
		}
		for name, meta := range want {
			if tool := lists[shows][name]; tool == nil || ui(tool) != meta {
				t.Errorf("%s, %s: got %+v", version, name, tool)
			}
			if tool := lists[plain][name]; tool != nil && tool.Meta != nil || (tool == nil) != (name == "artel_show") {
				t.Errorf("%s, without apps, %s: got %+v", version, name, tool)
			}
		}
		if len(lists[shows]) != len(lists[plain])+1 {
			t.Errorf("%d and %d tools", len(lists[shows]), len(lists[plain]))
		}
		args := map[string]any{"id": "doc"}
		_, _, one := call(t, shows, "read_artifact", args)
		_, _, other := call(t, plain, "read_artifact", args)
		if d := cmp.Diff(one.Content, other.Content); d != "" {
			t.Errorf("the results differ: %s", d)
		}
		if _, err := plain.CallTool(t.Context(), &mcp.CallToolParams{Name: "artel_show", Arguments: args}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
			t.Errorf("%s: %v", version, err)
		}
		for uri, begins := range map[string]string{"ui://artel/artifact": `data-view="content"`, "ui://artel/diff": `data-view="changes"`} {
			r, err := shows.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || len(r.Contents) != 1 || r.Contents[0].MIMEType != client.AppMediaType || !strings.Contains(r.Contents[0].Text, begins) {
				t.Fatalf("%s: %v", uri, err)
			}
			page := r.Contents[0].Text
			if outside := regexp.MustCompile(`(?i)(src|href)=["']|url\(|@import|fetch\(|\{\{`).FindString(page); outside != "" {
				t.Errorf("%s is not all in one file: %s", uri, outside)
			}
			if !strings.Contains(page, "在 Artel 中打开") || !strings.Contains(page, "Open in Artel") {
				t.Errorf("%s lacks words", uri)
			}
		}
		list, err := shows.ListResources(t.Context(), nil)
		if err != nil || len(list.Resources) != 1 {
			t.Errorf("%v, %d resources", err, len(list.Resources))
		}
	}
}

// TestShow: the page gets safe HTML of each kind of artifact, of versions and of changes, in
// the language that it asks for, and only of its user.
func TestShow(t *testing.T) {
	b := newBench(t, nil)
	c := b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp"}, newest, showing())
	write := func(id, mediaType, content string) {
		call(t, c, "create_artifact", map[string]any{"id": id, "title": "T <b>", "content": content, "media_type": mediaType})
	}
	write("doc", "text/markdown", "# Pears\n\n- [ ] one\n\n[other](artifact:data) [out](https://pears.example) <script>alert(1)</script>\n\n<img src=x onerror=alert(1)> [bad](javascript:alert(1))\n")
	write("data", "application/json", `{"pears": 3}`)
	write("table", "text/csv", "name,count\npear,3\n")
	write("code", "text/x-go", "package main\n")
	write("long", "text/plain", strings.Repeat("x", 250_000))
	call(t, c, "update_artifact", map[string]any{"id": "doc", "edits": []map[string]any{{"old": "# Pears", "new": "# Plums"}}})
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	b.upload(b.named("MCP").ID, "pear.png", picture.Bytes())
	b.upload(b.named("MCP").ID, "pear.bin", []byte{0, 1, 2, 3, 255, 254})

	show := func(args map[string]any) map[string]any {
		t.Helper()
		_, facts, _ := call(t, c, "artel_show", args)
		html, _ := facts["html"].(string)
		if bad := regexp.MustCompile(`(?i)<script|<iframe|<[a-z][^>]*\son\w+=|javascript:`).FindString(html); bad != "" {
			t.Errorf("%v: there is %s in %s", args, bad, html)
		}
		return facts
	}
	for id, want := range map[string]string{
		"doc": `<a href="/c/`, "data": `<figure class="values">`, "table": "<table", "code": `<span class="k">package</span>`,
		"long": `<pre class="text">xxx`, "pear.png": `<img src="data:image/png;base64,`, "pear.bin": "",
	} {
		s := show(map[string]any{"id": id})
		if html := s["html"].(string); !strings.Contains(html, want) {
			t.Errorf("%s: got %.300s", id, html)
		}
		if s["url"] != b.http.URL+"/c/"+string(b.named("MCP").ID)+"/a/"+id {
			t.Errorf("%s is at %v", id, s["url"])
		}
	}
	doc := show(map[string]any{"id": "doc"})
	if doc["version"] != 2.0 || doc["latest"] != 2.0 || len(doc["versions"].([]any)) != 2 || !strings.Contains(doc["text"].(string), "# Plums") || doc["title"] != "T <b>" {
		t.Errorf("got %v", doc)
	}
	if s := show(map[string]any{"id": "doc", "version": 1, "locale": "zh-CN"}); !strings.Contains(s["html"].(string), "Pears") {
		t.Errorf("got %v", s)
	}
	for _, args := range []map[string]any{{"id": "doc", "view": "changes"}, {"id": "doc", "view": "changes", "version": 2, "from": 1}} {
		if s := show(args); s["from"] != 1.0 || !strings.Contains(s["html"].(string), `removed`) || !strings.Contains(s["html"].(string), "# Plums") {
			t.Errorf("got %v", s)
		}
	}
	if s := show(map[string]any{"id": "long", "locale": "zh"}); !strings.Contains(s["note"].(string), "仅显示前") || s["text"] != nil {
		t.Errorf("got %v", s["note"])
	}
	if s := show(map[string]any{"id": "pear.bin"}); s["note"] != "This file cannot be shown here." {
		t.Errorf("got %v", s)
	}
	refusedCall(t, c, "artel_show", map[string]any{"id": "none"})
	refusedCall(t, c, "artel_show", map[string]any{"id": "doc", "version": 9})

	for as, want := range map[string]bool{"reader": true, "other": false} {
		o := b.client("/mcp", as, showing())
		r, err := o.CallTool(t.Context(), &mcp.CallToolParams{Name: "artel_show", Arguments: map[string]any{"id": "doc", "conversation": string(b.named("MCP").ID)}})
		if err != nil || r.IsError == want {
			t.Errorf("%s: %v %+v", as, err, r)
		}
	}
}
