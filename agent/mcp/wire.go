// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK decodes messages into its own types, which drop what they do not know: the
// order of the properties of a form, to which call a question of the server belongs, and
// tasks. The messages are changed below the SDK, so that _meta carries them. A server cannot write
// these members itself: they are always replaced.
const (
	metaSchema = "artel/schema" // the schema of a form as its server wrote it
	metaCall   = "artel/call"   // the progress token of the call in whose stream the question came

	metaTask    = "artel/task"         // of a result: the task; of a call: for how long the server is asked to keep one
	metaSupport = "artel/task-support" // of a tool: execution.taskSupport
	metaTasks   = "artel/tasks"        // among the experimental capabilities of a server: tasks
)

const methodElicit = "elicitation/create"

// callKey is the key of the progress token of a call in the context of its requests.
type callKey struct{}

// object reads the members of a JSON object; nil: it is none.
func object(raw json.RawMessage) (m map[string]json.RawMessage) {
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil { // of maps of valid JSON, strings and numbers only
		return json.RawMessage("null")
	}
	return raw
}

// withMeta sets members of the _meta of an object; "" deletes one.
func withMeta(m map[string]json.RawMessage, members map[string]string) {
	meta := object(m["_meta"])
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	for k, v := range members {
		if delete(meta, k); v != "" {
			meta[k] = encode(v)
		}
	}
	if m["_meta"] = encode(meta); len(meta) == 0 {
		delete(m, "_meta")
	}
}

// markQuestion puts the schema and the call into the _meta of a question.
func markQuestion(params json.RawMessage, call string) json.RawMessage {
	m := object(params)
	if m == nil {
		return params
	}
	withMeta(m, map[string]string{metaSchema: string(m["requestedSchema"]), metaCall: call})
	return encode(m)
}

// markRequest changes a request of the server.
func markRequest(method string, params json.RawMessage, call string) json.RawMessage {
	if method == methodElicit {
		return markQuestion(params, call)
	}
	return params
}

// markResult changes a result of the server.
func markResult(result json.RawMessage) json.RawMessage {
	if !marks(result) {
		return result
	}
	m := object(result)
	switch {
	case m == nil:
		return result
	case m["capabilities"] != nil:
		markCapabilities(m)
	case m["tools"] != nil:
		markTools(m)
	case string(m["resultType"]) == `"task"`:
		withMeta(m, map[string]string{metaTask: string(encode(m))})
	case m["task"] != nil:
		withMeta(m, map[string]string{metaTask: string(m["task"])})
	default:
		withMeta(m, map[string]string{metaTask: ""})
	}
	asked := object(m["inputRequests"])
	if asked == nil {
		return encode(m)
	}
	for k, v := range maps.All(asked) {
		q := object(v)
		if q == nil {
			continue
		}
		q["params"] = markQuestion(q["params"], "")
		asked[k] = encode(q)
	}
	m["inputRequests"] = encode(asked)
	return encode(m)
}

// marks reports whether a message may have to be changed.
func marks(message []byte) bool {
	for _, s := range []string{methodElicit, "taskId", "taskSupport", `"tasks"`, "artel/"} {
		if bytes.Contains(message, []byte(s)) {
			return true
		}
	}
	return false
}

// markCapabilities keeps the capability of tasks, which the SDK does not know.
func markCapabilities(m map[string]json.RawMessage) {
	capabilities := object(m["capabilities"])
	if capabilities == nil {
		return
	}
	experimental := object(capabilities["experimental"])
	if experimental == nil {
		experimental = map[string]json.RawMessage{}
	}
	if delete(experimental, metaTasks); capabilities["tasks"] != nil {
		experimental[metaTasks] = capabilities["tasks"]
	}
	capabilities["experimental"] = encode(experimental)
	m["capabilities"] = encode(capabilities)
}

// markTools keeps which tools may be called as tasks.
func markTools(m map[string]json.RawMessage) {
	var tools []map[string]json.RawMessage
	if json.Unmarshal(m["tools"], &tools) != nil {
		return
	}
	for _, t := range tools {
		var execution struct {
			Support string `json:"taskSupport"`
		}
		_ = json.Unmarshal(t["execution"], &execution)
		if t != nil {
			withMeta(t, map[string]string{metaSupport: execution.Support})
		}
	}
	m["tools"] = encode(tools)
}

// withTask turns the wish for a task in the _meta of a call into the member of the protocol.
func withTask(params json.RawMessage) json.RawMessage {
	m := object(params)
	meta := object(m["_meta"])
	if meta[metaTask] == nil {
		return params
	}
	m["task"] = encode(map[string]json.RawMessage{"ttl": meta[metaTask]})
	delete(meta, metaTask)
	m["_meta"] = encode(meta)
	return encode(m)
}

// sentRequest changes a request to a server at an address: it asks for a task, or has the
// header that names one.
func sentRequest(r *http.Request) error {
	name := strings.HasPrefix(r.Header.Get("Mcp-Method"), "tasks/")
	if r.Body == nil || r.Method != http.MethodPost {
		return nil
	}
	raw, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return err
	}
	if m := object(raw); m != nil && (name || bytes.Contains(raw, []byte(metaTask))) {
		var params taskParams
		if name && json.Unmarshal(m["params"], &params) == nil {
			r.Header.Set("Mcp-Name", params.ID)
		}
		m["params"] = withTask(m["params"])
		raw = encode(m)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	return nil
}

// markMessage changes an encoded message of the server. What is not a message stays.
func markMessage(raw []byte, call string) []byte {
	if !marks(raw) {
		return raw
	}
	m := object(raw)
	var method string
	switch {
	case m == nil:
		return raw
	case m["result"] != nil:
		m["result"] = markResult(m["result"])
	case json.Unmarshal(m["method"], &method) == nil:
		m["params"] = markRequest(method, m["params"], call)
	}
	return encode(m)
}

// A markedConn changes the messages of a program.
type markedConn struct{ sdk.Connection }

// Read implements [sdk.Connection].
func (c markedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	switch m := m.(type) {
	case *jsonrpc.Request:
		m.Params = markRequest(m.Method, m.Params, "")
	case *jsonrpc.Response:
		m.Result = markResult(m.Result)
	}
	return m, err
}

// Write implements [sdk.Connection].
func (c markedConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && bytes.Contains(r.Params, []byte(metaTask)) {
		changed := *r
		changed.Params = withTask(r.Params)
		m = &changed
	}
	return c.Connection.Write(ctx, m)
}

// markBody changes the messages in the answer to a request.
func markBody(r *http.Request, resp *http.Response) {
	call, _ := r.Context().Value(callKey{}).(string)
	switch kind := resp.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "text/event-stream"):
		resp.Body = &markedStream{body: resp.Body, in: bufio.NewReader(resp.Body), call: call}
	case strings.HasPrefix(kind, "application/json"):
		resp.Body = &markedBody{body: resp.Body, call: call}
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	}
}

// A markedBody is a body with one message.
type markedBody struct {
	body io.ReadCloser
	call string
	out  *bytes.Reader // nil: the body was not read
}

// Read implements [io.Reader].
func (b *markedBody) Read(p []byte) (int, error) {
	if b.out == nil {
		raw, err := io.ReadAll(b.body) // it is bounded
		if err != nil {
			return 0, err
		}
		b.out = bytes.NewReader(markMessage(raw, b.call))
	}
	return b.out.Read(p)
}

// Close implements [io.Closer].
func (b *markedBody) Close() error { return b.body.Close() }

// A markedStream is a stream of events with a message in each.
type markedStream struct {
	body io.ReadCloser
	in   *bufio.Reader
	call string
	line []byte // what is left of the newest line
	err  error
}

// Read implements [io.Reader].
func (s *markedStream) Read(p []byte) (int, error) {
	if len(s.line) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.next()
		if len(s.line) == 0 {
			return 0, s.err
		}
	}
	n := copy(p, s.line)
	s.line = s.line[n:]
	return n, nil
}

// next reads a line, and changes the message in it. Longer ones than the SDK takes pass in
// pieces.
func (s *markedStream) next() {
	s.line = nil
	for len(s.line) <= sdk.DefaultMaxLineLength {
		piece, err := s.in.ReadSlice('\n')
		if s.line = append(s.line, piece...); err == bufio.ErrBufferFull {
			continue
		}
		s.err = err
		break
	}
	if message, ok := bytes.CutPrefix(s.line, []byte("data:")); ok && marks(message) {
		rest := bytes.TrimRight(message, "\r\n")
		end := message[len(rest):]
		s.line = append(append([]byte("data: "), markMessage(bytes.TrimLeft(rest, " "), s.call)...), end...)
	}
}

// Close implements [io.Closer].
func (s *markedStream) Close() error { return s.body.Close() }
