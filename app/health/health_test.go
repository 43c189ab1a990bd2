// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/app/health"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func codes(all []health.Cause) (out []string) {
	for _, c := range all {
		out = append(out, c.Code)
	}
	return out
}

func TestCauses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	blobs, err := blob.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	db := rowstest.At(t, rowstest.Address(t))
	open := func() *health.Checker {
		return health.New(slog.New(slog.DiscardHandler), health.Database(db), health.Blobs(blobs), health.Disk(t.TempDir()))
	}
	c := open()
	if got := c.Causes(t.Context()); len(got) > 0 {
		t.Errorf("a working server is not ready: %v", got)
	}
	c.Set(health.Recovery, errors.New("broken"))
	c.Set(health.Stopping, errors.New("told to"))
	if d := cmp.Diff([]string{"recovery", "stopping"}, codes(c.Causes(t.Context()))); d != "" {
		t.Error(d)
	}
	c.Set(health.Recovery, nil)
	if d := cmp.Diff([]string{"stopping"}, codes(c.Causes(t.Context()))); d != "" {
		t.Error(d)
	}
	defer blobs.Close()
	if err := errors.Join(db.Close(), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"database", "blobs"}, codes(open().Causes(t.Context()))); d != "" {
		t.Error(d)
	}
}

// TestDatabase: the check writes again and again.
func TestDatabase(t *testing.T) {
	check := health.Database(rowstest.Open(t))
	for range 3 {
		if err := check.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDatabaseAtOnce: several servers check one database at the same time.
func TestDatabaseAtOnce(t *testing.T) {
	check := health.Database(rowstest.Open(t))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if err := check.Run(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestFresh: however often a server is asked, checks run once in two seconds.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		var result error
		c := health.New(slog.New(slog.DiscardHandler), health.Check{Code: "disk", Run: func(context.Context) error {
			runs++
			return result
		}})
		for range 10 {
			c.Causes(t.Context())
		}
		if result = errors.New("full"); runs != 1 || len(c.Causes(t.Context())) > 0 {
			t.Errorf("%d checks, want one", runs)
		}
		time.Sleep(2 * time.Second)
		left, end := context.WithCancel(t.Context())
		end() // the client has left; the result is for others too
		if d := cmp.Diff([]string{"disk"}, codes(c.Causes(left))); d != "" || runs != 2 {
			t.Errorf("%d checks; %s", runs, d)
		}
	})
}

// TestCausesAreDocumented: the table of the causes has each of them.
func TestCausesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	field, _ := reflect.TypeFor[health.Cause]().FieldByName("Code")
	for code := range strings.SplitSeq(field.Tag.Get("enum"), ",") {
		if !strings.Contains(string(text), "\n| `"+code+"` | ") {
			t.Errorf("docs/operations.md lacks the cause %q", code)
		}
	}
}
