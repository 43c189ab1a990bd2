// SPDX-License-Identifier: Apache-2.0

// Package backend has the gateway's use cases, without HTTP and without
// dialects: who may ask ([Backend.Admit]), which service answers ([Routes]), the files that clients
// upload ([Uploads]), and the media in requests ([Request]).
//
// Begin with [New]. Nothing of a request is stored but the bytes of its media
// and of tool results too long to be shown, until garbage collection.
package backend

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// maxWait caps the delay before a service is asked again: the client waits too,
// and has retries of its own.
const maxWait = 5 * time.Second

// Options say who may use the gateway, and how.
type Options struct {
	Keys     []Key // nil: requests need no key
	Cache    Cache // of Anthropic's dialect
	Aliases  []Alias
	Cooldown time.Duration           // how long a service is avoided that has failed; 0: 30 s; negative: never
	Headers  map[string]model.Secret // of every request to a service, by their canonical names; a service's own take precedence

	Rewriting Rewriting       // of the texts of tools
	Limits    store.KeyLimits // of keys without limits of their own
}

// A Backend has what all requests share. It is safe for concurrent use.
type Backend struct {
	Uploads       *Uploads
	Routes        *Routes
	Turns         *Turns
	Conversations *Conversations

	parts  app.Parts
	files  *app.Files
	usage  *app.Usage
	caller *model.Caller
	keys   *keyring
	calls  *callStates

	headers   map[string]model.Secret
	rewriting Rewriting
	cache     Cache
	limits    store.KeyLimits
}

// New returns the use cases of a gateway on top of a.
func New(a *app.App, o Options) *Backend {
	p := a.Parts()
	p.CallerOptions.MaxWait = maxWait
	once := p.CallerOptions
	once.Attempts = 1
	caller := p.Caller.WithOptions(p.CallerOptions)
	b := &Backend{
		Uploads: &Uploads{p}, Turns: &Turns{a}, Conversations: &Conversations{a}, parts: p, files: a.Files, usage: a.Usage, caller: caller,
		keys: newKeyring(o.Keys, p.Now), calls: newCallStates(), headers: o.Headers, rewriting: o.Rewriting, cache: o.Cache, limits: o.Limits,
	}
	h := &health{cooldown: cmp.Or(o.Cooldown, defaultCooldown), now: p.Now, byID: map[artel.ServiceID]*condition{}}
	b.Routes = &Routes{b: b, aliases: o.Aliases, health: h, once: caller.WithOptions(once)}
	return b
}

// Caller makes the gateway's calls. It shares the concurrency limits of services
// with runs.
func (b *Backend) Caller() *model.Caller { return b.caller }

// Charge admits a call that is forwarded; see [model.CallerOptions].
func (b *Backend) Charge(ctx context.Context, c model.PaidCall) (model.Charge, error) {
	return b.parts.CallerOptions.Charge(ctx, c)
}

// Blobs stores the bytes of media.
func (b *Backend) Blobs() blob.Store { return b.parts.Blobs }

// service returns the service with an id, otherwise the first that calls a model
// of that name. It is shared. The error is of kind NotFound, also if the key may not
// use it.
func (b *Backend) service(_ context.Context, name string, key Key) (*model.Service, error) {
	s := b.parts.Services.Resolve(name, key.allows)
	if s == nil {
		return nil, artel.Errorf(artel.NotFound, "backend.Routes", artel.Shorten(name, 200), "there is no such service, or this key may not use it")
	}
	return b.withHeaders(s), nil
}

// withHeaders returns s with the header fields that every service gets.
func (b *Backend) withHeaders(s *model.Service) *model.Service {
	if len(b.headers) == 0 {
		return s
	}
	with := *s
	with.Extra.Header = maps.Clone(b.headers)
	maps.Copy(with.Extra.Header, s.Extra.Header)
	return &with
}

// Services returns the services that a key may use, in order of preference.
func (b *Backend) Services(_ context.Context, key Key) []model.Service {
	all := slices.DeleteFunc(b.parts.Services.All(), func(s model.Service) bool { return !s.Callable() || !key.allows(s.ID) })
	for i, s := range all {
		all[i] = *b.withHeaders(&s)
	}
	return all
}

// Learn records what a refusal or the bill of an answer has shown about a service.
func (b *Backend) Learn(marks []model.Mark) {
	for _, m := range marks {
		if m.Seen == 0 {
			b.parts.Log.Warn("a model service answered without having seen pictures; they are sent elsewhere from now on", "model", m.Model, "place", m.Place, "why", m.Evidence)
			continue
		}
		b.parts.Log.Warn("a model service refused a request and took it with less; once confirmed by another, requests go without",
			"model", m.Model, "place", m.Place, "media_type", m.MediaType, "limit", m.Limit, "value", m.Value, "digest", m.Digest, "said", m.Evidence)
	}
	b.parts.Services.Learned().Add(marks...)
}

// Correct records how the token counts of a service differ from ours.
func (b *Backend) Correct(m model.Mark) { b.parts.Services.Learned().Add(m) }

// Count estimates the tokens of a request.
func (b *Backend) Count(_ context.Context, r *model.Request) (int, error) {
	return b.parts.Contexts.Count(r)
}

// NewRequest begins a request of the context's owner with a key.
func (b *Backend) NewRequest(ctx context.Context, key Key) *Request {
	r := &Request{Cache: cmp.Or(key.Cache, b.cache, CacheAuto), b: b, owner: artel.OwnerOf(ctx), key: key, infos: map[artel.Digest]artel.MediaInfo{}}
	r.Finds = Finds{r}
	r.Texts = &Texts{r: r, rewriting: key.Rewriting.or(b.rewriting), originals: &originals{}}
	return r
}
