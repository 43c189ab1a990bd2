// SPDX-License-Identifier: Apache-2.0

// Package sweep removes unreferenced blobs.
//
// Begin with [Run]. It marks the digests that rows of all owners refer to, in one
// pass over one state of the store. It then lists the blobs and removes those
// that are neither marked nor young.
//
// No referenced blob is removed. A row that refers to a blob is committed after
// the blob was put. If the commit precedes the marking, the blob is marked. If it
// follows, the blob is young: the age limit is longer than the time between a put
// and its commit, putting the same bytes again makes them young again, and
// [blob.Store.Delete] leaves a blob that became young after it was listed. A row
// that copies a digest from another row needs no put, because the other row was
// marked, and deleted rows stay in the store for a while before they are purged.
//
// A sweep that fails or is canceled has removed only unreferenced blobs. It needs
// ten to twenty bytes of memory for each digest in use. Callers decide when to
// sweep; rows are removed by [store.Upkeep].
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
	DryRun   bool         // remove nothing, only report
	Pace     int          // maximum removals per second; 0: no limit
	Digests  int          // maximum number of removed digests in the report
	Progress func(Report) // called with the progress, a few times per second; may be nil
}

// A Phase is a phase of a sweep.
type Phase string

// The phases, in order.
const (
	Marking  Phase = "marking"  // reads the references of rows
	Sweeping Phase = "sweeping" // removes blobs
	Done     Phase = "done"
)

// A Report is the result of a sweep; in a dry run, of what it would have done.
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

// An Amount is a number of blobs and the sum of their bytes.
type Amount struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

func (a *Amount) add(bytes int64) { a.Count, a.Bytes = a.Count+1, a.Bytes+bytes }

// Run removes the unreferenced blobs that were put before a time. The reference to
// a blob must be committed within the interval from that time to the end of Run
// after the put, so the time should be some hours ago. Run also removes renditions
// of unreferenced blobs, and files of broken writes from before that time. The
// report is valid even if there is an error.
func Run(ctx context.Context, s store.Store, b blob.Store, before time.Time, o Options) (Report, error) {
	r := &run{store: s, blobs: b, before: before, o: o, began: time.Now(), report: Report{DryRun: o.DryRun, Phase: Marking}}
	err := r.all(ctx)
	if err == nil {
		r.report.Phase = Done
	}
	r.progress()
	return r.report, err
}

// run is the state of one sweep.
type run struct {
	store    store.Store
	blobs    blob.Store
	before   time.Time
	o        Options
	report   Report
	began    time.Time // of the phase
	reported time.Time

	wanted     marks
	renditions []rendition
}

// A rendition holds the first bytes of its digest and of the digest of its
// source.
type rendition struct{ digest, of uint64 }

func (r *run) all(ctx context.Context) error {
	if err := r.mark(ctx); err != nil {
		return err
	}
	if err := r.deleteRenditions(ctx); err != nil {
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

// mark reads the digests in use.
func (r *run) mark(ctx context.Context) error {
	for u, err := range r.store.Digests(ctx) {
		if err != nil {
			return err
		}
		if r.report.References++; r.report.References%4096 == 0 {
			r.progress()
		}
		if u.Of != "" {
			r.renditions = append(r.renditions, rendition{beginning(u.Digest), beginning(u.Of)})
			continue
		}
		r.wanted.add(u.Digest)
	}
	// A rendition is in use if its source is, which may itself be a rendition.
	for before := -1; before != len(r.renditions); {
		before = len(r.renditions)
		r.renditions = slices.DeleteFunc(r.renditions, func(m rendition) bool {
			if !r.wanted.contains(m.of) {
				return false
			}
			r.wanted.put(m.digest)
			return true
		})
	}
	return nil
}

// deleteRenditions deletes the rows of renditions whose source is not in use,
// before their bytes are removed. It works in batches.
func (r *run) deleteRenditions(ctx context.Context) error {
	if r.report.Renditions = int64(len(r.renditions)); len(r.renditions) == 0 || r.o.DryRun {
		return nil
	}
	var sources marks
	for _, m := range r.renditions {
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
			if n++; n == renditionBatch {
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
		if n < renditionBatch {
			return nil
		}
	}
}

// renditionBatch is the number of sources in a batch of deleteRenditions.
const renditionBatch = 500

// sweep removes the unreferenced blobs.
func (r *run) sweep(ctx context.Context) error {
	var broken error
	err := r.blobs.List(ctx, func(i blob.Info) bool {
		r.report.Blobs.add(i.Size)
		if r.report.Blobs.Count%1024 == 0 {
			r.progress()
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

// pace waits if removals are too fast.
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

// progress reports the progress, or the end.
func (r *run) progress() {
	if r.o.Progress == nil || r.report.Phase != Done && time.Since(r.reported) < 250*time.Millisecond {
		return
	}
	r.reported = time.Now()
	report := r.report
	report.Digests = slices.Clone(report.Digests)
	r.o.Progress(report)
}
