// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
)

// Serves reports whether the gateway answers a request: every path below /v1, the
// versions of Google's API and /upload, and the paths that programs with a wrong
// base URL or for Ollama's API ask for. It leaves the latter to the page if a
// browser navigates to them.
func Serves(r *http.Request) bool {
	path := r.URL.Path
	switch first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); first {
	case "v1", "v1alpha", "v1beta", "v1beta1", "upload":
		return true
	}
	return misdirected(path) != "" && !wantsPage(r)
}

// wantsPage reports whether a request asks for a page of HTML, as browsers do.
// Programs get JSON instead.
func wantsPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// editors are the dialects that clients can speak.
func editors() []provider.Editor {
	return []provider.Editor{openai.Editor(), responses.Editor(), anthropic.Editor(), gemini.Editor()}
}

// ServeHTTP implements [http.Handler].
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.o.Origins.serve(w, r) {
		return
	}
	path := r.URL.Path
	// Google's OpenAI-compatible endpoints are below /v1beta/openai.
	if rest, ok := strings.CutPrefix(path, "/v1beta/openai/"); ok {
		path = "/v1/" + rest
	}
	for _, d := range editors() {
		switch d.Operation(path) {
		case provider.OperationGenerate:
			s.generate(w, r, d)
			return
		case provider.OperationCount:
			s.countTokens(w, r, d)
			return
		}
	}
	if isGoogle(path) {
		s.serveGemini(w, r, path)
		return
	}
	if s.serveStored(w, r, path) {
		return
	}
	d := dialectOf(r)
	if byModel, ok := isPassed(path, r.Header); ok {
		s.pass(w, r, d, path, byModel)
		return
	}
	switch {
	case path == "/v1/models" || strings.HasPrefix(path, "/v1/models/"):
		s.serveModels(w, r, d, strings.TrimPrefix(strings.TrimPrefix(path, "/v1/models"), "/"))
	case path == "/v1/files" || strings.HasPrefix(path, "/v1/files/"):
		s.serveFiles(w, r, d, strings.TrimPrefix(path, "/v1/files"))
	default:
		s.notFound(w, r, d)
	}
}

// googleMethods are the methods of Google's API that follow the name of a model and
// a colon. They tell a model's address from a model whose name has a colon.
var googleMethods = []string{
	"generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents", "asyncBatchEmbedContent",
	"batchGenerateContent", "predict", "predictLongRunning", "rawPredict", "streamRawPredict", "computeTokens",
}

// isGoogle reports whether a path is of Google's API: of one of its versions, or of
// v1, which it shares with the other APIs, with one of its methods.
func isGoogle(path string) bool {
	if !strings.HasPrefix(path, "/v1/") && path != "/v1" {
		return strings.HasPrefix(path, "/v1") || strings.HasPrefix(path, "/upload/v1")
	}
	_, method, ok := gemini.Target(path)
	return ok && slices.Contains(googleMethods, method)
}

// serveGemini serves the paths of Google's API that list models, and refuses others.
func (s *server) serveGemini(w http.ResponseWriter, r *http.Request, path string) {
	d := gemini.Editor()
	_, _, ok := gemini.Target(path)
	_, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case !ok && (rest == "models" || strings.HasPrefix(rest, "models/")):
		s.serveModels(w, r, d, strings.TrimPrefix(strings.TrimPrefix(rest, "models"), "/"))
	default:
		s.notFound(w, r, d)
	}
}

// dialectOf returns the dialect of a request whose path belongs to several.
func dialectOf(r *http.Request) provider.Editor {
	switch {
	case r.Header.Get(anthropic.VersionHeader) != "" || strings.Contains(r.URL.Path, "/messages"):
		return anthropic.Editor()
	case strings.HasPrefix(r.URL.Path, "/api/"):
		return ollama{openai.Editor()}
	case strings.Contains(r.URL.Path, "/responses"):
		return responses.Editor()
	}
	return openai.Editor()
}

// notFound answers a request for an unknown path, and says what to ask instead, to
// clients that are let in.
func (s *server) notFound(w http.ResponseWriter, r *http.Request, d provider.Editor) {
	x := s.newExchange(w, r, d)
	leave, err := x.admit()
	if err != nil {
		x.finish(err)
		return
	}
	defer leave()
	message := "Invalid URL (" + r.Method + " " + artel.Shorten(r.URL.Path, 200) + ")"
	if hint := misdirected(r.URL.Path); hint != "" {
		message += ". " + strings.ReplaceAll(hint, "{host}", peer.Of(r).URL())
	}
	x.finish(&provider.Fault{Status: http.StatusNotFound, Message: message})
}

// ollamaPath matches the paths of Ollama's API.
var ollamaPath = regexp.MustCompile(`^/api/(tags|version|show|chat|generate|embed|embeddings|ps|pull|push|create|copy|delete)$`)

// misdirected returns a hint for a client that asks for path because its base URL
// or its protocol is wrong; "" if the path does not show that. {host} stands for
// the address of this server.
func misdirected(path string) string {
	if rest, ok := strings.CutPrefix(path, "/v1/v1/"); ok {
		return "The path has /v1 twice, because the base URL ends with it and the client adds it too: set the base URL to {host}, for the path /v1/" + artel.Shorten(rest, 100) + "."
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case ollamaPath.MatchString(path):
		return "This server has no API of Ollama. It has OpenAI's: set up the client for an OpenAI-compatible server with the base URL {host}/v1."
	case strings.HasPrefix(path, "/upload/"):
		return "Files are not uploaded here by Google's resumable protocol: send the bytes as inlineData, or upload them by POST {host}/v1/files (multipart/form-data, field file) and name the id as fileUri."
	case first == "openai" && strings.HasPrefix(rest, "deployments/"):
		return "Azure's addresses are not served here: use the client for OpenAI itself with the base URL {host}/v1."
	}
	switch first {
	case "chat", "responses", "messages", "models", "completions", "embeddings", "audio", "images", "moderations", "rerank", "files", "batches":
		if first == "chat" && rest != "completions" || first == "models" && isOfThePage(rest) {
			return ""
		}
		return "The base URL of this server ends with /v1: set it to {host}/v1, for the path /v1" + artel.Shorten(path, 100) + "."
	}
	return ""
}

// isOfThePage reports whether a path below /models is a form of the page.
func isOfThePage(rest string) bool {
	return rest == "reload" || strings.HasSuffix(rest, "/probe") || strings.HasSuffix(rest, "/forget")
}

// ollama answers the paths of Ollama's API, none of which is served.
type ollama struct{ provider.Editor }

// ErrorBody implements [provider.Editor].
func (ollama) ErrorBody(f provider.Fault) []byte {
	b, _ := json.Marshal(map[string]string{"error": f.Message}) // strings
	return b
}
