// SPDX-License-Identifier: Apache-2.0

package artel

import "context"

type ownerKey struct{}

// WithOwner returns a context in which o acts.
func WithOwner(ctx context.Context, o Owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, o)
}

// OwnerOf returns who acts in ctx, or "". There is no default: a store refuses
// transactions of no owner, so that work whose context was forgotten fails.
func OwnerOf(ctx context.Context) Owner {
	o, _ := ctx.Value(ownerKey{}).(Owner)
	return o
}

type agentKey struct{}

// WithAgent returns a context in which an agent calls models.
func WithAgent(ctx context.Context, a AgentName) context.Context {
	return context.WithValue(ctx, agentKey{}, a)
}

// AgentOf returns which agent calls models in ctx, or "".
func AgentOf(ctx context.Context) AgentName {
	a, _ := ctx.Value(agentKey{}).(AgentName)
	return a
}
