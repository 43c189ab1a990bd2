// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"time"
)

// An EntryKind is a kind of [Entry].
type EntryKind string

// The kinds.
const (
	ServiceEntry   EntryKind = "service"    // of a model
	MCPServerEntry EntryKind = "mcp_server" // with tools
	HTTPToolEntry  EntryKind = "http_tool"
	SharedKey      EntryKind = "key" // a secret that the servers of a database share, and that is made by the first of them
)

// Entries stores what administrators configure while the server runs.
type Entries interface {
	// Create is of kind Conflict if the kind has an entry of this id.
	Create(e Entry) error
	// Get is of kind NotFound if the kind has no entry of this id, like all that
	// follow.
	Get(kind EntryKind, id string) (Entry, error)
	// List returns those of a kind in order of creation.
	List(kind EntryKind) ([]Entry, error)
	// Update replaces all fields but Kind, ID and CreatedAt.
	Update(e Entry) error
	Delete(kind EntryKind, id string) error
}

// An Entry is like one of the configuration file.
type Entry struct {
	Kind      EntryKind
	ID        string
	Fields    json.RawMessage // an object, without secrets
	Secrets   []byte          // encrypted; nil: none
	Disabled  bool
	CreatedAt time.Time
	UpdatedAt time.Time
}
