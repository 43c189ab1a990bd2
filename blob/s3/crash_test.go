// SPDX-License-Identifier: Apache-2.0

package s3_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/blob/s3"
	"github.com/artelhq/artel/blob/s3/s3test"
	"github.com/artelhq/artel/store/sqlite"
)

// Of the process that is killed: the address of the bucket, and the database.
const (
	crashAddress  = "ARTEL_TEST_CRASH_S3"
	crashDatabase = "ARTEL_TEST_CRASH_DATABASE"
)

// putUntilKilled puts bytes without end, and says when the first parts are sent.
func putUntilKilled(address string) {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, os.Getenv(crashDatabase), sqlite.Options{})
	a, aerr := s3.ParseAddress(address)
	if err = errors.Join(err, aerr); err == nil {
		var s *s3.Store
		if s, err = s3.Open(ctx, a, db.Blobs(), s3.Options{}); err == nil {
			_, err = s.Put(ctx, &endless{}, 0)
		}
	}
	panic(err)
}

// endless gives zeros, and says so on standard output after two parts.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	if e.n += len(p); e.n > 2*s3.PartSize && e.n-len(p) <= 2*s3.PartSize {
		os.Stdout.WriteString("writing\n")
	}
	return len(p), nil
}

// TestKill: what a killed process was sending is ended by its age, and its keys
// become trash; a process at work is left alone.
func TestKill(t *testing.T) {
	server := s3test.Start(t)
	server.Bucket(t, bucket)
	address := s3test.Address(server.Endpoint, bucket)
	path := filepath.Join(t.TempDir(), "artel.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashAddress+"="+address, crashDatabase+"="+path)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("writing\n"))); err != nil {
		t.Error(err)
	}
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := open(t, address, db.Blobs(), s3.Options{})
	unstage := func(before time.Time) blob.Staged {
		gone, err := s.Unstage(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		return gone
	}
	if gone := unstage(time.Now().Add(-time.Hour)); gone.Files != 0 {
		t.Errorf("an upload at work was ended: %+v", gone)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed
	if err := s.List(t.Context(), func(i blob.Info) bool { t.Errorf("visible: %+v", i); return true }); err != nil {
		t.Error(err)
	}
	if gone := unstage(time.Now().Add(time.Hour)); gone.Files != 1 {
		t.Errorf("ended %+v, want one upload", gone)
	}
	if gone := unstage(time.Now().Add(time.Hour)); gone != (blob.Staged{}) {
		t.Errorf("ended again: %+v", gone)
	}
}
