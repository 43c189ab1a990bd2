// SPDX-License-Identifier: Apache-2.0

// Package postgrestest starts PostgreSQL servers for tests. Begin with [Start].
package postgrestest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/artelhq/artel/store/postgres"
)

// Variable names the environment variable with the address of a running server, whose
// user may make schemas. It is used in place of a server of the test.
const Variable = "ARTEL_TEST_DATABASE"

// A Server is a running PostgreSQL.
type Server struct {
	Address string // of a database, as for [postgres.Open]
	process *exec.Cmd
	dir     string
	launch  func() error // starts the process
}

// Start returns a server that ends with [Server.Stop]. Its durability is switched off,
// unless settings such as "fsync=on" say otherwise. The error names what is missing on the
// machine.
func Start(settings ...string) (*Server, error) {
	if address := os.Getenv(Variable); address != "" {
		return &Server{Address: address}, nil
	}
	programs, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "artel-postgres-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	if err := s.start(programs, settings); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// find returns the folder of the server's programs, which is usually not in PATH.
func find() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return "", errors.New("there is no PostgreSQL: install the package postgresql (scripts/setup does), or set " + Variable)
	}
	return filepath.Dir(found[len(found)-1]), nil
}

func (s *Server) start(programs string, settings []string) error {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 { // it refuses to run as root
		nobody, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, err := strconv.Atoi(nobody.Uid)
		if err != nil {
			return err
		}
		gid, err := strconv.Atoi(nobody.Gid)
		if err != nil {
			return err
		}
		if err := os.Chown(s.dir, uid, gid); err != nil {
			return err
		}
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // ids of the system
	}
	data := filepath.Join(s.dir, "data")
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(programs, name), args...)
		c.Dir, c.SysProcAttr = s.dir, attributes
		return c
	}
	if out, err := command("initdb", "-D", data, "-U", "artel", "-A", "trust", "--locale=C.UTF-8", "-E", "UTF8", "--no-sync").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	args := []string{"-D", data, "-k", s.dir}
	for _, s := range append([]string{
		"listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=400", "autovacuum=off", "shared_buffers=64MB", "deadlock_timeout=50ms",
	}, settings...) {
		args = append(args, "-c", s)
	}
	s.Address = "postgres://artel@/postgres?" + url.Values{"host": {s.dir}}.Encode()
	s.launch = func() error {
		log, err := os.Create(filepath.Join(s.dir, "log"))
		if err != nil {
			return err
		}
		defer func() { _ = log.Close() }()
		c := command("postgres", args...)
		c.Stdout, c.Stderr = log, log
		if err := c.Start(); err != nil {
			return err
		}
		s.process = c
		return s.wait(log.Name())
	}
	return s.launch()
}

// wait returns when the server answers.
func (s *Server) wait(log string) error {
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := s.Exec(context.Background(), "SELECT 1")
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(log)
			return fmt.Errorf("PostgreSQL does not start: %w: %s", err, text)
		}
	}
}

// Restart ends the server and all its connections, calls meanwhile, and starts it again. What was
// committed is kept. It reports false, and does nothing, if the server is not one of the test.
func (s *Server) Restart(meanwhile func()) (bool, error) {
	if s.process == nil {
		return false, nil
	}
	s.end(syscall.SIGINT)
	meanwhile()
	return true, s.launch()
}

// end ends the process and its children: in order by SIGINT, at once by SIGQUIT.
func (s *Server) end(signal syscall.Signal) {
	_ = s.process.Process.Signal(signal)
	_ = s.process.Wait()
}

// Stop ends the server and removes its data.
func (s *Server) Stop() {
	if s.process != nil {
		s.end(syscall.SIGQUIT)
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// Exec runs a statement on a connection of its own.
func (s *Server) Exec(ctx context.Context, query string) error {
	c, err := pgx.Connect(ctx, s.Address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	_, err = c.Exec(ctx, query)
	return err
}

// Schema makes an empty schema, which is removed at the end of the test, and returns the
// address that selects it.
func (s *Server) Schema(t testing.TB) string {
	t.Helper()
	name := "t" + strings.ToLower(rand.Text())
	if err := s.Exec(t.Context(), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Exec(context.Background(), "DROP SCHEMA "+name+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	separator := "?"
	if strings.Contains(s.Address, "?") {
		separator = "&"
	}
	return s.Address + separator + "search_path=" + name
}

// Open opens the database at an address and closes it at the end of the test.
func Open(t testing.TB, address string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), address, postgres.Options{})
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
