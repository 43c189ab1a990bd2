// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

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
	_ model.Transcriber    = (*Provider)(nil)
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
	f := provider.Failures{Op: "openai.Generate", Service: r.Service}
	answer := reader{failures: f, yield: yield}
	return p.with.Call(ctx, r, provider.Exchange{
		Failures: f, Files: p.uploader(r.Service), Read: answer.read,
		Post: func(ctx context.Context, r *model.Request) (*http.Response, error) {
			body, err := Encode(r, p.with.Blobs)
			if err != nil {
				return nil, err
			}
			return p.post(ctx, f, "/chat/completions", body, "text/event-stream, application/json", nil)
		},
	})
}

// Forward implements [provider.Forwarder].
func (p *Provider) Forward(ctx context.Context, service model.Service, body *provider.Body, stream bool, header http.Header) (*http.Response, error) {
	accept := "application/json"
	if stream {
		accept = "text/event-stream"
	}
	return p.post(ctx, provider.Failures{Op: "openai.Forward", Service: service}, "/chat/completions", body, accept, header)
}

// post sends body to an endpoint below the service's base URL.
func (p *Provider) post(ctx context.Context, f provider.Failures, path string, body *provider.Body, accept string, header http.Header) (*http.Response, error) {
	h := provider.ForwardHeader(header)
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Accept", accept)
	if key := f.Service.APIKey.Reveal(); key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return provider.Post(ctx, p.with.HTTP(), f, strings.TrimSuffix(f.Service.BaseURL, "/")+path, body, h)
}
