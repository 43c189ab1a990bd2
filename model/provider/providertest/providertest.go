// SPDX-License-Identifier: Apache-2.0

// Package providertest is the kit that checks a provider of any dialect against one
// list of clauses, with a scripted server on the loopback interface.
//
// Begin with [Run], which the test of a dialect calls with its [Dialect]. Each
// [Clause] returns an error, so that the kit can be tested with providers that are
// broken on purpose.
package providertest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
)

// A Dialect is what the kit needs to know of a dialect.
type Dialect struct {
	// Name is the dialect of the called services.
	Name model.Dialect
	// New makes the provider under test.
	New func(client *http.Client, blobs blob.Store) model.Provider
	// Stream writes a complete streamed answer, of media type text/event-stream.
	Stream func(deltas ...model.Delta) []byte
	// Failure writes the body of an error.
	Failure func(status int, message string) []byte
	// Validate checks the body of a request against the API's rules.
	Validate func(body []byte) error
	// Native is what the dialect supports beyond plain chat.
	Native Native
}

// A Clause is one requirement. Check returns the violation, or nil.
type Clause struct {
	Name  string
	Check func(ctx context.Context, d Dialect) error
}

// Run checks every clause as a subtest.
func Run(t *testing.T, d Dialect) {
	t.Helper()
	for _, c := range Clauses() {
		t.Run(c.Name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), clauseTimeout)
			defer stop()
			if err := c.Check(ctx, d); err != nil {
				t.Error(err)
			}
		})
	}
}

// Key is the key of the called services.
const Key = "sk-kit-0123456789abcdef"

// clauseTimeout ends a clause that hangs.
const clauseTimeout = 5 * time.Minute

// harness is a server with a script, and a provider that calls it.
type harness struct {
	provider model.Provider
	service  model.Service
	blobs    *blob.Memory
	server   *httptest.Server
	client   *http.Client

	mu     sync.Mutex
	bodies [][]byte
	heads  []*http.Request
}

// open starts a server that reads each request and then plays script.
func open(d Dialect, script http.HandlerFunc) *harness {
	s := &harness{blobs: blob.NewMemory()}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // a cancelled request is not recorded
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, body)
		s.heads = append(s.heads, r)
		s.mu.Unlock()
		script(w, r)
	}))
	s.client = s.server.Client()
	s.provider = d.New(s.client, s.blobs)
	caps := model.TextOnly()
	caps.Input.Value = []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile, artel.CanAudio}
	s.service = model.Service{
		ID: "kit", Dialect: d.Name, BaseURL: s.server.URL + "/v1", Model: "kit-1", APIKey: Key, Capabilities: caps,
	}
	if d.Native.Service != nil {
		s.service = d.Native.Service(s.service)
	}
	return s
}

func (s *harness) close() {
	s.client.CloseIdleConnections()
	s.server.CloseClientConnections()
	s.server.Close()
}

// requests returns the bodies of the received requests.
func (s *harness) requests() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies
}

func (s *harness) request(messages ...model.Message) *model.Request {
	return &model.Request{Service: s.service, Messages: messages, Tools: []model.ToolSpec{{
		Name: "look", Description: "Looks.", Schema: []byte(`{"type":"object","properties":{"q":{"type":"string"}}}`),
	}}}
}

// media stores data and returns its part.
func (s *harness) media(ctx context.Context, mediaType string, kind artel.MediaKind, name string, data []byte) (artel.Media, error) {
	info, err := s.blobs.Put(ctx, bytes.NewReader(data), 0)
	return artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: mediaType, Kind: kind, Filename: name, Size: info.Size}, err
}

// answer is the result of one call.
type answer struct {
	text, thought string
	calls         []artel.ToolCall
	parts         artel.Parts // complete reasoning, text and calls, in order
	finish        *model.Finish
	err           error
}

// ask makes a call and checks the form of the sequence: deltas, then one Finish or
// one error, and nothing after it.
func (s *harness) ask(ctx context.Context, r *model.Request) (answer, error) {
	var a answer
	thought := "" // of the current reasoning
	for d, err := range s.provider.Generate(ctx, r) {
		if a.finish != nil || a.err != nil {
			return a, errors.New("the sequence continues after its end")
		}
		if err != nil {
			a.err = err
			continue
		}
		switch d := d.(type) {
		case model.TextDelta:
			a.text += string(d)
			if n := len(a.parts); n > 0 {
				if before, ok := a.parts[n-1].(artel.Text); ok {
					a.parts[n-1] = artel.Text{Text: before.Text + string(d)}
					continue
				}
			}
			a.parts = append(a.parts, artel.Text{Text: string(d)})
		case model.ReasoningDelta:
			a.thought += string(d)
			thought += string(d)
		case model.ReasoningDone:
			a.parts = append(a.parts, artel.Reasoning{Text: thought, Opaque: d.Opaque, Service: r.Service.ID})
			thought = ""
		case model.CallDelta:
			a.calls = append(a.calls, artel.ToolCall(d))
			a.parts = append(a.parts, artel.ToolCall(d))
		case model.Finish:
			a.finish = &d
		default:
			return a, fmt.Errorf("unknown delta %T", d)
		}
	}
	if a.finish == nil && a.err == nil {
		return a, errors.New("the sequence ends with neither a Finish nor an error")
	}
	return a, checkError(a.err)
}

// checkError checks what every error of a provider has.
func checkError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*artel.Error](err); !ok {
		return fmt.Errorf("the error is %T, not an *artel.Error: %w", err, err)
	}
	if strings.Contains(err.Error(), Key) || strings.Contains(fmt.Sprintf("%#v", err), Key) {
		return errors.New("the error shows the key")
	}
	return nil
}

// wantFailure checks the kind of an error, and whether it is transient.
func wantFailure(a answer, kind artel.Kind, transient bool) error {
	if a.err == nil {
		return fmt.Errorf("no error, and the answer %q; want an error of kind %s", a.text, kind)
	}
	if got := artel.KindOf(a.err); got != kind {
		return fmt.Errorf("the error is of kind %s, want %s: %w", got, kind, a.err)
	}
	c, ok := errors.AsType[*model.CallError](a.err)
	if !ok {
		return fmt.Errorf("no *model.CallError in: %w", a.err)
	}
	if c.Transient != transient {
		return fmt.Errorf("transient is %v, want %v: %w", c.Transient, transient, a.err)
	}
	return nil
}

// wantAnswer checks a whole answer.
func wantAnswer(a answer, text string, reason model.StopReason) error {
	switch {
	case a.err != nil:
		return a.err
	case a.text != text:
		return fmt.Errorf("the text is %q, want %q", a.text, text)
	case a.finish.Reason != reason:
		return fmt.Errorf("the reason is %q, want %q", a.finish.Reason, reason)
	}
	return nil
}

// wantSent checks that one legal request was received, with each payload once.
func (s *harness) wantSent(d Dialect, payloads ...[]byte) error {
	got := s.requests()
	if len(got) != 1 {
		return fmt.Errorf("%d requests came, want 1", len(got))
	}
	if err := d.Validate(got[0]); err != nil {
		return fmt.Errorf("the API refuses the request: %w", err)
	}
	if s.heads[0].ContentLength != int64(len(got[0])) {
		return fmt.Errorf("the Content-Length is %d, and %d bytes came", s.heads[0].ContentLength, len(got[0]))
	}
	for _, p := range payloads {
		if n := bytes.Count(got[0], []byte(base64.StdEncoding.EncodeToString(p))); n != 1 {
			return fmt.Errorf("a payload of %d bytes is in the request %d times, want once", len(p), n)
		}
	}
	return nil
}

func say(role artel.Role, parts ...artel.Part) model.Message {
	return model.Message{Role: role, Parts: parts}
}

func hello() model.Message { return say(artel.RoleUser, artel.Text{Text: "hello, 世界"}) }

// play writes body as an event stream.
func play(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(body)
	}
}

// send writes body with a status and a type.
func send(status int, mediaType string, body []byte, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}
}
