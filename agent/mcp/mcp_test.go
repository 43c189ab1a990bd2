// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/internal/fetch/fetchtest"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// TestMain is also the program that tests start as an MCP server.
func TestMain(m *testing.M) {
	if os.Getenv("MCP_SERVER") == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if file := os.Getenv("MCP_CHILD"); file != "" { // as npx does: the work is done by a program that it starts
		child := exec.Command("sleep", "1000")
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		if err := os.WriteFile(file, []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil {
			os.Exit(1)
		}
	}
	fmt.Fprintln(os.Stderr, "the key is", os.Getenv("KEY"))
	if err := newServer(nil).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

var pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00")

type text struct {
	Text string `json:"text"`
}

// newServer is a server with a tool of each kind. hangs is told when a call that
// hangs begins, and when it was cancelled; nil: nobody is.
func newServer(hangs chan<- struct{}) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "tester", Version: "1"}, nil)
	add := func(t *sdk.Tool, do func(ctx context.Context, r *sdk.CallToolRequest, in text) (*sdk.CallToolResult, error)) {
		sdk.AddTool(s, t, func(ctx context.Context, r *sdk.CallToolRequest, in text) (*sdk.CallToolResult, any, error) {
			out, err := do(ctx, r, in)
			return out, nil, err
		})
	}
	say := func(content ...sdk.Content) *sdk.CallToolResult { return &sdk.CallToolResult{Content: content} }
	add(&sdk.Tool{Name: "say", Description: "Says it.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, _ *sdk.CallToolRequest, in text) (*sdk.CallToolResult, error) {
		return say(&sdk.TextContent{Text: "you said " + in.Text + " with " + os.Getenv("KEY")}), nil
	})
	add(&sdk.Tool{Name: "draw.picture", Description: "Draws."}, func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, error) {
		return say(
			&sdk.TextContent{Text: "Here:"}, &sdk.ImageContent{Data: pixel, MIMEType: "image/png"},
			&sdk.ResourceLink{URI: "memo://1", Name: "memo", MIMEType: "text/plain"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "memo://2", Text: "inside"}},
		), nil
	})
	add(&sdk.Tool{Name: "fail", Description: "Fails."}, func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("out of ink")
	})
	add(&sdk.Tool{Name: "crash", Description: "Crashes."}, func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	add(&sdk.Tool{Name: "hang", Description: "Hangs."}, func(ctx context.Context, _ *sdk.CallToolRequest, _ text) (*sdk.CallToolResult, error) {
		if hangs == nil {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		hangs <- struct{}{}
		<-ctx.Done()
		hangs <- struct{}{}
		return nil, ctx.Err()
	})
	add(&sdk.Tool{Name: "slow", Description: "Takes its time and says so."}, func(ctx context.Context, r *sdk.CallToolRequest, _ text) (*sdk.CallToolResult, error) {
		for i := range 24 {
			time.Sleep(250 * time.Millisecond)
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)}); err != nil {
				return nil, err
			}
		}
		return say(&sdk.TextContent{Text: "at last"}), nil
	})
	add(&sdk.Tool{Name: "grow", Description: "Adds a tool."}, func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, error) {
		add(&sdk.Tool{Name: "grown", Description: "New."}, func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, error) { return say(), nil })
		return say(), nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "count", Description: "Counts."}, func(_ context.Context, _ *sdk.CallToolRequest, in text) (*sdk.CallToolResult, map[string]int, error) {
		return nil, map[string]int{"letters": len(in.Text)}, nil
	})
	s.AddResource(&sdk.Resource{URI: "memo://1", Name: "memo", MIMEType: "text/plain"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "memo://1", Text: "remember"}, {URI: "memo://p", MIMEType: "image/png", Blob: pixel}}}, nil
	})
	return s
}

// bench is a pool at work, and a conversation.
type bench struct {
	t     *testing.T
	pool  *mcp.Pool
	env   tool.Env
	log   *apptest.Log
	blobs blob.Store
}

// blob reads the bytes of a digest.
func (b *bench) blob(d artel.Digest) string {
	b.t.Helper()
	r, err := b.blobs.Open(b.t.Context(), d)
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// patient returns limits that no slow machine reaches.
func patient() mcp.Limits { return mcp.Limits{Connect: 5 * time.Minute, Call: 5 * time.Minute} }

func newBench(t *testing.T, s mcp.Server) *bench {
	t.Helper()
	b := &bench{t: t, log: &apptest.Log{}}
	var err error
	if s.Limits == (mcp.Limits{}) {
		s.Limits = patient()
	}
	if b.pool, err = mcp.NewPool([]mcp.Server{s}, slog.New(slog.NewTextHandler(b.log, nil))); err != nil {
		t.Fatal(err)
	}
	db := rowstest.Open(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); b.pool.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	b.pool.Await(t.Context(), "")
	c := artel.Conversation{ID: artel.NewConversationID(time.Now())}
	if err := db.Update(t.Context(), artel.Local, func(tx store.Tx) error { return tx.Conversations.Create(c) }); err != nil {
		t.Fatal(err)
	}
	b.blobs = blob.NewMemory()
	collection := artifact.New(db, b.blobs, artifact.Options{})
	b.env = tool.Env{Owner: artel.Local, Conversation: c.ID, Artifacts: collection, Workspace: collection.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: c.ID, Author: "tester"})}
	return b
}

func (b *bench) call(ctx context.Context, name, args string) (tool.Result, error) {
	b.t.Helper()
	box, err := tool.NewSet(b.pool.Tools("local")...)
	if err != nil {
		b.t.Fatal(err)
	}
	return box.Call(ctx, &b.env, name, json.RawMessage(args))
}

func (b *bench) wants(name, args, want string, isError bool) tool.Result {
	b.t.Helper()
	r, err := b.call(b.t.Context(), name, args)
	if err != nil || r.IsError != isError || !strings.Contains(r.Content, want) {
		b.t.Errorf("%s: got %+v, %v, want %q", name, r, err, want)
	}
	return r
}

// eventually waits for what another process does.
func (b *bench) eventually(what string, is func() bool) {
	b.t.Helper()
	for end := time.Now().Add(5 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s did not come; health %+v; log:\n%s", what, b.pool.Health(), b.log)
		}
	}
}

func (b *bench) has(name string) bool { return slices.Contains(b.names(), name) }

// names are the tools that there are at one moment.
func (b *bench) names() (out []string) {
	for _, t := range b.pool.Tools("local") {
		out = append(out, t.Name)
	}
	return out
}

// exchange is what holds over either transport.
func (b *bench) exchange() {
	b.t.Helper()
	b.wants("tester_say", `{"text":"hello"}`, "you said hello", false)
	b.wants("tester_say", `{}`, `missing properties: ["text"]`, true)
	drawn := ""
	for _, t := range b.pool.Tools("local") {
		if strings.HasPrefix(t.Name, "tester_draw_picture_") {
			drawn = t.Name
		}
	}
	r := b.wants(drawn, `{"text":""}`, "artifact:", false)
	if len(r.Parts) == 0 {
		b.t.Fatalf("got %+v", r)
	}
	part, ok := r.Parts[0].(artel.Media)
	if !ok || part.MediaType != "image/png" || !strings.Contains(r.Content, "memo://1 memo (text/plain)") || !strings.Contains(r.Content, "memo://2:\ninside") {
		b.t.Errorf("got %+v", r)
	}
	b.wants("tester_count", `{"text":"four"}`, `{"letters":4}`, false)
	b.wants("tester_fail", `{"text":""}`, "out of ink", true)
	b.wants("tester_list_resources", `{}`, "- memo://1 memo (text/plain)", false)
	r = b.wants("tester_read_resource", `{"uri":"memo://1"}`, "remember", false)
	if len(r.Parts) == 0 {
		b.t.Errorf("got %+v", r)
	}
	b.wants("tester_read_resource", `{"uri":"memo://none"}`, "not found", true)
	b.wants("tester_grow", `{"text":""}`, "done", false)
	b.eventually("the new tool", func() bool { return b.has("tester_grown") })
	b.wants("tester_grown", `{"text":""}`, "done", false)
	if h := b.pool.Health()[0]; h.State != tool.ServerReady || h.Tools != 11 || h.Error != "" {
		b.t.Errorf("health is %+v", h)
	}
}

func program(t *testing.T) mcp.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Server{
		Name: "tester", Secrets: map[string]string{"KEY": "open-sesame"},
		Process: &mcp.Process{Args: []string{self}, Env: []string{"MCP_SERVER=1", "KEY=open-sesame"}, Dir: t.TempDir()},
	}
}

func TestProgram(t *testing.T) {
	b := newBench(t, program(t))
	b.exchange()
	b.wants("tester_say", `{"text":"x"}`, "with [KEY]", false)
	// It crashes in a call, and is there again by itself.
	b.wants("tester_crash", `{"text":""}`, "outcome unknown", true)
	b.eventually("the new process", func() bool {
		now := b.names()
		return slices.Contains(now, "tester_say") && !slices.Contains(now, "tester_grown")
	})
	b.wants("tester_say", `{"text":"again"}`, "you said again", false)
	if log := b.log.String(); strings.Contains(log, "open-sesame") || !strings.Contains(log, "the key is [KEY]") {
		t.Errorf("the log says %s", log)
	}
}

func TestRemote(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	h := httptest.NewServer(guarded(newServer(hangs)))
	t.Cleanup(h.Close)
	client := fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: -1})
	t.Cleanup(client.CloseIdleConnections)
	b := newBench(t, mcp.Server{Name: "tester", Remote: &mcp.Remote{URL: h.URL, Header: http.Header{"Authorization": {"Bearer k"}}, Client: client}})
	b.exchange()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		<-hangs // the call has begun
		stop()
		<-hangs // and ended
		close(over)
	}()
	if _, err := b.call(ctx, "tester_hang", `{"text":""}`); artel.KindOf(err) != artel.Canceled {
		t.Errorf("cancelled: got %v", err)
	}
	<-over
}

// guarded serves s to those who send the key.
func guarded(s *sdk.Server) http.Handler {
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// TestCallLimit: a call may take longer than its limit while it shows progress,
// and no longer.
func TestCallLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		h, client := fetchtest.Serve(t, guarded(newServer(hangs)))
		b := newBench(t, mcp.Server{
			Name: "tester", Limits: mcp.Limits{Call: 5 * time.Second},
			Remote: &mcp.Remote{URL: h.URL, Header: http.Header{"Authorization": {"Bearer k"}}, Client: client},
		})
		b.wants("tester_slow", `{"text":""}`, "at last", false)
		over := make(chan struct{})
		go func() {
			<-hangs
			<-hangs
			close(over)
		}()
		b.wants("tester_hang", `{"text":""}`, "no result came within 5s", true)
		<-over
	})
}

func TestOnlySomeTools(t *testing.T) {
	s := program(t)
	s.Only = []string{"say"}
	b := newBench(t, s)
	if got := b.pool.Tools("local"); len(got) != 1 || got[0].Name != "tester_say" || got[0].Repeat != tool.RepeatAlways || !got[0].Parallel {
		t.Errorf("got %+v", got)
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	b := newBench(t, mcp.Server{Name: "none", Process: &mcp.Process{Args: []string{"/no/such/program"}}})
	h := b.pool.Health()
	b.eventually("failing", func() bool { h = b.pool.Health(); return h[0].State == tool.ServerFailed })
	if !strings.Contains(h[0].Error, "no such file") || len(b.pool.Tools("local")) != 0 {
		t.Errorf("got %+v", h)
	}
}

func TestServersThatAreWrong(t *testing.T) {
	good := mcp.Server{Name: "a", Process: &mcp.Process{Args: []string{"x"}}}
	for want, s := range map[string][]mcp.Server{
		"two servers":      {good, good},
		"name: want":       {{Name: "a_b", Process: good.Process}},
		"either command":   {{Name: "a"}},
		"command is empty": {{Name: "a", Process: &mcp.Process{}}},
		"url: want":        {{Name: "a", Remote: &mcp.Remote{URL: "ftp://x"}}},
	} {
		if _, err := mcp.NewPool(s, nil); artel.KindOf(err) != artel.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestRemoteThatFloods: an answer without an end, and lists without one, end
// the connection and fill no memory.
func TestRemoteThatFloods(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, id string)
		want   string
	}{
		"bytes": {func(w http.ResponseWriter, _ string) {
			block := bytes.Repeat([]byte(" "), 1<<20)
			for range 64 {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "too large"},
		"pages": {func(w http.ResponseWriter, id string) {
			tools := strings.Repeat(`{"name":"x","inputSchema":{"type":"object"}},`, 499) + `{"name":"y","inputSchema":{"type":"object"}}`
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"nextCursor":"more","tools":[%s]}}`, id, tools)
		}, "more than 2000 tools"},
	} {
		t.Run(name, func(t *testing.T) {
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var m struct {
					ID     json.RawMessage `json:"id"`
					Method string          `json:"method"`
				}
				if r.Method != http.MethodPost {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
					t.Error(err)
				}
				w.Header().Set("Content-Type", "application/json")
				switch m.Method {
				case "initialize":
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}}`, m.ID)
				case "tools/list":
					c.answer(w, string(m.ID))
				case "notifications/initialized":
					w.WriteHeader(http.StatusAccepted)
				default:
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
				}
			}))
			t.Cleanup(h.Close)
			client := fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: -1})
			t.Cleanup(client.CloseIdleConnections)
			b := newBench(t, mcp.Server{Name: "flood", Remote: &mcp.Remote{URL: h.URL, Client: client}})
			b.eventually("the end", func() bool { return b.pool.Health()[0].State == tool.ServerFailed })
			if said := b.pool.Health()[0].Error; !strings.Contains(said, c.want) {
				t.Errorf("health says %q", said)
			}
		})
	}
}
