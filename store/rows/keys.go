// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"encoding/json"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type gatewayKeys struct{ *Tx }

const keyColumns = `SELECT id, hash, "user", coalesce(parent, ''), created_at, coalesce(used_at, 0), name, services, requests, tokens, concurrent, budget, period, coalesce(expires_at, 0), disabled FROM gateway_keys`

// fillKey reads a row; a time of 0 is none.
func fillKey(k *store.GatewayKey, scan func(...any) error) error {
	var services string
	var used, expires int64
	l := &k.Limits
	err := scan(&k.ID, &k.Hash, &k.User, &k.Parent, (*timeColumn)(&k.CreatedAt), &used, &k.Name, &services,
		&l.Requests, &l.Tokens, &l.Concurrent, &l.Budget.USD, &l.Budget.Period, &expires, &k.Disabled)
	if err != nil {
		return err
	}
	if used != 0 {
		k.UsedAt = fromMicros(used)
	}
	if expires != 0 {
		k.ExpiresAt = fromMicros(expires)
	}
	return json.Unmarshal([]byte(services), &k.Services)
}

func (t gatewayKeys) Create(k store.GatewayKey) error {
	const op = "store.GatewayKeys.Create"
	if err := checkText(op, k.ID, k.ID, k.Name); err != nil {
		return err
	}
	parent, err := tokens(t).parent(op, k.User, k.Parent)
	if err != nil {
		return err
	}
	services, err := encode(op, k.ID, k.Services)
	if err != nil {
		return err
	}
	l := k.Limits
	_, err = t.change(op, k.ID, `INSERT INTO gateway_keys (id, hash, "user", parent, created_at, used_at, name, services, requests, tokens, concurrent, budget, period, expires_at, disabled) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		k.ID, string(k.Hash), string(k.User), parent, micros(k.CreatedAt), optional(k.UsedAt), k.Name, services, l.Requests, l.Tokens, l.Concurrent, l.Budget.USD, string(l.Budget.Period), optional(k.ExpiresAt), k.Disabled)
	return err
}

func (t gatewayKeys) Find(hash artel.Digest) (store.GatewayKey, error) {
	const op = "store.GatewayKeys.Find"
	found, err := list(t.Tx, op, "", keyColumns+" WHERE hash = ?", []any{string(hash)}, func(rows Row, k *store.GatewayKey) error { return fillKey(k, rows.Scan) })
	if err == nil && len(found) == 0 {
		err = artel.Errorf(artel.NotFound, op, "", "no such key")
	}
	if err != nil {
		return store.GatewayKey{}, err
	}
	return found[0], nil
}

func (t gatewayKeys) List(user artel.Owner) ([]store.GatewayKey, error) {
	return list(t.Tx, "store.GatewayKeys.List", string(user), keyColumns+` WHERE "user" = ? OR ? = '' ORDER BY n DESC`, []any{string(user), string(user)},
		func(rows Row, k *store.GatewayKey) error { return fillKey(k, rows.Scan) })
}

func (t gatewayKeys) Touch(id string, at time.Time) error {
	_, err := t.change("store.GatewayKeys.Touch", id, "UPDATE gateway_keys SET used_at = ? WHERE id = ?", micros(at), id)
	return err
}

func (t gatewayKeys) Update(k store.GatewayKey) error {
	const op = "store.GatewayKeys.Update"
	if err := checkText(op, k.ID, k.Name); err != nil {
		return err
	}
	services, err := encode(op, k.ID, k.Services)
	if err != nil {
		return err
	}
	l := k.Limits
	n, err := t.change(op, k.ID, `UPDATE gateway_keys SET name = ?, services = ?, requests = ?, tokens = ?, concurrent = ?, budget = ?, period = ?, expires_at = ?, disabled = ? WHERE "user" = ? AND id = ?`,
		k.Name, services, l.Requests, l.Tokens, l.Concurrent, l.Budget.USD, string(l.Budget.Period), optional(k.ExpiresAt), k.Disabled, string(k.User), k.ID)
	return present(op, k.ID, "key", n, err)
}

func (t gatewayKeys) Delete(user artel.Owner, id string) error {
	const op = "store.GatewayKeys.Delete"
	if id == "" {
		_, err := t.change(op, string(user), `DELETE FROM gateway_keys WHERE "user" = ?`, string(user))
		return err
	}
	n, err := t.change(op, id, `DELETE FROM gateway_keys WHERE "user" = ? AND id = ?`, string(user), id)
	return present(op, id, "key", n, err)
}
