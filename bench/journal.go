// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver of the anchor, the same as the product's

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

const journalAbout = "Edits of 2 KB, each acknowledged before the writer makes its next, through `store.Update`. " +
	"FULL, the default, means that the disk has it; NORMAL that the system has it. Updates that come together share a commit. " +
	"The anchor is the same driver and pragma on one connection, with one transaction for each row into a table of three columns. " +
	"With 64 writers it is a plain group commit: one goroutine takes the rows that wait, stores them in one transaction and wakes their writers. " +
	"FULL with one writer follows the disk: beside it stands a plain 4 KB append with a sync. " +
	"With more, both share syncs, and what limits them is the processor time of SQLite for a row. " +
	"A row of the journal has a page of 4 KB to itself and an index, so that a commit of one row writes four pages, and one of the anchor two. " +
	"Beside the table of the journal, the anchor inserts the same row, with its key and its foreign key, and reads nothing before. " +
	"By a profile of NORMAL with one writer, SQLite has 85 % of the processor time of a row: 35 % go into the four pages of the log, " +
	"each two writes to the file, 28 % into the insertion, 15 % into locks and the rest of begin and commit, 7 % into checkpoints; encoding and batches have 12 %: " +
	"one writer is held by the pages, of which its anchor writes half."

func measureJournal(ctx context.Context, l *lab) []result {
	var results []result
	floor := syncTime(l)
	for _, synchronous := range []sqlite.Synchronous{sqlite.Full, sqlite.Normal} {
		for _, writers := range []int{1, 16, 64} {
			var rate, p50 result
			during(fmt.Sprintf("%s, %d writers", synchronous, writers), func() { rate, p50 = journal(ctx, l, synchronous, writers) })
			switch {
			case synchronous == sqlite.Full && writers == 64:
				rate.target = target{limit: 20e3, reference: 64e3}
			case synchronous == sqlite.Full && writers == 1:
				p50.target = target{limit: 0.3e-3, reference: 0.14e-3}
			case synchronous == sqlite.Normal && writers == 1:
				rate.target = target{limit: 30e3, reference: 45.8e3}
			}
			results = append(results, rate)
			if writers == 1 {
				results = append(results, p50)
			}
		}
	}
	same := sameTable(ctx, l)
	return append(results, same, result{work: "append and sync, p50", size: "4 KB", unit: millis(), artel: floor})
}

// journal measures one setting: rows per second and the median latency.
func journal(ctx context.Context, l *lab, synchronous sqlite.Synchronous, writers int) (rate, wait result) {
	dir := l.folder()
	ours, close1 := artelJournal(ctx, filepath.Join(dir, "artel.db"), synchronous)
	defer shut(close1)
	anchor := plainJournal
	if writers == 64 {
		anchor = groupJournal
	}
	theirs, close2 := anchor(ctx, filepath.Join(dir, "plain.db"), synchronous)
	defer shut(close2)
	waits := make([][]float64, 2)
	run := func(i int, write func(writer int) error) sample {
		return func() float64 {
			rows, all := writeFor(600*time.Millisecond, writers, write)
			waits[i] = append(waits[i], median(all))
			return rows
		}
	}
	m := interleave(l.rounds(3), run(0, ours), run(1, theirs))
	size := count(writers, "writers")
	if writers == 1 {
		size = "1 writer"
	}
	rate = result{work: string(synchronous) + ", rows acknowledged", size: size, unit: times("rows"), artel: m[0], anchor: m[1]}
	wait = result{work: string(synchronous) + ", p50 of a row", size: size, unit: millis(), artel: median(waits[0]), anchor: median(waits[1])}
	return rate, wait
}

// writeFor runs the writers for a while and returns the rows per second and the
// latency of each.
func writeFor(while time.Duration, writers int, write func(writer int) error) (float64, []float64) {
	waits := make([][]float64, writers)
	began := time.Now()
	check(atOnce(writers, func(w int) error {
		for t := time.Now(); t.Sub(began) < while; {
			if err := write(w); err != nil {
				return err
			}
			now := time.Now()
			waits[w] = append(waits[w], now.Sub(t).Seconds())
			t = now
		}
		return nil
	}))
	all := slices.Concat(waits...)
	return float64(len(all)) / time.Since(began).Seconds(), all
}

func artelJournal(ctx context.Context, path string, synchronous sqlite.Synchronous) (func(int) error, io.Closer) {
	s := must(sqlite.Open(ctx, path, sqlite.Options{Synchronous: synchronous}))
	now := time.Now()
	c := artel.Conversation{ID: artel.NewConversationID(now), Title: "Journal", CreatedAt: now, UpdatedAt: now}
	check(s.Update(ctx, artel.Local, func(tx store.Tx) error { return tx.Conversations.Create(c) }))
	v := artel.Version{
		Author: "agent", Update: artel.UpdateExact, Title: "Journal", Provenance: artel.SourceAgent, CreatedAt: now,
		MediaInfo: artel.MediaInfo{MediaType: "text/markdown", Kind: artel.KindText, Size: 1 << 20},
		Changes:   []artel.Change{{Layer: artel.LayerExact, Start: 10, End: 1010, Old: strings.Repeat("o", 1000), New: strings.Repeat("n", 1000)}},
		Digest:    artel.NewDigest([32]byte{1}),
	}
	return func(w int) error {
		return s.Update(ctx, artel.Local, func(tx store.Tx) error {
			_, err := tx.Journal.Append(c.ID, artel.ArtifactID(fmt.Sprintf("doc_%d", w)), v, nil)
			return err
		})
	}, s
}

// The table of the anchors.
const (
	plainTable  = "CREATE TABLE edits (number INTEGER PRIMARY KEY, artifact TEXT NOT NULL, body BLOB NOT NULL) STRICT"
	plainInsert = "INSERT INTO edits (artifact, body) VALUES (?, ?)"
)

// plainJournal is the anchor with few writers.
func plainJournal(ctx context.Context, path string, synchronous sqlite.Synchronous) (func(int) error, io.Closer) {
	db := plainDB(path, synchronous)
	must(db.ExecContext(ctx, plainTable))
	insert := must(db.PrepareContext(ctx, plainInsert))
	body := []byte(strings.Repeat("x", 2000))
	return func(w int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if _, err := tx.StmtContext(ctx, insert).ExecContext(ctx, fmt.Sprintf("doc_%d", w), body); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	}, closers{db, insert}
}

// plainDB opens a database as the anchors use it.
func plainDB(path string, synchronous sqlite.Synchronous) *sql.DB {
	db := must(sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)&_pragma=synchronous("+string(synchronous)+")&_txlock=immediate"))
	db.SetMaxOpenConns(1)
	return db
}

// groupJournal is the anchor with many writers.
func groupJournal(ctx context.Context, path string, synchronous sqlite.Synchronous) (func(int) error, io.Closer) {
	db := plainDB(path, synchronous)
	must(db.ExecContext(ctx, plainTable))
	insert := must(db.PrepareContext(ctx, plainInsert))
	body := []byte(strings.Repeat("x", 2000))
	type row struct {
		writer int
		stored chan error
	}
	rows := make(chan row, 64)
	store := func(group []row) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		st := tx.StmtContext(ctx, insert)
		for _, r := range group {
			if _, err := st.ExecContext(ctx, fmt.Sprintf("doc_%d", r.writer), body); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		return tx.Commit()
	}
	var committer sync.WaitGroup
	committer.Go(func() {
		for first := range rows {
			group := []row{first}
			for n := len(rows); n > 0; n-- {
				group = append(group, <-rows)
			}
			err := store(group)
			for _, r := range group {
				r.stored <- err
			}
		}
	})
	write := func(w int) error {
		stored := make(chan error, 1)
		rows <- row{w, stored}
		return <-stored
	}
	return write, closers{db, insert, closing(func() error {
		close(rows)
		committer.Wait()
		return nil
	})}
}

// closing is a function that closes something.
type closing func() error

// Close implements [io.Closer].
func (c closing) Close() error { return c() }

// sameTable measures NORMAL with one writer beside an anchor that inserts the same
// row into the same table, by processor time.
func sameTable(ctx context.Context, l *lab) result {
	dir := l.folder()
	ours, close1 := artelJournal(ctx, filepath.Join(dir, "artel.db"), sqlite.Normal)
	defer shut(close1)
	path := filepath.Join(dir, "plain.db")
	seed, close2 := artelJournal(ctx, path, sqlite.Normal)
	check(seed(0))
	shut(close2)
	db := plainDB(path, sqlite.Normal)
	defer shut(db)
	row := make([]any, 19) // the columns of the table, of which the fourth is the number
	into := make([]any, len(row))
	for i := range row {
		into[i] = &row[i]
	}
	check(db.QueryRowContext(ctx, "SELECT * FROM edits").Scan(into...))
	insert := must(db.PrepareContext(ctx, "INSERT INTO edits VALUES (?"+strings.Repeat(", ?", len(row)-1)+")"))
	defer shut(insert)
	number := 1
	same := func() error {
		number++
		row[3] = number
		_, err := insert.ExecContext(ctx, row...)
		return err
	}
	m := interleave(l.rounds(5),
		perBusySecond(1, 300*time.Millisecond, func() error { return ours(0) }), perBusySecond(1, 300*time.Millisecond, same))
	return result{work: "NORMAL, rows per second of processor time, beside the table of the journal", size: "1 writer", unit: times("rows"), artel: m[0], anchor: m[1], target: target{ratio: 0.7}}
}

// syncTime returns the time to append and sync 4 KB.
func syncTime(l *lab) float64 {
	f := must(os.Create(filepath.Join(l.dir, "sync")))
	defer f.Close()
	m := interleave(l.rounds(50), seconds(func() error {
		must(f.Write(make([]byte, 4096)))
		return f.Sync()
	}))
	return m[0]
}
