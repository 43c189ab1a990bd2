// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/sweep"
)

// Storage are the use cases of all that is kept, whoever it belongs to.
type Storage struct {
	core      *core
	alone     func() error
	retention time.Duration // negative: for ever

	mu    sync.Mutex
	state CollectionState
}

// CodeCollecting is the code of kind Conflict where garbage is being collected
// already.
const CodeCollecting = "gc_running"

// How long bytes stay that nothing refers to, and results of tools that nothing
// names.
const (
	DefaultGrace     = 24 * time.Hour
	MinGrace         = 10 * time.Minute // while others may be uploading
	DefaultRetention = 7 * 24 * time.Hour
)

// CollectOptions say how garbage is collected.
type CollectOptions struct {
	Grace  time.Duration // what was put within it stays, so that no upload loses what it has just put
	DryRun bool          // remove nothing
	Pace   int           // most removals in a second; 0: no bound
}

// Collected says what a collection of garbage has found and done; in a dry run,
// what it would have done.
type Collected struct {
	sweep.Report
	Results sweep.Amount `json:"results" doc:"artifacts that tools have left and nothing has referred to for files.retention; their bytes go with the next collection"`
	Refs    []artel.Ref  `json:"refs,omitempty" doc:"of them: the first"`
}

// A CollectionState is how far garbage collection is, or how the last one of
// this process ended.
type CollectionState struct {
	Running    bool      `json:"running"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	Report     Collected `json:"report"`
	Error      string    `json:"error,omitempty"`
}

// named is how many digests, and how many refs, of what goes a report has.
const named = 1000

// Collect removes the bytes that nothing refers to, of every owner: what was
// uploaded and never used, what purged conversations and broken imports have
// left, and what broken writes have begun. Then it removes what tools have left
// outside any run and nobody has referred to for as long as results are kept,
// as [store.Upkeep] says; what messages, events or texts refer to never goes by
// its age. One collection runs at a time;
// another is of kind Conflict, and so is one where somebody else's data keeps
// its bytes in the same place. What the context breaks off is done by the next.
func (st *Storage) Collect(ctx context.Context, o CollectOptions) (report Collected, err error) {
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
	return report, err
}

// release has services delete the bytes that are not here any more.
func (st *Storage) release(ctx context.Context) error {
	for _, d := range st.core.held.Digests() {
		switch _, err := st.core.blobs.Stat(ctx, d); {
		case artel.KindOf(err) == artel.NotFound:
			st.core.held.Drop(d)
		case err != nil:
			return err
		}
	}
	return nil
}

// expire removes the results of tools that nothing names. It comes after the
// sweep: who is copying one of them at this moment has referred to the bytes
// before the next.
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

// Collection says how far garbage collection is.
func (st *Storage) Collection() CollectionState {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.state
}
