// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Options are the dependencies of a provider.
type Options = provider.Options

// A Provider calls servers of the dialect.
type Provider struct{ provider.Client }

var _ provider.FileDeleter = (*Provider)(nil)

// New returns the provider of the dialect. It is safe for concurrent use.
func New(o Options) *Provider {
	return &Provider{provider.NewClient(o, provider.Dialect{
		Name: "gemini", Encode: Encode, Header: header, Files: files, URL: address,
		ToolNames: toolNames(),
		Reader:    func(w provider.DeltaWriter) func(io.Reader) error { return (&reader{DeltaWriter: w}).read },
		FilesURL:  func(s *model.Service) string { return model.GeminiBase(s.BaseURL) + "/files" },
	})}
}

// toolNames are the API's rules on the names of tools.
func toolNames() provider.ToolNames {
	return provider.ToolNames{Max: MaxName, Also: "-.:", LetterFirst: true}
}

// header sets the key, and accepts an answer in one piece for every request: some
// proxies do not stream.
func header(s *model.Service, h http.Header) {
	switch h.Get("Accept") {
	case "":
		h.Set("Accept", "application/json")
	case "text/event-stream":
		h.Set("Accept", "text/event-stream, application/json")
	}
	if key := s.APIKey.Reveal(); key != "" {
		h.Set("X-Goog-Api-Key", key)
	}
}

// address returns the URL of a call. The base URL is the root of the host, or ends
// with the version of the API; the default is v1beta. Models may begin with
// "models/"; those of other collections are named in full.
func address(s *model.Service, stream bool) string {
	collection, name, ok := strings.Cut(s.Model, "/")
	if !ok {
		collection, name = "models", s.Model
	}
	method := "generateContent"
	if stream {
		method = "streamGenerateContent?alt=sse"
	}
	return model.GeminiBase(s.BaseURL) + "/" + url.PathEscape(collection) + "/" + url.PathEscape(name) + ":" + method
}

var (
	generation = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|/)gemini-([0-9]+)`) })
	newest     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|/)gemini-[a-z-]*latest$`) })
)

// thirdOrLater reports whether a model is known to be of Gemini's third or a later
// generation.
func thirdOrLater(name string) bool {
	m := generation().FindStringSubmatch(name)
	return m != nil && (len(m[1]) > 1 || m[1] >= "3") || newest().MatchString(name)
}

// BeforeThird reports whether a model is known to be of an earlier generation.
func BeforeThird(name string) bool { return generation().MatchString(name) && !thirdOrLater(name) }

var noThoughts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`image|tts|live|audio|computer-use|robotics|embedding`)
})

// Thinks reports whether a model is known to return its thoughts.
func Thinks(name string) bool {
	return (thirdOrLater(name) || strings.Contains(name, "gemini-2.5-")) && !noThoughts().MatchString(name)
}

// Signs reports whether a model signs its calls, and refuses calls of the current
// turn without their signature.
func Signs(name string) bool { return thirdOrLater(name) && !noThoughts().MatchString(name) }
