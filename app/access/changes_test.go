// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/store"
)

// TestChangedElsewhere: what another process has changed ends the requests that it concerns, and
// no others, also if it is only known that something may have changed.
func TestChangedElsewhere(t *testing.T) {
	b := newBench(t, access.Options{Mode: access.Required, SetupKey: "key"})
	admin := b.setUp()
	bob, eve := b.member(admin, "bob@example.org", store.Member), b.member(admin, "eve@example.org", store.Member)
	other := access.New(access.Config{Store: b.db, Options: access.Options{Mode: access.Required, SetupKey: "key"}, Log: slog.New(slog.DiscardHandler), Now: b.clock, Stop: b.stop})
	t.Cleanup(other.Close)
	hers := b.as(b.login("eve@example.org"))
	for name, c := range map[string]struct {
		change func(session string) store.Change // by the other process
	}{
		"a session that is ended": {change: func(secret string) store.Change {
			ctx, release, err := other.Identify(t.Context(), secret)
			b.must(err)
			defer release()
			list, err := other.Sessions.List(ctx)
			b.must(err)
			b.must(other.Sessions.End(ctx, list[0].ID))
			return store.Change{Of: store.ChangedSession, ID: list[0].ID}
		}},
		"a user who is disabled": {change: func(string) store.Change {
			disabled := true
			_, err := other.Users.Update(admin, bob.ID, access.UserPatch{Disabled: &disabled})
			b.must(err)
			return store.Change{Of: store.ChangedUser, ID: string(bob.ID)}
		}},
	} {
		for _, told := range []bool{true, false} {
			enabled := false
			_, err := b.Users.Update(admin, bob.ID, access.UserPatch{Disabled: &enabled})
			b.must(err)
			b.pass(time.Second)
			secret := b.login("bob@example.org")
			his := b.as(secret)
			change := c.change(secret)
			if !told {
				change = store.Change{}
			}
			b.Changed(t.Context(), change)
			<-his.Done()
			b.kind(name, b.identified(secret), artel.Unauthenticated)
			if hers.Err() != nil {
				t.Errorf("%s, told %t: the requests of %s ended too", name, told, eve.Name)
			}
		}
	}

	token, k, err := b.Keys.Create(hers, store.GatewayKey{Name: "laptop", Limits: store.KeyLimits{Requests: 5}})
	b.must(err)
	at := b.as(token)
	_, err = other.Keys.Update(admin, k.ID, func(v *store.GatewayKey) { v.Limits.Requests = 9 })
	b.must(err)
	b.Changed(t.Context(), store.Change{Of: store.ChangedKey, ID: k.ID})
	if a, ok := access.Of(b.as(token)); !ok || a.Key.Limits.Requests != 9 || at.Err() != nil {
		t.Errorf("a changed key: %+v, %v", a.Key, at.Err())
	}
	b.must(other.Keys.Revoke(admin, k.ID))
	b.Changed(t.Context(), store.Change{Of: store.ChangedKey, ID: k.ID})
	<-at.Done()
}
