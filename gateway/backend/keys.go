// SPDX-License-Identifier: Apache-2.0

package backend

import (
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
	Name        string            // for the log
	Secret      model.Secret      // what clients send
	Services    []artel.ServiceID // nil: all
	PerMinute   int               // requests in any minute; 0: no limit
	Concurrency int               // requests at once; 0: no limit
	Rewriting   Rewriting         // of the texts of tools
	Cache       Cache             // of Anthropic's dialect
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

// A keyring counts the requests of each key. It is safe for concurrent use.
type keyring struct {
	keys []*keyUse
	now  func() time.Time
}

type keyUse struct {
	Key
	sum [32]byte // SHA-256 of the secret

	mu     sync.Mutex
	times  []time.Time // ring buffer: when the last PerMinute requests began
	next   int         // index of the oldest in times
	active int
}

func newKeyring(keys []Key, now func() time.Time) *keyring {
	r := &keyring{now: now}
	for _, k := range keys {
		r.keys = append(r.keys, &keyUse{Key: k, sum: sha256.Sum256([]byte(k.Secret.Reveal())), times: make([]time.Time, k.PerMinute)})
	}
	return r
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
// the request is over. Who acts in the context must have the scope gateway; a
// token of the deployment has no other limits. If keys are configured, another
// secret that is unknown is of kind Denied, and a request over a limit of its key
// of kind Unavailable; without keys every request is admitted.
func (b *Backend) Admit(ctx context.Context, secret string) (key Key, leave func(), err error) {
	if err := access.Require(ctx, store.ScopeGateway); err != nil {
		return Key{}, nil, err
	}
	if a, _ := access.Of(ctx); a.Token != "" {
		return Key{Name: a.Token}, func() {}, nil
	}
	if len(b.keys.keys) == 0 {
		return Key{}, func() {}, nil
	}
	use := b.keys.find(secret)
	if use == nil {
		return Key{}, nil, artel.Errorf(artel.Denied, "backend.Backend.Admit", "", "this key is not known here; gateway.keys of the configuration has those that are")
	}
	if limit := use.enter(b.keys.now()); limit != nil {
		return use.Key, nil, &artel.Error{Op: "backend.Backend.Admit", Subject: use.Name, Kind: artel.Unavailable, Code: CodeKeyLimit, Err: limit}
	}
	return use.Key, use.leave, nil
}

// find returns the key with a secret, or nil. It compares with all, so that the time
// reveals nothing.
func (r *keyring) find(secret string) (use *keyUse) {
	sum := sha256.Sum256([]byte(secret))
	for _, k := range r.keys {
		if subtle.ConstantTimeCompare(k.sum[:], sum[:]) == 1 {
			use = k
		}
	}
	return use
}

// Knows returns a function that reports whether a secret is that of one of the
// keys.
func Knows(keys []Key) func(secret string) bool {
	r := newKeyring(keys, time.Now)
	return func(secret string) bool { return r.find(secret) != nil }
}

func (k *keyUse) enter(now time.Time) *KeyLimit {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Concurrency > 0 && k.active >= k.Concurrency {
		return &KeyLimit{Key: k.Name}
	}
	if k.PerMinute > 0 {
		// The oldest of the last PerMinute requests has to be a minute ago.
		if oldest := k.times[k.next]; !oldest.IsZero() && now.Sub(oldest) < time.Minute {
			return &KeyLimit{Key: k.Name, After: time.Minute - now.Sub(oldest)}
		}
		k.times[k.next] = now
		k.next = (k.next + 1) % k.PerMinute
	}
	k.active++
	return nil
}

func (k *keyUse) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.active--
}
