// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"slices"
	"time"

	"github.com/artelhq/artel"
)

// A Catalog has the tools that are available: the built-in ones and those of
// servers, which come and go.
type Catalog struct {
	BuiltIn *Set
	Servers Servers // nil: none
	// Granted returns the tools that an agent gets without naming them, as in the list of
	// an agent. Nil: none.
	Granted func(artel.AgentName) []string
}

// With returns the names in own and those of the tools that the agent gets without
// naming them.
func (c Catalog) With(agent artel.AgentName, own []string) []string {
	if c.Granted == nil {
		return own
	}
	out := slices.Clone(own)
	for _, name := range c.Granted(agent) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Set returns the tools currently available to a user.
func (c Catalog) Set(owner artel.Owner) *Set {
	if c.Servers == nil {
		return c.BuiltIn
	}
	return c.BuiltIn.With(c.Servers.Tools(owner)...)
}

// awaitTime is how long [Catalog.Await] waits.
const awaitTime = 8 * time.Second

// Await waits a moment for the servers that a user has connected with an account.
func (c Catalog) Await(ctx context.Context, owner artel.Owner) {
	if c.Servers == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, awaitTime)
	defer stop()
	c.Servers.Await(ctx, owner)
}

// Prefixes are the beginnings of the names of tools that may come later.
func (c Catalog) Prefixes() []string {
	if c.Servers == nil {
		return nil
	}
	return c.Servers.Prefixes()
}

// Health says how the servers are doing.
func (c Catalog) Health() []ServerHealth {
	if c.Servers == nil {
		return []ServerHealth{}
	}
	return c.Servers.Health()
}
