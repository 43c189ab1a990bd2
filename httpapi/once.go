// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"

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
	unlock, err := f.app.Answers.Lock(ctx, key)
	if err != nil {
		return out, err
	}
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
