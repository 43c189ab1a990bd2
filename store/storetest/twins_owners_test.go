// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"reflect"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// ownersTwins break what owners are promised.
func ownersTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"store/no owner": func(t *twin) { // falls open
			t.view = func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
				if owner == "" {
					owner = artel.Local
				}
				return t.Store.View(ctx, owner, fn)
			}
		},
		"store/foreign rows": func(t *twin) { // writes by another owner reach mine
			t.update = func(ctx context.Context, _ artel.Owner, fn func(store.Tx) error) error {
				return t.Store.Update(ctx, me, fn)
			}
		},
	}
}

// TestEveryMethodIsWalked: every method of every part of a Tx is called by another
// owner in one of the clauses.
func TestEveryMethodIsWalked(t *testing.T) {
	walked := map[string]bool{}
	r := rows{}
	for name := range (&check{}).calls(full{}) {
		walked[name] = true
	}
	for name := range (&check{}).undeletes(full{}) {
		walked[name] = true
	}
	for name := range r.reads() {
		walked[name] = true
	}
	for name := range r.lists() {
		walked[name] = true
	}
	for name := range r.writes() {
		walked[name] = true
	}
	for part := range reflect.TypeFor[store.Tx]().Fields() {
		for method := range part.Type.Methods() {
			if name := part.Name + "." + method.Name; !walked[name] {
				t.Errorf("no clause calls %s as another owner", name)
			}
		}
	}
}
