// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A Budget limits the cost of calls.
type Budget struct {
	USD    float64      `json:"usd" exclusiveMinimum:"0" maximum:"1000000" doc:"in US dollars"`
	Period store.Period `json:"period" enum:"day,month" doc:"begins and ends in UTC"`
}

// A NewKey is the body of POST /gateway/keys. Limits that are absent are those of
// limits.key in the configuration.
type NewKey struct {
	Name       string            `json:"name" minLength:"1" maxLength:"100" doc:"for the log"`
	Services   []artel.ServiceID `json:"services,omitempty" maxItems:"1000" doc:"ids of those that may be called; absent: all"`
	Requests   int               `json:"requests_per_minute,omitempty" minimum:"0"`
	Tokens     int64             `json:"tokens_per_minute,omitempty" minimum:"0" doc:"of requests and answers"`
	Concurrent int               `json:"concurrent,omitempty" minimum:"0" doc:"requests at once"`
	Budget     *Budget           `json:"budget,omitempty"`
	ExpiresAt  *time.Time        `json:"expires_at,omitempty" doc:"absent: never, or as the token that asks"`
}

// A MadeKey is the answer of POST /gateway/keys.
type MadeKey struct {
	ID  string `json:"id"`
	Key string `json:"key" doc:"it cannot be read again"`

	ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"that of the token it was made with, if none was asked for; absent: never"`
}

// A KeyView is a key of the gateway without its secret.
type KeyView struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	User       artel.Owner       `json:"user" doc:"for whom its clients act"`
	Parent     string            `json:"parent,omitempty" doc:"the token with which it was made, and with which it ends"`
	Services   []artel.ServiceID `json:"services,omitempty" doc:"absent: all"`
	Requests   int               `json:"requests_per_minute,omitempty"`
	Tokens     int64             `json:"tokens_per_minute,omitempty"`
	Concurrent int               `json:"concurrent,omitempty"`
	Budget     *Budget           `json:"budget,omitempty"`
	CreatedAt  *time.Time        `json:"created_at,omitempty"`
	UsedAt     *time.Time        `json:"used_at,omitempty" doc:"exact to a minute; absent: never"`
	ExpiresAt  *time.Time        `json:"expires_at,omitempty" doc:"absent: never"`
	Disabled   bool              `json:"disabled,omitempty"`
	ReadOnly   bool              `json:"read_only,omitempty" doc:"a key of the configuration, which only its file changes"`
}

func keyView(k store.GatewayKey) KeyView {
	v := KeyView{
		ID: k.ID, Name: k.Name, User: k.User, Parent: k.Parent, Services: k.Services, Requests: k.Limits.Requests, Tokens: k.Limits.Tokens, Concurrent: k.Limits.Concurrent,
		CreatedAt: optionalTime(k.CreatedAt), UsedAt: optionalTime(k.UsedAt), ExpiresAt: optionalTime(k.ExpiresAt), Disabled: k.Disabled,
	}
	if b := k.Limits.Budget; b.USD > 0 {
		v.Budget = &Budget{b.USD, b.Period}
	}
	return v
}

// A Nullable is a field of a change: absent, null or a value.
type Nullable[T any] struct {
	Sent  bool
	Value *T // nil: null
}

// IsZero reports whether the field is absent.
func (n Nullable[T]) IsZero() bool { return !n.Sent }

// MarshalJSON implements [json.Marshaler].
func (n Nullable[T]) MarshalJSON() ([]byte, error) { return json.Marshal(n.Value) }

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Nullable[T]) UnmarshalJSON(b []byte) error {
	n.Sent = true
	if bytes.Equal(b, []byte("null")) {
		n.Value = nil
		return nil
	}
	n.Value = new(T)
	return json.Unmarshal(b, n.Value)
}

// Schema implements huma.SchemaProvider.
func (n Nullable[T]) Schema(r huma.Registry) *huma.Schema {
	s := *huma.SchemaFromType(r, reflect.TypeFor[T]())
	s.Nullable = true
	return &s
}

// A KeyChange is the body of PATCH /gateway/keys/{id}; null removes a limit.
type KeyChange struct {
	Name       *string                     `json:"name,omitempty" maxLength:"100"`
	Services   Nullable[[]artel.ServiceID] `json:"services,omitzero"`
	Requests   Nullable[int]               `json:"requests_per_minute,omitzero"`
	Tokens     Nullable[int64]             `json:"tokens_per_minute,omitzero"`
	Concurrent Nullable[int]               `json:"concurrent,omitzero"`
	Budget     Nullable[Budget]            `json:"budget,omitzero"`
	ExpiresAt  Nullable[time.Time]         `json:"expires_at,omitzero"`
	Disabled   *bool                       `json:"disabled,omitempty" doc:"requests with a disabled key end at once"`
}

func apply[T any](to *T, n Nullable[T]) {
	if !n.Sent {
		return
	}
	var none T
	*to = none
	if n.Value != nil {
		*to = *n.Value
	}
}

func (c KeyChange) apply(k *store.GatewayKey) {
	if c.Name != nil {
		k.Name = *c.Name
	}
	if c.Disabled != nil {
		k.Disabled = *c.Disabled
	}
	apply(&k.Services, c.Services)
	apply(&k.Limits.Requests, c.Requests)
	apply(&k.Limits.Tokens, c.Tokens)
	apply(&k.Limits.Concurrent, c.Concurrent)
	apply(&k.ExpiresAt, c.ExpiresAt)
	if c.Budget.Sent {
		k.Limits.Budget = store.Budget{}
		if b := c.Budget.Value; b != nil {
			k.Limits.Budget = store.Budget{USD: b.USD, Period: b.Period}
		}
	}
}

func (f *server) gatewayKeys() {
	keys := f.app.Keys
	const path = "/gateway/keys"
	register(f, f.op(http.MethodGet, path, "list-gateway-keys", "List your keys of the gateway, newest first; those of all users and of the configuration with the scope admin", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[List[KeyView]], error) {
			all, err := keys.List(ctx)
			if err != nil {
				return nil, err
			}
			list := views(all, keyView)
			for _, k := range keys.Fixed(ctx) {
				v := keyView(k)
				v.ReadOnly = true
				list = append(list, v)
			}
			return answer(listOf(list, ""), nil)
		})
	register(f, f.op(http.MethodPost, path, "make-gateway-key", "Make a key with which a program calls models at the gateway; it is shown once", http.StatusCreated),
		func(ctx context.Context, in *struct{ Body NewKey }) (*body[MadeKey], error) {
			b := in.Body
			k := store.GatewayKey{
				Name: b.Name, Services: b.Services, Limits: store.KeyLimits{Requests: b.Requests, Tokens: b.Tokens, Concurrent: b.Concurrent},
			}
			if b.Budget != nil {
				k.Limits.Budget = store.Budget{USD: b.Budget.USD, Period: b.Budget.Period}
			}
			if b.ExpiresAt != nil {
				k.ExpiresAt = *b.ExpiresAt
			}
			secret, k, err := keys.Create(ctx, k)
			return answer(MadeKey{k.ID, secret, optionalTime(k.ExpiresAt)}, err)
		})
	fixed := func(id string) error {
		if !keys.IsFixed(id) {
			return nil
		}
		return artel.Errorf(artel.Conflict, "gateway/keys", id, "this is a key of the configuration; change gateway.keys in artel.yaml and start the server again")
	}
	register(f, f.op(http.MethodPatch, path+"/{id}", "change-gateway-key", "Change a key of the gateway", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"200"`
			Body KeyChange
		},
		) (*body[KeyView], error) {
			if err := fixed(in.ID); err != nil {
				return nil, err
			}
			k, err := keys.Update(ctx, in.ID, in.Body.apply)
			return answer(keyView(k), err)
		})
	register(f, f.op(http.MethodDelete, path+"/{id}", "revoke-gateway-key", "Revoke a key of the gateway; requests with it end at once", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"200"`
		},
		) (*none, error) {
			if err := fixed(in.ID); err != nil {
				return nil, err
			}
			return nil, keys.Revoke(ctx, in.ID)
		})
}
