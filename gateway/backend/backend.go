// SPDX-License-Identifier: Apache-2.0

// Package backend has the gateway's use cases, without HTTP and without
// dialects: who may ask which service ([Backend.Admit]), the files that clients
// upload ([Uploads]), and the media in requests ([Request]).
//
// Begin with [New]. Nothing of a request is stored but the bytes of its media
// and of tool results too long to be shown, until garbage collection.
package backend

import (
	"context"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
)

// maxWait caps the delay before a service is asked again: the client waits too,
// and has retries of its own.
const maxWait = 5 * time.Second

// Options say who may use the gateway, and how.
type Options struct {
	Keys     []Key // nil: requests need no key
	NoRepair bool  // leave content parts alone that a client library has turned into text; see [Request.RewriteResult]
}

// A Backend has what all requests share. It is safe for concurrent use.
type Backend struct {
	Uploads *Uploads

	parts  app.Parts
	files  *app.Files
	caller *model.Caller
	keys   *keyring
	calls  *callStates
	repair bool
}

// New returns the use cases of a gateway on top of a.
func New(a *app.App, o Options) *Backend {
	p := a.Parts()
	p.CallerOptions.MaxWait = maxWait
	return &Backend{
		Uploads: &Uploads{p}, parts: p, files: a.Files, caller: p.Caller.WithOptions(p.CallerOptions),
		keys: newKeyring(o.Keys, p.Now), calls: newCallStates(), repair: !o.NoRepair,
	}
}

// Caller makes the gateway's calls. It shares the concurrency limits of services
// with runs.
func (b *Backend) Caller() *model.Caller { return b.caller }

// Blobs stores the bytes of media.
func (b *Backend) Blobs() blob.Store { return b.parts.Blobs }

// Service returns the service with an id, otherwise the first that calls a model
// of that name. The error is of kind NotFound, also if the key may not use it.
func (b *Backend) Service(_ context.Context, name string, key Key) (model.Service, error) {
	s, ok := b.parts.Services.Resolve(name, key.allows)
	if !ok {
		return model.Service{}, artel.Errorf(artel.NotFound, "backend.Backend.Service", artel.Shorten(name, 200), "there is no such service, or this key may not use it")
	}
	return s, nil
}

// Services returns the services that a key may use, in order of preference.
func (b *Backend) Services(_ context.Context, key Key) []model.Service {
	return slices.DeleteFunc(b.parts.Services.All(), func(s model.Service) bool { return !s.Callable() || !key.allows(s.ID) })
}

// Fallbacks returns the services to ask if s is not available.
func (b *Backend) Fallbacks(ctx context.Context, s model.Service, key Key) []model.Service {
	var out []model.Service
	for _, id := range s.Fallbacks {
		if other, err := b.Service(ctx, string(id), key); err == nil && other.ID == id && id != s.ID {
			out = append(out, other)
		}
	}
	return out
}

// Learn records what a refusal has shown about a service, for all calls.
func (b *Backend) Learn(marks []model.Mark) {
	for _, m := range marks {
		b.parts.Log.Warn("a model service refused a request and took it with less; requests go without from now on",
			"model", m.Model, "place", m.Place, "media_type", m.MediaType, "limit", m.Limit, "value", m.Value, "digest", m.Digest, "said", m.Evidence)
	}
	b.parts.Services.Learn(marks...)
}

// Correct records how the token counts of a service differ from ours.
func (b *Backend) Correct(m model.Mark) { b.parts.Services.Learn(m) }

// Count estimates the tokens of a request.
func (b *Backend) Count(_ context.Context, r *model.Request) (int, error) {
	return b.parts.Contexts.Count(r)
}

// NewRequest begins a request of the context's owner.
func (b *Backend) NewRequest(ctx context.Context) *Request {
	return &Request{b: b, owner: artel.OwnerOf(ctx), infos: map[artel.Digest]artel.MediaInfo{}}
}
