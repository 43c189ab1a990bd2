// SPDX-License-Identifier: Apache-2.0

// Package providertest is the kit that holds a provider of any dialect to one
// matrix, against a scripted server on the loopback interface.
//
// Begin with [Run], which a wing's test calls with its [Dialect]. Each
// [Clause] returns an error, so that the kit can itself be tested with
// providers that are broken on purpose.
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

// A Dialect is what the kit must know of a dialect.
type Dialect struct {
	// Name is that of the services that the kit calls.
	Name model.Dialect
	// New makes the provider under test.
	New func(client *http.Client, blobs blob.Store) model.Provider
	// Stream writes a whole streamed answer, of media type text/event-stream.
	Stream func(deltas ...model.Delta) []byte
	// Failure writes the body of an error.
	Failure func(status int, message string) []byte
	// Validate holds the body of a request to the API's rules.
	Validate func(body []byte) error
	// Native is what the dialect has beyond plain chat.
	Native Native
}

// A Clause is one promise. Check returns what is wrong, or nil.
type Clause struct {
	Name  string
	Check func(ctx context.Context, d Dialect) error
}

// Run checks every clause as a subtest.
func Run(t *testing.T, d Dialect) {
	t.Helper()
	for _, c := range Clauses() {
		t.Run(c.Name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			if err := c.Check(ctx, d); err != nil {
				t.Error(err)
			}
		})
	}
}

// Key is the key of the services that the kit calls.
const Key = "sk-kit-0123456789abcdef"

// patience ends a clause that hangs.
const patience = 5 * time.Minute

// stage is a server with a script and a provider that calls it.
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
			return // a request that was given up is not recorded
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

// requests returns the bodies that came.
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

// media keeps data and returns the part that stands for it.
func (s *harness) media(ctx context.Context, mediaType string, kind artel.MediaKind, name string, data []byte) (artel.Media, error) {
	info, err := s.blobs.Put(ctx, bytes.NewReader(data), 0)
	return artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: mediaType, Kind: kind, Filename: name, Size: info.Size}, err
}

// answer is what came out of one call.
type answer struct {
	text, thought string
	calls         []artel.ToolCall
	parts         artel.Parts // reasoning that was closed, text and calls, as they came
	finish        *model.Finish
	err           error
}

// ask makes a call and holds the sequence to its form: deltas, then one Finish
// or one error, and nothing behind it.
func (s *harness) ask(ctx context.Context, r *model.Request) (answer, error) {
	var a answer
	thought := "" // not closed yet
	for d, err := range s.provider.Generate(ctx, r) {
		if a.finish != nil || a.err != nil {
			return a, errors.New("the sequence goes on after its end")
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

// checkError holds an error to what every error of a provider is.
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

// wantSent checks that one legal request came, with each payload once.
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
