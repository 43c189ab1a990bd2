// SPDX-License-Identifier: Apache-2.0

// Command minimal is the smallest useful server over SQLite: the database with
// twenty migrations, one endpoint, no more. What it needs to start, in memory
// and on disk is what any server of this kind needs.
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	_ "modernc.org/sqlite" // the driver
)

const migrations = 20

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "address to listen on")
	data := flag.String("data", "minimal-data", "data directory")
	flag.Parse()
	if err := serve(*addr, *data); err != nil {
		fmt.Fprintln(os.Stderr, "minimal:", err)
		os.Exit(1)
	}
}

func serve(addr, data string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "minimal.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrate(ctx, db); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"status":"ok"}`) })
	server := &http.Server{Handler: mux}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// migrate brings the schema up to date, one transaction a step.
func migrate(ctx context.Context, db *sql.DB) error {
	var done int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&done); err != nil {
		return err
	}
	for n := done + 1; n <= migrations; n++ {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		step := fmt.Sprintf("CREATE TABLE t%d (id TEXT PRIMARY KEY, owner TEXT NOT NULL, body BLOB) STRICT; CREATE INDEX t%d_owner ON t%d (owner); PRAGMA user_version = %d", n, n, n, n)
		if _, err := tx.ExecContext(ctx, step); err != nil {
			_ = tx.Rollback()
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}
