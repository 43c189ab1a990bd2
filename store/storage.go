// SPDX-License-Identifier: Apache-2.0

package store

import "github.com/artelhq/artel"

// CountedChanges is the length of the changes of an edit, as they are stored, up to
// which they do not count towards [Storage.Used], so that a small edit writes no
// other row than its own.
const CountedChanges = 4096

// Storage counts what the owner stores.
type Storage interface {
	// Used returns the bytes of the owner's blobs, each once however many versions,
	// edits and files hold it, and of the stored texts of versions and edits, and
	// their changes if they have more than [CountedChanges] bytes. It includes what this transaction has written, and what is deleted but
	// not yet purged. Renditions, messages, events and records do not count. The cost
	// does not depend on what is stored.
	Used() (int64, error)
	// Holds reports whether a blob is among those bytes.
	Holds(d artel.Digest) (bool, error)
}
