// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A brokenPeople changes what a transaction hands out.
type brokenPeople struct {
	store.People
	breakIt func(*store.PeopleTx)
	keep    bool // what a failing update has written
}

func (p brokenPeople) View(ctx context.Context, fn func(store.PeopleTx) error) error {
	return p.People.View(ctx, func(tx store.PeopleTx) error { p.breakIt(&tx); return fn(tx) })
}

func (p brokenPeople) Update(ctx context.Context, fn func(store.PeopleTx) error) error {
	var failed error
	err := p.People.Update(ctx, func(tx store.PeopleTx) error {
		p.breakIt(&tx)
		if failed = fn(tx); p.keep {
			return nil
		}
		return failed
	})
	if err == nil {
		err = failed
	}
	return err
}

func breakPeople(breakIt func(*store.PeopleTx)) func(*twin) {
	return func(t *twin) { t.people = brokenPeople{People: t.people, breakIt: breakIt} }
}

type agelessInvitations struct{ store.Invitations }

func (i agelessInvitations) Take(hash artel.Digest, _ time.Time) (store.Invitation, error) {
	return i.Invitations.Take(hash, time.Time{})
}

type sharedIdentities struct{ store.Identities }

func (i sharedIdentities) Create(v store.Identity) error {
	if err := i.Identities.Create(v); errors.Is(err, artel.NotFound) {
		return err
	}
	return nil
}

type forgetfulUsers struct{ store.Users }

func (u forgetfulUsers) Update(v store.User) error {
	v.Disabled = false
	return u.Users.Update(v)
}

func (u forgetfulUsers) Delete(id artel.Owner) error { _, err := u.Get(id); return err }

type boundlessSessions struct{ store.Sessions }

func (s boundlessSessions) Touch(string, time.Time) error { return nil }

func (s boundlessSessions) Prune(time.Time, time.Time) error { return nil }

type sharedTokens struct{ store.Tokens }

func (t sharedTokens) Delete(_ artel.Owner, id string) error { return t.Tokens.Delete("ann", id) }

type sharedKeys struct{ store.GatewayKeys }

func (k sharedKeys) Update(v store.GatewayKey) error {
	v.User = "ann"
	return k.GatewayKeys.Update(v)
}

type sharedEntries struct{ store.Entries }

func (e sharedEntries) Update(v store.Entry) error {
	v.Secrets = []byte("kept")
	return e.Entries.Update(v)
}

type orphanTokens struct{ store.Tokens }

func (t orphanTokens) Create(v store.Token) error {
	v.Parent = ""
	return t.Tokens.Create(v)
}

type orphanKeys struct{ store.GatewayKeys }

func (k orphanKeys) Create(v store.GatewayKey) error {
	v.Parent = ""
	return k.GatewayKeys.Create(v)
}

type sharedLedger struct{ store.Ledger }

func (l sharedLedger) Sum(q store.UsageQuery) ([]store.UsageRow, error) {
	q.User = ""
	return l.Ledger.Sum(q)
}

// peopleTwins break what is promised about people.
func peopleTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"people/users":             breakPeople(func(tx *store.PeopleTx) { tx.Users = forgetfulUsers{tx.Users} }),
		"people/invitations":       breakPeople(func(tx *store.PeopleTx) { tx.Invitations = agelessInvitations{tx.Invitations} }),
		"people/identities":        breakPeople(func(tx *store.PeopleTx) { tx.Identities = sharedIdentities{tx.Identities} }),
		"people/sessions":          breakPeople(func(tx *store.PeopleTx) { tx.Sessions = boundlessSessions{tx.Sessions} }),
		"people/sessions that end": breakPeople(func(tx *store.PeopleTx) { tx.Sessions = boundlessSessions{tx.Sessions} }),
		"people/tokens":            breakPeople(func(tx *store.PeopleTx) { tx.Tokens = sharedTokens{tx.Tokens} }),
		"people/keys":              breakPeople(func(tx *store.PeopleTx) { tx.Keys = sharedKeys{tx.Keys} }),
		"people/key parents":       breakPeople(func(tx *store.PeopleTx) { tx.Keys = orphanKeys{tx.Keys} }),
		"people/token parents":     breakPeople(func(tx *store.PeopleTx) { tx.Tokens = orphanTokens{tx.Tokens} }),
		"people/ledger":            breakPeople(func(tx *store.PeopleTx) { tx.Ledger = sharedLedger{tx.Ledger} }),
		"people/deleted user":      breakPeople(func(tx *store.PeopleTx) { tx.Users = forgetfulUsers{tx.Users} }),
		"people/entries":           breakPeople(func(tx *store.PeopleTx) { tx.Entries = sharedEntries{tx.Entries} }),
		"people/transactions": func(t *twin) {
			t.people = brokenPeople{People: t.people, breakIt: func(*store.PeopleTx) {}, keep: true}
		},
	}
}
