// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type identities struct{ *Tx }

const identityColumns = `SELECT issuer, subject, "user", created_at FROM identities`

func scanIdentity(i *store.Identity) []any {
	return []any{&i.Issuer, &i.Subject, &i.User, (*timeColumn)(&i.CreatedAt)}
}

func (t identities) Create(i store.Identity) error {
	const op = "store.Identities.Create"
	if err := checkText(op, i.Subject, i.Issuer, i.Subject); err != nil {
		return err
	}
	if err := users(t).of(i.User); err != nil {
		return err
	}
	_, err := t.change(op, i.Subject, `INSERT INTO identities (issuer, subject, "user", created_at) VALUES (?, ?, ?, ?)`,
		i.Issuer, i.Subject, string(i.User), micros(i.CreatedAt))
	return err
}

func (t identities) Find(issuer, subject string) (store.Identity, error) {
	const op = "store.Identities.Find"
	var i store.Identity
	found, err := t.row(op, artel.Shorten(subject, 80), identityColumns+" WHERE issuer = ? AND subject = ?", []any{issuer, subject}, scanIdentity(&i)...)
	if err == nil && !found {
		err = artel.Errorf(artel.NotFound, op, artel.Shorten(subject, 80), "this account belongs to no user")
	}
	if err != nil {
		return store.Identity{}, err
	}
	return i, nil
}

func (t identities) List(user artel.Owner) ([]store.Identity, error) {
	return list(t.Tx, "store.Identities.List", string(user), identityColumns+` WHERE "user" = ? ORDER BY n`, []any{string(user)},
		func(rows Row, i *store.Identity) error { return rows.Scan(scanIdentity(i)...) })
}
