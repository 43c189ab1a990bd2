// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// Servers provides tools that come and go while the program runs. It is safe
// for concurrent use.
type Servers interface {
	// Tools returns the tools currently available to a user. Without a user, those that
	// need an account of one are left out.
	Tools(owner artel.Owner) []Tool
	// Await waits, until ctx ends, for the tools of the servers that the user has connected
	// with an account; without a user, for the first attempt to reach the other servers.
	Await(ctx context.Context, owner artel.Owner)
	// Prefixes returns the prefixes of the names of all present and future tools.
	Prefixes() []string
	// Health returns the state of each server.
	Health() []ServerHealth
}

// ServerState is the state of a server of tools.
type ServerState string

// The states.
const (
	ServerConnecting ServerState = "connecting" // for the first time
	ServerReady      ServerState = "ready"
	ServerFailed     ServerState = "failed"   // reconnecting automatically
	ServerPerUser    ServerState = "per_user" // each user connects it with an account
)

// ServerHealth is the state of a server, and since when it has it.
type ServerHealth struct {
	Name  string      `json:"name"`
	State ServerState `json:"state"`
	Tools int         `json:"tools"`           // currently offered
	Error string      `json:"error,omitempty"` // reason of the failure
	Since time.Time   `json:"since"`
}

// A ServerList provides the tools of several [Servers], in their order.
type ServerList []Servers

// Tools implements [Servers].
func (l ServerList) Tools(owner artel.Owner) []Tool {
	return join(l, func(s Servers) []Tool { return s.Tools(owner) })
}

// Await implements [Servers].
func (l ServerList) Await(ctx context.Context, owner artel.Owner) {
	var wg sync.WaitGroup
	for _, s := range l {
		wg.Go(func() { s.Await(ctx, owner) })
	}
	wg.Wait()
}

// Prefixes implements [Servers].
func (l ServerList) Prefixes() []string { return join(l, Servers.Prefixes) }

// Health implements [Servers].
func (l ServerList) Health() []ServerHealth { return join(l, Servers.Health) }

func join[T any](l ServerList, of func(Servers) []T) []T {
	out := []T{}
	for _, s := range l {
		out = append(out, of(s)...)
	}
	return out
}
