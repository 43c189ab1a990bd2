// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/openai"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/openai"
)

// OpenAI returns a fake of OpenAI's API, with Chat Completions and Responses. It
// serves
//
//	POST /v1/chat/completions
//	POST /v1/responses, which stores nothing
//	POST /v1/audio/transcriptions, which answers with [Transcript]
//	POST /v1/files; GET and DELETE /v1/files/{id}, without their bytes
//	GET  /v1/models, /v1/models/{id}
//
// and the same without /v1, and under /v1beta/openai as Google does.
func OpenAI(o Options) *Server {
	s := newServer(o, dialect{
		key: func(r *http.Request) string {
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			return token
		},
		problem:   openAIProblem,
		models:    openAIModels,
		unfetched: "Error while downloading %s.",
	})
	for _, base := range []string{"/v1", "", "/v1beta/openai"} {
		s.mux.HandleFunc("POST "+base+"/chat/completions", s.converse(s.completions))
		s.mux.HandleFunc("POST "+base+"/responses", s.converse(s.responses))
		s.mux.HandleFunc("GET "+base+"/responses/{id}", s.unstored)
		s.mux.HandleFunc("POST "+base+"/audio/transcriptions", s.transcriptions)
		s.fileRoutes(base, s.openAIFile, showOpenAI, noOpenAIFile)
		s.mux.HandleFunc("GET "+base+"/models", s.listing)
		s.mux.HandleFunc("GET "+base+"/models/{id...}", s.entry)
	}
	return s
}

// ofOpenAI records a request for a model and returns why OpenAI's APIs refuse it:
// err of their rules, an unknown model or an unknown file.
func (s *Server) ofOpenAI(rec *Request, x *provider.Extraction, name string, err error) *problem {
	rec.Body = x.Elided()
	for _, m := range x.Payloads() {
		rec.Media = append(rec.Media, Media{Digest: m.Digest, Size: m.Size})
	}
	if err != nil {
		return refusedByOpenAI(err)
	}
	if p := s.hasModel(name); p != nil {
		return p
	}
	if id := s.noFile(rec.Body); id != "" {
		return noOpenAIFile(id)
	}
	return nil
}

// completions reads and checks a request.
func (s *Server) completions(r *http.Request, rec *Request, b Behavior) (*call, *problem) {
	req, err := openai.Decode(r.Context(), r.Body, provider.DecodeOptions{Sink: s.sink()})
	if err != nil {
		return nil, refusedByOpenAI(err)
	}
	err = rules.Validate(req, rules.Options{ToolMedia: b.ToolMedia != ToolMediaRefused, Compatible: b.Compatible})
	if p := s.ofOpenAI(rec, req.Extraction(), req.Model, err); p != nil {
		return nil, p
	}
	if n := s.unknownMediaID(req); n >= 0 {
		return nil, refusedByOpenAI(openai.Bad("", "", "Cache miss for image at index %d but data is not provided.", n))
	}
	a := openai.Answer{
		ID: s.nextID("chatcmpl-"), Model: req.Model, Created: s.options.Now(),
		IncludeUsage: req.StreamOptions != nil && req.StreamOptions.IncludeUsage, Request: req,
	}
	return &call{
		request: req.Neutral(), stream: req.Stream, header: http.Header{"X-Request-Id": {"req_" + a.ID}},
		whole: func(deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
			resp, err := a.Whole(deltas)
			if err != nil {
				return nil, err
			}
			return json.Marshal(resp)
		},
		write: func(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
			return a.Stream(w, flush, deltas)
		},
	}, nil
}

// openAIProblem returns OpenAI's error of a failure.
func openAIProblem(t failure, message string) *problem {
	e := openai.Bad("", "", "%s", message)
	switch t {
	case noKey:
		e = openai.Bad("", "", "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).")
	case wrongKey:
		e = openai.Bad("", "invalid_api_key", "Incorrect API key provided.")
	case noModel:
		e = openai.Bad("model", "model_not_found", "The model `%s` does not exist or you do not have access to it.", artel.Shorten(message, 200))
	case noPath:
		e = openai.Bad("", "", "Invalid URL (%s)", message)
	case rateLimited:
		e = openai.Bad("", "rate_limit_exceeded", "Rate limit reached for requests. Please try again later.")
		e.Type = "requests"
	case broken:
		e = openai.Bad("", "", "The server had an error while processing your request. Sorry about that!")
		e.Type = "server_error"
	case overloaded:
		e = openai.Bad("", "", "The engine is currently overloaded, please try again later.")
		e.Type = "server_error"
	case failure{status: http.StatusInternalServerError}:
		e.Type = "server_error"
	}
	e.Status = t.status
	return ofOpenAI(e)
}

func ofOpenAI(e *openai.APIError) *problem {
	return &problem{status: e.Status, message: e.Message, body: e.MarshalBody()}
}

// modelEntry is an element of GET /v1/models. It states the modalities of a model
// in OpenRouter's form, because OpenAI does not state them.
type modelEntry struct {
	ID           string       `json:"id"`
	Object       string       `json:"object"`
	Created      int64        `json:"created"`
	OwnedBy      string       `json:"owned_by"`
	Architecture architecture `json:"architecture"`
}

type architecture struct {
	Input  []string `json:"input_modalities"`
	Output []string `json:"output_modalities"`
}

func openAIModels(ids []string) (list any, each map[string]any) {
	all := make([]modelEntry, 0, len(ids))
	each = map[string]any{}
	takes := architecture{Input: []string{"text", "image", "file"}, Output: []string{"text"}}
	for _, id := range ids {
		one := modelEntry{ID: id, Object: "model", Created: 1700000000, OwnedBy: "artel-fake", Architecture: takes}
		all = append(all, one)
		each[id] = one
	}
	return map[string]any{"object": "list", "data": all}, each
}
