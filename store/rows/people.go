// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"encoding/json"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// People implements [store.Unowned].
func (s Store) People() store.People { return people{s} }

type people struct{ store Store }

func (p people) View(ctx context.Context, fn func(store.PeopleTx) error) error {
	return p.store.view(ctx, Deployment, func(t *Tx) error { return fn(t.people()) })
}

func (p people) Update(ctx context.Context, fn func(store.PeopleTx) error) error {
	return p.store.db.Write(ctx, Deployment, func(t *Tx) error { return fn(t.people()) })
}

func (t *Tx) people() store.PeopleTx {
	return store.PeopleTx{Users: users{t}, Invitations: invitations{t}, Identities: identities{t}, Sessions: sessions{t}, Tokens: tokens{t}, Keys: gatewayKeys{t}, Entries: entries{t}, Ledger: ledger{t}, Webhooks: webhooks{t}, Deliveries: deliveries{t}, Schedules: schedules{t}, Starts: starts{t}, Audit: audit{t}}
}

// present turns a number of changed rows into NotFound if it is zero.
func present(op, subject, what string, n int64, err error) error {
	if err == nil && n == 0 {
		err = artel.Errorf(artel.NotFound, op, artel.Shorten(subject, 80), "no such %s", what)
	}
	return err
}

type users struct{ *Tx }

const userColumns = "SELECT id, name, email, role, password, disabled, created_at, updated_at FROM users"

func scanUser(u *store.User) []any {
	return []any{&u.ID, &u.Name, &u.Email, &u.Role, &u.Password, &u.Disabled, (*timeColumn)(&u.CreatedAt), (*timeColumn)(&u.UpdatedAt)}
}

func (t users) Create(u store.User) error {
	const op = "store.Users.Create"
	if err := checkText(op, string(u.ID), string(u.ID), u.Name, u.Email, string(u.Role), u.Password); err != nil {
		return err
	}
	_, err := t.change(op, string(u.ID), "INSERT INTO users (id, name, email, role, password, disabled, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		string(u.ID), u.Name, u.Email, string(u.Role), u.Password, u.Disabled, micros(u.CreatedAt), micros(u.UpdatedAt))
	return err
}

func (t users) one(op, subject, where string, arg any) (store.User, error) {
	var u store.User
	found, err := t.row(op, artel.Shorten(subject, 80), userColumns+where, []any{arg}, scanUser(&u)...)
	if err == nil && !found {
		err = artel.Errorf(artel.NotFound, op, artel.Shorten(subject, 80), "no such user")
	}
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

func (t users) Get(id artel.Owner) (store.User, error) {
	return t.one("store.Users.Get", string(id), " WHERE id = ?", string(id))
}

func (t users) ByEmail(email string) (store.User, error) {
	return t.one("store.Users.ByEmail", email, " WHERE email = ?", email)
}

func (t users) List() ([]store.User, error) {
	return list(t.Tx, "store.Users.List", "", userColumns+" ORDER BY n", nil, func(rows Row, u *store.User) error { return rows.Scan(scanUser(u)...) })
}

func (t users) Update(u store.User) error {
	const op = "store.Users.Update"
	if err := checkText(op, string(u.ID), u.Name, u.Email, string(u.Role), u.Password); err != nil {
		return err
	}
	n, err := t.change(op, string(u.ID), "UPDATE users SET name = ?, email = ?, role = ?, password = ?, disabled = ?, updated_at = ? WHERE id = ?",
		u.Name, u.Email, string(u.Role), u.Password, u.Disabled, micros(u.UpdatedAt), string(u.ID))
	return present(op, string(u.ID), "user", n, err)
}

func (t users) Delete(id artel.Owner) error {
	const op = "store.Users.Delete"
	if err := gatewayKeys(t).Delete(id, ""); err != nil {
		return err
	}
	if err := webhooks(t).Delete(id, ""); err != nil {
		return err
	}
	if err := schedules(t).Delete(id, ""); err != nil {
		return err
	}
	n, err := t.change(op, string(id), "DELETE FROM users WHERE id = ?", string(id))
	return present(op, string(id), "user", n, err)
}

// of returns NotFound unless there is a user.
func (t users) of(id artel.Owner) error {
	_, err := t.Get(id)
	return err
}

type invitations struct{ *Tx }

func (t invitations) Put(i store.Invitation) error {
	if err := users(t).of(i.User); err != nil {
		return err
	}
	_, err := t.change("store.Invitations.Put", string(i.User), `INSERT INTO invitations ("user", hash, expires_at) VALUES (?, ?, ?) ON CONFLICT ("user") DO UPDATE SET hash = excluded.hash, expires_at = excluded.expires_at`,
		string(i.User), string(i.Hash), micros(i.ExpiresAt))
	return err
}

func (t invitations) Find(hash artel.Digest, now time.Time) (store.Invitation, error) {
	const op = "store.Invitations.Find"
	i := store.Invitation{Hash: hash}
	found, err := t.row(op, "", `SELECT "user", expires_at FROM invitations WHERE hash = ? AND expires_at > ?`, []any{string(hash), micros(now)}, &i.User, (*timeColumn)(&i.ExpiresAt))
	if err == nil && !found {
		err = artel.Errorf(artel.NotFound, op, "", "no such invitation")
	}
	if err != nil {
		return store.Invitation{}, err
	}
	return i, nil
}

func (t invitations) Take(hash artel.Digest, now time.Time) (store.Invitation, error) {
	i, err := t.Find(hash, now)
	if err == nil {
		_, err = t.change("store.Invitations.Take", "", "DELETE FROM invitations WHERE hash = ?", string(hash))
	}
	if err != nil {
		return store.Invitation{}, err
	}
	return i, nil
}

type sessions struct{ *Tx }

const sessionColumns = `SELECT id, hash, "user", client, address, created_at, used_at, expires_at FROM sessions`

func scanSession(s *store.Session) []any {
	return []any{&s.ID, &s.Hash, &s.User, &s.Client, &s.Address, (*timeColumn)(&s.CreatedAt), (*timeColumn)(&s.UsedAt), (*timeColumn)(&s.ExpiresAt)}
}

func (t sessions) Create(s store.Session) error {
	const op = "store.Sessions.Create"
	if err := checkText(op, s.ID, s.ID, s.Client, s.Address); err != nil {
		return err
	}
	if err := users(t).of(s.User); err != nil {
		return err
	}
	_, err := t.change(op, s.ID, `INSERT INTO sessions (id, hash, "user", client, address, created_at, used_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		s.ID, string(s.Hash), string(s.User), s.Client, s.Address, micros(s.CreatedAt), micros(s.UsedAt), micros(s.ExpiresAt))
	return err
}

func (t sessions) Find(hash artel.Digest) (store.Session, error) {
	const op = "store.Sessions.Find"
	var s store.Session
	found, err := t.row(op, "", sessionColumns+" WHERE hash = ?", []any{string(hash)}, scanSession(&s)...)
	if err == nil && !found {
		err = artel.Errorf(artel.NotFound, op, "", "no such session")
	}
	if err != nil {
		return store.Session{}, err
	}
	return s, nil
}

func (t sessions) List(user artel.Owner) ([]store.Session, error) {
	return list(t.Tx, "store.Sessions.List", string(user), sessionColumns+` WHERE "user" = ? ORDER BY n DESC`, []any{string(user)},
		func(rows Row, s *store.Session) error { return rows.Scan(scanSession(s)...) })
}

func (t sessions) Touch(id string, at time.Time) error {
	_, err := t.change("store.Sessions.Touch", id, "UPDATE sessions SET used_at = ? WHERE id = ?", micros(at), id)
	return err
}

func (t sessions) Delete(user artel.Owner, id string) error {
	const op = "store.Sessions.Delete"
	if id == "" {
		_, err := t.change(op, string(user), `DELETE FROM sessions WHERE "user" = ?`, string(user))
		return err
	}
	n, err := t.change(op, id, `DELETE FROM sessions WHERE "user" = ? AND id = ?`, string(user), id)
	return present(op, id, "session", n, err)
}

func (t sessions) Prune(now, idle time.Time) error {
	_, err := t.change("store.Sessions.Prune", "", "DELETE FROM sessions WHERE expires_at < ? OR used_at < ?", micros(now), micros(idle))
	return err
}

type tokens struct{ *Tx }

const tokenColumns = `SELECT id, hash, "user", name, scopes, coalesce(parent, ''), created_at, coalesce(used_at, 0), coalesce(expires_at, 0) FROM tokens`

// fillToken reads a row; a time of 0 is none.
func fillToken(t *store.Token, scan func(...any) error) error {
	var scopes string
	var used, expires int64
	if err := scan(&t.ID, &t.Hash, &t.User, &t.Name, &scopes, &t.Parent, (*timeColumn)(&t.CreatedAt), &used, &expires); err != nil {
		return err
	}
	if used != 0 {
		t.UsedAt = fromMicros(used)
	}
	if expires != 0 {
		t.ExpiresAt = fromMicros(expires)
	}
	return json.Unmarshal([]byte(scopes), &t.Scopes)
}

// optional is a time column that may be empty.
func optional(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return micros(at)
}

func (t tokens) Create(v store.Token) error {
	const op = "store.Tokens.Create"
	if err := checkText(op, v.ID, v.ID, v.Name); err != nil {
		return err
	}
	if err := users(t).of(v.User); err != nil {
		return err
	}
	parent, err := t.parent(op, v.User, v.Parent)
	if err != nil {
		return err
	}
	scopes, err := encode(op, v.ID, v.Scopes)
	if err != nil {
		return err
	}
	_, err = t.change(op, v.ID, `INSERT INTO tokens (id, hash, "user", name, scopes, parent, created_at, used_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		v.ID, string(v.Hash), string(v.User), v.Name, scopes, parent, micros(v.CreatedAt), optional(v.UsedAt), optional(v.ExpiresAt))
	return err
}

// parent returns the column of the parent of a token or key of a user, which may be
// empty. It is of kind NotFound if the user has no such token.
func (t tokens) parent(op string, user artel.Owner, id string) (any, error) {
	if id == "" {
		return nil, nil
	}
	var one int
	found, err := t.row(op, id, `SELECT 1 FROM tokens WHERE "user" = ? AND id = ?`, []any{string(user), id}, &one)
	if err == nil && !found {
		err = artel.Errorf(artel.NotFound, op, artel.Shorten(id, 80), "no such parent")
	}
	return id, err
}

func (t tokens) Find(hash artel.Digest) (store.Token, error) {
	const op = "store.Tokens.Find"
	found, err := list(t.Tx, op, "", tokenColumns+" WHERE hash = ?", []any{string(hash)}, func(rows Row, v *store.Token) error { return fillToken(v, rows.Scan) })
	if err == nil && len(found) == 0 {
		err = artel.Errorf(artel.NotFound, op, "", "no such token")
	}
	if err != nil {
		return store.Token{}, err
	}
	return found[0], nil
}

func (t tokens) List(user artel.Owner) ([]store.Token, error) {
	return list(t.Tx, "store.Tokens.List", string(user), tokenColumns+` WHERE "user" = ? ORDER BY n DESC`, []any{string(user)},
		func(rows Row, v *store.Token) error { return fillToken(v, rows.Scan) })
}

func (t tokens) Touch(id string, at time.Time) error {
	_, err := t.change("store.Tokens.Touch", id, "UPDATE tokens SET used_at = ? WHERE id = ?", micros(at), id)
	return err
}

func (t tokens) Delete(user artel.Owner, id string) error {
	const op = "store.Tokens.Delete"
	if id == "" {
		_, err := t.change(op, string(user), `DELETE FROM tokens WHERE "user" = ?`, string(user))
		return err
	}
	n, err := t.change(op, id, `DELETE FROM tokens WHERE "user" = ? AND id = ?`, string(user), id)
	return present(op, id, "token", n, err)
}
