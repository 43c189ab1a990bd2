// SPDX-License-Identifier: Apache-2.0

// Package sqlitetest opens databases for the tests of other packages. Begin with
// [Open].
package sqlitetest

import (
	"testing"

	"github.com/artelhq/artel/store/sqlite"
)

// Open opens the database at path, which may be [sqlite.Memory], and closes it at
// the end of the test.
func Open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
