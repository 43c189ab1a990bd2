// SPDX-License-Identifier: Apache-2.0

// Package sweep removes the bytes that nothing refers to.
//
// Begin with [Run]. It marks what rows of all owners refer to, in one pass over
// one state of the store, then goes through the blobs and removes those that are
// not marked and were not put lately.
//
// # Why nothing that is wanted goes
//
// A row that refers to a blob is committed after the blob was put. Where the
// commit came before the marking, the blob is marked. Where it came later, the
// blob was put lately, because nobody takes longer between the two than what
// counts as lately: whoever puts the same bytes again makes them young again, and
// [blob.Store.Delete] leaves what became young after it was looked at. A row that
// takes over a digest from another row needs no putting: the other one was there
// at the marking or has come from one that was, and what is deleted stays in
// the store for a while before it is purged.
//
// The package promises that a sweep that fails, or ends with its context, has
// only removed what it could remove. It keeps ten to twenty bytes of each
// different digest in memory, and nothing of the blobs that go. It leaves to
// others when a sweep is due, and to [store.Store.Purge] the rows themselves.
package sweep

import (
	"context"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
)

// Options of [Run].
type Options struct {
	DryRun  bool         // remove nothing, and say what would be removed
	Pace    int          // most removals in a second; 0: no bound
	Digests int          // of what goes, so many are named in the report
	Tell    func(Report) // is told how far it is, a few times in a second at most; nil: nobody
}

// A Phase is what a sweep is at.
type Phase string

// The phases, in their order.
const (
	Marking  Phase = "marking"  // reads what rows refer to
	Sweeping Phase = "sweeping" // goes through the blobs
	Done     Phase = "done"
)

// A Report says what a sweep has found and done; in a dry run, what it would
// have done.
type Report struct {
	DryRun     bool   `json:"dry_run"`
	Phase      Phase  `json:"phase"`
	References int64  `json:"references" doc:"places where rows refer to bytes"`
	Blobs      Amount `json:"blobs" doc:"that were looked at"`
	Wanted     Amount `json:"wanted" doc:"of them: something refers to them"`
	Young      Amount `json:"young" doc:"of them: nothing does, and they came too lately"`
	Removed    Amount `json:"removed" doc:"of them: nothing does; in a dry run they are still there"`
	Renditions int64  `json:"renditions" doc:"other forms of what nothing refers to, which were forgotten"`
	Staged     Amount `json:"staged" doc:"files of writes that broke off, which were removed; a dry run does not look for them"`

	Digests []artel.Digest `json:"digests,omitempty" doc:"of removed blobs: the first of them"`
}

// An Amount is so many, with so many bytes.
type Amount struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

func (a *Amount) add(bytes int64) { a.Count, a.Bytes = a.Count+1, a.Bytes+bytes }

// Run removes the blobs that nothing refers to and that were put before a time.
// Whoever puts a blob has to refer to it, if at all, before that time plus the
// running of Run is over; the time is therefore some hours ago. It also forgets
// renditions of what nothing refers to, and removes what broken writes have left
// from before that time. The report is true also when there is an error.
func Run(ctx context.Context, s store.Store, b blob.Store, before time.Time, o Options) (Report, error) {
	r := &run{store: s, blobs: b, before: before, o: o, began: time.Now(), report: Report{DryRun: o.DryRun, Phase: Marking}}
	err := r.everything(ctx)
	if err == nil {
		r.report.Phase = Done
	}
	r.tell()
	return r.report, err
}

// run is one sweep at work.
type run struct {
	store  store.Store
	blobs  blob.Store
	before time.Time
	o      Options
	report Report
	began  time.Time // of the phase
	told   time.Time

	wanted marks
	made   []rendition
}

// A rendition is the beginnings of the digest of other bytes and of what they
// were made of.
type rendition struct{ digest, of uint64 }

func (r *run) everything(ctx context.Context) error {
	if err := r.mark(ctx); err != nil {
		return err
	}
	if err := r.forget(ctx); err != nil {
		return err
	}
	r.report.Phase, r.began = Sweeping, time.Now()
	if err := r.sweep(ctx); err != nil || r.o.DryRun {
		return err
	}
	staged, err := blob.Unstage(ctx, r.blobs, r.before)
	r.report.Staged = Amount{int64(staged.Files), staged.Bytes}
	return err
}

// mark reads what is wanted.
func (r *run) mark(ctx context.Context) error {
	for u, err := range r.store.Digests(ctx) {
		if err != nil {
			return err
		}
		if r.report.References++; r.report.References%4096 == 0 {
			r.tell()
		}
		if u.Of != "" {
			r.made = append(r.made, rendition{beginning(u.Digest), beginning(u.Of)})
			continue
		}
		r.wanted.add(u.Digest)
	}
	// A rendition is wanted with its source, which may be one itself.
	for before := -1; before != len(r.made); {
		before = len(r.made)
		r.made = slices.DeleteFunc(r.made, func(m rendition) bool {
			if !r.wanted.contains(m.of) {
				return false
			}
			r.wanted.put(m.digest)
			return true
		})
	}
	return nil
}

// forget deletes the rows of renditions whose source is not wanted, before
// their bytes go. It comes back until there are none, a bounded number at a
// time.
func (r *run) forget(ctx context.Context) error {
	if r.report.Renditions = int64(len(r.made)); len(r.made) == 0 || r.o.DryRun {
		return nil
	}
	var sources marks
	for _, m := range r.made {
		sources.put(m.of)
	}
	for {
		unwanted := map[artel.Owner]map[artel.Digest]bool{}
		n := 0
		for u, err := range r.store.Digests(ctx) {
			if err != nil {
				return err
			}
			if u.Of == "" || !sources.has(u.Of) || unwanted[u.Owner][u.Of] {
				continue
			}
			if unwanted[u.Owner] == nil {
				unwanted[u.Owner] = map[artel.Digest]bool{}
			}
			unwanted[u.Owner][u.Of] = true
			if n++; n == forgotten {
				break
			}
		}
		for owner, list := range unwanted {
			err := r.store.Update(ctx, owner, func(tx store.Tx) error {
				for of := range list {
					if err := tx.Renditions.Delete(of); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		if n < forgotten {
			return nil
		}
	}
}

// forgotten is how many sources of renditions are dealt with at a time.
const forgotten = 500

// sweep goes through the blobs.
func (r *run) sweep(ctx context.Context) error {
	var broken error
	err := r.blobs.List(ctx, func(i blob.Info) bool {
		r.report.Blobs.add(i.Size)
		if r.report.Blobs.Count%1024 == 0 {
			r.tell()
		}
		switch {
		case r.wanted.has(i.Digest):
			r.report.Wanted.add(i.Size)
		case !i.Time.Before(r.before):
			r.report.Young.add(i.Size)
		default:
			broken = r.remove(ctx, i)
		}
		return broken == nil
	})
	if broken != nil {
		return broken
	}
	return err
}

func (r *run) remove(ctx context.Context, i blob.Info) error {
	if !r.o.DryRun {
		if err := r.pace(ctx); err != nil {
			return err
		}
		gone, err := r.blobs.Delete(ctx, i.Digest, r.before)
		if err != nil {
			return err
		}
		if !gone { // put again since it was listed
			r.report.Young.add(i.Size)
			return nil
		}
	}
	r.report.Removed.add(i.Size)
	if len(r.report.Digests) < r.o.Digests {
		r.report.Digests = append(r.report.Digests, i.Digest)
	}
	return nil
}

// pace waits where removals come faster than they may.
func (r *run) pace(ctx context.Context) error {
	if r.o.Pace <= 0 {
		return nil
	}
	due := r.began.Add(time.Duration(r.report.Removed.Count) * time.Second / time.Duration(r.o.Pace))
	wait := time.Until(due)
	if wait < 10*time.Millisecond {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return &artel.Error{Op: "sweep.Run", Kind: artel.Canceled, Err: ctx.Err()}
	case <-timer.C:
		return nil
	}
}

// tell reports how far it is, or how it ended.
func (r *run) tell() {
	if r.o.Tell == nil || r.report.Phase != Done && time.Since(r.told) < 250*time.Millisecond {
		return
	}
	r.told = time.Now()
	told := r.report
	told.Digests = slices.Clone(told.Digests)
	r.o.Tell(told)
}
