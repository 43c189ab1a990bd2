// SPDX-License-Identifier: Apache-2.0

package tool

import "time"

// Servers are where tools come from that come and go while the program runs. It
// is safe for concurrent use.
type Servers interface {
	// Tools are those that are there now.
	Tools() []Tool
	// Prefixes are what the names of all of them begin with, now and later.
	Prefixes() []string
	// Health says how each server is doing.
	Health() []ServerHealth
}

// ServerState is how a server of tools is doing.
type ServerState string

// The states.
const (
	ServerConnecting ServerState = "connecting" // for the first time
	ServerReady      ServerState = "ready"
	ServerFailed     ServerState = "failed" // it is tried again by itself
)

// ServerHealth is how a server of tools is doing, and since when.
type ServerHealth struct {
	Name  string      `json:"name"`
	State ServerState `json:"state"`
	Tools int         `json:"tools"`           // that it offers now
	Error string      `json:"error,omitempty"` // why it has failed
	Since time.Time   `json:"since"`
}
