// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/macro"
)

// maxOverdue is how many runs of one processor may continue past their limit.
// While there are that many, it is not started again.
const maxOverdue = 4

// overdue counts, by processor, the runs that have not returned after their
// limit.
type overdue struct {
	mu sync.Mutex
	n  map[string]int
}

func (o *overdue) add(id string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == nil {
		o.n = make(map[string]int)
	}
	if o.n[id] += n; o.n[id] == 0 {
		delete(o.n, id)
	}
}

func (o *overdue) of(id string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n[id]
}

// process runs one processor within its time limit. A processor that is not part
// of the product runs on a copy of the draft, so that the build continues after
// the limit even if the processor does not return; its late result is discarded.
func (r *Registry) process(ctx context.Context, d *Draft, p Processor) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limit := cmp.Or(p.Timeout, DefaultTimeout)
	cause := artel.Errorf(artel.Unavailable, "pipeline.Build", "", "the processor took longer than its limit of %v", limit)
	pctx, cancel := context.WithTimeoutCause(ctx, limit, cause)
	defer cancel()
	run := r.recovered
	if !p.Core {
		run = r.apart
	}
	err := run(pctx, d, p)
	if err != nil && ctx.Err() == nil && pctx.Err() != nil {
		return cause
	}
	return err
}

// recovered runs a processor and returns its panic as an error. The stack goes to
// the log alone.
func (r *Registry) recovered(ctx context.Context, d *Draft, p Processor) (err error) {
	defer func() {
		if v := recover(); v != nil {
			cmp.Or(r.Log, slog.Default()).Error("a processor of the pipeline panicked", "processor", p.ID, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = artel.Errorf(artel.Internal, "pipeline.Build", "", "the processor panicked: %s; the log has the stack", artel.Shorten(fmt.Sprint(v), 300))
		}
	}()
	return p.Process(ctx, d)
}

// apart runs a processor on a copy of the draft and adopts the copy when the
// processor returns before ctx ends. The goroutine of a processor that ignores
// ctx ends when the processor returns.
func (r *Registry) apart(ctx context.Context, d *Draft, p Processor) error {
	if n := r.overdue.of(p.ID); n >= maxOverdue {
		return artel.Errorf(artel.Unavailable, "pipeline.Build", "", "%d earlier runs of the processor have not ended although their time is over; it is not started again before one of them ends", n)
	}
	own := d.copy()
	done := make(chan error, 1)
	go func() { done <- r.recovered(ctx, own, p) }()
	var over <-chan time.Time // nil before ctx ended
	for ended := ctx.Done(); ; {
		select {
		case err := <-done:
			d.adopt(own)
			return err
		case <-ended:
			ended, over = nil, time.After(graceTime)
		case <-over:
			r.overdue.add(p.ID, 1)
			go func() {
				<-done
				r.overdue.add(p.ID, -1)
			}()
			return ctx.Err()
		}
	}
}

// graceTime is how long a processor may take to return after its context ended.
// Until then its logs are kept.
const graceTime = time.Second

// copy returns a draft that a processor may change while d is read. Parts, the
// input and the tables of media are shared: processors outside this package only
// read them.
func (d *Draft) copy() *Draft {
	c := *d
	c.Messages = slices.Clone(d.Messages)
	c.before, c.logs = nil, slices.Clone(d.logs)
	if c.board = maps.Clone(d.board); c.board == nil {
		c.board = make(map[reflect.Type]any)
	}
	if v, ok := Value[*macro.Variables](d); ok {
		Set(&c, &macro.Variables{Local: maps.Clone(v.Local), Global: maps.Clone(v.Global)})
	}
	return &c
}

// adopt takes over what a processor may change.
func (d *Draft) adopt(c *Draft) {
	d.Messages, d.board, d.logs, d.unchanged = c.Messages, c.board, c.logs, c.unchanged
}
