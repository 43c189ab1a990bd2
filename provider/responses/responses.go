// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/provider"
)

// Options are what a provider works with.
type Options struct {
	// Client sends the requests; nil: [http.DefaultClient]. It should have no
	// total time limit, which would cut long answers.
	Client *http.Client
	// Blobs holds the media of the requests; nil: requests with media fail.
	Blobs blob.Store
	// Held knows the files that services hold; nil: media go inside requests.
	Held *provider.Held
}

// New returns the provider of the dialect. It is safe for concurrent use.
func New(o Options) *Provider {
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	return &Provider{http: o.Client, blobs: o.Blobs, held: o.Held}
}

// A Provider calls servers of the dialect.
type Provider struct {
	http  *http.Client
	blobs blob.Store
	held  *provider.Held
}

var (
	_ model.Provider     = (*Provider)(nil)
	_ provider.Forwarder = (*Provider)(nil)
)

// Generate implements [model.Provider].
func (p *Provider) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := p.call(ctx, r, yield); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

func (p *Provider) call(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) error {
	f := provider.Failures{Op: "responses.Generate", Service: r.Service}
	ctx, cancel := context.WithCancel(ctx) // leaving ends the call, even in mid-body
	defer cancel()
	resp, err := p.held.Send(ctx, r, p.uploader(r.Service), func(r *model.Request) (*http.Response, error) {
		body, err := Encode(r, p.blobs)
		if err != nil {
			return nil, err
		}
		return p.post(ctx, f, body, "text/event-stream, application/json", nil)
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := reader{failures: f, yield: yield}
	err = answer.read(resp.Body)
	if err == nil || errors.Is(err, errStopped) {
		return err
	}
	if _, ok := errors.AsType[*artel.Error](err); ok && ctx.Err() == nil {
		return err
	}
	return f.Transport(ctx, err)
}

// Forward implements [provider.Forwarder].
func (p *Provider) Forward(ctx context.Context, service model.Service, body *provider.Body, stream bool, header http.Header) (*http.Response, error) {
	accept := "application/json"
	if stream {
		accept = "text/event-stream"
	}
	return p.post(ctx, provider.Failures{Op: "responses.Forward", Service: service}, body, accept, header)
}

func (p *Provider) post(ctx context.Context, f provider.Failures, body *provider.Body, accept string, header http.Header) (*http.Response, error) {
	h := provider.ForwardHeader(header)
	h.Set("Content-Type", "application/json")
	h.Set("Accept", accept)
	if key := f.Service.APIKey.Reveal(); key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return provider.Post(ctx, p.http, f, strings.TrimSuffix(f.Service.BaseURL, "/")+"/responses", body, h)
}
