// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A told store tells of the changes that a test sends.
type told struct {
	store.Store
	changes chan store.Change
}

func (s told) Watch(ctx context.Context, on func(store.Change)) error {
	for {
		select {
		case c := <-s.changes:
			on(c)
		case <-ctx.Done():
			return nil
		}
	}
}

// TestRevocationDoesNotWait: a token that another process has revoked ends also while a
// changed service is asked for its models, and does not answer.
func TestRevocationDoesNotWait(t *testing.T) {
	asked := make(chan struct{}, 10)
	var answered atomic.Bool
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		answered.Store(true)
	}))
	defer slow.Close()
	changes := make(chan store.Change)
	b := newBench(t, nil)
	b.config.Store = told{b.config.Store, changes}
	b.config.Services = model.NewRegistry([]model.Service{model.DemoService()}, model.DemoService().ID)
	b.config.Stored = app.Stored{HTTP: slow.Client()}
	other := b.open()
	watching, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() { defer close(watched); other.Watch(watching) }()
	defer func() { stop(); <-watched }()

	if _, err := b.Access.Users.Setup(apptest.Context(t), access.Setup{Name: "Ann", Email: "ann@example.org", Password: "a long password"}); err != nil {
		t.Fatal(err)
	}
	secret, made, err := b.Access.Tokens.Create(apptest.Context(t), access.TokenRequest{Name: "laptop", Scopes: []store.Scope{store.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	work, release, err := other.Access.Identify(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := b.Services.Create(apptest.Context(t), map[string]any{"id": "slow", "baseURL": slow.URL}); err != nil {
		t.Fatal(err)
	}
	changes <- store.Change{Of: store.ChangedEntry, ID: "slow"}
	<-asked
	if err := b.Access.Tokens.Revoke(apptest.Context(t), made.ID); err != nil {
		t.Fatal(err)
	}
	changes <- store.Change{Of: store.ChangedToken, ID: made.ID}
	<-work.Done()
	if answered.Load() {
		t.Error("the revocation has waited for the service")
	}
}
