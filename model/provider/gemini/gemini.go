// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Options are what a provider works with.
type Options = provider.Options

// New returns the provider of the dialect. It is safe for concurrent use.
func New(o Options) *Provider { return &Provider{o} }

// A Provider calls servers of the dialect.
type Provider struct{ with provider.Options }

var (
	_ model.Provider       = (*Provider)(nil)
	_ model.Writer         = (*Provider)(nil)
	_ provider.Forwarder   = (*Provider)(nil)
	_ provider.Uploader    = (*Provider)(nil)
	_ provider.FileDeleter = (*Provider)(nil)
)

// Generate implements [model.Provider].
func (p *Provider) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := p.call(ctx, r, yield); err != nil && !errors.Is(err, provider.ErrStopped) {
			yield(nil, err)
		}
	}
}

// Write implements [model.Writer].
func (p *Provider) Write(r *model.Request) (model.Body, error) { return Encode(r, p.with.Blobs) }

func (p *Provider) call(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) error {
	f := provider.Failures{Op: "gemini.Generate", Service: r.Service}
	answer := reader{failures: f, names: toolNames(r.Tools), yield: yield}
	return p.with.Call(ctx, r, provider.Exchange{
		Failures: f, Files: p.uploader(r.Service), Read: answer.read,
		Post: func(ctx context.Context, r *model.Request) (*http.Response, error) {
			body, err := Encode(r, p.with.Blobs)
			if err != nil {
				return nil, err
			}
			return p.post(ctx, f, body, true, nil)
		},
	})
}

// Forward implements [provider.Forwarder].
func (p *Provider) Forward(ctx context.Context, service model.Service, body *provider.Body, stream bool, header http.Header) (*http.Response, error) {
	return p.post(ctx, provider.Failures{Op: "gemini.Forward", Service: service}, body, stream, header)
}

// post sends body to the method of the service's model that answers, or
// streams.
func (p *Provider) post(ctx context.Context, f provider.Failures, body *provider.Body, stream bool, header http.Header) (*http.Response, error) {
	h := provider.ForwardHeader(header)
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Accept", "application/json")
	if stream {
		h.Set("Accept", "text/event-stream, application/json")
	}
	if key := f.Service.APIKey.Reveal(); key != "" {
		h.Set("X-Goog-Api-Key", key)
	}
	return provider.Post(ctx, p.with.HTTP(), f, address(f.Service, stream), body, h)
}

// address returns the URL of a call. The base URL is the root of the host, or
// ends with the version of the API; without one, v1beta is called. Models are
// named with or without "models/"; other collections are named whole.
func address(s model.Service, stream bool) string {
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

// third reports whether a model is known to be of Gemini's third generation or
// a later one.
func third(name string) bool {
	m := generation().FindStringSubmatch(name)
	return m != nil && (len(m[1]) > 1 || m[1] >= "3") || newest().MatchString(name)
}

// older reports whether a model is known to be of a generation before the
// third.
func older(name string) bool { return generation().MatchString(name) && !third(name) }

var noThoughts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`image|tts|live|audio|computer-use|robotics|embedding`)
})

// thinks reports whether a model is known to tell what it thinks.
func thinks(name string) bool {
	return (third(name) || strings.Contains(name, "gemini-2.5-")) && !noThoughts().MatchString(name)
}

// Signs reports whether a model signs its calls, and refuses those of the
// current turn that come back without their signature.
func Signs(name string) bool { return third(name) && !noThoughts().MatchString(name) }
