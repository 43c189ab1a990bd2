// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
)

// TestHostsLoseNothing: two hosts rewrite lines of one document at the same time, each
// from the version that it has read. All lines of both are in the result.
func TestHostsLoseNothing(t *testing.T) {
	b := newBench(t, nil)
	const lines = 40
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "line %d\n\n", i)
	}
	call(t, b.client("/mcp", "", nil), "create_artifact", map[string]any{"id": "doc", "title": "D", "content": text.String()})
	var wg sync.WaitGroup
	merged := make(chan bool, lines)
	for n, version := range []string{"2026-07-28", "2025-06-18"} {
		c := b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp"}, version, nil)
		wg.Go(func() {
			for i := n; i < lines; i += 2 {
				// The version that the host has read is old by the time it writes.
				was := strings.Replace(text.String(), fmt.Sprintf("line %d\n", i), fmt.Sprintf("host %d wrote %d\n", n, i), 1)
				r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "rewrite_artifact", Arguments: map[string]any{"id": "doc", "content": was, "if_version": 1}})
				if err != nil || r.IsError {
					t.Errorf("%v %s", err, textOf(r))
					return
				}
				merged <- r.StructuredContent.(map[string]any)["merged"] == true
			}
		})
	}
	wg.Wait()
	close(merged)
	count := 0
	for m := range merged {
		if m {
			count++
		}
	}
	if count != lines-1 {
		t.Errorf("%d of %d writes were merged", count, lines)
	}
	whole, _, _ := call(t, b.client("/mcp", "", nil), "read_artifact", map[string]any{"id": "doc"})
	for i := range lines {
		if want := fmt.Sprintf("host %d wrote %d\n", i%2, i); !strings.Contains(whole, want) {
			t.Errorf("lost: %q", want)
		}
	}
	// Where both change the same line, the second is refused and sees both.
	c := b.client("/mcp", "", nil)
	said := refusedCall(t, c, "rewrite_artifact", map[string]any{"id": "doc", "content": strings.Replace(text.String(), "line 7\n", "mine\n", 1), "if_version": 1})
	if !strings.Contains(said, "mine") || !strings.Contains(said, "host 1 wrote 7") {
		t.Errorf("got %s", said)
	}
	if text, facts, _ := call(t, c, "list_versions", map[string]any{"id": "doc"}); facts["count"] != float64(lines+1) || len(text) > 4096 {
		t.Errorf("got %v", facts)
	}
	if _, facts, _ := call(t, c, "search_artifacts", map[string]any{"words": "wrote 13", "everywhere": true}); facts["count"] != 1.0 {
		t.Errorf("got %v", facts)
	}
}

// raw sends a body with headers, and returns status, header and body.
func (b *bench) raw(method, body string, header ...string) (int, http.Header, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.http.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(out)
}

// TestExchanges speaks HTTP itself: sessions of old versions, none in the new one.
func TestExchanges(t *testing.T) {
	b := newBench(t, nil)
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		status, head, body := b.raw("POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
		session := head.Get("Mcp-Session-Id")
		if status != http.StatusOK || session == "" || !strings.Contains(body, `"protocolVersion":"`+version+`"`) || !strings.Contains(body, `"subscribe":true`) || strings.Contains(body, `"logging"`) {
			t.Fatalf("%s: %d %v %s", version, status, head, body)
		}
		in := []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", version}
		if status, _, body = b.raw("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, in...); status != http.StatusAccepted {
			t.Errorf("%d %s", status, body)
		}
		if status, _, body = b.raw("POST", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_artifacts","arguments":{}}}`, in...); status != http.StatusOK || !strings.Contains(body, "structuredContent") || strings.Contains(body, "resultType") {
			t.Errorf("%d %s", status, body)
		}
		for _, as := range []string{"other"} { // a session belongs to its owner
			if status, _, body = b.raw("POST", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, append(in, "As", as)...); status != http.StatusNotFound {
				t.Errorf("another user in the session: %d %s", status, body)
			}
		}
		if status, _, _ = b.raw("DELETE", "", in...); status != http.StatusNoContent {
			t.Errorf("DELETE: %d", status)
		}
		if status, _, body = b.raw("POST", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, in...); status != http.StatusNotFound || !strings.Contains(body, "initialize") {
			t.Errorf("after DELETE: %d %s", status, body)
		}
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	status, head, body := b.raw("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_artifacts","arguments":{},`+meta+`}}`, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "list_artifacts")
	if status != http.StatusOK || head.Get("Mcp-Session-Id") != "" || !strings.Contains(body, `"resultType":"complete"`) || !strings.Contains(body, "serverInfo") {
		t.Errorf("%d %v %s", status, head, body)
	}
	if status, _, body = b.raw("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_artifacts","arguments":{},`+meta+`}}`, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "delete_artifact"); status != http.StatusBadRequest || !strings.Contains(body, "-32020") {
		t.Errorf("a header that differs: %d %s", status, body)
	}
	if status, _, body = b.raw("GET", ""); status != http.StatusBadRequest || !strings.Contains(body, `"jsonrpc"`) {
		t.Errorf("GET without a session: %d %s", status, body)
	}
	if status, _, _ = b.raw("PUT", "{}"); status != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", status)
	}
}

// TestHostileMessages: what is no message, or none that can be answered, is refused, and
// the server goes on.
func TestHostileMessages(t *testing.T) {
	b := newBench(t, nil)
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	for _, body := range []string{
		``, `{`, `null`, `7`, `[]`, `{}`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":{},"method":"tools/list"}`, `{"jsonrpc":"1.0","id":1,"method":"tools/list"}`,
		strings.Repeat("[", 100_000), `{"a":` + strings.Repeat(`{"a":`, 50_000), "\xff\xfe", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 1<<20) + `"}`,
		call(`{}`), call(`{"name":7}`), call(`{"name":"read_artifact","arguments":[1]}`), call(`{"name":"read_artifact","arguments":{"id":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}}`),
		call(`{"name":"read_artifact","arguments":{"id":"\ud800","conversation":"\u0000"}}`), call(`{"name":"read_artifact","arguments":{"conversation":{"a":1}}}`),
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"artel://../../etc/passwd"}}`, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"artel://%zz/%00@99999999999999999999"}}`, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`,
	} {
		status, _, answer := b.raw("POST", body)
		if status >= 500 || status == http.StatusOK && !strings.Contains(answer, `"error"`) && !strings.Contains(answer, `"isError":true`) {
			t.Errorf("%.80q: %d %.300s", body, status, answer)
		}
	}
	if status, _, answer := b.raw("POST", call(`{"name":"list_artifacts"}`)); status != http.StatusOK || !strings.Contains(answer, "No artifacts") {
		t.Errorf("afterwards: %d %s", status, answer)
	}
	if s := b.log.String(); strings.Contains(s, "panic") {
		t.Errorf("it logged %s", s)
	}
}

// TestRevokedToken ends the stream of a session when its token is revoked.
func TestRevokedToken(t *testing.T) {
	b := newBench(t, nil)
	_, head, _ := b.raw("POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	as, revoke := context.WithCancelCause(access.With(t.Context(), access.Operator()))
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		req, err := http.NewRequestWithContext(as, "GET", "/mcp", nil)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Mcp-Session-Id", head.Get("Mcp-Session-Id"))
		b.h.ServeHTTP(&piped{w: w, header: http.Header{}}, req)
		_ = w.Close()
	}()
	go func() {
		for lines := bufio.NewScanner(r); lines.Scan(); {
		}
	}()
	revoke(artel.Errorf(artel.Unauthenticated, "test", "", "revoked"))
	<-done
}

// piped is an answer that is read while it is written.
type piped struct {
	w      io.Writer
	header http.Header
}

func (p *piped) Header() http.Header         { return p.header }
func (p *piped) Write(b []byte) (int, error) { return p.w.Write(b) }
func (p *piped) WriteHeader(int)             {}
func (p *piped) Flush()                      {}

// TestSessionsEnd: sessions that are not used end when their owner begins many others.
func TestSessionsEnd(t *testing.T) {
	b := newBench(t, nil)
	var first string
	for i := range 70 {
		_, head, body := b.raw("POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
		id := head.Get("Mcp-Session-Id")
		if id == "" {
			t.Fatalf("session %d: %s", i, body)
		}
		if i == 0 {
			first = id
		}
		if i == 69 {
			if status, _, body := b.raw("POST", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", id); status != http.StatusOK {
				t.Errorf("the last session: %d %s", status, body)
			}
		}
	}
	if status, _, _ := b.raw("POST", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", first); status != http.StatusNotFound {
		t.Errorf("the first session: %d", status)
	}
}

// TestProgress: a call with a token says that it is at work; a cancelled one ends.
func TestProgress(t *testing.T) {
	b := newBench(t, nil)
	reported := make(chan string, 1000)
	c := b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp"}, newest, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			select {
			case reported <- r.Params.Message:
			default:
			}
		},
	})
	own := b.named("MCP").ID
	b.upload(own, "large.txt", bytes.Repeat([]byte("a line of text\n"), 1_000_000))
	p := &mcp.CallToolParams{Name: "grep_artifacts", Arguments: map[string]any{"pattern": "(a|b)*z"}}
	p.SetProgressToken("token")
	if r, err := c.CallTool(t.Context(), p); err != nil || r.IsError {
		t.Fatalf("%v %v", r, err)
	}
	if got := <-reported; !strings.Contains(got, "grep_artifacts has been at work") {
		t.Errorf("got %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reported; cancel() }()
	if _, err := c.CallTool(ctx, p); err == nil {
		t.Error("a cancelled call succeeded")
	}
}
