// SPDX-License-Identifier: Apache-2.0

package mcpwrapped_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/accounts"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/gateway/mcpproxy/mcpproxytest"
	"github.com/artelhq/artel/gateway/mcpwrapped"
	"github.com/artelhq/artel/internal/oauth/oauthtest"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/store"
)

// hidden is a secret of the servers: every encoder writes it in another way.
const hidden = `k3y/<é>"x`

// TestMain is also the program that tests start as an MCP server.
func TestMain(m *testing.M) {
	if os.Getenv("HOSTILE_SERVER") == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := mcpproxytest.Server(0).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// users are the actors of requests, by the value of the header "As"; "": the operator.
func users() map[string]access.Actor {
	return map[string]access.Actor{
		"":       access.Operator(),
		"ann":    {Owner: "usr_ann", Role: store.Member},
		"bob":    {Owner: "usr_bob", Role: store.Member},
		"reader": {Owner: "usr_ann", Role: store.Member, Scopes: []store.Scope{store.ScopeRead}},
	}
}

// bench is an application with three servers: program, remote, and mail with accounts.
type bench struct {
	t    *testing.T
	app  *app.App
	pool *mcp.Pool
	mail *oauthtest.Server
	h    *mcpwrapped.Handler
	http *httptest.Server
	log  *apptest.Log
}

func newBench(t *testing.T, permissions agent.Permissions) *bench {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fresh := func(*http.Request) *sdk.Server { return mcpproxytest.Server(0) }
	old, recent := sdk.NewStreamableHTTPHandler(fresh, nil), sdk.NewStreamableHTTPHandler(fresh, &sdk.StreamableHTTPOptions{Stateless: true})
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= withoutSession {
			recent.ServeHTTP(w, r)
			return
		}
		old.ServeHTTP(w, r)
	}))
	t.Cleanup(remote.Close)
	t.Cleanup(remote.CloseClientConnections)
	b := &bench{t: t, mail: oauthtest.New(t)}
	c, log := apptest.Config(t, nil)
	b.log = log
	var servers []mcp.Server
	for _, entry := range []mcp.Config{
		{Name: "program", Command: []string{self}, Env: map[string]string{"HOSTILE_SERVER": "1"}},
		{Name: "remote", URL: remote.URL},
		{Name: "few", URL: remote.URL, Tools: []string{"log", "echo"}},
		{Name: "mail", URL: b.mail.URL, Auth: "oauth"},
	} {
		s, err := entry.Server(tool.Secrets{"TOKEN": hidden})
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, s)
	}
	logger := slog.New(slog.NewTextHandler(log, nil))
	if b.pool, err = mcp.NewPool(servers, logger); err != nil {
		t.Fatal(err)
	}
	c.Servers, c.Permissions = b.pool, permissions
	if c.Stored.Secrets, err = secret.New("", filepath.Join(t.TempDir(), "key")); err != nil {
		t.Fatal(err)
	}
	b.app = apptest.Open(t, c)
	b.h = mcpwrapped.New(b.app, mcpwrapped.Options{Pools: []*mcp.Pool{b.pool, b.app.Toolbox.Pool()}, Log: logger})
	b.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.h.ServeHTTP(w, r.WithContext(access.With(r.Context(), users()[r.Header.Get("As")])))
	}))
	t.Cleanup(func() {
		b.h.Close()
		b.http.CloseClientConnections()
		b.http.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		for _, s := range servers {
			if s.Remote != nil {
				s.Remote.Client.CloseIdleConnections()
			}
		}
	})
	return b
}

type as string

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("As", string(a))
	return http.DefaultTransport.RoundTrip(r)
}

// host connects a host to a server, which may be followed by a query.
func (b *bench) host(server, who, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	b.t.Helper()
	s, err := b.connect(server, who, version, o)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) connect(server, who, version string, o *sdk.ClientOptions) (*sdk.ClientSession, error) {
	s, err := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "1"}, o).Connect(b.t.Context(),
		&sdk.StreamableClientTransport{Endpoint: b.http.URL + mcpwrapped.Path + server, HTTPClient: &http.Client{Transport: as(who)}, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		b.t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

func call(t *testing.T, s *sdk.ClientSession, name string, in any) (string, *sdk.CallToolResult) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: in})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return mcpproxytest.Text(r), r
}

func (b *bench) titles(who string) (out []string) {
	b.t.Helper()
	list, _, err := b.app.Conversations.List(access.With(b.t.Context(), users()[who]), store.ConversationQuery{Page: store.Page{Limit: 100}})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range list {
		out = append(out, c.Title)
	}
	slices.Sort(out)
	return out
}

var refPattern = regexp.MustCompile(`blob:sha256-[0-9a-f]{64}`)

// The versions of the protocol with and without sessions.
const (
	withSession    = "2025-11-25"
	withoutSession = "2026-07-28"
)

// TestHosts: hosts of each kind of version get the tools of each kind of server, and long
// results as previews whose bytes are in the user's own conversation.
func TestHosts(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for i, server := range []string{"program", "remote"} {
		for _, version := range []string{withSession, withoutSession, "2025-03-26"} {
			t.Run(server+" "+version, func(t *testing.T) {
				size := 3000 + i
				want := mcpproxytest.Log(size)
				s := b.host(server, "ann", version, nil)
				if got := s.InitializeResult(); got.ServerInfo.Name != "hostile" || got.ProtocolVersion != version {
					t.Errorf("it is %+v", got)
				}
				list, err := s.ListTools(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(list.Tools); n < 10 || list.Tools[0].Name != "audio" || list.Tools[n-1].Name != "artel_read" {
					t.Errorf("the tools are %v", list.Tools)
				}
				text, _ := call(t, s, "log", mcpproxytest.Arguments{Size: size})
				ref := refPattern.FindString(text)
				if ref == "" || len(text) > 4096 {
					t.Fatalf("%d bytes: %s", len(text), text)
				}
				page, _ := call(t, s, "artel_read", map[string]any{"ref": ref, "offset": 0, "limit": 5000})
				if _, page, _ = strings.Cut(page, "]\n"); page != want[:len(page)] || len(page) < 4000 {
					t.Errorf("the page is %.200s", page)
				}
				if text, _ := call(t, s, "hash", mcpproxytest.Arguments{Text: ref}); text != mcpproxytest.Hashes(mcpproxytest.Arguments{Text: want}) {
					t.Errorf("a ref became %s", text)
				}
				if text, _ := call(t, s, "echo", mcpproxytest.Arguments{Text: "x " + hidden + " y"}); text != "x [TOKEN] y" {
					t.Errorf("it says %s", text)
				}
				if err := s.Ping(t.Context(), nil); err != nil && version != withoutSession {
					t.Error(err)
				}
			})
		}
	}
	if got := b.titles("ann"); !slices.Equal(got, []string{"MCP program", "MCP remote"}) {
		t.Errorf("ann has %q", got)
	}
	if got := b.titles("bob"); len(got) > 0 {
		t.Errorf("bob has %q", got)
	}
	ann := access.With(t.Context(), users()["ann"])
	if err := b.app.GatewayLog.Flush(ann); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string]bool{"ann": true, "bob": false} {
		items, _, err := b.app.GatewayLog.List(access.With(t.Context(), users()[who]), gatewaylog.Query{Server: "remote"})
		if err != nil || len(items) > 0 != want {
			t.Errorf("%v: the log of %s has %d calls", err, who, len(items))
		}
	}
	few := b.host("few?limit=1024&defer=on", "ann", withSession, nil)
	list, err := few.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 3 || !strings.Contains(list.Tools[0].Description, "echo") || strings.Contains(list.Tools[0].Description, "markdown") {
		t.Errorf("%v: the tools are %v", err, list)
	}
	if text, _ := call(t, few, "log", mcpproxytest.Arguments{Size: 3000}); len(text) > 1024 {
		t.Errorf("%d bytes", len(text))
	}
	if _, err := few.CallTool(t.Context(), &sdk.CallToolParams{Name: "json"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("a tool that is not offered: %v", err)
	}
	if _, err := few.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "test://short"}); err == nil || !strings.Contains(err.Error(), "nothing else") {
		t.Errorf("a resource that is not offered: %v", err)
	}
	if s := b.log.String(); strings.Contains(s, "panic") || strings.Contains(s, "k3y") {
		t.Errorf("it logged %s", s)
	}
}

// TestRights: a reader lists and reads, and calls nothing; what the deployment denies or asks
// about is denied and asked about, in each kind of version.
func TestRights(t *testing.T) {
	t.Parallel()
	b := newBench(t, agent.Permissions{"remote_echo": agent.Deny, "remote_log": agent.Ask})
	reader := b.host("remote", "reader", withSession, nil)
	if _, err := reader.ListTools(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if r, err := reader.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "test://short"}); err != nil || r.Contents[0].Text != "short" {
		t.Errorf("%v: %v", err, r)
	}
	if text, r := call(t, reader, "json", mcpproxytest.Arguments{Size: 10}); !r.IsError || !strings.Contains(text, "not allowed") {
		t.Errorf("a reader gets %s", text)
	}
	if _, err := reader.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "test://long"}); err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("a reader keeps bytes: %v", err)
	}
	for _, version := range []string{withSession, withoutSession} {
		asked, allow := "", true
		s := b.host("remote", "ann", version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			asked = r.Params.Message
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": allow}}, nil
		}})
		if text, r := call(t, s, "echo", mcpproxytest.Arguments{Text: "x"}); !r.IsError || !strings.Contains(text, "does not allow") {
			t.Errorf("%s: a denied tool: %s", version, text)
		}
		if text, r := call(t, s, "log", mcpproxytest.Arguments{Size: 2}); r.IsError || text != mcpproxytest.Log(2) || !strings.Contains(asked, "log of remote") {
			t.Errorf("%s: asked %q: %s", version, asked, text)
		}
		allow = false
		if text, r := call(t, s, "log", mcpproxytest.Arguments{Size: 2}); !r.IsError || !strings.Contains(text, "did not allow") {
			t.Errorf("%s: refused: %s", version, text)
		}
		silent := b.host("remote", "ann", version, nil)
		if text, r := call(t, silent, "log", mcpproxytest.Arguments{Size: 2}); !r.IsError || !strings.Contains(text, "cannot ask") {
			t.Errorf("%s: a host that cannot ask: %s", version, text)
		}
	}
}

// TestUsers: each user reaches a server with an account of their own, and nobody a session of
// another.
func TestUsers(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	site := accounts.SiteAt("http://127.0.0.1:7777")
	if _, err := b.connect("mail", "ann", withSession, nil); err == nil || !strings.Contains(err.Error(), "/accounts/mail") {
		t.Errorf("without an account: %v", err)
	}
	ended, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); b.pool.Run(ended) }()
	defer func() { stop(); <-done }()
	for _, who := range []string{"ann", "bob"} {
		ctx := access.With(t.Context(), users()[who])
		b.mail.Browser(who)
		location, err := b.app.Accounts.Start(ctx, "mail", site)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.app.Accounts.Finish(ctx, b.mail.Visit(t, location).Query()); err != nil {
			t.Fatal(err)
		}
	}
	sessions := map[string]*sdk.ClientSession{}
	for _, version := range []string{withSession, withoutSession} {
		for _, who := range []string{"ann", "bob"} {
			s := b.host("mail", who, version, nil)
			sessions[who] = s
			for range 2 {
				if text, _ := call(t, s, "whoami", nil); text != "the mail of "+who {
					t.Errorf("%s of %s: %s", version, who, text)
				}
				b.mail.EndAccess(false) // it is renewed
			}
		}
	}
	s := b.host("mail", "ann", withSession, nil)
	status, _, text := b.raw("mail", "bob", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id", s.ID())
	if status != http.StatusNotFound || !strings.Contains(text, "no such session") {
		t.Errorf("another's session: %d %s", status, text)
	}
	if _, err := b.app.Accounts.Disconnect(access.With(t.Context(), users()["ann"]), "mail"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "whoami"}); err == nil {
		t.Error("a session outlives the account")
	}
	if text, _ := call(t, sessions["bob"], "whoami", nil); text != "the mail of bob" {
		t.Error(text)
	}
	for _, who := range []string{"ann", "bob"} {
		if status, _, text := b.raw("unknown", who, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != http.StatusNotFound || !strings.Contains(text, "no MCP server") {
			t.Errorf("an unknown server: %d %s", status, text)
		}
	}
}

// raw sends a message, and returns the answer.
func (b *bench) raw(server, who, body string, header ...string) (int, http.Header, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.http.URL+mcpwrapped.Path+server, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("As", who)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// TestHostileServers: a program that dies is started again, a result of 50 MB becomes a
// preview, and an entry that is removed ends its sessions.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.host("program", "ann", withSession, nil)
	if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "die"}); err == nil || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("it says %v", err)
	}
	if text, _ := call(t, s, "echo", mcpproxytest.Arguments{Text: "again"}); text != "again" {
		t.Error(text)
	}
	if text, _ := call(t, s, "json", mcpproxytest.Arguments{Size: 50 << 20}); refPattern.FindString(text) == "" || len(text) > 4096 {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
	b.pool.Remove("program")
	if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo"}); err == nil {
		t.Error("a session outlives its entry")
	}
	if status, _, text := b.raw("program", "ann", greeting); status != http.StatusNotFound {
		t.Errorf("a removed entry: %d %s", status, text)
	}
}

// TestHostileHosts: what is no message is refused, a host that does not read holds up nobody,
// one that leaves cancels its call, and idle sessions give way to new ones.
func TestHostileHosts(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for body, want := range map[string]int{
		"":                                    http.StatusBadRequest,
		"[]":                                  http.StatusBadRequest,
		`{"jsonrpc":"2.0"}`:                   http.StatusBadRequest,
		`{"jsonrpc":"2.0","id":1,"result":1}`: http.StatusBadRequest,
		`{"jsonrpc":"2.0","id":1,"method":`:   http.StatusBadRequest,
		strings.Repeat("[", 100_000):          http.StatusBadRequest,
	} {
		if status, _, text := b.raw("remote", "ann", body); status != want {
			t.Errorf("%.50s: %d %s", body, status, text)
		}
	}
	if status, _, _ := b.raw("remote?limit=1", "ann", greeting); status != http.StatusBadRequest {
		t.Errorf("a limit of one byte: %d", status)
	}
	if status, _, text := b.raw("remote", "ann", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, "Mcp-Protocol-Version", withoutSession, "Mcp-Method", "ping"); status != http.StatusBadRequest || !strings.Contains(text, "-32020") {
		t.Errorf("another method in the header: %d %s", status, text)
	}

	slow, lines := net.Pipe() // a host that never reads
	defer slow.Close()
	defer lines.Close()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"progressToken":1}`
	ctx, leave := context.WithCancel(access.With(t.Context(), users()["ann"]))
	served := make(chan struct{})
	go func() {
		defer close(served)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, mcpwrapped.Path+"program", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"size":2000},`+meta+`}}`))
		r.Header.Set("Accept", "*/*")
		r.Header.Set("Mcp-Protocol-Version", withoutSession)
		b.h.ServeHTTP(&piped{w: lines, header: http.Header{}}, r)
	}()
	s := b.host("program", "ann", withoutSession, nil) // shares the program
	for range 3 {
		if text, _ := call(t, s, "echo", mcpproxytest.Arguments{Text: "x"}); text != "x" {
			t.Error(text)
		}
	}
	leave()
	_ = slow.Close()
	<-served

	heard, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close()
	said := make(chan string)
	go func() {
		c, err := heard.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for buf := make([]byte, 100); ; {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			said <- string(buf[:n])
		}
	}()
	ctx, leave = context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "hang", Arguments: mcpproxytest.Arguments{Text: heard.Addr().String()}})
		failed <- err
	}()
	if got := <-said; got != "begun\n" {
		t.Errorf("the server says %q", got)
	}
	leave()
	if got := <-said; got != "cancelled\n" {
		t.Errorf("the server says %q", got)
	}
	<-failed

	first := ""
	for i := range 70 {
		_, head, text := b.raw("remote", "bob", greeting)
		if head.Get("Mcp-Session-Id") == "" {
			t.Fatalf("session %d: %s", i, text)
		}
		if first == "" {
			first = head.Get("Mcp-Session-Id")
		}
	}
	if status, _, _ := b.raw("remote", "bob", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", first); status != http.StatusNotFound {
		t.Errorf("the first of 70 sessions: %d", status)
	}
}

// piped is an answer whose writes wait for a reader.
type piped struct {
	w      io.Writer
	header http.Header
}

func (p *piped) Header() http.Header         { return p.header }
func (p *piped) Write(b []byte) (int, error) { return p.w.Write(b) }
func (p *piped) WriteHeader(int)             {}
func (p *piped) Flush()                      {}

// TestRevokedToken: a token that is revoked ends the stream and the call of its session.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	_, head, _ := b.raw("program", "ann", greeting)
	ctx, revoke := context.WithCancelCause(access.With(t.Context(), users()["ann"]))
	ask := func(method, body string) (done chan struct{}) {
		done = make(chan struct{})
		go func() {
			defer close(done)
			r := httptest.NewRequestWithContext(ctx, method, mcpwrapped.Path+"program", strings.NewReader(body))
			r.Header.Set("Accept", "*/*")
			r.Header.Set("Mcp-Session-Id", head.Get("Mcp-Session-Id"))
			b.h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		return done
	}
	heard, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close()
	stream := ask(http.MethodGet, "")
	called := ask(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"hang","arguments":{"text":%q}}}`, heard.Addr().String()))
	c, err := heard.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	revoke(artel.Errorf(artel.Unauthenticated, "test", "", "revoked"))
	<-stream
	<-called
	said, err := io.ReadAll(c)
	if err != nil || string(said) != "begun\ncancelled\n" {
		t.Errorf("%v: the server says %q", err, said)
	}
}

// TestTogether: hosts of one user without sessions use the same ids and tokens at the same
// time, and each gets its own answers and progress.
func TestTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p"}`
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			status, _, text := b.raw("program", []string{"ann", "bob"}[i%2], fmt.Sprintf(`{"jsonrpc":"2.0","id":"one","method":"tools/call","params":{"name":"slow","arguments":{"size":%d},%s}}`, i+1, meta),
				"Mcp-Protocol-Version", withoutSession, "Mcp-Method", "tools/call", "Mcp-Name", "slow")
			progress := 0
			for line := range strings.Lines(text) {
				data, ok := strings.CutPrefix(line, "data: ")
				var m struct {
					ID     string
					Method string
					Params struct {
						ProgressToken string
						Total         int
					}
					Result struct{ Content []struct{ Text string } }
				}
				if !ok || json.Unmarshal([]byte(data), &m) != nil {
					continue
				}
				switch {
				case m.Method == "notifications/progress" && m.Params.ProgressToken == "p" && m.Params.Total == i+1:
					progress++
				case m.ID != "one" || len(m.Result.Content) != 1 || m.Result.Content[0].Text != "slow and done":
					t.Errorf("%d: %s", i, data)
				}
			}
			if status != http.StatusOK || progress != i+1 {
				t.Errorf("%d: %d, progress %d of %d\n%s", i, status, progress, i+1, text)
			}
		})
	}
	all.Wait()
}
