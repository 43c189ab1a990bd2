// SPDX-License-Identifier: Apache-2.0

// Package rowstest opens databases for the tests of other packages: SQLite, or PostgreSQL
// if the environment variable [postgrestest.Variable] has the address of a server, as in
// make postgres. Begin with [Open].
//
// A test that is about SQLite itself, its files or its durability, opens it with
// store/sqlite/sqlitetest.
package rowstest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres/postgrestest"
	"github.com/artelhq/artel/store/sqlite"
	"github.com/artelhq/artel/store/sqlite/sqlitetest"
)

// Open opens an empty database, in memory or in a schema of its own, and closes it at the
// end of the test.
func Open(t testing.TB) store.Store {
	t.Helper()
	if !postgres() {
		return sqlitetest.Open(t, sqlite.Memory)
	}
	return At(t, Address(t))
}

// Address returns where an empty database is, for [At]: the path of a file that does not
// exist, or the address of a schema that is removed at the end of the test.
func Address(t testing.TB) string {
	t.Helper()
	if !postgres() {
		return filepath.Join(t.TempDir(), "data.db")
	}
	server, err := postgrestest.Start() // returns the one that runs
	if err != nil {
		t.Fatal(err)
	}
	return server.Schema(t)
}

// At opens the database of an [Address], as each of several processes does, and closes it
// at the end of the test.
func At(t testing.TB, address string) store.Store {
	t.Helper()
	if filepath.IsAbs(address) {
		return sqlitetest.Open(t, address)
	}
	return postgrestest.Open(t, address)
}

// postgres reports whether the test is to run on PostgreSQL. In a bubble of testing/synctest,
// whose clock begins in the year 2000, it is not: time stands still there while anything
// waits for a network, and a connection belongs to the bubble that has made it.
func postgres() bool {
	return os.Getenv(postgrestest.Variable) != "" && time.Now().Year() > 2000
}
