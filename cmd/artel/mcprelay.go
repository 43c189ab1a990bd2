// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/sse"
)

// A relay passes messages of the Model Context Protocol between standard input and output
// and the MCP server of an attachment. It knows as much of the protocol as that needs: the
// headers of HTTP, the session of older versions, which it begins again at a server that
// took over, and which calls may be repeated.
type relay struct {
	url   string
	http  *http.Client
	reads map[string]bool // tools that change nothing

	writing sync.Mutex // guards out
	out     io.Writer
	fail    context.CancelCauseFunc // ends everything

	mu        sync.Mutex
	session   string            // id; "": none
	version   string            // of the protocol in the session
	begin     []byte            // the message initialize; nil: the client keeps no session
	ready     []byte            // the notification initialized
	subscribe map[string][]byte // messages by the address of the resource
	calls     map[string]context.CancelFunc
	renewing  sync.Mutex

	pending sync.WaitGroup // calls with an answer
	streams sync.WaitGroup // those that last
}

// maxMessage is the longest message, in bytes.
const maxMessage = 96 << 20

// lastAnswers is how long calls may take after the end of the input.
const lastAnswers = 10 * time.Second

// serveMCP is "artel mcp".
func (g *globals) serveMCP(cmd *cobra.Command, o attachOptions, conversation string) error {
	a, err := g.attach(cmd.Context(), o)
	if err != nil {
		return err
	}
	at := a.url + "/mcp"
	if conversation != "" {
		at += "?" + url.Values{"conversation": {conversation}}.Encode()
	}
	if in, ok := cmd.InOrStdin().(*os.File); ok {
		if stat, err := in.Stat(); err == nil && stat.Mode()&os.ModeCharDevice != 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "artel: this speaks the Model Context Protocol on standard input and output; a host starts it, for example: claude mcp add artel -- artel mcp")
		}
	}
	r := &relay{url: at, http: a.http, out: cmd.OutOrStdout()}
	return errors.Join(r.run(cmd.Context(), cmd.InOrStdin()), a.close())
}

// run relays until the input ends, the output fails or ctx ends.
func (r *relay) run(ctx context.Context, in io.Reader) error {
	ctx, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	r.reads = map[string]bool{}
	for _, t := range tool.BuiltIn() {
		r.reads[t.Name] = t.Repeat == tool.RepeatAlways
	}
	r.subscribe, r.calls = map[string][]byte{}, map[string]context.CancelFunc{}
	lines, ended := make(chan []byte), make(chan error, 1)
	go func() { // a blocked read of standard input cannot be ended
		ended <- eachLine(in, func(line []byte) bool {
			select {
			case lines <- line:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	var err error
	for reading := true; reading; {
		select {
		case line := <-lines:
			r.take(ctx, line)
		case err = <-ended:
			reading = false
		case <-ctx.Done():
			reading = false
		}
	}
	answered := make(chan struct{})
	go func() { r.pending.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-ctx.Done():
	case <-time.After(lastAnswers):
	}
	r.endSession(ctx)
	cause := context.Cause(ctx)
	r.fail(nil)
	r.pending.Wait()
	r.streams.Wait()
	if cause != nil && !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	return err
}

// eachLine calls take with each line that is not empty.
func eachLine(in io.Reader, take func([]byte) bool) error {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 64<<10), maxMessage)
	for s.Scan() {
		if line := bytes.TrimSpace(s.Bytes()); len(line) > 0 && !take(bytes.Clone(line)) {
			return nil
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return artel.Errorf(artel.TooLarge, "mcp", "", "a message has more than 96 MB; artel put stores files")
	}
	return s.Err()
}

// A message is what a relay reads of one.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

func (m message) isCall() bool { return m.Method != "" && len(m.ID) > 0 && string(m.ID) != "null" }

// repeats reports whether doing m twice does no harm.
func (r *relay) repeats(m message) bool {
	return m.Method != "tools/call" || r.reads[m.Params.Name]
}

// take handles a message of the client.
func (r *relay) take(ctx context.Context, raw []byte) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil && raw[0] != '[' {
		r.write(failure(nil, -32700, "this is no message of JSON-RPC: "+err.Error()))
		return
	}
	switch {
	case m.Method == "initialize":
		r.mu.Lock()
		r.begin, r.ready, r.session, r.version = raw, nil, "", ""
		r.mu.Unlock()
		r.call(ctx, m, raw)
	case m.Method == "notifications/cancelled":
		r.mu.Lock()
		cancel, inSession := r.calls[string(m.Params.RequestID)], r.session != ""
		r.mu.Unlock()
		if inSession {
			r.notify(ctx, m, raw)
		} else if cancel != nil {
			cancel()
		}
	case m.Method == "notifications/initialized":
		r.mu.Lock()
		r.ready = raw
		r.mu.Unlock()
		r.notify(ctx, m, raw)
		r.streams.Go(func() { r.listen(ctx) })
	case m.isCall():
		r.remember(m, raw)
		of, cancel := context.WithCancel(ctx)
		r.mu.Lock()
		r.calls[string(m.ID)] = cancel
		r.mu.Unlock()
		group := &r.pending
		if m.Method == "subscriptions/listen" {
			group = &r.streams
		}
		group.Go(func() {
			defer cancel()
			r.call(of, m, raw)
			r.mu.Lock()
			delete(r.calls, string(m.ID))
			r.mu.Unlock()
		})
	case raw[0] == '[': // a batch of an old version
		r.pending.Go(func() { r.call(ctx, m, raw) })
	default: // a notification, or the answer to a question of the server
		r.notify(ctx, m, raw)
	}
}

// remember keeps the subscriptions of a session, for a server that takes over.
func (r *relay) remember(m message, raw []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m.Method {
	case "resources/subscribe":
		r.subscribe[m.Params.URI] = raw
	case "resources/unsubscribe":
		delete(r.subscribe, m.Params.URI)
	}
}

// write writes a message to the client.
func (r *relay) write(raw []byte) {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		r.fail(artel.Errorf(artel.Internal, "mcp", "", "the server sent no JSON: %w", err))
		return
	}
	line.WriteByte('\n')
	r.writing.Lock()
	defer r.writing.Unlock()
	if _, err := r.out.Write(line.Bytes()); err != nil {
		r.fail(artel.Errorf(artel.Unavailable, "mcp", "", "the host does not read any more: %w", err))
	}
}

// failure returns the answer to a call that failed.
func failure(id json.RawMessage, code int, text string) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}})
	return b
}

// notify sends a message without an answer.
func (r *relay) notify(ctx context.Context, m message, raw []byte) {
	resp, err := r.post(ctx, m, raw)
	if err != nil {
		return // nothing can be answered; the next call says it
	}
	_ = resp.Body.Close()
}

// call sends a call, and writes what comes back.
func (r *relay) call(ctx context.Context, m message, raw []byte) {
	if r.repeats(m) {
		ctx = repeatable(ctx)
	}
	for tried := 1; ; tried++ {
		resp, err := r.post(ctx, m, raw)
		if err != nil {
			if ctx.Err() == nil {
				r.write(failure(m.ID, -32000, err.Error()))
			}
			return
		}
		answered, err := r.answers(resp, m)
		switch {
		case answered || ctx.Err() != nil:
			return
		case !r.repeats(m) || tried == attachTries:
			if err == nil {
				err = errors.New("it closed the connection")
			}
			r.write(failure(m.ID, -32000, fmt.Sprintf("the server ended during this call, and what it did is unknown; look before you repeat it: %v", err)))
			return
		}
	}
}

// answers writes the messages of a response, and reports whether the answer to m is
// among them.
func (r *relay) answers(resp *http.Response, m message) (answered bool, err error) {
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for e, err := range sse.Events(resp.Body, maxMessage) {
			if err != nil {
				return answered, err
			}
			if e.Data == "" {
				continue
			}
			var got message
			answered = json.Unmarshal([]byte(e.Data), &got) == nil && got.Method == "" && bytes.Equal(got.ID, m.ID) || answered
			r.write([]byte(e.Data))
		}
		return answered, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	if err != nil {
		return false, err
	}
	if resp.StatusCode >= 400 {
		r.write(failed(resp, m, body))
		return true, nil
	}
	if len(bytes.TrimSpace(body)) > 0 {
		r.write(body)
	}
	return true, nil
}

// failed returns the answer to m for a refusal by HTTP.
func failed(resp *http.Response, m message, body []byte) []byte {
	var e struct {
		ID    json.RawMessage `json:"id"`
		Error *struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data,omitempty"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil || e.Error == nil {
		return failure(m.ID, -32000, fmt.Sprintf("the server answered %s: %s", resp.Status, artel.Shorten(strings.TrimSpace(string(body)), 500)))
	}
	if resp.StatusCode == http.StatusUnauthorized {
		e.Error.Message += "; a token for this command is in ARTEL_TOKEN (artel token create)"
	}
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": e.Error})
	return b
}

// post sends a message. If the session is not there any more, because another server took
// over, it begins another.
func (r *relay) post(ctx context.Context, m message, raw []byte) (*http.Response, error) {
	for range attachTries {
		session, resp, err := r.send(ctx, m, raw)
		if err != nil || resp.StatusCode != http.StatusNotFound || session == "" {
			if err == nil && m.Method == "initialize" {
				return r.sniff(resp)
			}
			return resp, err
		}
		_ = resp.Body.Close()
		if err := r.renew(ctx, session); err != nil {
			return nil, err
		}
	}
	return nil, artel.Errorf(artel.Unavailable, "mcp", "", "the server forgets its sessions at once; is another program at its address?")
}

// send sends a message in the session, whose id it returns.
func (r *relay) send(ctx context.Context, m message, raw []byte) (session string, _ *http.Response, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(raw))
	if err != nil {
		return "", nil, err
	}
	r.mu.Lock()
	session, version := r.session, r.version
	r.mu.Unlock()
	if m.Method == "initialize" {
		session = ""
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	switch {
	case m.Params.Meta.Version != "":
		session = ""
		h.Set("Mcp-Protocol-Version", m.Params.Meta.Version)
		h.Set("Mcp-Method", m.Method)
		switch m.Method {
		case "tools/call", "prompts/get":
			h.Set("Mcp-Name", headerValue(m.Params.Name))
		case "resources/read":
			h.Set("Mcp-Name", headerValue(m.Params.URI))
		}
	case session != "":
		h.Set("Mcp-Session-Id", session)
		h.Set("Mcp-Protocol-Version", version)
	}
	resp, err := r.http.Do(req)
	return session, resp, err
}

// headerValue encodes a value that a header cannot hold.
func headerValue(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, "=?base64?") && strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) < 0
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// sniff reads the answer to initialize, which says which version of the protocol the
// session speaks, and returns it to be read again.
func (r *relay) sniff(resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		r.began(resp, body)
	}
	for e := range sse.Events(bytes.NewReader(body), maxMessage) {
		if strings.Contains(e.Data, `"protocolVersion"`) {
			r.began(resp, []byte(e.Data))
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// began notes a session.
func (r *relay) began(resp *http.Response, body []byte) {
	var answer struct {
		Result struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
	}
	_ = json.Unmarshal(body, &answer)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session, r.version = resp.Header.Get("Mcp-Session-Id"), answer.Result.ProtocolVersion
}

// renew begins a session in the place of one that is not there any more, with its
// subscriptions.
func (r *relay) renew(ctx context.Context, old string) error {
	r.renewing.Lock()
	defer r.renewing.Unlock()
	r.mu.Lock()
	now, again := r.session, [][]byte{r.begin}
	if r.ready != nil {
		again = append(again, r.ready)
	}
	for _, raw := range r.subscribe {
		again = append(again, raw)
	}
	r.mu.Unlock()
	if now != old { // another call was first
		return nil
	}
	for _, raw := range again {
		if err := r.repeat(ctx, raw); err != nil {
			r.mu.Lock()
			r.session = old // a session without its subscriptions would be silent
			r.mu.Unlock()
			return err
		}
	}
	return nil
}

// repeat sends a message that the client has had an answer to.
func (r *relay) repeat(ctx context.Context, raw []byte) error {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	_, resp, err := r.send(repeatable(ctx), m, raw)
	if err == nil && m.Method == "initialize" {
		resp, err = r.sniff(resp)
	}
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode >= 400 {
		return artel.Errorf(artel.Unavailable, "mcp", "", "the server that took over answered %s to %s", resp.Status, m.Method)
	}
	return nil
}

// listen passes on what the server says by itself in a session.
func (r *relay) listen(ctx context.Context) {
	for wait := attachEvery; ctx.Err() == nil; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
		if err != nil {
			return
		}
		r.mu.Lock()
		session, version := r.session, r.version
		r.mu.Unlock()
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("Mcp-Protocol-Version", version)
		resp, err := r.http.Do(req)
		if err == nil {
			switch resp.StatusCode {
			case http.StatusOK:
				wait = attachEvery
				_, _ = r.answers(resp, message{})
			case http.StatusNotFound:
				_ = resp.Body.Close()
				_ = r.renew(ctx, session) // if it fails, the next round tries again
			case http.StatusMethodNotAllowed:
				_ = resp.Body.Close()
				return // it offers no stream
			default:
				_ = resp.Body.Close() // it may be starting or busy
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			wait = min(2*wait, 5*time.Second)
		}
	}
}

// endSession tells the server that the client has left.
func (r *relay) endSession(ctx context.Context) {
	r.mu.Lock()
	session := r.session
	r.mu.Unlock()
	if session == "" {
		return
	}
	ctx, enough := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer enough()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, r.url, nil)
	if err != nil {
		return
	}
	req.Header.Set("Mcp-Session-Id", session)
	if resp, err := r.http.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}
