// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/artelhq/artel"
)

type ownerKey struct{}

// WithOwner says who acts. Without it, [artel.Local] does.
func WithOwner(ctx context.Context, o artel.Owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, o)
}

// OwnerOf returns who acts.
func OwnerOf(ctx context.Context) artel.Owner { return ownerOf(ctx) }

func ownerOf(ctx context.Context) artel.Owner {
	if o, ok := ctx.Value(ownerKey{}).(artel.Owner); ok {
		return o
	}
	return artel.Local
}
