// SPDX-License-Identifier: Apache-2.0

package store

// Storage counts what the owner stores.
type Storage interface {
	// Used returns the bytes of the owner's blobs, each once however many versions,
	// edits and files hold it, and of the stored texts and changes of versions and
	// edits. It includes what this transaction has written, and what is deleted but
	// not yet purged. Renditions, messages, events and records do not count. The cost
	// does not depend on what is stored.
	Used() (int64, error)
}
