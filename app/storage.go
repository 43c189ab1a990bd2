// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/sweep"
)

// Storage are the use cases of all that is kept, whoever it belongs to.
type Storage struct {
	*core
	alone func() error

	mu    sync.Mutex
	state CollectionState
}

// CodeCollecting is the code of kind Conflict where garbage is being collected
// already.
const CodeCollecting = "gc_running"

// How long bytes stay that nothing refers to.
const (
	DefaultGrace = 24 * time.Hour
	MinGrace     = 10 * time.Minute // while others may be uploading
)

// CollectOptions say how garbage is collected.
type CollectOptions struct {
	Grace  time.Duration // what was put within it stays, so that no upload loses what it has just put
	DryRun bool          // remove nothing
	Pace   int           // most removals in a second; 0: no bound
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

// namedDigests is how many digests of what goes a report has.
const namedDigests = 1000

// Collect removes the bytes that nothing refers to, of every owner: what was
// uploaded and never used, what purged conversations and broken imports have
// left, and what broken writes have begun. One collection runs at a time;
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
	return sweep.Run(ctx, st.store, st.blobs, st.now().Add(-o.Grace), sweep.Options{
		DryRun: o.DryRun, Pace: o.Pace, Digests: namedDigests, Tell: st.tell,
	})
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
	st.state = CollectionState{Running: true, StartedAt: st.now()}
	return nil
}

func (st *Storage) end(r Collected, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.state.Running, st.state.FinishedAt, st.state.Report = false, st.now(), r
	if err != nil {
		st.state.Error = err.Error()
	}
}

func (st *Storage) tell(r Collected) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.state.Report = r
}

// Collection says how far garbage collection is.
func (st *Storage) Collection() CollectionState {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.state
}
