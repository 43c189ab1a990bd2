// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"

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
}

// New returns the provider of the dialect. It is safe for concurrent use.
func New(o Options) model.Provider {
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	return &client{http: o.Client, blobs: o.Blobs}
}

type client struct {
	http  *http.Client
	blobs blob.Store
}

// Generate implements [model.Provider].
func (c *client) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := c.call(ctx, r, yield); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

func (c *client) call(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) error {
	f := provider.Failures{Op: "openai.Generate", Service: r.Service}
	if r.Service.BaseURL == "" || r.Service.Model == "" {
		return f.Refuse(artel.Invalid, "the service has no base URL or no model, so it serves for routing only")
	}
	body, err := Encode(r, c.blobs)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx) // leaving ends the call, even in mid-body
	defer cancel()
	req, err := body.Request(ctx, http.MethodPost, strings.TrimSuffix(r.Service.BaseURL, "/")+"/chat/completions")
	if err != nil {
		return f.Refuse(artel.Invalid, "the base URL is not usable")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Set("User-Agent", "artel")
	if key := r.Service.APIKey.Reveal(); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return f.Transport(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return f.Response(resp, time.Now())
	}
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
