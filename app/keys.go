// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A GatewayKey is who may use the gateway. The zero value may use everything.
type GatewayKey struct {
	Name        string            // for the log
	Secret      model.Secret      // what clients send
	Services    []artel.ServiceID // that it may use; nil: all
	PerMinute   int               // requests in any minute; 0: any number
	Concurrency int               // requests at once; 0: any number
}

func (k GatewayKey) allows(id artel.ServiceID) bool {
	return k.Services == nil || slices.Contains(k.Services, id)
}

// keyring knows the keys, and what each has used. It is safe for concurrent use.
type keyring struct {
	keys []*heldKey
	now  func() time.Time
}

type heldKey struct {
	GatewayKey
	sum [32]byte // of the secret

	mu     sync.Mutex
	times  []time.Time // of the requests of the last minute, oldest first; a ring of PerMinute
	next   int         // in times
	active int
}

func newKeyring(keys []GatewayKey, now func() time.Time) *keyring {
	r := &keyring{now: now}
	for _, k := range keys {
		r.keys = append(r.keys, &heldKey{GatewayKey: k, sum: sha256.Sum256([]byte(k.Secret.Reveal())), times: make([]time.Time, k.PerMinute)})
	}
	return r
}

// CodeKeyLimit is the error code of a request over a limit of its key; the
// error is an [*artel.Error] around a [*KeyLimit].
const CodeKeyLimit = "key_limit"

// A KeyLimit says that a key has used what it may.
type KeyLimit struct {
	Key   string
	After time.Duration // until the next request is let in; 0: nobody knows
}

// Error names the key.
func (l *KeyLimit) Error() string {
	if l.After > 0 {
		return "the key " + l.Key + " has made all requests that it may make in a minute"
	}
	return "the key " + l.Key + " is at work on all requests that it may make at once"
}

// Admit lets one request in that a client makes with a secret. leave is called
// when the request is over. Where keys are configured, another secret is of kind
// Denied, and one over a limit of its key of kind Unavailable; where none are,
// every request is let in.
func (g *Gateway) Admit(_ context.Context, secret string) (key GatewayKey, leave func(), err error) {
	if len(g.keys.keys) == 0 {
		return GatewayKey{}, func() {}, nil
	}
	sum := sha256.Sum256([]byte(secret))
	var held *heldKey
	for _, k := range g.keys.keys { // all of them, so that the time tells nothing
		if subtle.ConstantTimeCompare(k.sum[:], sum[:]) == 1 {
			held = k
		}
	}
	if held == nil {
		return GatewayKey{}, nil, artel.Errorf(artel.Denied, "app.Gateway.Admit", "", "this key is not known here; gateway.keys of the configuration has those that are")
	}
	if limit := held.enter(g.keys.now()); limit != nil {
		return held.GatewayKey, nil, &artel.Error{Op: "app.Gateway.Admit", Subject: held.Name, Kind: artel.Unavailable, Code: CodeKeyLimit, Err: limit}
	}
	return held.GatewayKey, held.leave, nil
}

func (k *heldKey) enter(now time.Time) *KeyLimit {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Concurrency > 0 && k.active >= k.Concurrency {
		return &KeyLimit{Key: k.Name}
	}
	if k.PerMinute > 0 {
		// The oldest of the last so many requests has to be a minute ago.
		if oldest := k.times[k.next]; !oldest.IsZero() && now.Sub(oldest) < time.Minute {
			return &KeyLimit{Key: k.Name, After: time.Minute - now.Sub(oldest)}
		}
		k.times[k.next] = now
		k.next = (k.next + 1) % k.PerMinute
	}
	k.active++
	return nil
}

func (k *heldKey) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.active--
}
