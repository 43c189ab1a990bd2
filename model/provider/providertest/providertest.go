// SPDX-License-Identifier: Apache-2.0

// Package providertest is the kit that checks a provider of any dialect against one
// list of clauses, with a scripted server on the loopback interface.
//
// Begin with [Run], which the test of a dialect calls with its [Dialect]. The kit
// itself is tested with providers that are broken on purpose.
package providertest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/contracttest"
	"github.com/artelhq/artel/model"
)

// A Dialect is what the kit needs to know of a dialect.
type Dialect struct {
	// Name is the dialect of the called services.
	Name model.Dialect
	// New makes the provider under test.
	New func(client *http.Client, blobs blob.Store) model.Provider
	// Stream writes a complete streamed answer, of media type text/event-stream.
	Stream func(w io.Writer, deltas iter.Seq2[model.Delta, error]) error
	// Failure writes the body of an error.
	Failure func(status int, message string) []byte
	// Validate checks the body of a request against the API's rules.
	Validate func(body []byte) error
	// Native is what the dialect supports beyond plain chat.
	Native Native
}

// Run checks every clause as a subtest.
func Run(t *testing.T, d Dialect) {
	t.Helper()
	contracttest.Run(t, clauses(), func(t *testing.T, cl clause) error {
		ctx, stop := context.WithTimeout(t.Context(), clauseTimeout)
		defer stop()
		return hold(ctx, cl, d)
	})
}

// hold runs cl on d.
func hold(ctx context.Context, cl clause, d Dialect) error {
	return contracttest.Hold(ctx, func(c *contracttest.Check) {
		own := &check{Check: c, Dialect: d}
		defer func() {
			for _, s := range own.opened {
				s.close()
			}
		}()
		cl.Check(own)
	})
}

// A check runs one clause on a dialect.
type check struct {
	*contracttest.Check
	Dialect

	opened []*harness // closed at the end of the clause
}

// open starts a server with a script, and a provider that calls it.
func (c *check) open(script http.HandlerFunc) session {
	s := open(c.Dialect, script)
	c.opened = append(c.opened, s)
	return session{s, c}
}

// answers starts a server that streams deltas and an end for reason.
func (c *check) answers(reason model.StopReason, deltas ...model.Delta) session {
	return c.open(play(c.streamed(reason, deltas...)))
}

// A session is a harness in a clause.
type session struct {
	*harness
	*check
}

// media stores data and returns its part.
func (s session) media(mediaType string, kind artel.MediaKind, name string, data []byte) artel.Media {
	m, err := s.harness.media(s.Context(), mediaType, kind, name, data)
	s.Must("Put", err)
	return m
}

// ask makes a call; the clause ends if the form of the answer is wrong.
func (s session) ask(r *model.Request) answer {
	a, err := s.harness.ask(s.Context(), r)
	s.Must("the answer", err)
	return a
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

// streamed returns the stream of deltas and an end for reason.
func (d Dialect) streamed(reason model.StopReason, deltas ...model.Delta) []byte {
	var b bytes.Buffer
	if err := d.Stream(&b, Each(append(deltas, model.Finish{Reason: reason, Usage: usage})...)); err != nil {
		panic(err)
	}
	return b.Bytes()
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
	pieces := map[artel.CallID]string{}
	active := false
	asked := *r
	asked.OnActivity = func() { active = true }
	r = &asked
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
		case model.CallPiece:
			if d.ID == "" || d.Name == "" {
				return a, fmt.Errorf("a piece of a call without an id or a name: %+v", d)
			}
			pieces[d.ID] += d.Text
		case model.CallDelta:
			if text, ok := pieces[d.ID]; ok && !strings.HasPrefix(string(d.Arguments), text) && !json.Valid([]byte(text)) {
				return a, fmt.Errorf("the pieces %q do not make the arguments %q", text, d.Arguments)
			}
			a.calls = append(a.calls, artel.ToolCall(d))
			a.parts = append(a.parts, artel.ToolCall(d))
		case model.Finish:
			a.finish = &d
		default:
			return a, fmt.Errorf("unknown delta %T", d)
		}
	}
	if a.finish != nil && !active {
		return a, errors.New("OnActivity was not called while the answer arrived")
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

// failed expects an error of a kind, and that it is transient or not.
func (s session) failed(a answer, kind artel.Kind, transient bool) {
	s.Want(a.err != nil, "no error, and the answer %q; want an error of kind %s", a.text, kind)
	s.Want(artel.KindOf(a.err) == kind, "the error is of kind %s, want %s: %w", artel.KindOf(a.err), kind, a.err)
	e, ok := errors.AsType[*model.CallError](a.err)
	s.Want(ok, "no *model.CallError in: %w", a.err)
	s.Want(e.Transient == transient, "transient is %v, want %v: %w", e.Transient, transient, a.err)
}

// answered expects a whole answer.
func (s session) answered(a answer, text string, reason model.StopReason) {
	s.Must("Generate", a.err)
	s.Want(a.text == text, "the text is %q, want %q", a.text, text)
	s.Want(a.finish.Reason == reason, "the reason is %q, want %q", a.finish.Reason, reason)
}

// sentOnce expects that one legal request was received, with each payload once.
func (s session) sentOnce(payloads ...[]byte) {
	got := s.requests()
	s.Want(len(got) == 1, "%d requests came, want 1", len(got))
	s.Must("the API's rules", s.Validate(got[0]))
	s.Want(s.heads[0].ContentLength == int64(len(got[0])), "the Content-Length is %d, and %d bytes came", s.heads[0].ContentLength, len(got[0]))
	for _, p := range payloads {
		n := bytes.Count(got[0], []byte(base64.StdEncoding.EncodeToString(p)))
		s.Want(n == 1, "a payload of %d bytes is in the request %d times, want once", len(p), n)
	}
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
