// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type answers struct{ *Tx }

func (t answers) Get(key string) (store.Answer, error) {
	const op = "store.Answers.Get"
	var a store.Answer
	var empty bool
	found, err := t.row(op, key, "SELECT key, request, status, created_at, body, body IS NOT NULL FROM answers WHERE owner = ? AND key = ?",
		[]any{t.owner, key}, &a.Key, &a.Request, &a.Status, (*timeColumn)(&a.CreatedAt), &a.Body, &empty)
	if err == nil && !found {
		err = artel.Errorf(artel.NotFound, op, artel.Shorten(key, 80), "no answer under this key")
	}
	if err != nil {
		return store.Answer{}, err
	}
	if a.Body == nil && empty { // the driver reads an empty body as NULL
		a.Body = []byte{}
	}
	return a, nil
}

func (t answers) Put(a store.Answer) error {
	const op = "store.Answers.Put"
	if err := checkText(op, a.Key, a.Key, string(a.Request)); err != nil {
		return err
	}
	_, err := t.change(op, artel.Shorten(a.Key, 80), "INSERT INTO answers (owner, key, request, status, created_at, body) VALUES (?, ?, ?, ?, ?, ?)",
		t.owner, a.Key, a.Request, a.Status, micros(a.CreatedAt), a.Body)
	return err
}

func (t answers) Prune(before time.Time) error {
	const op = "store.Answers.Prune"
	_, err := t.change(op, "", "DELETE FROM answers WHERE owner = ? AND created_at < ?", t.owner, micros(before))
	return err
}
