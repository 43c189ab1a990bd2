// SPDX-License-Identifier: Apache-2.0

package mcpproxy_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/artelhq/artel/agent/toolindex"
	"github.com/artelhq/artel/gateway/mcpproxy"
	"github.com/artelhq/artel/gateway/mcpproxy/mcpproxytest"
	"github.com/artelhq/artel/pipeline/token"
)

// TestMain is also the program that tests start as an MCP server.
func TestMain(m *testing.M) {
	tools := os.Getenv("HOSTILE_SERVER")
	if tools == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if tools == "broken" {
		fmt.Fprintln(os.Stderr, "the configuration is missing")
		os.Exit(3)
	}
	more, err := strconv.Atoi(tools)
	if err != nil {
		os.Exit(2)
	}
	fmt.Println("a greeting on standard output, which is no message")
	if err := mcpproxytest.Server(more).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func counter(t testing.TB) func(string) int {
	c := token.NewCounter()
	return func(s string) int {
		n, err := c.Count(token.O200k, s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// a host is a client of the official SDK behind a proxy.
type host struct {
	*sdk.ClientSession
	t     testing.TB
	store *mcpproxytest.Store

	progress chan float64
	changed  chan struct{} // gets a value for each change of the list of tools
}

func command(t testing.TB, tools string) mcpproxy.Command {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcpproxy.Command{Args: []string{self}, Env: []string{"HOSTILE_SERVER=" + tools, "PATH=" + os.Getenv("PATH")}, Dir: t.TempDir()}
}

// newHost connects a host to a proxy of u.
func newHost(t testing.TB, u mcpproxy.Upstream, o mcpproxy.Options, store *mcpproxytest.Store) *host {
	t.Helper()
	return newHostOf(t, u, o, store, func(*sdk.Client) {})
}

func newHostOf(t testing.TB, u mcpproxy.Upstream, o mcpproxy.Options, store *mcpproxytest.Store, prepare func(*sdk.Client)) *host {
	t.Helper()
	h := &host{t: t, store: store, changed: make(chan struct{}, 10), progress: make(chan float64, 200)}
	if store == nil {
		h.store = mcpproxytest.NewStore()
	}
	o.Name, o.Count = "hostile", counter(t)
	toProxy, fromHost := io.Pipe()
	toHost, fromProxy := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := mcpproxy.New(u, h.store, o).ServeLines(context.Background(), toProxy, fromProxy)
		_ = fromProxy.Close()
		_ = toProxy.Close()
		done <- err
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			h.progress <- r.Params.Progress
		},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { h.changed <- struct{}{} },
	})
	prepare(client)
	session, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: toHost, Writer: fromHost, MaxLineLength: -1}, nil)
	if err != nil {
		_ = fromHost.Close()
		t.Fatal(err, <-done)
	}
	h.ClientSession = session
	t.Cleanup(func() {
		_ = session.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *host) call(tool string, in any) *sdk.CallToolResult {
	h.t.Helper()
	r, err := h.CallTool(h.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		h.t.Fatalf("%s: %v", tool, err)
	}
	if n := len(mcpproxytest.Text(r)); n > mcpproxy.DefaultLimit+64 && tool != "artel_read" {
		h.t.Errorf("%s: %d bytes of text", tool, n)
	}
	return r
}

type args = mcpproxytest.Arguments

var refs = regexp.MustCompile(`blob:sha256-[0-9a-f]{64}`)

// all reads everything under a ref, page by page.
func (h *host) all(ref string) string {
	h.t.Helper()
	var b strings.Builder
	for {
		r := h.call("artel_read", map[string]any{"ref": ref, "offset": b.Len(), "limit": 16 * mcpproxy.DefaultLimit})
		if r.IsError || len(r.Content) != 2 {
			h.t.Fatal(mcpproxytest.Text(r))
		}
		intro, page := r.Content[0].(*sdk.TextContent).Text, r.Content[1].(*sdk.TextContent).Text
		if strings.Contains(intro, "in base64") {
			raw, err := base64.StdEncoding.DecodeString(page)
			if err != nil {
				h.t.Fatal(err)
			}
			page = string(raw)
		}
		b.WriteString(page)
		if !strings.Contains(intro, "continue with offset") {
			return b.String()
		}
		if page == "" {
			h.t.Fatal("an empty page: " + intro)
		}
	}
}

func firstRef(t testing.TB, r *sdk.CallToolResult) string {
	t.Helper()
	ref := refs.FindString(mcpproxytest.Text(r))
	if ref == "" {
		t.Fatalf("no ref in %q", mcpproxytest.Text(r))
	}
	return ref
}

// TestHostileResults: every result is small, and every byte of it can be read.
func TestHostileResults(t *testing.T) {
	h := newHost(t, command(t, "0"), mcpproxy.Options{}, nil)
	for _, tc := range []struct {
		tool  string
		size  int
		bytes string   // under the first ref
		says  []string // parts of the text
	}{
		{"json", 2 << 20, mcpproxytest.JSON(2 << 20), []string{"application/json", "total", "items: ", "× {id, name, tags: 2 × text, note}", "json_path", `"next":null}`}},
		{"log", 50_000, mcpproxytest.Log(50_000), []string{"50,000 lines", "a log: 50 × ERROR (first in line 1,000), 49,950 × INFO", "request 49999 done"}},
		{"audio", 100_000, string(mcpproxytest.Sound(100_000)), []string{"audio/"}},
		{"blob", 40_000, strings.Repeat("\x00\x01\x02\xff", 10_000), []string{"data.bin", "40,000 bytes"}},
		{"markdown", 1, string(mcpproxytest.Picture(40, 1)), []string{"# Report", "![shot](blob:sha256-", "After."}},
		{"pictures", 1, string(mcpproxytest.Picture(64, 0)), []string{"image/png, 64×64"}},
	} {
		r := h.call(tc.tool, args{Size: tc.size})
		text := mcpproxytest.Text(r)
		for _, part := range tc.says {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q is not in\n%s", tc.tool, part, text)
			}
		}
		if got := h.all(firstRef(t, r)); got != tc.bytes {
			t.Errorf("%s: %d other bytes, want %d", tc.tool, len(got), len(tc.bytes))
		}
	}
	if text := mcpproxytest.Text(h.call("fail", args{Size: 10_000})); !strings.Contains(text, "failed: why") {
		t.Error(text)
	}
	if r := h.call("fail", args{Size: 1}); !r.IsError || mcpproxytest.Text(r) != "failed: why " {
		t.Errorf("%v %q", r.IsError, mcpproxytest.Text(r))
	}
}

// TestLongErrors: an error of the protocol is shortened, too, and keeps its code.
func TestLongErrors(t *testing.T) {
	h := newHost(t, command(t, "0"), mcpproxy.Options{}, nil)
	_, err := h.CallTool(t.Context(), &sdk.CallToolParams{Name: "refuse", Arguments: struct{}{}})
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refused.Code != -32007 || len(refused.Message) > mcpproxy.DefaultLimit || !strings.Contains(refused.Message, "refused: because") {
		t.Fatalf("%.500v", err)
	}
	if all := h.all(refs.FindString(refused.Message)); !strings.Contains(all, "because of that") {
		t.Errorf("%d bytes are kept", len(all))
	}
}

// TestFiftyMegabytes is the largest result of the contract, read again as a whole.
func TestFiftyMegabytes(t *testing.T) {
	h := newHost(t, command(t, "0"), mcpproxy.Options{}, nil)
	want := mcpproxytest.JSON(50 << 20)
	r := h.call("json", args{Size: 50 << 20})
	if got := h.all(firstRef(t, r)); got != want {
		t.Errorf("%d other bytes, want %d", len(got), len(want))
	}
}

// TestManyBlocks: many texts and many links become one preview, with all of them under its
// ref.
func TestManyBlocks(t *testing.T) {
	h := newHost(t, command(t, "0"), mcpproxy.Options{}, nil)
	for tool, last := range map[string]string{"texts": "text 1999 xxx", "link": "file:///x/1999.txt"} {
		r := h.call(tool, args{Size: 2000})
		if all := h.all(firstRef(t, r)); !strings.Contains(all, last) {
			t.Errorf("%s: %q is lost", tool, last)
		}
	}
	r := h.call("link", args{Size: 2})
	if len(r.Content) != 2 || r.Content[1].(*sdk.ResourceLink).URI != "file:///x/1.txt" {
		t.Errorf("links became %v", mcpproxytest.Text(r))
	}
	// A few long texts keep a part each.
	r = h.call("texts", args{Size: 3})
	if len(r.Content) != 3 {
		t.Errorf("%d texts, want 3", len(r.Content))
	}
}

// TestPictures: each picture is shown once, fitted if it is large, and can be seen again.
func TestPictures(t *testing.T) {
	h := newHost(t, command(t, "0"), mcpproxy.Options{}, nil)
	count := func(r *sdk.CallToolResult) (n int) {
		for _, c := range r.Content {
			if _, ok := c.(*sdk.ImageContent); ok {
				n++
			}
		}
		return n
	}
	first := h.call("pictures", args{Size: 20})
	if n := count(first); n != 20 {
		t.Errorf("%d pictures shown, want 20", n)
	}
	if got := first.Content[1].(*sdk.ImageContent); string(got.Data) != string(mcpproxytest.Picture(64, 0)) || got.MIMEType != "image/png" {
		t.Error("a picture that fits was changed")
	}
	again := h.call("pictures", args{Size: 20})
	if text := mcpproxytest.Text(again); count(again) != 0 || !strings.Contains(text, "the same picture was shown before; artel_read shows it again") {
		t.Errorf("%d pictures shown again: %s", count(again), text)
	}
	seen := h.call("artel_read", map[string]any{"ref": firstRef(t, again)})
	if count(seen) != 1 {
		t.Errorf("artel_read shows %d pictures", count(seen))
	}
	if r := h.call("pictures", args{Size: 60}); count(r) != 20 { // 20 were shown before
		t.Errorf("%d pictures of one result", count(r))
	}
	large := h.call("large_picture", args{Size: 1900})
	if text := mcpproxytest.Text(large); count(large) != 1 || !strings.Contains(text, "1900×1900") || !strings.Contains(text, "shown as 1568×1568") {
		t.Error(text)
	}
	if got := h.all(firstRef(t, large)); got != string(mcpproxytest.Picture(1900, 1)) {
		t.Error("the original is lost")
	}
	screen := h.call("large_picture", args{Size: 3000}) // decoding it takes more memory than the proxy uses
	if text := mcpproxytest.Text(screen); count(screen) != 1 || strings.Contains(text, "shown as") {
		t.Error(text)
	}
	huge := h.call("large_picture", args{Size: 8000})
	if text := mcpproxytest.Text(huge); count(huge) != 0 || !strings.Contains(text, "8000×8000 pixels are too many") {
		t.Error(text)
	}
	if r := h.call("markdown", args{Size: 7}); count(r) != 1 {
		t.Errorf("%d pictures of a text are shown, want 1", count(r))
	}
}

// TestSameBytes: two sessions with the same calls get the same bytes.
func TestSameBytes(t *testing.T) {
	run := func() (out []string) {
		h := newHost(t, command(t, "60"), mcpproxy.Options{}, nil)
		tools, err := h.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := json.Marshal(tools)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(list))
		for _, c := range []struct {
			tool string
			in   any
		}{
			{"json", args{Size: 1 << 20}},
			{"log", args{Size: 3000}},
			{"pictures", args{Size: 20}},
			{"pictures", args{Size: 2}},
			{"audio", args{Size: 9000}},
			{"markdown", args{Size: 2}},
			{"link", args{Size: 500}},
			{"structured", args{Size: 900}},
			{"large_picture", args{Size: 1700}},
			{"artel_find_tools", map[string]any{"query": "thing 33"}},
		} {
			b, err := json.Marshal(h.call(c.tool, c.in))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(b))
		}
		return out
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Error(diff)
	}
}

// TestStructured: structured content is shortened so that it matches the schema of the tool.
func TestStructured(t *testing.T) {
	h := newHost(t, command(t, "0"), mcpproxy.Options{}, nil)
	if _, err := h.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	r := h.call("structured", args{Size: 5000})
	got, ok := r.StructuredContent.(map[string]any)
	if !ok || len(got["rows"].([]any)) == 0 || got["note"] == nil {
		t.Fatalf("%v", r.StructuredContent)
	}
	text := mcpproxytest.Text(r)
	if !strings.Contains(text, "structuredContent is shortened") {
		t.Error(text)
	}
	whole := false
	for _, ref := range refs.FindAllString(text, -1) {
		var v struct{ Rows []any }
		if json.Unmarshal([]byte(h.all(ref)), &v) == nil && len(v.Rows) == 5000 {
			whole = true
		}
	}
	if !whole {
		t.Error("the whole content is under no ref")
	}
	small := h.call("structured", args{Size: 2})
	if b, _ := json.Marshal(small.StructuredContent); !strings.Contains(string(b), `"name":"name 1"`) {
		t.Errorf("%s", b)
	}
}

// TestRead reads parts.
func TestRead(t *testing.T) {
	h := newHost(t, command(t, "0"), mcpproxy.Options{}, nil)
	ref := firstRef(t, h.call("json", args{Size: 1 << 20}))
	log := firstRef(t, h.call("log", args{Size: 30_000}))
	for _, tc := range []struct {
		in   map[string]any
		want string
		bad  bool
	}{
		{map[string]any{"ref": ref, "json_path": "$.items[3].id"}, "\n3", false},
		{map[string]any{"ref": ref, "json_path": "items[2:4].tags[0]"}, "\"a\"\n\"a\"", false},
		{map[string]any{"ref": ref, "json_path": `$["total"]`}, "\n7", false},
		{map[string]any{"ref": ref, "json_path": "$.items[*].id", "limit": 9}, "0\n1\n2\n3\n4", false},
		{map[string]any{"ref": ref, "json_path": "$.nothing"}, "nothing is there", true},
		{map[string]any{"ref": ref, "json_path": "$..x"}, "is no path", true},
		{map[string]any{"ref": log, "json_path": "$.x"}, "no JSON", true},
		{map[string]any{"ref": log, "grep": `request 2999\d done`}, "10 lines match", false},
		{map[string]any{"ref": log, "grep": "ERROR"}, "30 lines match", false},
		{map[string]any{"ref": log, "grep": "ERROR.*request 1999 "}, "2000:", false},
		{map[string]any{"ref": log, "grep": "INFO"}, "29970 lines match, the first", false},
		{map[string]any{"ref": log, "grep": "("}, "missing closing", true},
		{map[string]any{"ref": log, "offset": 21, "limit": 4}, "INFO", false},
		{map[string]any{"ref": log, "offset": 1 << 40}, "this is the end", false},
		{map[string]any{"ref": log, "offset": -1}, "offset is a number", true},
		{map[string]any{"ref": log, "limit": 1 << 30}, "limit one from 1", true},
		{map[string]any{"ref": "nonsense"}, "is no ref", true},
		{map[string]any{"ref": "blob:sha256-" + strings.Repeat("0", 64)}, "cannot be read", true},
		{map[string]any{"ref": 5}, "cannot be read", true},
	} {
		r := h.call("artel_read", tc.in)
		if text := mcpproxytest.Text(r); !strings.Contains(text, tc.want) || r.IsError != tc.bad || len(text) > mcpproxy.DefaultLimit {
			t.Errorf("%v: error %v, %d bytes, want %q in\n%.600s", tc.in, r.IsError, len(text), tc.want, text)
		}
	}
	// Pages end with characters.
	page := h.call("artel_read", map[string]any{"ref": ref, "json_path": "$.items[0].name", "limit": 12})
	if got := page.Content[1].(*sdk.TextContent).Text; got != `"item \"0\" ` {
		t.Errorf("%q", got)
	}
	// A ref outlives the session.
	later := newHost(t, command(t, "0"), mcpproxy.Options{}, h.store)
	if got := later.all(log); got != mcpproxytest.Log(30_000) {
		t.Errorf("a later session reads %d bytes", len(got))
	}
}

// TestArguments: a ref in an argument reaches the tool as bytes.
func TestArguments(t *testing.T) {
	h := newHost(t, command(t, "0"), mcpproxy.Options{}, nil)
	if _, err := h.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	picture := refs.FindString(mcpproxytest.Text(h.call("pictures", args{Size: 1})))
	log := refs.FindString(mcpproxytest.Text(h.call("log", args{Size: 3000})))
	unknown := "blob:sha256-" + strings.Repeat("1", 64)
	raw := base64.StdEncoding.EncodeToString(mcpproxytest.Picture(64, 0))
	for _, tc := range []struct{ given, got args }{
		{args{Data: picture, Page: picture, Text: log}, args{Data: raw, Page: "data:image/png;base64," + raw, Text: mcpproxytest.Log(3000)}},
		{args{Text: "see " + unknown}, args{Text: "see " + unknown}},
		{args{Text: "![a](" + picture + ")"}, args{Text: "![a](data:image/png;base64," + raw + ")"}},
		{args{Text: "data:image/png;base64," + picture}, args{Text: "data:image/png;base64," + raw}},
		{args{Text: picture}, args{Text: raw}},
		{args{Text: "a \"quoted\"\n" + log}, args{Text: "a \"quoted\"\n" + mcpproxytest.Log(3000)}},
	} {
		if got := mcpproxytest.Text(h.call("hash", tc.given)); got != mcpproxytest.Hashes(tc.got) {
			t.Errorf("%.300v: the tool got something else", tc.given)
		}
	}
}

// TestPassing: what the proxy does not change reaches the other side.
func TestPassing(t *testing.T) {
	h := newHost(t, command(t, "0"), mcpproxy.Options{}, nil)
	if i := h.InitializeResult(); i.Instructions != "Be careful." || i.ServerInfo.Name != "hostile" {
		t.Errorf("%+v", i)
	}
	direct := func() []*sdk.Tool {
		a, b := sdk.NewInMemoryTransports()
		if _, err := mcpproxytest.Server(0).Connect(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		s, err := sdk.NewClient(&sdk.Implementation{Name: "x", Version: "1"}, nil).Connect(t.Context(), b, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Tools
	}()
	r, err := h.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Tools); r.Tools[n-1].Name != "artel_read" {
		t.Errorf("the last tool is %s", r.Tools[n-1].Name)
	}
	if diff := cmp.Diff(direct, r.Tools[:len(r.Tools)-1]); diff != "" {
		t.Error(diff)
	}
	params := &sdk.CallToolParams{Name: "slow", Arguments: args{Size: 50}}
	params.SetProgressToken("p1")
	if r, err := h.CallTool(t.Context(), params); err != nil || mcpproxytest.Text(r) != "slow and done" {
		t.Error(err)
	}
	for want := range 50 {
		if got := <-h.progress; got != float64(want+1) {
			t.Fatalf("progress %v, want %d", got, want+1)
		}
	}
	p, err := h.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "plan", Arguments: map[string]string{"of": "x"}})
	if err != nil || p.Messages[0].Content.(*sdk.TextContent).Text != "Plan x" {
		t.Error(err)
	}
	c, err := h.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "plan"}, Argument: sdk.CompleteParamsArgument{Name: "of", Value: "d"}})
	if err != nil || !slices.Equal(c.Completion.Values, []string{"done"}) {
		t.Error(err)
	}
	if _, err := h.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "none"}); err == nil {
		t.Error("an error of the server is lost")
	}
	for name, want := range map[string]string{"short": "short", "long": "1,000 lines", "bytes": "audio/", "app": "<p>app</p>"} {
		uri := "test://" + name
		if name == "app" {
			uri = "ui://app"
		}
		r, err := h.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Contents[0]; !strings.Contains(got.Text, want) || got.URI != uri || name != "app" && len(got.Text) > mcpproxy.DefaultLimit {
			t.Errorf("%s: %d bytes %+.300v", name, len(got.Text), got.Text)
		}
	}
	shot, err := h.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "test://shot"})
	if err != nil || string(shot.Contents[0].Blob) != string(mcpproxytest.Picture(30, 3)) {
		t.Error("a picture of a resource was changed", err)
	}
}

// TestQuestions: what the server asks the host reaches it, and the answer the server.
func TestQuestions(t *testing.T) {
	s := mcpproxytest.Server(0)
	sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		//lint:ignore SA1019 hosts of older protocol versions have roots
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: roots.Roots[0].URI}}}, nil, nil
	})
	h := newHostOf(t, newRemote(t, s, false), mcpproxy.Options{}, nil, func(c *sdk.Client) {
		//lint:ignore SA1019 likewise
		c.AddRoots(&sdk.Root{URI: "file:///root/of/host", Name: "root"})
	})
	if text := mcpproxytest.Text(h.call("ask", struct{}{})); text != "file:///root/of/host" {
		t.Error(text)
	}
	// Changes of lists pass, and the proxy lists anew.
	if _, err := h.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	sdk.AddTool(s, &sdk.Tool{Name: "new_one"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{}, nil, nil
	})
	<-h.changed
	r, err := h.ListTools(t.Context(), nil)
	if err != nil || !slices.ContainsFunc(r.Tools, func(t *sdk.Tool) bool { return t.Name == "new_one" }) {
		t.Error("the new tool is not listed", err)
	}
}

// TestParamHeaders: arguments that a schema wants in the header are there.
func TestParamHeaders(t *testing.T) {
	s := mcpproxytest.Server(0, "2026-07-28")
	s.AddTool(&sdk.Tool{Name: "routed", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"object","properties":{"deep":{"type":"integer","x-mcp-header":"Deep"}}}}}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "ok"}}}, nil
		})
	u := newRemote(t, s, true)
	seen := make(chan http.Header, 100)
	u.Client = &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			seen <- r.Header
		}
		return http.DefaultTransport.RoundTrip(r)
	})}
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	h := newHost(t, u, mcpproxy.Options{}, nil)
	if _, err := h.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if text := mcpproxytest.Text(h.call("routed", map[string]any{"region": "münchen", "n": map[string]any{"deep": 7}})); text != "ok" {
		t.Error(text)
	}
	if got := <-seen; got.Get("Mcp-Param-Region") != "=?base64?bcO8bmNoZW4=?=" || got.Get("Mcp-Param-Deep") != "7" || got.Get("Mcp-Name") != "routed" {
		t.Errorf("%v", got)
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestCancel: a cancelled call is cancelled in the server.
func TestCancel(t *testing.T) {
	h := newHost(t, command(t, "0"), mcpproxy.Options{}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := h.CallTool(ctx, &sdk.CallToolParams{Name: "hang", Arguments: args{Text: l.Addr().String()}})
		ended <- err
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	told := bufio.NewScanner(c)
	if told.Scan(); told.Text() != "begun" {
		t.Fatal(told.Text(), told.Err())
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("a cancelled call has a result")
	}
	if told.Scan(); told.Text() != "cancelled" {
		t.Fatal(told.Text(), told.Err())
	}
	if text := mcpproxytest.Text(h.call("echo", args{Text: "still here"})); !strings.Contains(text, "still here") {
		t.Error(text)
	}
}

// TestDeath: a server that ends is reported with its last words, and started again.
func TestDeath(t *testing.T) {
	h := newHost(t, command(t, "0"), mcpproxy.Options{}, nil)
	for range 3 {
		_, err := h.CallTool(t.Context(), &sdk.CallToolParams{Name: "die", Arguments: args{}})
		if err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "out of luck") {
			t.Errorf("%v", err)
		}
		if text := mcpproxytest.Text(h.call("echo", args{Text: "again"})); !strings.Contains(text, "again") {
			t.Error(text)
		}
	}
}

// TestEarlyDeath: a server that ends at once, or cannot be started, is the error of the
// handshake and of the proxy.
func TestEarlyDeath(t *testing.T) {
	missing := command(t, "0")
	missing.Args = []string{t.TempDir() + "/nothing"}
	for want, u := range map[string]mcpproxy.Command{"the configuration is missing": command(t, "broken"), "cannot be started": missing} {
		var out strings.Builder
		in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n")
		r, w := io.Pipe()
		go func() {
			_, _ = io.Copy(w, in)
		}()
		err := mcpproxy.New(u, mcpproxytest.NewStore(), mcpproxy.Options{Name: "broken"}).ServeLines(t.Context(), r, writerFunc(func(p []byte) (int, error) {
			n, err := out.Write(p)
			if strings.Contains(out.String(), "\n") {
				_ = w.Close() // the host has its answer
			}
			return n, err
		}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), `"id":1,"error"`) {
			t.Errorf("the host got %s", out.String())
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestDeferred: three hundred tools are three, in 2,000 tokens.
func TestDeferred(t *testing.T) {
	h := newHost(t, command(t, "300"), mcpproxy.Options{}, nil)
	r, err := h.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"artel_find_tools", "artel_call", "artel_read"}) {
		t.Fatalf("%q", names)
	}
	b, err := json.Marshal(r.Tools)
	if err != nil {
		t.Fatal(err)
	}
	if n := counter(t)(string(b)); n > toolindex.Budget {
		t.Errorf("%d tokens", n)
	}
	found := mcpproxytest.Text(h.call("artel_find_tools", map[string]any{"query": "do thing number 123"}))
	if !strings.Contains(found, "service3_do_123: Does the thing number 123") || !strings.Contains(found, `"size"`) {
		t.Error(found)
	}
	for _, tc := range []struct {
		in   map[string]any
		want string
		bad  bool
	}{
		{map[string]any{"tool": "service3_do_123", "arguments": map[string]any{"size": 5}}, "did 123 with 5", false},
		{map[string]any{"tool": "service3_do_123", "arguments": `{"size": 6}`}, "did 123 with 6", false},
		{map[string]any{"tool": "service3_do_123"}, "did 123 with 0", false},
		{map[string]any{"tool": "service3_do_123", "arguments": map[string]any{"size": "five"}}, "Schema of its arguments", true},
		{map[string]any{"tool": "do_123", "arguments": map[string]any{}}, "service3_do_123", true},
		{map[string]any{"tool": "zzz"}, "artel_find_tools finds them", true},
		{map[string]any{"tool": "json", "arguments": map[string]any{"size": 1 << 20}}, "kept as blob:sha256-", false},
	} {
		r := h.call("artel_call", tc.in)
		if text := mcpproxytest.Text(r); !strings.Contains(text, tc.want) || r.IsError != tc.bad {
			t.Errorf("%v: %v %s", tc.in, r.IsError, text)
		}
	}
	if text := mcpproxytest.Text(h.call("artel_find_tools", map[string]any{"query": "qqq"})); !strings.Contains(text, "service3_") {
		t.Error(text)
	}
	if r := h.call("artel_find_tools", map[string]any{}); !r.IsError {
		t.Error(mcpproxytest.Text(r))
	}
	all := newHost(t, command(t, "300"), mcpproxy.Options{Defer: mcpproxy.DeferOff}, nil)
	if r, err := all.ListTools(t.Context(), nil); err != nil || len(r.Tools) < 300 {
		t.Errorf("with off %d tools: %v", len(r.Tools), err)
	}
	on := newHost(t, command(t, "0"), mcpproxy.Options{Defer: mcpproxy.DeferOn}, nil)
	if r, err := on.ListTools(t.Context(), nil); err != nil || len(r.Tools) != 3 {
		t.Errorf("with on %d tools: %v", len(r.Tools), err)
	}
}

// TestProxyOfProxy: the tools of the proxy take other names than those of the server.
func TestProxyOfProxy(t *testing.T) {
	inner := newRemote(t, func() *sdk.Server {
		s := mcpproxytest.Server(0)
		sdk.AddTool(s, &sdk.Tool{Name: "artel_read"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "the other"}}}, nil, nil
		})
		return s
	}(), false)
	h := newHost(t, inner, mcpproxy.Options{}, nil)
	r, err := h.ListTools(t.Context(), nil)
	if err != nil || r.Tools[len(r.Tools)-1].Name != "artel_read_2" {
		t.Fatal(err)
	}
	if text := mcpproxytest.Text(h.call("artel_read", struct{}{})); text != "the other" {
		t.Error(text)
	}
	text := mcpproxytest.Text(h.call("log", args{Size: 500}))
	if !strings.Contains(text, "artel_read_2 with this ref") {
		t.Error(text)
	}
	if got := mcpproxytest.Text(h.call("artel_read_2", map[string]any{"ref": refs.FindString(text), "limit": 20})); !strings.Contains(got, "2026-01-02T03:04:05Z") {
		t.Error(got)
	}
}

func newRemote(t *testing.T, s *sdk.Server, stateless bool) mcpproxy.Remote {
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(web.Close)
	return mcpproxy.Remote{URL: web.URL, Client: web.Client()}
}

// TestRemote: a server that speaks streamable HTTP, in each version of the protocol.
func TestRemote(t *testing.T) {
	for _, versions := range [][]string{{"2026-07-28"}, {"2025-11-25"}, {"2025-06-18"}, {"2024-11-05"}} {
		s := mcpproxytest.Server(0, versions...)
		h := newHost(t, newRemote(t, s, versions[0] == "2026-07-28"), mcpproxy.Options{}, nil)
		if got := h.InitializeResult().ProtocolVersion; got != versions[0] {
			t.Errorf("the version is %s, want %s", got, versions[0])
		}
		if _, err := h.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		r := h.call("json", args{Size: 3 << 20})
		if got := h.all(firstRef(t, r)); got != mcpproxytest.JSON(3<<20) {
			t.Errorf("%d other bytes", len(got))
		}
		params := &sdk.CallToolParams{Name: "slow", Arguments: args{Size: 20}}
		params.SetProgressToken("p1")
		if r, err := h.CallTool(t.Context(), params); err != nil || mcpproxytest.Text(r) != "slow and done" {
			t.Error(err)
		}
	}
}
