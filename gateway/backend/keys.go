// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A Key lets clients use the gateway. The zero value has no restrictions.
type Key struct {
	ID        string            // of all keys and tokens; "": none is needed
	Name      string            // for the log
	Secret    model.Secret      // what clients send; "" of keys that users have made
	Services  []artel.ServiceID // nil: all
	Limits    store.KeyLimits
	Rewriting Rewriting // of the texts of tools
	Cache     Cache     // of Anthropic's dialect
}

func (k Key) allows(id artel.ServiceID) bool {
	return k.Services == nil || slices.Contains(k.Services, id)
}

// Holder names a client in marks about the bytes that it sends.
func (k Key) Holder(o artel.Owner) string {
	if k.Name == "" {
		return "gateway:" + string(o)
	}
	return "gateway:" + string(o) + "/" + k.Name
}

// A keyring has the keys of the configuration, and counts the requests of every
// key. It is safe for concurrent use.
type keyring struct {
	keys []secretKey
	now  func() time.Time

	mu   sync.Mutex
	uses map[string]*keyUse // by the ids of keys
}

type secretKey struct {
	Key
	sum [32]byte // SHA-256 of the secret
}

// A keyUse counts the requests with a key.
type keyUse struct {
	mu     sync.Mutex
	began  []time.Time // requests of the last minute, oldest first; only as many as the limit
	active int
}

// FileKeyID is the id of a key of the configuration.
func FileKeyID(name string) string { return "config:" + name }

func newKeyring(keys []Key, now func() time.Time) *keyring {
	r := &keyring{now: now, uses: map[string]*keyUse{}}
	for _, k := range keys {
		k.ID = FileKeyID(k.Name)
		r.keys = append(r.keys, secretKey{Key: k, sum: sha256.Sum256([]byte(k.Secret.Reveal()))})
	}
	return r
}

// use returns the counts of a key.
func (r *keyring) use(id string) *keyUse {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.uses[id]
	if u == nil {
		u = &keyUse{}
		r.uses[id] = u
	}
	return u
}

// CodeKeyLimit is the error code of a request over a limit of its key; the
// error is an [*artel.Error] around a [*KeyLimit].
const CodeKeyLimit = "key_limit"

// A KeyLimit is the error of a request over a limit of its key.
type KeyLimit struct {
	Key   string
	After time.Duration // until the next request may be made; 0: unknown
}

// Error implements error.
func (l *KeyLimit) Error() string {
	if l.After > 0 {
		return "the key " + l.Key + " has made all requests that it may make in a minute"
	}
	return "the key " + l.Key + " is at work on all requests that it may make at once"
}

// Admit counts a request of the client with a secret; the caller calls leave when
// the request is over. Who acts in the context must have the scope gateway, and
// has the limits of its key if it has one; a token has none. Without an actor, and
// with a secret that is unknown although keys are configured, the error is of kind
// Unauthenticated; a request over a limit of its key is of kind Unavailable.
// Without keys every request of an open deployment is admitted.
func (b *Backend) Admit(ctx context.Context, secret string) (key Key, leave func(), err error) {
	const op = "backend.Backend.Admit"
	a, known := access.Of(ctx)
	if !known {
		return Key{}, nil, artel.Errorf(artel.Unauthenticated, op, "", "this key is not known here, or it has ended: send a key of the gateway (sk-artel-…) or a token with the scope gateway (artel_…)")
	}
	if err := access.Require(ctx, store.ScopeGateway); err != nil {
		return Key{}, nil, err
	}
	switch {
	case a.Key != nil:
		key = Key{ID: a.Key.ID, Name: a.Key.Name, Services: a.Key.Services, Limits: a.Key.Limits}
	case a.Token != "":
		return Key{ID: "token:" + a.Token, Name: a.Token}, func() {}, nil
	case len(b.keys.keys) == 0:
		return Key{}, func() {}, nil
	default:
		found, ok := b.keys.find(secret)
		if !ok {
			return Key{}, nil, artel.Errorf(artel.Unauthenticated, op, "", "this key is not known here; gateway.keys of the configuration has those that are")
		}
		key = found
	}
	key.Limits = b.limitsOf(key.Limits)
	if key.Limits.Requests == 0 && key.Limits.Concurrent == 0 {
		return key, func() {}, nil
	}
	over := func(l *KeyLimit) error {
		return &artel.Error{Op: op, Subject: key.Name, Kind: artel.Unavailable, Code: CodeKeyLimit, Err: l}
	}
	here := key
	shared := b.usage.Shared()
	if shared {
		here.Limits.Requests = 0
	}
	use := b.keys.use(key.ID)
	if limit := use.enter(here, b.keys.now()); limit != nil {
		return key, nil, over(limit)
	}
	if !shared || key.Limits.Requests == 0 {
		return key, use.leave, nil
	}
	after, err := b.usage.Request(ctx, key.ID, key.Limits.Requests)
	if err == nil && after > 0 {
		err = over(&KeyLimit{Key: key.Name, After: after})
	}
	if err != nil {
		use.leave()
		return key, nil, err
	}
	return key, use.leave, nil
}

// IsAdministrator reports whether who asks is one, whatever its key may do besides.
func IsAdministrator(ctx context.Context) bool {
	a, _ := access.Of(ctx)
	return a.Role == store.Admin
}

// limitsOf completes the limits of a key.
func (b *Backend) limitsOf(l store.KeyLimits) store.KeyLimits {
	l.Requests, l.Tokens = cmp.Or(l.Requests, b.limits.Requests), cmp.Or(l.Tokens, b.limits.Tokens)
	l.Concurrent, l.Budget = cmp.Or(l.Concurrent, b.limits.Concurrent), cmp.Or(l.Budget, b.limits.Budget)
	return l
}

// find returns the key of the configuration with a secret. It compares with all, so
// that the time reveals nothing.
func (r *keyring) find(secret string) (found Key, ok bool) {
	sum := sha256.Sum256([]byte(secret))
	for _, k := range r.keys {
		if subtle.ConstantTimeCompare(k.sum[:], sum[:]) == 1 {
			found, ok = k.Key, true
		}
	}
	return found, ok
}

// Knows returns a function that reports whether a secret is that of one of the
// keys.
func Knows(keys []Key) func(secret string) bool {
	r := newKeyring(keys, time.Now)
	return func(secret string) bool { _, ok := r.find(secret); return ok }
}

func (u *keyUse) enter(k Key, now time.Time) *KeyLimit {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := k.Limits
	if l.Concurrent > 0 && u.active >= l.Concurrent {
		return &KeyLimit{Key: k.Name}
	}
	if l.Requests > 0 {
		passed := 0
		for passed < len(u.began) && now.Sub(u.began[passed]) >= time.Minute {
			passed++
		}
		u.began = u.began[passed:] // append moves what is left, when it needs room
		if n := len(u.began); n >= l.Requests {
			return &KeyLimit{Key: k.Name, After: time.Minute - now.Sub(u.began[n-l.Requests])}
		}
		u.began = append(u.began, now)
	}
	u.active++
	return nil
}

func (u *keyUse) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.active--
}
