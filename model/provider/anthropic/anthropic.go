// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Options are the dependencies of a provider.
type Options = provider.Options

// A Provider calls servers of the dialect. The base URL of a service is the root of
// the API, with or without its version.
type Provider struct{ provider.Client }

var _ model.Provider = (*Provider)(nil)

// New returns the provider of the dialect. It is safe for concurrent use.
func New(o Options) *Provider {
	return &Provider{provider.NewClient(o, provider.Dialect{
		Name: "anthropic", Encode: Encode, Header: header, Files: files, ToolNames: toolNames(),
		URL: address, Patch: cloudPatch,
		FilesURL: func(s *model.Service) string { return endpoint(s.BaseURL) + "/files" },
	})}
}

// toolNames are the API's rules on the names of tools.
func toolNames() provider.ToolNames { return provider.ToolNames{Max: MaxName, Also: "-"} }

// header sets the key, and the version of the API unless the client stated one.
func header(s *model.Service, h http.Header) {
	if h.Get(VersionHeader) == "" {
		h.Set(VersionHeader, Version)
	}
	if key := s.APIKey.Reveal(); key != "" {
		h.Set("X-Api-Key", key)
	}
}

// maxPauses is how often Generate continues an answer that the service paused.
const maxPauses = 10

// Generate implements [model.Provider]. It continues an answer that the service
// pauses because its own tools take long; the usage is the sum. If the service
// rejects its own reasoning, as after a change of account, the call is repeated
// without reasoning.
func (p *Provider) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		f := provider.Failures{Op: "anthropic.Generate", Service: &r.Service}
		answer := reader{DeltaWriter: provider.DeltaWriter{Failures: f, Yield: toolNames().Restored(r.Tools, yield)}}
		withoutReasoning := false
		for pauses := 0; ; {
			err := p.Call(ctx, f, r, func(r *model.Request, blobs blob.Store) (*provider.Body, error) {
				return encode(r, blobs, answer.paused, withoutReasoning)
			}, answer.read)
			switch {
			case errors.Is(err, errPaused) && pauses < maxPauses:
				pauses++
				continue
			case !withoutReasoning && pauses == 0 && refusesReasoning(err) && hasState(r):
				withoutReasoning = true
				continue
			case errors.Is(err, errPaused):
				err = f.Wrong("the service paused its answer more often than it is continued")
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

// refusesReasoning reports whether the service refused reasoning as not signed by
// itself.
func refusesReasoning(err error) bool {
	c, ok := errors.AsType[*model.CallError](err)
	return ok && c.Status == http.StatusBadRequest && strings.Contains(c.Message, "thinking` block")
}

// hasState reports whether r holds reasoning of the service that is called.
func hasState(r *model.Request) bool {
	return slices.ContainsFunc(r.Messages, func(m model.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p artel.Part) bool {
			x, ok := p.(artel.Reasoning)
			return ok && x.Service == r.Service.ID && len(x.Opaque) > 0
		})
	})
}

// ForwardCount is [provider.Client.Forward] for the endpoint that counts the tokens
// of a request.
func (p *Provider) ForwardCount(ctx context.Context, service *model.Service, body *provider.Body, header http.Header) (*http.Response, error) {
	f := provider.Failures{Op: "anthropic.ForwardCount", Service: service}
	return p.Post(ctx, f, endpoint(service.BaseURL)+"/messages/count_tokens", body, "application/json", header)
}

// files describes the Files API, which needs no beta header anymore.
func files(c *provider.Client, s *model.Service) provider.FileAPI {
	takes := func(mediaType string, _ bool) bool {
		return mediaType == "application/pdf" || slices.Contains(ImageTypes(), mediaType)
	}
	return provider.FileAPI{
		Takes: takes, Fetches: takes,
		Upload: func(ctx context.Context, m artel.Media) (string, time.Time, error) {
			f := provider.Failures{Op: "anthropic.Upload", Service: s}
			return c.UploadForm(ctx, f, m, [2]string{"expires_in_seconds", strconv.Itoa(int(provider.UploadLifetime.Seconds()))})
		},
	}
}

// address returns the URL of a call. Bedrock and Vertex AI have the model and the
// stream in it, below the base URL https://bedrock-runtime.REGION.amazonaws.com, or
// that of the publisher (…/projects/P/locations/L/publishers/anthropic).
//
// Sources: InvokeModel and InvokeModelWithResponseStream of the Bedrock API;
// rawPredict and streamRawPredict of the Vertex AI API.
func address(s *model.Service, stream bool) string {
	onAWS := "/model/" + strings.ReplaceAll(url.PathEscape(s.Model), ":", "%3A") + "/invoke" // as the SDKs of AWS escape it
	switch {
	case s.Auth.Kind == model.AuthAWS && stream:
		return provider.Endpoint(s, onAWS+"-with-response-stream")
	case s.Auth.Kind == model.AuthAWS:
		return provider.Endpoint(s, onAWS)
	case s.Auth.Kind == model.AuthGoogle && stream:
		return provider.Endpoint(s, "/models/"+url.PathEscape(s.Model)+":streamRawPredict")
	case s.Auth.Kind == model.AuthGoogle:
		return provider.Endpoint(s, "/models/"+url.PathEscape(s.Model)+":rawPredict")
	}
	return endpoint(s.BaseURL) + "/messages"
}

// cloudPatch returns the changes to bodies for Bedrock and Vertex AI.
func cloudPatch(s *model.Service) []byte {
	switch s.Auth.Kind {
	case model.AuthAWS:
		return []byte(`{"model":null,"stream":null,"anthropic_version":"bedrock-2023-05-31"}`)
	case model.AuthGoogle:
		return []byte(`{"model":null,"anthropic_version":"vertex-2023-10-16"}`)
	}
	return nil
}

// endpoint returns the base of the API's endpoints.
func endpoint(base string) string {
	base = strings.TrimRight(base, "/")
	if base == "" || strings.HasSuffix(base, "/v1") {
		return base
	}
	return base + "/v1"
}

// paused holds the blocks, unchanged, that the service had sent before it paused.
type paused []json.RawMessage
