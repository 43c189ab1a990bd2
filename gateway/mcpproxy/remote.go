// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// A Remote is a server that speaks streamable HTTP.
type Remote struct {
	URL    string
	Header http.Header // of every request; may hold secrets
	Client *http.Client
	Say    func(string)
}

func (r Remote) connect(ctx context.Context) (link, error) {
	ctx, end := context.WithCancel(ctx)
	say := r.Say
	if say == nil {
		say = func(string) {}
	}
	return &remoteLink{server: r, ctx: ctx, end: end, say: say, arrived: make(chan *message)}, nil
}

// The header fields of the protocol.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
	eventHeader   = "Last-Event-ID"
)

// remoteLink is a link to a server that speaks streamable HTTP.
type remoteLink struct {
	server  Remote
	ctx     context.Context // of all requests
	end     context.CancelFunc
	say     func(string)
	arrived chan *message
	running sync.WaitGroup

	mu        sync.Mutex
	session   string
	version   string
	listening bool
	failed    error
	closed    bool
}

func (l *remoteLink) receive(ctx context.Context) (*message, error) {
	select {
	case m := <-l.arrived:
		return m, nil
	case <-l.ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.failed != nil {
			return nil, l.failed
		}
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fail ends the link with a cause.
func (l *remoteLink) fail(err error) {
	l.mu.Lock()
	if l.failed == nil {
		l.failed = err
	}
	l.mu.Unlock()
	l.end()
}

// statelessFrom is the first version of the protocol without a handshake, in which requests
// repeat their method and name in the header.
const statelessFrom = "2026-07-28"

func (l *remoteLink) send(ctx context.Context, m *message) error {
	ctx, stop := context.WithCancel(ctx)
	detach := context.AfterFunc(l.ctx, stop)
	done := func() { detach(); stop() }
	// The body may be sent again by the client, and outlives send in no case.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.server.URL, io.NopCloser(m.reader(m.all())))
	if err != nil {
		done()
		return err
	}
	req.ContentLength = m.size
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(m.reader(m.all())), nil }
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	l.dress(req, m)
	resp, err := l.server.Client.Do(req)
	if err != nil {
		done()
		return err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	isMessage := kind == "application/json" || kind == "text/event-stream"
	if resp.StatusCode >= 300 && !(m.id != "" && m.method != "" && kind == "application/json" && resp.StatusCode != http.StatusNotFound) {
		defer done()
		return l.refused(resp)
	}
	if s := resp.Header.Get(sessionHeader); s != "" {
		l.mu.Lock()
		l.session = s
		l.mu.Unlock()
	}
	if m.method == "notifications/initialized" {
		l.listen()
	}
	if !isMessage || m.id == "" || m.method == "" {
		defer done()
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
		return resp.Body.Close()
	}
	id, method := m.id, m.method
	l.running.Go(func() {
		defer done()
		defer resp.Body.Close() //nolint:errcheck // only read
		answered := false
		err := l.messages(ctx, kind, resp.Body, func(string) {}, func(got *message) {
			if got.method == "" && got.id == id {
				answered = true
				if method == "initialize" {
					l.greeted(got)
				}
			}
		})
		if !answered && ctx.Err() == nil {
			if err == nil || errors.Is(err, io.EOF) {
				err = errors.New("the answer is missing")
			}
			l.deliver(ctx, failure(id, codeInternal, fmt.Sprintf("the server at %s: %v", l.server.URL, err)))
		}
	})
	return nil
}

// dress sets the header fields of the protocol.
func (l *remoteLink) dress(req *http.Request, m *message) {
	for k, v := range l.server.Header {
		req.Header[http.CanonicalHeaderKey(k)] = v
	}
	l.mu.Lock()
	session, version := l.session, l.version
	l.mu.Unlock()
	if m != nil {
		if v := m.version(); v != "" {
			version = v
		}
	}
	if version != "" {
		req.Header.Set(versionHeader, version)
	}
	if session != "" {
		req.Header.Set(sessionHeader, session)
	}
	if m == nil || version < statelessFrom || m.method == "" {
		return
	}
	req.Header.Set(methodHeader, m.method)
	if fields, ok := req.Context().Value(paramHeadersKey{}).(http.Header); ok {
		maps.Copy(req.Header, fields)
	}
	for _, key := range []string{"name", "uri"} {
		if v := m.word(m.member(m.params, key)); v != "" && (m.method == "tools/call" || m.method == "prompts/get" || m.method == "resources/read") {
			req.Header.Set(nameHeader, headerValue(v))
			break
		}
	}
}

// refused makes the error of an answer that is no message.
func (l *remoteLink) refused(resp *http.Response) error {
	defer resp.Body.Close() //nolint:errcheck // only read
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
	err := fmt.Errorf("the server at %s answers %s: %s", l.server.URL, resp.Status, strings.TrimSpace(strings.ToValidUTF8(string(text), "")))
	l.mu.Lock()
	gone := resp.StatusCode == http.StatusNotFound && l.session != ""
	l.mu.Unlock()
	if gone { // the session has ended: the next request begins another
		l.fail(err)
	}
	return err
}

// greeted takes what the server says about itself.
func (l *remoteLink) greeted(m *message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = m.word(m.member(m.result, "protocolVersion"))
}

// messages passes on the messages of a body.
func (l *remoteLink) messages(ctx context.Context, kind string, body io.Reader, eventID func(string), look func(*message)) error {
	if kind == "application/json" {
		s := &spool{}
		n, err := io.Copy(s, io.LimitReader(body, maxMessage+1))
		if n > maxMessage {
			err = artel.Errorf(artel.TooLarge, "mcpproxy", l.server.URL, "an answer has more than %d MB", maxMessage>>20)
		}
		if err != nil {
			return errors.Join(err, s.Close())
		}
		return l.parsed(ctx, s, look)
	}
	in := bufio.NewReaderSize(body, 64<<10)
	s := &spool{}
	defer func() { _ = s.Close() }()
	for {
		line, err := in.ReadSlice('\n')
		ended := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		text := bytes.TrimRight(line, "\r\n")
		data, isData := bytes.CutPrefix(text, []byte("data:"))
		if id, ok := bytes.CutPrefix(text, []byte("id:")); ok {
			eventID(strings.TrimSpace(string(id)))
		}
		if isData {
			if _, err := s.Write(bytes.TrimPrefix(data, []byte(" "))); err != nil {
				return err
			}
		}
		for !ended { // a line that exceeds the buffer
			line, err = in.ReadSlice('\n')
			ended = err == nil
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return err
			}
			if isData {
				if _, err := s.Write(bytes.TrimRight(line, "\r\n")); err != nil {
					return err
				}
				if s.size > maxMessage {
					return artel.Errorf(artel.TooLarge, "mcpproxy", l.server.URL, "an answer has more than %d MB", maxMessage>>20)
				}
			}
		}
		if len(text) == 0 && s.size > 0 {
			whole := s
			s = &spool{}
			if err := l.parsed(ctx, whole, look); err != nil {
				return err
			}
		}
	}
}

func (l *remoteLink) parsed(ctx context.Context, s *spool, look func(*message)) error {
	m, err := parse(s)
	if err != nil {
		l.say(fmt.Sprintf("an answer that is no message was left out: %v", err))
		return errors.Join(err, s.Close())
	}
	look(m)
	l.deliver(ctx, m)
	return nil
}

func (l *remoteLink) deliver(ctx context.Context, m *message) {
	select {
	case l.arrived <- m:
	case <-l.ctx.Done():
		_ = m.Close()
	case <-ctx.Done():
		_ = m.Close()
	}
}

// listenEvery is the pause before a stream of messages that ended is opened again.
const listenEvery = time.Second

// listen opens the stream of messages that belong to no request, if the server has one.
func (l *remoteLink) listen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listening || l.closed {
		return
	}
	l.listening = true
	l.running.Go(func() {
		last := ""
		for l.ctx.Err() == nil {
			req, err := http.NewRequestWithContext(l.ctx, http.MethodGet, l.server.URL, nil)
			if err != nil {
				return
			}
			req.Header.Set("Accept", "text/event-stream")
			if last != "" {
				req.Header.Set(eventHeader, last)
			}
			l.dress(req, nil)
			resp, err := l.server.Client.Do(req)
			if err == nil {
				if resp.StatusCode != http.StatusOK {
					_ = resp.Body.Close()
					return // it has none
				}
				_ = l.messages(l.ctx, "text/event-stream", resp.Body, func(id string) { last = id }, func(*message) {})
				_ = resp.Body.Close()
			}
			select {
			case <-l.ctx.Done():
			case <-time.After(listenEvery):
			}
		}
	})
}

// goodbye bounds the time of the request that ends a session.
const goodbye = 5 * time.Second

func (l *remoteLink) close() error {
	l.mu.Lock()
	first, session := !l.closed, l.session
	l.closed = true
	l.mu.Unlock()
	if first && session != "" {
		ctx, stop := context.WithTimeout(context.WithoutCancel(l.ctx), goodbye)
		defer stop()
		if req, err := http.NewRequestWithContext(ctx, http.MethodDelete, l.server.URL, nil); err == nil {
			l.dress(req, nil)
			if resp, err := l.server.Client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
	}
	l.end()
	l.running.Wait()
	return nil
}
