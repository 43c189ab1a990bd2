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
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/gemini"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/gemini"
)

// Gemini returns a fake of the Gemini API. It serves
//
//	POST /v1beta/models/{model}:generateContent
//	POST /v1beta/models/{model}:streamGenerateContent, with alt=sse and without
//	POST /v1beta/models/{model}:countTokens
//	GET  /v1beta/models, /v1beta/models/{model}
//
// and the same under /v1; and the resumable upload of files, which requests can
// name for 48 hours. Models whose name begins with gemini-3 or a later generation
// sign the first call of an answer, refuse calls of the current turn without a
// signature or with that of another call, and take media in function responses;
// earlier ones do neither.
func Gemini(o Options) *Server {
	s := newServer(o, dialect{
		key:       geminiKey,
		problem:   geminiProblem,
		models:    geminiModels,
		unfetched: "Cannot fetch content from the provided URL.",
		oddities:  []Oddity{BlockedPrompt, NoCandidates, MalformedCall, NoCallIDs, Recitation},
		waits:     true,
	})
	s.geminiFiles()
	for _, base := range []string{"/v1beta", "/v1"} {
		answer := s.converse(s.generate)
		s.mux.HandleFunc("POST "+base+"/{collection}/{target...}", func(w http.ResponseWriter, r *http.Request) {
			if _, method, _ := gemini.Target(r.URL.Path); method == "countTokens" {
				s.countGemini(w, r)
				return
			}
			answer(w, r)
		})
		s.mux.HandleFunc("GET "+base+"/models", s.listing)
		s.mux.HandleFunc("GET "+base+"/models/{id...}", s.entry)
	}
	return s
}

// geminiKey returns the key from the places that Google's clients use.
func geminiKey(r *http.Request) string {
	if key := r.Header.Get("X-Goog-Api-Key"); key != "" {
		return key
	}
	if key := r.URL.Query().Get("key"); key != "" {
		return key
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// generate reads and checks a request.
func (s *Server) generate(r *http.Request, rec *Request, b Behavior) (*call, *problem) {
	name, method, ok := gemini.Target(r.URL.Path)
	if !ok || method != "generateContent" && method != "streamGenerateContent" {
		return nil, geminiProblem(noPath, r.Method+" "+r.URL.Path)
	}
	if p := s.hasModel(name); p != nil {
		return nil, p
	}
	req, err := gemini.Decode(r.Context(), r.Body, provider.DecodeOptions{Sink: s.sink()})
	if err != nil {
		return nil, ofGemini(err)
	}
	req.Model, req.Stream = name, method == "streamGenerateContent"
	rec.Body = req.Extraction().Elided()
	for _, m := range req.Extraction().Payloads() {
		rec.Media = append(rec.Media, Media{Digest: m.Digest, Size: m.Size})
	}
	options := rules.Options{File: s.hasGeminiFile, ToolMedia: b.ToolMedia != ToolMediaRefused, Signed: func(c gemini.FunctionCall, signature string) bool {
		return signature == callSignature(c.Name, c.Args)
	}}
	if err := rules.Validate(req, options); err != nil {
		return nil, ofGemini(err)
	}
	a := gemini.Answer{ID: s.nextID(""), Model: name}
	if gemini.Signs(name) {
		a.Sign = func(c artel.ToolCall, place int) string {
			if place > 0 {
				return ""
			}
			return callSignature(c.Name, c.Arguments)
		}
	}
	c := &call{
		request: req.Neutral(), stream: req.Stream,
		whole: func(deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
			resp, err := a.Whole(deltas)
			if err != nil {
				return nil, err
			}
			b.Oddity.gemini(resp)
			return json.Marshal(resp)
		},
		write: func(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
			return a.Stream(oddWriter{w, b.Oddity}, flush, deltas)
		},
	}
	if req.Stream && r.URL.Query().Get("alt") != "sse" {
		c.streamType = "application/json"
		c.write = func(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
			return a.StreamList(oddWriter{w, b.Oddity}, flush, deltas)
		}
	}
	return c, nil
}

// tokensOfMedia is the API's count for a small picture.
const tokensOfMedia = 258

// countGemini serves :countTokens. About four bytes of text are one token.
func (s *Server) countGemini(w http.ResponseWriter, r *http.Request) {
	rec := s.begin(r)
	p := s.authorize(r)
	var req *gemini.Request
	if p == nil {
		name, _, _ := gemini.Target(r.URL.Path)
		var err error
		if req, err = gemini.DecodeCount(r.Context(), r.Body, provider.DecodeOptions{}); err == nil {
			rec.Body = req.Extraction().Elided()
			req.Model = name
			err = rules.Validate(req, rules.Options{})
		}
		if p = s.hasModel(name); p == nil && err != nil {
			p = ofGemini(err)
		}
	}
	if _, ok := s.admit(w, r, rec, p); !ok {
		return
	}
	s.reply(w, map[string]int{"totalTokens": len(req.Extraction().JSON())/bytesOfToken + tokensOfMedia*len(req.Extraction().Payloads())})
}

// callSignature is the signature of a call, independent of the format of its
// arguments.
func callSignature(name string, args json.RawMessage) string {
	var v any
	_ = json.Unmarshal(args, &v) // invalid JSON: no arguments
	same, _ := json.Marshal(v)   // of JSON
	sum := sha256.Sum256([]byte(name + "\x00" + string(same)))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// gemini applies an oddity to an answer or a chunk.
func (o Oddity) gemini(r *gemini.Response) {
	finish := func(reason, message string) {
		if len(r.Candidates) == 0 {
			return
		}
		c := &r.Candidates[0]
		if c.Content = nil; c.FinishReason != "" {
			c.FinishReason, c.FinishMessage = reason, message
		}
	}
	switch o {
	case BlockedPrompt:
		r.Candidates, r.PromptFeedback = nil, &gemini.PromptFeedback{BlockReason: "PROHIBITED_CONTENT"}
	case NoCandidates:
		r.Candidates = nil
	case MalformedCall:
		finish("MALFORMED_FUNCTION_CALL", "Malformed function call: print(default_api.")
	case Recitation:
		finish("RECITATION", "")
	case NoCallIDs:
		for _, c := range r.Candidates {
			if c.Content == nil {
				continue
			}
			for _, p := range c.Content.Parts {
				if p.FunctionCall != nil {
					p.FunctionCall.ID = ""
				}
			}
		}
	}
}

// oddWriter applies an oddity to the chunks of a stream, each of which is one
// Write.
type oddWriter struct {
	w      io.Writer
	oddity Oddity
}

func (o oddWriter) Write(p []byte) (int, error) {
	from, to := bytes.IndexByte(p, '{'), bytes.LastIndexByte(p, '}')
	var r gemini.Response
	if o.oddity == "" || from < 0 || json.Unmarshal(p[from:to+1], &r) != nil || len(r.Error) > 0 {
		return o.w.Write(p)
	}
	o.oddity.gemini(&r)
	piece, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	if _, err := o.w.Write(append(append(bytes.Clone(p[:from]), piece...), p[to+1:]...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// geminiProblem returns Google's error of a failure.
func geminiProblem(t failure, message string) *problem {
	e := gemini.Fail(t.status, "%s", message)
	switch t {
	case noKey:
		e = gemini.Fail(http.StatusForbidden, "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.")
	case wrongKey:
		e = gemini.Bad("API key not valid. Please pass a valid API key.")
		e.Details = []any{map[string]any{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
			"metadata": map[string]string{"service": "generativelanguage.googleapis.com"},
		}}
	case noModel:
		e.Message = "models/" + artel.Shorten(message, 200) + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."
	case noPath:
		e.Message = "The requested URL was not found on this server: " + message
	case rateLimited:
		e.Message = "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."
		e.Details = []any{map[string]any{
			"@type":      "type.googleapis.com/google.rpc.QuotaFailure",
			"violations": []any{map[string]string{"quotaMetric": "generativelanguage.googleapis.com/generate_content_requests", "quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}},
		}}
		if seconds, err := strconv.Atoi(message); err == nil && seconds > 0 {
			e.RetryIn(seconds)
		}
	case broken:
		e.Message = "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"
	case overloaded:
		e.Message = "The model is overloaded. Please try again later."
	}
	return ofGemini(e)
}

func ofGemini(err error) *problem {
	e, ok := errors.AsType[*gemini.APIError](err)
	if !ok {
		e = gemini.Bad("The body could not be read: %v", err)
	}
	return &problem{status: e.Code, message: e.Message, body: e.MarshalBody()}
}

// geminiModel is an element of GET /v1beta/models.
type geminiModel struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	DisplayName string   `json:"displayName"`
	Input       int      `json:"inputTokenLimit"`
	Output      int      `json:"outputTokenLimit"`
	Methods     []string `json:"supportedGenerationMethods"`
	Thinking    bool     `json:"thinking"`
}

func geminiModels(ids []string) (list any, each map[string]any) {
	all := make([]geminiModel, 0, len(ids))
	each = map[string]any{}
	for _, id := range ids {
		one := geminiModel{
			Name: "models/" + id, Version: "001", DisplayName: id, Input: 1 << 20, Output: 1 << 16,
			Methods: []string{"generateContent", "countTokens"}, Thinking: gemini.Signs(id),
		}
		all = append(all, one)
		each[id] = one
	}
	return map[string]any{"models": all}, each
}
