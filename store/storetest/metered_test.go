// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/contracttest"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

func openMemory(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Memory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Both wrappers keep the contract.
func TestWrappersKeepTheContract(t *testing.T) {
	Run(t, func(tb testing.TB) []store.Store {
		s, err := sqlite.Open(tb.Context(), sqlite.Memory, sqlite.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = s.Close() })
		return []store.Store{Metered(s, func(string, ...any) {})}
	})
}

func TestTwiceRunsTwice(t *testing.T) {
	s := Twice(openMemory(t))
	runs := 0
	err := s.Update(t.Context(), me, func(tx store.Tx) error {
		runs++
		return tx.Answers.Put(store.Answer{Key: "key"})
	})
	if err != nil || runs != 2 {
		t.Errorf("%d runs, %v", runs, err)
	}
	err = s.Update(t.Context(), me, func(tx store.Tx) error {
		runs++
		return tx.Answers.Put(store.Answer{Key: "key"})
	})
	if artel.KindOf(err) != artel.Conflict || runs != 3 {
		t.Errorf("%d runs, %v", runs, err)
	}
}

func TestMeteredReports(t *testing.T) {
	var said []string
	metered := Metered(openMemory(t), func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	err := contracttest.Hold(t.Context(), func(held *contracttest.Check) {
		c := &check{Check: held, s: metered}
		conv := c.conversation()
		c.version(conv, "doc", artel.Version{}, strings.Repeat("x", MaxUpdateBytes+1))
		read := func(tx store.Tx) error { _, err := tx.Journal.Replay(conv, "doc", 1); return err }
		c.view(read)
		if len(said) != 0 {
			t.Errorf("writing and a view are reported: %q", said)
		}
		c.update(read)
	})
	if err != nil || len(said) != 1 || !strings.Contains(said[0], "Journal.Replay") {
		t.Errorf("got %q, %v", said, err)
	}
}
