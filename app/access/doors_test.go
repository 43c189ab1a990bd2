// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// TestWrongCodesAreCheap: a wrong code of an invitation is refused before the password
// is hashed, and the tries from one address wait longer and longer.
func TestWrongCodesAreCheap(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	_, code, err := b.Users.Invite(admin, access.NewUser{Name: "Bob", Email: "bob@example.org"})
	b.must(err)
	from := func(address, code string) error {
		_, err := b.Users.Accept(audit.WithAddress(t.Context(), address), code, password)
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		b.kind("a wrong code", from("192.0.2.1", "wrong"), artel.Denied)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 19<<20 {
		t.Errorf("wrong codes took %d bytes, as much as a hash", n)
	}
	var d *access.Delay
	if err := from("192.0.2.1", code); !errors.As(err, &d) {
		t.Errorf("the try after 20 wrong ones: %v", err)
	}
	b.must(from("192.0.2.2", code))
}

// TestKeysActForAUser: the keys of the configuration act for the first
// administrator, as long as there is one who may log in and call models.
func TestKeysActForAUser(t *testing.T) {
	b := newBench(t, access.Options{Mode: access.Required})
	key := func() (context.Context, error) {
		ctx, release, err := b.IdentifyKey(t.Context())
		if err == nil {
			t.Cleanup(release)
		}
		return ctx, err
	}
	_, err := key()
	b.kind("without users", err, artel.Unauthenticated)
	admin := b.setUp()
	ctx, err := key()
	b.must(err)
	if a, _ := access.Of(ctx); a.Owner != artel.Local || !a.May(store.ScopeGateway) || a.May(store.ScopeRead) {
		t.Errorf("got %+v", a)
	}
	b.member(admin, "bob@example.org", store.Admin)
	disabled := true
	_, err = b.Users.Update(admin, artel.Local, access.UserPatch{Disabled: &disabled})
	b.must(err)
	<-ctx.Done() // a request at work ends
	_, err = key()
	b.kind("of a disabled user", err, artel.Unauthenticated)
	b.must(b.Users.Delete(admin, artel.Local))
	_, err = key()
	b.kind("of a deleted user", err, artel.Unauthenticated)
}

// TestSetupEndsOpenRequests: what the operator of an open server began ends when a login
// is needed.
func TestSetupEndsOpenRequests(t *testing.T) {
	for _, c := range []struct {
		mode access.Mode
		ends bool
	}{{access.Auto, true}, {access.OpenMode, false}} {
		b := newBench(t, access.Options{Mode: c.mode})
		ctx, release, ok := b.IdentifyOperator(t.Context())
		if !ok {
			t.Fatal("a login is needed")
		}
		b.setUp()
		if c.ends {
			<-ctx.Done()
		} else if ctx.Err() != nil {
			t.Error("the request of a server that stays open has ended")
		}
		release()
		_, release, ok = b.IdentifyOperator(t.Context())
		release()
		if ok == c.ends {
			t.Errorf("mode %q: open %v after set-up", c.mode, ok)
		}
	}
}
