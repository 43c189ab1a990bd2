// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/gateway/mcpserver"
	"github.com/artelhq/artel/store"
)

// The clock of the expressions that highlight code ends by itself, a second after the last
// one was at work.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// patience ends a hang.
const patience = 5 * time.Minute

// A bench is an application with its MCP server.
type bench struct {
	t    *testing.T
	app  *app.App
	h    *mcpserver.Handler
	http *httptest.Server
	log  *apptest.Log
}

// users are the actors of requests, by the value of the header "As"; "": the operator.
func users() map[string]access.Actor {
	return map[string]access.Actor{
		"":       access.Operator(),
		"reader": {Owner: artel.Local, Role: store.Admin, Scopes: []store.Scope{store.ScopeRead}},
		"other":  {Owner: "usr_other", Role: store.Member},
	}
}

func newBench(t *testing.T, change func(*app.Config)) *bench {
	t.Helper()
	c, log := apptest.Config(t, nil)
	if change != nil {
		change(&c)
	}
	a := apptest.Open(t, c)
	h := mcpserver.New(a, mcpserver.Options{Version: "test", Progress: time.Millisecond})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(access.With(r.Context(), users()[r.Header.Get("As")])))
	}))
	t.Cleanup(func() {
		h.Close()
		s.CloseClientConnections()
		s.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return &bench{t, a, h, s, log}
}

// header adds a header to requests.
type header struct {
	name, value string
}

func (h header) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if h.value != "" {
		r.Header.Set(h.name, h.value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// client connects a client of the SDK for the length of a test.
func (b *bench) client(path, as string, o *mcp.ClientOptions) *mcp.ClientSession {
	b.t.Helper()
	return b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + path, HTTPClient: &http.Client{Transport: header{"As", as}}}, newest, o)
}

// newest is the version of the protocol that a client asks for.
const newest = "2026-07-28"

func (b *bench) connect(transport mcp.Transport, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	b.t.Helper()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(b.t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		b.t.Fatal(err)
	}
	if got := c.InitializeResult().ProtocolVersion; got != version {
		b.t.Fatalf("the client speaks %s, not %s", got, version)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// call calls a tool that must succeed, and returns the text and the structured result.
func call(t *testing.T, c *mcp.ClientSession, name string, args map[string]any) (string, map[string]any, *mcp.CallToolResult) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	text := textOf(r)
	if r.IsError {
		t.Fatalf("%s: %s", name, text)
	}
	facts, _ := r.StructuredContent.(map[string]any)
	return text, facts, r
}

// refusedCall calls a tool that must fail, and returns what it says.
func refusedCall(t *testing.T, c *mcp.ClientSession, name string, args map[string]any) string {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !r.IsError {
		t.Fatalf("%s succeeded: %s", name, textOf(r))
	}
	return textOf(r)
}

func textOf(r *mcp.CallToolResult) string {
	var out []string
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			out = append(out, text.Text)
		}
	}
	return strings.Join(out, "\n")
}

// links returns the addresses that a result links to.
func links(r *mcp.CallToolResult) (out []string) {
	for _, c := range r.Content {
		if l, ok := c.(*mcp.ResourceLink); ok {
			out = append(out, l.URI)
		}
	}
	return out
}

// upload stores a file in a conversation.
func (b *bench) upload(c artel.ConversationID, name string, data []byte) artel.Artifact {
	b.t.Helper()
	ctx := apptest.Context(b.t)
	staged, err := b.app.Artifacts.Stage(ctx, c, app.Upload{Body: bytes.NewReader(data), Filename: name})
	if err != nil {
		b.t.Fatal(err)
	}
	made, err := b.app.Artifacts.Add(ctx, c, []artifact.Staged{staged})
	if err != nil {
		b.t.Fatal(err)
	}
	return made[0]
}

func (b *bench) named(name string) artel.Conversation {
	b.t.Helper()
	c, err := b.app.Conversations.Named(apptest.Context(b.t), name, true)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// everyVersion runs a test with clients of the newest version, of the versions with
// sessions, and without HTTP.
func everyVersion(t *testing.T, test func(t *testing.T, b *bench, c *mcp.ClientSession)) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			b := newBench(t, nil)
			test(t, b, b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp"}, version, nil))
		})
	}
	t.Run("in memory", func(t *testing.T) {
		b := newBench(t, nil)
		here, there := mcp.NewInMemoryTransports()
		s, err := b.h.Connect(apptest.Context(t), there)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Wait() })
		test(t, b, b.connect(here, newest, nil))
	})
}

// TestArtifacts makes, reads, changes and compares an artifact as a host does.
func TestArtifacts(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *bench, c *mcp.ClientSession) {
		_, made, r := call(t, c, "create_artifact", map[string]any{"id": "notes", "title": "Notes", "content": "one\ntwo\nthree\n"})
		own := b.named("MCP").ID
		uri := fmt.Sprintf("artel://%s/notes@1", own)
		if made["id"] != "notes" || made["version"] != 1.0 || made["uri"] != uri || made["conversation"] != string(own) || made["media_type"] != "text/markdown" || made["size"] != 14.0 || made["text"] == "" {
			t.Errorf("structured: %v", made)
		}
		if got := links(r); len(got) != 1 || got[0] != uri {
			t.Errorf("links: %v", got)
		}
		text, _, r := call(t, c, "read_artifact", map[string]any{"id": "notes", "offset": 2, "limit": 1})
		if !strings.Contains(text, "\ntwo\n") || strings.Contains(text, "three") || r.StructuredContent != nil {
			t.Errorf("read: %s %v", text, r.StructuredContent)
		}
		call(t, c, "update_artifact", map[string]any{"id": "notes", "old_str": "two", "new_str": "2"})
		if text, _, _ := call(t, c, "diff_artifact", map[string]any{"id": "notes"}); !strings.Contains(text, "-two\n+2\n") {
			t.Errorf("diff: %s", text)
		}
		if text, _, _ := call(t, c, "grep_artifacts", map[string]any{"pattern": "thr"}); !strings.Contains(text, "notes:3:three") {
			t.Errorf("grep: %s", text)
		}
		if text := refusedCall(t, c, "update_artifact", map[string]any{"id": "notes", "old_str": "four", "new_str": ""}); !strings.Contains(text, "the old text is not there") {
			t.Errorf("refusal: %s", text)
		}
		if text := refusedCall(t, c, "create_artifact", map[string]any{"id": "notes"}); !strings.Contains(text, "JSON Schema") {
			t.Errorf("refusal: %s", text)
		}
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "fly"}); err == nil || !strings.Contains(err.Error(), `"fly"`) {
			t.Errorf("an unknown tool: %v", err)
		}
		read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "one\ntwo\nthree\n" || read.Contents[0].MIMEType != "text/markdown" || read.Contents[0].URI != uri {
			t.Errorf("resource: %+v, %v", read, err)
		}
		list, err := c.ListResources(t.Context(), nil)
		if err != nil || len(list.Resources) != 1 || list.Resources[0].URI != fmt.Sprintf("artel://%s/notes", own) || list.Resources[0].Title != "Notes" {
			t.Errorf("resources: %+v, %v", list, err)
		}
		templates, err := c.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 2 {
			t.Errorf("templates: %+v, %v", templates, err)
		}
		p, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "summarise", Arguments: map[string]string{"artifact": "notes"}})
		if err != nil || len(p.Messages) != 2 || p.Messages[1].Content.(*mcp.EmbeddedResource).Resource.Text != "one\n2\nthree\n" {
			t.Errorf("prompt: %+v, %v", p, err)
		}
		if p, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "plan", Arguments: map[string]string{"goal": "a bridge"}}); err != nil || !strings.Contains(p.Messages[0].Content.(*mcp.TextContent).Text, "a bridge") {
			t.Errorf("prompt: %+v, %v", p, err)
		}
		done, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "summarise"}, Argument: mcp.CompleteParamsArgument{Name: "artifact", Value: "no"}})
		if err != nil || len(done.Completion.Values) != 1 || done.Completion.Values[0] != "notes" {
			t.Errorf("completion: %+v, %v", done, err)
		}
		done, err = c.Complete(t.Context(), &mcp.CompleteParams{
			Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "artel://{conversation}/{id}@{version}"}, Argument: mcp.CompleteParamsArgument{Name: "version"},
			Context: &mcp.CompleteContext{Arguments: map[string]string{"conversation": string(own), "id": "notes"}},
		})
		if err != nil || strings.Join(done.Completion.Values, ",") != "2,1" {
			t.Errorf("completion: %+v, %v", done, err)
		}
	})
}

// TestToolsOfTheAPI: the tools, their names and schemas are those of GET /tools, with a
// conversation and annotations; what they return matches their schema.
func TestToolsOfTheAPI(t *testing.T) {
	b := newBench(t, nil)
	c := b.client("/mcp", "", nil)
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]*mcp.Tool{}
	for _, tl := range list.Tools {
		have[tl.Name] = tl
	}
	specs := b.app.Tools.List(t.Context())
	if len(have) != len(specs) {
		t.Errorf("%d tools, and the API has %d", len(have), len(specs))
	}
	for _, s := range specs {
		tl := have[s.Name]
		if tl == nil || tl.Description != s.Description {
			t.Errorf("%s: %+v", s.Name, tl)
			continue
		}
		var want map[string]any
		if err := json.Unmarshal(s.Schema, &want); err != nil {
			t.Fatal(err)
		}
		got := tl.InputSchema.(map[string]any)["properties"].(map[string]any)
		if got["conversation"] == nil {
			t.Errorf("%s has no argument conversation", s.Name)
		}
		for name := range want["properties"].(map[string]any) {
			if got[name] == nil {
				t.Errorf("%s has no argument %s", s.Name, name)
			}
		}
	}
	for name, want := range map[string][3]bool{ // reads, destroys, has an output schema
		"read_artifact": {true, false, false}, "get_artifact": {true, false, false}, "list_artifacts": {true, false, true},
		"create_artifact": {false, false, true}, "delete_artifact": {false, true, true}, "update_artifact": {false, false, true},
	} {
		a := have[name].Annotations
		if a.ReadOnlyHint != want[0] || (a.DestructiveHint != nil && *a.DestructiveHint) != want[1] || (have[name].OutputSchema != nil) != want[2] || *a.OpenWorldHint {
			t.Errorf("%s: %+v, output schema %v", name, a, have[name].OutputSchema)
		}
	}
	for _, use := range []struct {
		name string
		args map[string]any
	}{
		{"create_artifact", map[string]any{"id": "a", "title": "A", "content": "x"}},
		{"update_artifact", map[string]any{"id": "a", "old_str": "x", "new_str": "y"}},
		{"rewrite_artifact", map[string]any{"id": "a", "content": "z"}},
		{"rename_artifact", map[string]any{"id": "a", "title": "B"}},
		{"put_artifact", map[string]any{"ref": "a@1", "id": "b"}},
		{"delete_artifact", map[string]any{"id": "a"}},
		{"restore_artifact", map[string]any{"id": "a"}},
		{"list_artifacts", nil},
	} {
		text, facts, _ := call(t, c, use.name, use.args)
		var s jsonschema.Schema
		raw, err := json.Marshal(have[use.name].OutputSchema)
		if err == nil {
			err = json.Unmarshal(raw, &s)
		}
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(facts); err != nil || facts["text"] != text {
			t.Errorf("%s: %v in %v", use.name, err, facts)
		}
	}
}

// TestLongResults: no result has more than 4 KB, except that of read_artifact, and each
// says how to read on.
func TestLongResults(t *testing.T) {
	b := newBench(t, nil)
	c := b.client("/mcp", "", nil)
	own := b.named("MCP").ID
	lines := &strings.Builder{}
	for i := range 5000 {
		fmt.Fprintf(lines, "line %d 世界\n", i)
	}
	b.upload(own, "long.txt", []byte(lines.String()))
	b.upload(own, "one.txt", []byte(strings.Repeat("界", 100_000)))
	table := "a,b\n" + strings.Repeat("1,2\n", 5000)
	b.upload(own, "table.csv", []byte(table))
	b.upload(own, "object.json", []byte(`{"first":1,"rest":"`+strings.Repeat("x", 50_000)+`"}`))
	for i := range 300 {
		b.upload(own, fmt.Sprintf("file-%03d.txt", i), []byte(fmt.Sprint(i)))
	}
	for _, use := range []struct {
		name string
		args map[string]any
		want string
	}{
		{"get_artifact", map[string]any{"ref": "long.txt"}, "read_artifact(id='long.txt', offset="},
		{"get_artifact", map[string]any{"ref": "one.txt"}, "read_artifact(id='one.txt', offset=1, column="},
		{"get_artifact", map[string]any{"ref": "table.csv"}, "5000 rows × 2 columns: a, b"},
		{"get_artifact", map[string]any{"ref": "object.json"}, "first, rest"},
		{"list_artifacts", nil, "to continue: list_artifacts(offset="},
		{"grep_artifacts", map[string]any{"pattern": "line", "max": 1000}, "incomplete"},
		{"diff_artifact", map[string]any{"id": "long.txt"}, "To continue: diff_artifact("},
	} {
		text, _, r := call(t, c, use.name, use.args)
		if len(text) > 4096 || !strings.Contains(text, use.want) {
			t.Errorf("%s %v: %d bytes without %q:\n%s", use.name, use.args, len(text), use.want, text[:min(len(text), 600)])
		}
		if use.name == "get_artifact" && len(links(r)) != 1 {
			t.Errorf("%s %v: links %v", use.name, use.args, links(r))
		}
	}
	whole, _, _ := call(t, c, "read_artifact", map[string]any{"id": "long.txt"})
	if !strings.Contains(whole, "line 2000 世界\n") {
		t.Errorf("read_artifact gives %d bytes", len(whole))
	}
}

// TestPictures: a picture is seen when it is asked for, scaled down, and only then.
func TestPictures(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *bench, c *mcp.ClientSession) {
		var data bytes.Buffer
		if err := png.Encode(&data, image.NewRGBA(image.Rect(0, 0, 4000, 1000))); err != nil {
			t.Fatal(err)
		}
		b.upload(b.named("MCP").ID, "wide.png", data.Bytes())
		text, _, r := call(t, c, "get_artifact", map[string]any{"ref": "wide.png"})
		var seen *mcp.ImageContent
		for _, part := range r.Content {
			if p, ok := part.(*mcp.ImageContent); ok {
				seen = p
			}
		}
		if seen == nil {
			t.Fatalf("no picture in %s", text)
		}
		config, kind, err := image.DecodeConfig(bytes.NewReader(seen.Data))
		if err != nil || config.Width != 1568 || seen.MIMEType != "image/"+kind {
			t.Errorf("got %s of %d×%d as %s, %v", kind, config.Width, config.Height, seen.MIMEType, err)
		}
		if len(links(r)) != 1 || strings.Contains(text, base64.StdEncoding.EncodeToString(data.Bytes()[:30])) {
			t.Errorf("links %v, text %s", links(r), text)
		}
		if text, _, r := call(t, c, "list_artifacts", nil); !strings.Contains(text, "wide.png") || len(r.Content) != 1 {
			t.Errorf("the list has %d parts: %s", len(r.Content), text)
		}
		read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: fmt.Sprintf("artel://%s/wide.png", b.named("MCP").ID)})
		if err != nil || !bytes.Equal(read.Contents[0].Blob, data.Bytes()) || read.Contents[0].MIMEType != "image/png" {
			t.Errorf("resource: %v", err)
		}
	})
}

// TestScope: artifacts are those of the conversation that the client names, by id or
// title, in its address, a header or an argument.
func TestScope(t *testing.T) {
	b := newBench(t, nil)
	work := b.named("Work")
	for _, c := range []*mcp.ClientSession{
		b.client("/mcp?conversation="+string(work.ID), "", nil),
		b.client("/mcp?conversation=Work", "", nil),
		b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp", HTTPClient: &http.Client{Transport: header{"X-Artel-Conversation", "Work"}}}, newest, nil),
	} {
		if _, facts, _ := call(t, c, "list_artifacts", nil); facts["conversation"] != string(work.ID) {
			t.Errorf("got %v", facts)
		}
	}
	c := b.client("/mcp", "", nil)
	for _, name := range []string{"Work", string(work.ID)} {
		if _, facts, _ := call(t, c, "list_artifacts", map[string]any{"conversation": name}); facts["conversation"] != string(work.ID) {
			t.Errorf("got %v", facts)
		}
	}
	for _, args := range []map[string]any{{"conversation": "Play"}, {"conversation": 7}, {"conversation": "cnv_00000000000000000000000000"}} {
		refusedCall(t, c, "list_artifacts", args)
	}
	// The clients' own conversation is made once, however many begin together.
	results := make(chan string)
	for range 8 {
		go func() {
			r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_artifacts"})
			if err != nil {
				results <- err.Error()
				return
			}
			results <- fmt.Sprint(r.StructuredContent.(map[string]any)["conversation"])
		}()
	}
	own := b.named("MCP").ID
	for range 8 {
		if got := <-results; got != string(own) {
			t.Errorf("got %s, not %s", got, own)
		}
	}
	// It is another one as soon as a user gives it another title.
	if _, err := b.app.Conversations.Rename(apptest.Context(t), own, "Kept"); err != nil {
		t.Fatal(err)
	}
	if _, facts, _ := call(t, c, "list_artifacts", nil); facts["conversation"] == string(own) || facts["conversation"] != string(b.named("MCP").ID) {
		t.Errorf("got %v", facts)
	}
}

// TestOwners: conversations of others are not there, whatever names them.
func TestOwners(t *testing.T) {
	b := newBench(t, nil)
	mine := b.client("/mcp", "", nil)
	call(t, mine, "create_artifact", map[string]any{"id": "secret", "title": "S", "content": "mine"})
	own := b.named("MCP").ID
	uri := fmt.Sprintf("artel://%s/secret", own)
	other := b.client("/mcp", "other", nil)
	for _, args := range []map[string]any{{"id": "secret", "conversation": own}, {"id": fmt.Sprintf("artifact:%s/secret@1", own)}, {"id": "secret"}} {
		if text := refusedCall(t, other, "read_artifact", args); strings.Contains(text, "mine") {
			t.Errorf("%v: %s", args, text)
		}
	}
	if _, err := other.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
		t.Error("another user reads the resource")
	}
	if _, err := b.client("/mcp?conversation="+string(own), "other", nil).ListResources(t.Context(), nil); err == nil {
		t.Error("another user lists the resources")
	}
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		c := b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp", HTTPClient: &http.Client{Transport: header{"As", "other"}}}, version, nil)
		if version < "2026-07-28" {
			if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err == nil {
				t.Error("another user subscribes")
			}
		}
		done, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "artel://{conversation}/{id}"}, Argument: mcp.CompleteParamsArgument{Name: "conversation"}})
		if err != nil || len(done.Completion.Values) > 1 || len(done.Completion.Values) == 1 && done.Completion.Values[0] == string(own) {
			t.Errorf("another user's completion: %v, %v", done, err)
		}
	}
}

// TestReadersDoNotWrite: a token that may read calls the tools that read.
func TestReadersDoNotWrite(t *testing.T) {
	b := newBench(t, nil)
	c := b.client("/mcp", "reader", nil)
	if text := refusedCall(t, c, "list_artifacts", nil); !strings.Contains(text, "this token may not make one") {
		t.Errorf("got %s", text)
	}
	call(t, b.client("/mcp", "", nil), "create_artifact", map[string]any{"id": "a", "title": "A", "content": "x"})
	call(t, c, "read_artifact", map[string]any{"id": "a"})
	for _, spec := range b.app.Tools.List(t.Context()) {
		switch spec.Name {
		case "read_artifact", "get_artifact", "list_artifacts", "grep_artifacts", "diff_artifact", "search_artifacts", "search_history", "list_versions":
		default:
			if text := refusedCall(t, c, spec.Name, map[string]any{"id": "a"}); !strings.Contains(text, "scope write") {
				t.Errorf("%s: %s", spec.Name, text)
			}
		}
	}
}

// TestPages lists ten thousand artifacts in pages.
func TestPages(t *testing.T) {
	b := newBench(t, nil)
	own := b.named("MCP").ID
	ctx := apptest.Context(t)
	const count = 10_000
	staged := make([]artifact.Staged, 0, count)
	for i := range count {
		s, err := b.app.Artifacts.Stage(ctx, own, app.Upload{Body: strings.NewReader("x"), Filename: fmt.Sprintf("n%d.txt", i)})
		if err != nil {
			t.Fatal(err)
		}
		staged = append(staged, s)
	}
	for batch := range 100 {
		if _, err := b.app.Artifacts.Add(ctx, own, staged[batch*100:batch*100+100]); err != nil {
			t.Fatal(err)
		}
	}
	c := b.client("/mcp", "", nil)
	seen := map[string]bool{}
	for r, err := range c.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[r.URI] {
			t.Fatalf("%s is listed twice", r.URI)
		}
		seen[r.URI] = true
	}
	if len(seen) != count {
		t.Errorf("%d are listed", len(seen))
	}
	if _, err := c.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: "ü"}); err == nil {
		t.Error("a cursor of another server is accepted")
	}
}

// TestCacheHints: a version may be kept, the newest state may not.
func TestCacheHints(t *testing.T) {
	b := newBench(t, nil)
	c := b.client("/mcp", "", nil)
	call(t, c, "create_artifact", map[string]any{"id": "a", "title": "A", "content": "x"})
	own := b.named("MCP").ID
	for uri, want := range map[string]int{fmt.Sprintf("artel://%s/a@1", own): 24 * 60 * 60 * 1000, fmt.Sprintf("artel://%s/a", own): 0} {
		r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || r.TTLMs != want || r.CacheScope != "private" {
			t.Errorf("%s: %d %s, %v", uri, r.TTLMs, r.CacheScope, err)
		}
	}
	if r, err := c.ListResources(t.Context(), nil); err != nil || r.TTLMs != 0 || r.CacheScope != "private" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNotifications: clients that listen hear of changes that others make.
func TestNotifications(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		t.Run(version, func(t *testing.T) {
			b := newBench(t, nil)
			writer := b.client("/mcp", "", nil)
			call(t, writer, "create_artifact", map[string]any{"id": "a", "title": "A", "content": "x"})
			call(t, writer, "create_artifact", map[string]any{"id": "other", "title": "A", "content": "x"})
			updated, listed := make(chan string, 100), make(chan bool, 100)
			c := b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp"}, version, &mcp.ClientOptions{
				ResourceUpdatedHandler:     func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
				ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { listed <- true },
			})
			uri := fmt.Sprintf("artel://%s/a", b.named("MCP").ID)
			if version >= "2026-07-28" { // Subscribe returns when the subscription ends
				subscribed, ended := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); _ = c.Subscribe(subscribed, &mcp.SubscribeParams{URI: uri}) }()
				t.Cleanup(func() { ended(); <-done })
			} else if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
			// The stream of a session may open a moment after the client is connected.
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			for n := 0; ; n++ {
				call(t, writer, "update_artifact", map[string]any{"id": "other", "old_str": "x", "new_str": "x."})
				call(t, writer, "update_artifact", map[string]any{"id": "a", "old_str": "x", "new_str": "x."})
				select {
				case got := <-updated:
					if got != uri {
						t.Errorf("it heard of %s", got)
					}
				case <-time.After(50 * time.Millisecond):
					continue
				case <-ctx.Done():
					t.Fatal("it heard nothing")
				}
				break
			}
			call(t, writer, "create_artifact", map[string]any{"id": "new", "title": "N", "content": "x"})
			select {
			case <-listed:
			case <-ctx.Done():
				t.Fatal("it heard of no new artifact")
			}
		})
	}
}

// TestAsking: a tool that needs the agreement of a user asks through the client.
func TestAsking(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		t.Run(version, func(t *testing.T) {
			b := newBench(t, func(c *app.Config) {
				c.Permissions = agent.Permissions{"delete_artifact": agent.Ask, "rename_artifact": agent.Deny}
			})
			connect := func(o *mcp.ClientOptions) *mcp.ClientSession {
				return b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp"}, version, o)
			}
			answer := mcp.ElicitResult{}
			asked := ""
			c := connect(&mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked = r.Params.Message
				given := answer
				return &given, nil
			}})
			call(t, c, "create_artifact", map[string]any{"id": "a", "title": "A", "content": "x"})
			for _, answer = range []mcp.ElicitResult{{Action: "decline"}, {Action: "cancel"}, {Action: "accept", Content: map[string]any{"allow": false}}} {
				if text := refusedCall(t, c, "delete_artifact", map[string]any{"id": "a"}); !strings.Contains(text, "did not allow") {
					t.Errorf("%v: %s", answer, text)
				}
			}
			if !strings.Contains(asked, "delete_artifact") || !strings.Contains(asked, `"a"`) {
				t.Errorf("it asked %q", asked)
			}
			if text := refusedCall(t, connect(nil), "delete_artifact", map[string]any{"id": "a"}); !strings.Contains(text, "artel.yaml") {
				t.Errorf("a client that cannot ask: %s", text)
			}
			if text := refusedCall(t, c, "rename_artifact", map[string]any{"id": "a", "title": "B"}); !strings.Contains(text, "does not allow") {
				t.Errorf("a denied tool: %s", text)
			}
			answer = mcp.ElicitResult{Action: "accept", Content: map[string]any{"allow": true}}
			call(t, c, "delete_artifact", map[string]any{"id": "a"})
		})
	}
}
