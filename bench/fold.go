// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/store"
)

const foldAbout = "A run that has made 1,500 small edits at random places in a text of 1 MB, with the database that the server uses (FULL). " +
	"The fold is all from the last edit to the visible version on disk. Meanwhile another owner makes one small update after the other; the wait is the longest. " +
	"A fold waits for about six commits, each a sync of the disk, between which it lets others update. " +
	"By a profile, a fold takes about 27 ms of processor time: 12 ms to mark 1,500 rows, each two entries of an index and the row, 5 ms to read their changes, " +
	"3 ms to apply them, and what the anchor takes to write the text. The rest are syncs, and the updates of the other owner. " +
	"The live text is read by a reader without a cache. " +
	"The anchor of the fold is an update that stores a text of this size as a new artifact, that of the wait the longest wait during it, " +
	"and that of the read a version with a stored text."

func measureFold(ctx context.Context, l *lab) []result {
	const edits, lines = 1500, 43_000
	var folds, writes, waits, besides, reads, plains []float64
	for round := range l.rounds(3) {
		s := newConversationDB(ctx, l)
		s.reopenFull(ctx)
		text := make([]byte, 0, 1<<20)
		for i := range lines {
			text = fmt.Appendf(text, "<%d> some words here\n", i)
		}
		write := s.workspace("")
		must(write.Create(ctx, "doc", "", string(text), ""))
		plains = append(plains, seconds(func() error { return s.read(ctx, "doc") })())
		w := s.workspace("run_1")
		random := rand.New(rand.NewPCG(1, uint64(round)))
		for i := range edits {
			line := random.IntN(lines)
			_, _, err := w.Edit.Update(ctx, "doc", []edit.Edit{{Old: fmt.Sprintf("<%d>", line), New: fmt.Sprintf("%d<%d>", i, line)}}, artifact.UpdateOptions{})
			check(err)
		}
		for range 5 {
			reads = append(reads, seconds(func() error { return s.read(ctx, "doc") })())
		}
		var took float64
		wait := longestUpdate(ctx, s.store, func() {
			began := time.Now()
			check(artifact.FoldRun(ctx, s.store, artel.Local, s.conversation, "run_1", func(fold func(store.Tx) error) error {
				return s.store.Update(ctx, artel.Local, fold)
			}))
			took = time.Since(began).Seconds()
		})
		folds, waits = append(folds, took), append(waits, wait)
		besides = append(besides, longestUpdate(ctx, s.store, func() {
			began := time.Now()
			must(write.Create(ctx, "again", "", string(text), ""))
			writes = append(writes, time.Since(began).Seconds())
		}))
		shut(s.store)
	}
	size := count(edits, "edits")
	return []result{
		{work: "fold", size: size, unit: millis(), artel: median(folds), anchor: median(writes), target: target{limit: 0.030, reference: 0.006}},
		{work: "longest wait of another owner during the fold", size: size, unit: millis(), artel: median(waits), anchor: median(besides), target: target{limit: 0.010, reference: 0.006}},
		{work: "live text", size: size, unit: millis(), artel: median(reads), anchor: median(plains), target: target{limit: 0.005, reference: 0.002}},
	}
}

// longestUpdate returns the longest small update of another owner while work runs.
func longestUpdate(ctx context.Context, s store.Store, work func()) float64 {
	stop := make(chan struct{})
	longest := 0.0
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			began := time.Now()
			failed = s.Update(ctx, "another owner", func(tx store.Tx) error {
				return tx.Answers.Put(store.Answer{Key: fmt.Sprint(began.UnixNano()), CreatedAt: began})
			})
			if failed != nil {
				return
			}
			longest = max(longest, time.Since(began).Seconds())
		}
	})
	work()
	close(stop)
	wg.Wait()
	check(failed)
	return longest
}

func (s *conversationDB) read(ctx context.Context, id artel.ArtifactID) error {
	_, _, err := s.artifacts.Text(ctx, artel.Local, s.conversation, id, 0, s.message)
	return err
}
