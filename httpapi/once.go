// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// An OnceHeader is the idempotency key of a POST that creates something (see
// the IETF draft "The Idempotency-Key HTTP Header Field"): for a day, the same
// key with the same request gives the same answer, and the work is done once.
type OnceHeader struct {
	Key string `header:"Idempotency-Key" maxLength:"255" doc:"the same key with the same request is carried out once"`
}

// once calls do, or returns its earlier result under the same key. request is
// what must be equal for the key to be valid.
func once[T any](ctx context.Context, f *server, key string, request any, do func() (T, error)) (T, error) {
	if key == "" {
		return do()
	}
	var out T
	encoded, err := json.Marshal(request)
	if err != nil {
		return out, err
	}
	digest := artel.NewDigest(sha256.Sum256(encoded))
	unlock := f.keyLocks.lock(string(artel.OwnerOf(ctx)) + "\x00" + key) // owners do not wait for each other
	defer unlock()
	before, err := f.app.Answers.Find(ctx, key)
	switch {
	case err == nil && before.Request != digest:
		return out, newProblem(http.StatusUnprocessableEntity, "idempotency_key_reused", "this Idempotency-Key came with another request before; use a new one")
	case err == nil:
		return out, json.Unmarshal(before.Body, &out)
	case !errors.Is(err, artel.NotFound):
		return out, err
	}
	if out, err = do(); err != nil {
		return out, err
	}
	answered, err := json.Marshal(out)
	if err != nil {
		return out, err
	}
	if err := f.app.Answers.Keep(ctx, store.Answer{Key: key, Request: digest, Status: http.StatusOK, Body: answered}); err != nil {
		// The work is done; only a repetition is not prevented.
		f.o.Log.WarnContext(ctx, "an answer could not be remembered for its idempotency key", "err", err)
	}
	return out, nil
}

// keyLocks serialise the requests with one key.
type keyLocks struct {
	mu    sync.Mutex
	locks map[string]*keyLock
}

type keyLock struct {
	sync.Mutex
	users int
}

func newKeyLocks() *keyLocks { return &keyLocks{locks: map[string]*keyLock{}} }

func (l *keyLocks) lock(key string) (unlock func()) {
	l.mu.Lock()
	k := l.locks[key]
	if k == nil {
		k = &keyLock{}
		l.locks[key] = k
	}
	k.users++
	l.mu.Unlock()
	k.Lock()
	return func() {
		k.Unlock()
		l.mu.Lock()
		if k.users--; k.users == 0 {
			delete(l.locks, key)
		}
		l.mu.Unlock()
	}
}
