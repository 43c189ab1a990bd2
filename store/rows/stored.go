// SPDX-License-Identifier: Apache-2.0

package rows

import "github.com/artelhq/artel"

type storage struct{ *Tx }

func (t storage) Used() (n int64, err error) {
	_, err = t.row("store.Storage.Used", "", "SELECT bytes FROM stored WHERE owner = ?", []any{t.owner}, &n)
	return n, err
}

func (t storage) Holds(d artel.Digest) (bool, error) {
	var uses int
	return t.row("store.Storage.Holds", string(d), "SELECT uses FROM stored_blobs WHERE owner = ? AND digest = ?", []any{t.owner, d}, &uses)
}

func (t ledger) Stored() (map[artel.Owner]int64, error) {
	all := map[artel.Owner]int64{}
	err := t.rows("store.Ledger.Stored", "", "SELECT owner, bytes FROM stored WHERE bytes > 0", nil, func(rows Row) error {
		var owner artel.Owner
		var n int64
		err := rows.Scan(&owner, &n)
		all[owner] = n
		return err
	})
	return all, err
}
