// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/store"
)

// A StorageUse is what a user stores, in bytes, as [store.Storage] counts it.
type StorageUse struct {
	Used  int64 `json:"used" doc:"bytes of files, each once, and of the stored texts and changes of artifacts; what is deleted counts until it can no longer be restored"`
	Limit int64 `json:"limit,omitempty" doc:"bytes, limits.user.storage; absent: none"`
}

// Left is what may still be stored; -1: any number of bytes.
func (s StorageUse) Left() int64 {
	if s.Limit == 0 {
		return -1
	}
	return max(s.Limit-s.Used, 0)
}

// nearLimit is the share of the limit from which pages warn.
const nearLimit = 0.8

// Share is the used share of the limit, from 0 to 1.
func (s StorageUse) Share() float64 {
	if s.Limit == 0 {
		return 0
	}
	return min(float64(s.Used)/float64(s.Limit), 1)
}

// Near reports whether little is left of the limit.
func (s StorageUse) Near() bool { return s.Share() >= nearLimit }

// Mine returns what the acting user stores.
func (st *Storage) Mine(ctx context.Context) (s StorageUse, err error) {
	s.Limit = st.core.artifacts.Quota.Limit()
	err = st.core.view(ctx, func(tx store.Tx) (err error) { s.Used, err = tx.Storage.Used(); return err })
	return s, err
}

// Of returns what a user stores, for administrators.
func (st *Storage) Of(all map[artel.Owner]int64, user artel.Owner) StorageUse {
	return StorageUse{Used: all[user], Limit: st.core.artifacts.Quota.Limit()}
}

// Everyone returns the bytes that each user stores, for administrators.
func (st *Storage) Everyone(ctx context.Context) (all map[artel.Owner]int64, err error) {
	if err := access.Require(ctx, store.ScopeAdmin); err != nil {
		return nil, err
	}
	return st.count(ctx)
}

func (st *Storage) count(ctx context.Context) (all map[artel.Owner]int64, err error) {
	err = st.core.store.People().View(ctx, func(tx store.PeopleTx) (err error) { all, err = tx.Ledger.Stored(); return err })
	return all, err
}

// Load returns the bytes that all users store, and those of the user who stores most,
// for operators.
func (st *Storage) Load(ctx context.Context) (sum, most int64, err error) {
	all, err := st.count(ctx)
	for _, n := range all {
		sum, most = sum+n, max(most, n)
	}
	return sum, most, err
}

// Reserve admits the uploads of a request; see [artifact.Quota.Reserve].
func (st *Storage) Reserve(ctx context.Context, size, spare int64) (context.Context, func(), error) {
	return st.core.artifacts.Quota.Reserve(ctx, size, spare)
}
