// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/anthropic"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
)

// Anthropic returns a fake of the Messages API. It serves
//
//	POST /v1/messages
//	POST /v1/messages/count_tokens
//	POST /v1/files; GET and DELETE /v1/files/{id}
//	GET  /v1/models, /v1/models/{id}
//
// It inspects the first bytes of pictures and documents, and refuses pictures of
// more than 8,000 pixels a side, or of more than 2,000 if there are more than 20.
// It signs the reasoning of its responder, and refuses reasoning that was changed
// or that it has not signed. Its streams contain pings.
func Anthropic(o Options) *Server {
	var s *Server
	s = newServer(o, dialect{
		key: func(r *http.Request) string {
			if key := r.Header.Get("X-Api-Key"); key != "" {
				return key
			}
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			return token
		},
		problem:   func(t failure, message string) *problem { return s.ofAnthropic(anthropicError(t, message)) },
		models:    anthropicModels,
		unfetched: "Unable to download the file. Please verify the URL and try again.",
		oddities:  []Oddity{Thinking, RedactedThinking, PauseTurn},
	})
	s.mux.HandleFunc("POST /v1/messages", s.converse(s.messages))
	s.mux.HandleFunc("POST /v1/messages/count_tokens", s.count)
	s.fileRoutes("/v1", s.anthropicFile, showAnthropic, s.noAnthropicFile)
	s.mux.HandleFunc("GET /v1/models", s.listing)
	s.mux.HandleFunc("GET /v1/models/{id...}", s.entry)
	return s
}

// messages reads and checks a request.
func (s *Server) messages(r *http.Request, rec *Request, b Behavior) (*call, *problem) {
	req, _, p := s.message(r, rec, false)
	if p != nil {
		return nil, p
	}
	a := anthropic.Answer{ID: s.nextID("msg_"), Model: req.Model}
	return &call{
		request: req.Neutral(), stream: req.Stream, header: http.Header{"Request-Id": {s.nextID("req_")}},
		whole: func(deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
			resp, err := a.Whole(signing(b.Oddity.anthropic(deltas)))
			if err != nil {
				return nil, err
			}
			return resp.MarshalBody()
		},
		write: func(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
			return a.Stream(&pinging{w: w}, flush, signing(b.Oddity.anthropic(deltas)))
		},
	}, nil
}

// message reads and checks the body of a request to answer or to count.
func (s *Server) message(r *http.Request, rec *Request, count bool) (*anthropic.Request, payloadInfo, *problem) {
	if r.Header.Get(anthropic.VersionHeader) == "" {
		return nil, nil, s.ofAnthropic(anthropic.Bad("anthropic-version", "header is required"))
	}
	seen := payloadInfo{}
	req, err := anthropic.Decode(r.Context(), r.Body, provider.DecodeOptions{Sink: seen.while(s.sink(), s.options.Blobs)})
	if err == nil {
		rec.Body = req.Extraction().Elided()
		for _, m := range req.Extraction().Payloads() {
			rec.Media = append(rec.Media, Media{Digest: m.Digest, Size: m.Size})
		}
		err = rules.Validate(req, rules.Options{Count: count, Betas: r.Header.Values("Anthropic-Beta"), Look: seen.look, Signed: signedHere})
	}
	if err != nil {
		if e, ok := errors.AsType[*anthropic.APIError](err); ok {
			return nil, nil, s.ofAnthropic(e)
		}
		return nil, nil, s.ofAnthropic(anthropic.Bad("", "The body could not be read: %v", err))
	}
	if id := s.noFile(rec.Body); id != "" {
		return nil, nil, s.noAnthropicFile(id)
	}
	return req, seen, s.hasModel(req.Model)
}

// The estimate of tokens: one for four bytes of text or 750 pixels of an image, and
// some thousands for a page of a document.
const (
	bytesOfToken  = 4
	pixelsOfToken = 750
	tokensOfPage  = 2000
)

// count serves POST /v1/messages/count_tokens.
func (s *Server) count(w http.ResponseWriter, r *http.Request) {
	rec := s.begin(r)
	p := s.authorize(r)
	var req *anthropic.Request
	var seen payloadInfo
	if p == nil {
		req, seen, p = s.message(r, &rec, true)
	}
	if _, ok := s.admit(w, r, rec, p); !ok {
		return
	}
	tokens := len(req.Extraction().JSON()) / bytesOfToken
	for _, m := range req.Extraction().Payloads() {
		info := seen[m.Digest]
		tokens += info.Width*info.Height/pixelsOfToken + info.Pages*tokensOfPage
	}
	s.reply(w, map[string]int{"input_tokens": tokens})
}

// anthropicError returns Anthropic's error of a failure.
func anthropicError(t failure, message string) *anthropic.APIError {
	switch t {
	case noKey:
		return anthropic.Refused(t.status, "x-api-key header is required")
	case wrongKey:
		return anthropic.Refused(t.status, "invalid x-api-key")
	case noModel:
		return anthropic.Refused(t.status, "model: %s", artel.Shorten(message, 200))
	case noPath:
		return anthropic.Refused(t.status, "Not Found")
	case rateLimited:
		return anthropic.Refused(t.status, "This request would exceed your organization's rate limit. Please try again later.")
	case broken:
		return anthropic.Refused(t.status, "Internal server error")
	case overloaded:
		return anthropic.Refused(anthropic.StatusOverloaded, "Overloaded")
	}
	return anthropic.Refused(t.status, "%s", message)
}

func (s *Server) ofAnthropic(e *anthropic.APIError) *problem {
	id := s.nextID("req_")
	return &problem{status: e.Status, message: e.Message, body: e.MarshalBody(id), header: http.Header{"Request-Id": {id}}}
}

// anthropicModels lists models as the real API describes its newer ones.
func anthropicModels(ids []string) (list any, each map[string]any) {
	type supported struct {
		Supported bool `json:"supported"`
	}
	all := make([]any, 0, len(ids))
	each = map[string]any{}
	for _, id := range ids {
		one := map[string]any{
			"type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z", "lifecycle": "active",
			"deprecated_at": nil, "retires_at": nil, "line": nil, "max_input_tokens": 200_000, "max_tokens": 64_000,
			"capabilities": map[string]supported{
				"image_input": {true}, "pdf_input": {true}, "thinking": {true}, "citations": {}, "batch": {}, "structured_outputs": {},
			},
		}
		all = append(all, one)
		each[id] = one
	}
	return map[string]any{"data": all, "has_more": false, "first_id": ids[0], "last_id": ids[len(ids)-1]}, each
}

// anthropic applies an oddity to an answer.
func (o Oddity) anthropic(deltas iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	var before []model.Delta
	switch o {
	case Thinking:
		before = []model.Delta{model.ReasoningDelta("Let me think "), model.ReasoningDelta("about that."), model.ReasoningDone{}}
	case RedactedThinking:
		data := base64.StdEncoding.EncodeToString([]byte("encrypted"))
		before = []model.Delta{model.ReasoningDone{Opaque: json.RawMessage(`{"type":"redacted_thinking","data":"` + data + `"}`)}}
	case PauseTurn:
		return func(yield func(model.Delta, error) bool) {
			for d, err := range firstHalf(deltas) {
				if _, called := d.(model.CallDelta); called {
					continue // a turn with calls is not paused
				}
				if !yield(d, err) || err != nil {
					return
				}
			}
			yield(model.Finish{Reason: anthropic.Paused, Usage: artel.Usage{Calls: 1}}, nil)
		}
	}
	return func(yield func(model.Delta, error) bool) {
		for _, d := range before {
			if !yield(d, nil) {
				return
			}
		}
		deltas(yield)
	}
}

// signing signs reasoning without state of its own.
func signing(deltas iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var thought strings.Builder
		for d, err := range deltas {
			switch v := d.(type) {
			case model.ReasoningDelta:
				thought.WriteString(string(v))
			case nil:
			default:
				done, ends := v.(model.ReasoningDone)
				if thought.Len() > 0 && len(done.Opaque) == 0 {
					if !yield(model.ReasoningDone{Opaque: signed(thought.String())}, nil) {
						return
					}
				}
				thought.Reset()
				if ends && len(done.Opaque) == 0 {
					continue
				}
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// signed is the state of a thought.
func signed(thought string) json.RawMessage {
	return json.RawMessage(`{"type":"thinking","signature":"` + signature(thought) + `"}`)
}

func signature(thought string) string {
	// JSON replaces invalid UTF-8, so the client returns the replaced text.
	sum := sha256.Sum256([]byte("artel fake\x00" + strings.ToValidUTF8(thought, string(utf8.RuneError))))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func signedHere(thought, by string) bool { return by == signature(thought) }

// pinging writes a ping after every few deltas of a stream.
type pinging struct {
	w      io.Writer
	deltas int
}

const deltasOfPing = 5

func (p *pinging) Write(event []byte) (int, error) {
	n, err := p.w.Write(event)
	if err != nil || !bytes.HasPrefix(event, []byte("event: content_block_delta\n")) {
		return n, err
	}
	if p.deltas++; p.deltas%deltasOfPing == 0 {
		_, err = io.WriteString(p.w, "event: ping\ndata: {\"type\": \"ping\"}\n\n")
	}
	return n, err
}
