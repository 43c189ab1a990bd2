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
// order of the properties of a form, and to which call a question of the server belongs. The
// messages are changed below the SDK, so that _meta carries both. A server cannot write
// these members itself: they are always replaced.
const (
	metaSchema = "artel/schema" // the schema of a form as its server wrote it
	metaCall   = "artel/call"   // the progress token of the call in whose stream the question came
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
	if !bytes.Contains(result, []byte(`"inputRequests"`)) {
		return result
	}
	m := object(result)
	asked := object(m["inputRequests"])
	if asked == nil {
		return result
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
	return bytes.Contains(message, []byte(methodElicit))
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
