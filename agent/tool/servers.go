// SPDX-License-Identifier: Apache-2.0

package tool

import "time"

// Servers provides tools that come and go while the program runs. It is safe
// for concurrent use.
type Servers interface {
	// Tools returns the tools currently available.
	Tools() []Tool
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
	ServerFailed     ServerState = "failed" // reconnecting automatically
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
func (l ServerList) Tools() []Tool { return join(l, Servers.Tools) }

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
