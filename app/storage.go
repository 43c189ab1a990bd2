// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/artifact/sweep"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// Storage are the use cases of stored bytes across all owners.
type Storage struct {
	core      *core
	alone     func() error
	retention time.Duration // negative: no expiry

	mu    sync.Mutex
	state CollectionState
}

// CodeCollecting is the error code, of kind Conflict, of a second garbage
// collection while one is running.
const CodeCollecting = "gc_running"

// How long unreferenced bytes, and unreferenced tool results, are kept.
const (
	DefaultGrace     = 24 * time.Hour
	MinGrace         = 10 * time.Minute // while clients may be uploading
	DefaultRetention = 7 * 24 * time.Hour
)

// CollectOptions configure a garbage collection.
type CollectOptions struct {
	Grace  time.Duration // bytes younger than this are kept, so that active uploads do not lose theirs
	DryRun bool          // delete nothing
	Pace   int           // maximum deletions per second; 0: no limit
}

// Collected is the outcome of a garbage collection; of a dry run, the outcome it
// would have had.
type Collected struct {
	sweep.Report
	Results sweep.Amount `json:"results" doc:"artifacts that tools have left and nothing has referred to for files.retention; their bytes go with the next collection"`
	Refs    []artel.Ref  `json:"refs,omitempty" doc:"of them: the first"`
}

// A CollectionState is the progress of the running garbage collection, or the
// outcome of the last one of this process.
type CollectionState struct {
	Running    bool      `json:"running"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	Report     Collected `json:"report"`
	Error      string    `json:"error,omitempty"`
}

// named is the maximum number of digests, and of refs, listed in a report.
const named = 1000

// Collect deletes unreferenced bytes of every owner: unused uploads, remains of
// purged conversations, failed imports and failed writes. Then it deletes tool
// results created outside runs that have been unreferenced for the retention
// time (see [store.Upkeep]); content referenced by messages, events or texts is
// never deleted for its age. One collection runs at a time; a second one is of
// kind Conflict, as is one whose blob folder holds bytes of another database. A
// cancelled collection is completed by the next one.
func (st *Storage) Collect(ctx context.Context, o CollectOptions) (report Collected, err error) {
	if err := access.Require(ctx, store.ScopeAdmin); err != nil {
		return report, err
	}
	if st.alone != nil {
		if err := st.alone(); err != nil {
			return report, err
		}
	}
	if err := st.begin(); err != nil {
		return report, err
	}
	defer func() { st.end(report, err) }()
	now := st.core.now()
	report.Report, err = sweep.Run(ctx, st.core.store, st.core.blobs, now.Add(-o.Grace), sweep.Options{
		DryRun: o.DryRun, Pace: o.Pace, Digests: named, Progress: st.tell,
	})
	if err == nil && !o.DryRun {
		err = st.release(ctx)
	}
	if err == nil && st.retention >= 0 {
		err = st.expire(ctx, now.Add(-st.retention), &report)
	}
	if n := report.Removed.Count + report.Results.Count; n > 0 && !o.DryRun {
		st.core.recordAct(ctx, audit.Act{Action: audit.GarbageCollected, Detail: strconv.FormatInt(n, 10)})
	}
	return report, err
}

// release deletes uploads at services whose bytes were deleted here.
func (st *Storage) release(ctx context.Context) error {
	for _, d := range st.core.serviceFiles.Digests() {
		switch _, err := st.core.blobs.Stat(ctx, d); {
		case artel.KindOf(err) == artel.NotFound:
			st.core.serviceFiles.Drop(d)
		case err != nil:
			return err
		}
	}
	return nil
}

// expire deletes unreferenced tool results. It runs after the sweep, so a client
// that is copying one has referenced its bytes before the next sweep.
func (st *Storage) expire(ctx context.Context, before time.Time, r *Collected) error {
	for {
		list, err := st.core.store.Leftovers(ctx, before, !r.DryRun)
		if err != nil {
			return err
		}
		for _, l := range list {
			r.Results.Count, r.Results.Bytes = r.Results.Count+1, r.Results.Bytes+l.Size
			if len(r.Refs) < named {
				r.Refs = append(r.Refs, artel.Ref{Conversation: l.Conversation, Artifact: l.Artifact, Version: l.Number})
			}
		}
		if len(list) == 0 || r.DryRun {
			return nil
		}
	}
}

func (st *Storage) begin() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.state.Running {
		return &artel.Error{
			Op: "app.Storage.Collect", Kind: artel.Conflict, Code: CodeCollecting,
			Err: artel.Errorf(artel.Conflict, "", "", "garbage is being collected already; GET …/gc says how far it is"),
		}
	}
	st.state = CollectionState{Running: true, StartedAt: st.core.now()}
	return nil
}

func (st *Storage) end(r Collected, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.state.Running, st.state.FinishedAt, st.state.Report = false, st.core.now(), r
	if err != nil {
		st.state.Error = err.Error()
	}
}

func (st *Storage) tell(r sweep.Report) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.state.Report.Report = r
}

// Collection returns the state of garbage collection.
func (st *Storage) Collection(ctx context.Context) (CollectionState, error) {
	if err := access.Require(ctx, store.ScopeAdmin); err != nil {
		return CollectionState{}, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.state, nil
}
