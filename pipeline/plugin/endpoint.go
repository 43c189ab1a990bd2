// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/pipeline"
)

// An Endpoint is an address that receives a draft by POST and answers with
// status 200.
type Endpoint struct {
	URL    string       // http or https
	Header http.Header  // of every request, in addition to Content-Type and Accept
	Client *http.Client // from package fetch, following no redirects
}

// Processor returns a processor that posts to the endpoint for every build. An
// invalid address is of kind Invalid.
func (e Endpoint) Processor(id string, o Options) (pipeline.Processor, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return pipeline.Processor{}, artel.Errorf(artel.Invalid, "plugin.New", id, "want an address like https://plugins.example/context, without a user")
	}
	if e.Client == nil {
		return pipeline.Processor{}, artel.Errorf(artel.Invalid, "plugin.New", id, "there is no client to ask with")
	}
	e.Header = e.Header.Clone()
	return processor(id, u.Scheme+"://"+u.Host, o, e.ask) // the rest of the address may hold secrets
}

func (e Endpoint) ask(ctx context.Context, draft []byte, limit int64) ([]byte, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(draft))
	if err != nil {
		return nil, "", artel.Errorf(artel.Invalid, "plugin.Ask", "", "the request cannot be made: %w", err)
	}
	for k, v := range e.Header {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := e.Client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // the address may hold secrets
		}
		return nil, "", artel.Errorf(artel.Unavailable, "plugin.Ask", req.URL.Host, "the endpoint cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := fetch.ReadAll(resp.Body, 1<<16)
		return nil, "", artel.Errorf(artel.Unavailable, "plugin.Ask", req.URL.Host, "the endpoint answers %s: %s", resp.Status, artel.Shorten(string(said), 300))
	}
	b, err := fetch.ReadAll(resp.Body, limit)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return b, "", err
}
