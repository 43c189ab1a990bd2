// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/artelhq/artel"
)

// A message is one message of JSON-RPC. Its owner closes it.
type message struct {
	*spool
	id     string // as JSON; "": a notification
	method string // "": a response
	params span
	result span
	failed bool            // a response with an error
	asker  context.Context // has the values of the host's request; nil: none
}

// in returns the context of a message: it ends with ctx, and has the values of the host's
// request too.
func (m *message) in(ctx context.Context) context.Context {
	if m.asker == nil {
		return ctx
	}
	return joined{ctx, m.asker}
}

// A joined context has the end of one context, and the values of another as well.
type joined struct {
	context.Context
	values context.Context
}

// Value implements [context.Context].
func (j joined) Value(key any) any {
	if v := j.Context.Value(key); v != nil {
		return v
	}
	return j.values.Value(key)
}

// parse finds the parts of a message in the bytes of s, which it owns from then on.
func parse(s *spool) (*message, error) {
	m := &message{spool: s}
	err := s.members(s.all(), func(key string, value span) (err error) {
		switch key {
		case "id":
			var b []byte
			if b, err = s.bytes(value, maxID); err == nil && string(b) != "null" {
				m.id = string(b)
			}
		case "method":
			m.method = s.word(value)
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.failed = true
		}
		return err
	})
	if err == nil && m.id == "" && m.method == "" && !m.failed {
		err = fmt.Errorf("%w of RPC", errJSON)
	}
	return m, err
}

// maxID is the most bytes of an id.
const maxID = 4 << 10

// member returns a member of the object at a span; an empty span if there is none.
func (s *spool) member(at span, name string) (found span) {
	if s.kind(at) != '{' {
		return found
	}
	_ = s.members(at, func(key string, value span) error { // the last one counts, as for the readers of JSON in Go
		if key == name {
			found = value
		}
		return nil
	})
	return found
}

// request makes a request; params is JSON or empty.
func request(id, method string, params []byte) *message {
	if len(params) == 0 {
		params = []byte("{}")
	}
	m, _ := parse(spoolOf(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}`, id, quoted(method), params)))
	return m
}

// The codes of JSON-RPC.
const (
	codeNoMethod = -32601
	codeInvalid  = -32602
	codeInternal = -32603
)

// failure makes the answer to a request that failed.
func failure(id string, code int, text string) *message {
	m, _ := parse(spoolOf(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, quoted(text))))
	return m
}

// answer makes the answer to a request. result is JSON.
func answer(id string, result []byte) *message {
	m, _ := parse(spoolOf(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)))
	return m
}

// texts makes the result of a tool of the proxy.
func texts(isError bool, all ...string) []byte {
	var b bytes.Buffer
	b.WriteString(`{"content":[`)
	for i, t := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"type":"text","text":`)
		b.Write(quoted(t))
		b.WriteByte('}')
	}
	b.WriteByte(']')
	if isError {
		b.WriteString(`,"isError":true`)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// A link carries messages to and from one side.
type link interface {
	// receive returns the next message; io.EOF after the last.
	receive(ctx context.Context) (*message, error)
	// send sends a message, which stays the caller's. It may be called concurrently.
	send(ctx context.Context, m *message) error
	// close ends the link. A receive in progress returns.
	close() error
}

// lines is a link of one message on each line, as over standard input and output.
type lines struct {
	in   *bufio.Reader
	stop func() error
	say  func(string)

	mu  sync.Mutex
	out io.Writer
}

func newLines(in io.Reader, out io.Writer, say func(string), stop func() error) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10), out: out, say: say, stop: stop}
}

// maxMessage is the most bytes of a message.
const maxMessage = 1 << 30

// receive skips lines that are no messages, such as those of a program that prints to its
// standard output, and says so.
func (l *lines) receive(ctx context.Context) (*message, error) {
	for ctx.Err() == nil {
		s := &spool{}
		if err := l.line(s); err != nil {
			_ = s.Close()
			return nil, err
		}
		first := s.kind(s.all())
		if first == 0 {
			_ = s.Close()
			continue
		}
		m, err := parse(s)
		if err == nil {
			return m, nil
		}
		start, _ := s.bytes(span{0, min(s.size, 200)}, 200)
		_ = s.Close()
		if !errors.Is(err, errJSON) {
			return nil, err
		}
		l.say(fmt.Sprintf("a line that is no message was left out (%v): %q", err, start))
	}
	return nil, ctx.Err()
}

func (l *lines) line(s *spool) error {
	for {
		piece, err := l.in.ReadSlice('\n')
		if _, wrong := s.Write(bytes.TrimRight(piece, "\r\n")); wrong != nil {
			return wrong
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, io.EOF) && s.size > 0: // the last line has no end
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		case s.size > maxMessage:
			return artel.Errorf(artel.TooLarge, "mcpproxy", "", "a message has more than %d MB", maxMessage>>20)
		}
	}
}

func (l *lines) send(_ context.Context, m *message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := io.Copy(l.out, withoutBreaks{m.reader(m.all())}); err != nil {
		return err
	}
	_, err := l.out.Write([]byte{'\n'})
	return err
}

func (l *lines) close() error { return l.stop() }

// withoutBreaks replaces line breaks by spaces: in JSON they stand only between values.
type withoutBreaks struct{ r io.Reader }

func (w withoutBreaks) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	for i, b := range p[:n] {
		if b == '\n' || b == '\r' {
			p[i] = ' '
		}
	}
	return n, err
}

// validJSON returns b if it is JSON, and otherwise nil.
func validJSON(b []byte) json.RawMessage {
	if json.Valid(b) {
		return b
	}
	return nil
}
