// SPDX-License-Identifier: Apache-2.0

package artel

import "context"

type ownerKey struct{}

// WithOwner returns a context in which o acts. In others, [Local] does.
func WithOwner(ctx context.Context, o Owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, o)
}

// OwnerOf returns who acts in ctx.
func OwnerOf(ctx context.Context) Owner {
	if o, ok := ctx.Value(ownerKey{}).(Owner); ok {
		return o
	}
	return Local
}
