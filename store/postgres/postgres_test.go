// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres/postgrestest"
	"github.com/artelhq/artel/store/storetest"
)

var server *postgrestest.Server //nolint:gochecknoglobals // one for all tests

func TestMain(m *testing.M) {
	started, err := postgrestest.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server = started
	code := m.Run()
	server.Stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(tb testing.TB) []store.Store {
		address := server.Schema(tb)
		return []store.Store{postgrestest.Open(tb, address), postgrestest.Open(tb, address)}
	})
}
