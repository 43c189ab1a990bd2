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
	"The anchor is the same driver and pragma, with one transaction for each row into a table of three columns, and one connection. " +
	"FULL follows the disk: beside it stands a plain 4 KB append with a sync."

func measureJournal(ctx context.Context, l *lab) ([]result, error) {
	var results []result
	floor, err := syncTime(l)
	if err != nil {
		return nil, err
	}
	for _, synchronous := range []sqlite.Synchronous{sqlite.Full, sqlite.Normal} {
		for _, writers := range []int{1, 16, 64} {
			rate, p50, err := journal(ctx, l, synchronous, writers)
			if err != nil {
				return nil, fmt.Errorf("%s, %d writers: %w", synchronous, writers, err)
			}
			switch {
			case synchronous == sqlite.Full && writers == 64:
				rate.target = target{limit: 20e3, reference: 5.7e3}
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
	return append(results, result{work: "append and sync, p50", size: "4 KB", unit: millis(), artel: floor}), nil
}

// journal measures one setting: rows per second and the median latency.
func journal(ctx context.Context, l *lab, synchronous sqlite.Synchronous, writers int) (rate, wait result, err error) {
	dir, err := l.folder()
	if err != nil {
		return rate, wait, err
	}
	ours, close1, err := artelJournal(ctx, filepath.Join(dir, "artel.db"), synchronous)
	if err != nil {
		return rate, wait, err
	}
	defer func() { err = errors.Join(err, close1.Close()) }()
	theirs, close2, err := plainJournal(ctx, filepath.Join(dir, "plain.db"), synchronous)
	if err != nil {
		return rate, wait, err
	}
	defer func() { err = errors.Join(err, close2.Close()) }()
	waits := make([][]float64, 2)
	run := func(i int, write func(writer int) error) sample {
		return func() (float64, error) {
			rows, all, err := writeFor(600*time.Millisecond, writers, write)
			waits[i] = append(waits[i], median(all))
			return rows, err
		}
	}
	m, err := interleave(l.rounds(3), run(0, ours), run(1, theirs))
	if err != nil {
		return rate, wait, err
	}
	size := count(writers, "writers")
	if writers == 1 {
		size = "1 writer"
	}
	rate = result{work: string(synchronous) + ", rows acknowledged", size: size, unit: times("rows"), artel: m[0], anchor: m[1]}
	wait = result{work: string(synchronous) + ", p50 of a row", size: size, unit: millis(), artel: median(waits[0]), anchor: median(waits[1])}
	return rate, wait, nil
}

// writeFor runs the writers for a while and returns the rows per second and the
// latency of each.
func writeFor(while time.Duration, writers int, write func(writer int) error) (float64, []float64, error) {
	waits := make([][]float64, writers)
	errs := make([]error, writers)
	began := time.Now()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for t := time.Now(); t.Sub(began) < while; {
				if errs[w] = write(w); errs[w] != nil {
					return
				}
				now := time.Now()
				waits[w] = append(waits[w], now.Sub(t).Seconds())
				t = now
			}
		})
	}
	wg.Wait()
	all := slices.Concat(waits...)
	return float64(len(all)) / time.Since(began).Seconds(), all, errors.Join(errs...)
}

func artelJournal(ctx context.Context, path string, synchronous sqlite.Synchronous) (func(int) error, io.Closer, error) {
	s, err := sqlite.Open(ctx, path, sqlite.Options{Synchronous: synchronous})
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	c := artel.Conversation{ID: artel.NewConversationID(now), Title: "Journal", CreatedAt: now, UpdatedAt: now}
	if err := s.Update(ctx, artel.Local, func(tx store.Tx) error { return tx.Conversations.Create(c) }); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
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
	}, s, nil
}

// plainJournal is the anchor.
func plainJournal(ctx context.Context, path string, synchronous sqlite.Synchronous) (func(int) error, io.Closer, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous("+string(synchronous)+")&_txlock=immediate")
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "CREATE TABLE edits (number INTEGER PRIMARY KEY, artifact TEXT NOT NULL, body BLOB NOT NULL) STRICT"); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	insert, err := db.PrepareContext(ctx, "INSERT INTO edits (artifact, body) VALUES (?, ?)")
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
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
	}, closers{db, insert}, nil
}

// syncTime returns the time to append and sync 4 KB.
func syncTime(l *lab) (float64, error) {
	f, err := os.Create(filepath.Join(l.dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	m, err := interleave(l.rounds(50), seconds(func() error {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return err
		}
		return f.Sync()
	}))
	if err != nil {
		return 0, err
	}
	return m[0], nil
}
