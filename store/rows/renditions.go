// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"encoding/json"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type renditions struct{ *Tx }

func (t renditions) Get(source artel.Digest, form string) (store.Rendition, error) {
	const op = "store.Renditions.Get"
	r := store.Rendition{Source: source, Form: form}
	var info string
	found, err := t.row(op, string(source), "SELECT digest, info, created_at FROM renditions WHERE owner = ? AND source = ? AND form = ?",
		[]any{t.owner, source, form}, &r.Digest, &info, (*timeColumn)(&r.CreatedAt))
	if err == nil && !found {
		err = artel.Errorf(artel.NotFound, op, string(source), "no such rendition was made")
	}
	if err != nil {
		return store.Rendition{}, err
	}
	if err := json.Unmarshal([]byte(info), &r.MediaInfo); err != nil {
		return store.Rendition{}, artel.Errorf(artel.Internal, op, string(source), "the row is damaged: %w", err)
	}
	return r, nil
}

func (t renditions) Put(r store.Rendition) error {
	const op = "store.Renditions.Put"
	if err := checkText(op, string(r.Source), string(r.Source), r.Form, string(r.Digest)); err != nil {
		return err
	}
	info, err := encode(op, string(r.Source), r.MediaInfo)
	if err != nil {
		return err
	}
	_, err = t.change(op, string(r.Source), `INSERT INTO renditions (owner, source, form, digest, info, created_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (owner, source, form) DO UPDATE SET digest = excluded.digest, info = excluded.info, created_at = excluded.created_at`,
		t.owner, r.Source, r.Form, r.Digest, info, micros(r.CreatedAt))
	return err
}

func (t renditions) Delete(source artel.Digest) error {
	_, err := t.change("store.Renditions.Delete", string(source), "DELETE FROM renditions WHERE owner = ? AND source = ?", t.owner, source)
	return err
}
