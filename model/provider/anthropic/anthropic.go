// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Options are what a provider works with.
type Options = provider.Options

// New returns the provider of the dialect. It is safe for concurrent use.
func New(o Options) *Provider { return &Provider{o} }

// A Provider calls servers of the dialect. Their base URL is the root of the
// API; one that ends with the version is understood.
type Provider struct{ with provider.Options }

var (
	_ model.Provider       = (*Provider)(nil)
	_ model.Writer         = (*Provider)(nil)
	_ provider.Forwarder   = (*Provider)(nil)
	_ provider.Uploader    = (*Provider)(nil)
	_ provider.FileDeleter = (*Provider)(nil)
)

// maxPauses is how often an answer that the service paused is gone on with.
const maxPauses = 10

// Generate implements [model.Provider]. An answer that the service pauses,
// because its own tools take long, is gone on with; its usage is the sum. Where
// the service does not know its own reasoning again, as after a change of
// account, the call is made once more without it, so that no conversation ends
// there.
func (p *Provider) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		f := provider.Failures{Op: "anthropic.Generate", Service: r.Service}
		answer := reader{failures: f, yield: yield}
		bare := false // without reasoning
		for pauses := 0; ; {
			err := p.call(ctx, f, r, &answer, bare)
			switch {
			case errors.Is(err, errPaused) && pauses < maxPauses:
				pauses++
				continue
			case !bare && pauses == 0 && forgotten(err) && hasState(r):
				bare = true
				continue
			case errors.Is(err, errPaused):
				err = f.Wrong("the service paused its answer more often than it is gone on with")
			case errors.Is(err, provider.ErrStopped):
				return
			}
			if err != nil {
				yield(nil, err)
			}
			return
		}
	}
}

// Write implements [model.Writer].
func (p *Provider) Write(r *model.Request) (model.Body, error) { return Encode(r, p.with.Blobs) }

// forgotten reports whether an error is that of reasoning which the service
// takes for somebody else's.
func forgotten(err error) bool {
	c, ok := errors.AsType[*model.CallError](err)
	return ok && c.Status == http.StatusBadRequest && strings.Contains(c.Message, "thinking` block")
}

// hasState reports whether reasoning of the service is among what is sent.
func hasState(r *model.Request) bool {
	return slices.ContainsFunc(r.Messages, func(m model.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p artel.Part) bool {
			x, ok := p.(artel.Reasoning)
			return ok && x.Service == r.Service.ID && len(x.Opaque) > 0
		})
	})
}

// call makes one call, which goes on after what answer has read before.
func (p *Provider) call(ctx context.Context, f provider.Failures, r *model.Request, answer *reader, bare bool) error {
	return p.with.Call(ctx, r, provider.Exchange{
		Failures: f, Files: p.uploader(r.Service), Read: answer.read, Own: errPaused,
		Post: func(ctx context.Context, r *model.Request) (*http.Response, error) {
			body, err := encode(r, p.with.Blobs, answer.paused, bare)
			if err != nil {
				return nil, err
			}
			return p.post(ctx, f, "/messages", body, "text/event-stream, application/json", nil)
		},
	})
}

// Forward implements [provider.Forwarder].
func (p *Provider) Forward(ctx context.Context, service model.Service, body *provider.Body, stream bool, header http.Header) (*http.Response, error) {
	accept := "application/json"
	if stream {
		accept = "text/event-stream"
	}
	return p.post(ctx, provider.Failures{Op: "anthropic.Forward", Service: service}, "/messages", body, accept, header)
}

// ForwardCount sends body to the endpoint that counts the tokens of a request.
// Else it is like [Provider.Forward].
func (p *Provider) ForwardCount(ctx context.Context, service model.Service, body *provider.Body, header http.Header) (*http.Response, error) {
	return p.post(ctx, provider.Failures{Op: "anthropic.ForwardCount", Service: service}, "/messages/count_tokens", body, "application/json", header)
}

// post sends body to an endpoint below the version of the API.
func (p *Provider) post(ctx context.Context, f provider.Failures, path string, body *provider.Body, accept string, header http.Header) (*http.Response, error) {
	h := provider.ForwardHeader(header)
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	if h.Get(VersionHeader) == "" {
		h.Set(VersionHeader, Version)
	}
	h.Set("Accept", accept)
	if key := f.Service.APIKey.Reveal(); key != "" {
		h.Set("X-Api-Key", key)
	}
	return provider.Post(ctx, p.with.HTTP(), f, endpoint(f.Service.BaseURL)+path, body, h)
}

// endpoint returns the base of the API's endpoints.
func endpoint(base string) string {
	base = strings.TrimRight(base, "/")
	if base == "" || strings.HasSuffix(base, "/v1") {
		return base
	}
	return base + "/v1"
}

// paused is what the service had said when it paused: the blocks, as they came.
type paused []json.RawMessage
