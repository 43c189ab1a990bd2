// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/httpapi"
)

// Limits of the calls that a proxy reports.
const (
	reportEvery  = 200 * time.Millisecond // how long calls gather before they are sent together
	reportWithin = 5 * time.Second        // for one report
	maxUnsent    = 1000                   // calls that wait for a server; of more the oldest are dropped
)

// A reporter tells a server about the calls of a proxy, for its log. Calls never wait for it:
// they are sent by a goroutine that lives only while some are waiting. Without a server they
// wait until there is one, or until the proxy ends.
type reporter struct {
	server func(context.Context) *httpapi.Client // nil if none runs now
	log    *slog.Logger

	mu      sync.Mutex
	waiting []gatewaylog.ReportedCall
	dropped int
	sending bool
	tried   time.Time // when a server was last looked for in vain
	ended   bool
	work    sync.WaitGroup
}

// add takes a call. It returns at once.
func (r *reporter) add(_ context.Context, e gatewaylog.GatewayEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == maxUnsent {
		r.waiting, r.dropped = r.waiting[1:], r.dropped+1
	}
	r.waiting = append(r.waiting, gatewaylog.Reported(e))
	if r.sending || r.ended || time.Since(r.tried) < reportWithin {
		return
	}
	r.sending = true
	r.work.Go(func() {
		time.Sleep(reportEvery)
		r.send()
	})
}

// send reports what is waiting.
func (r *reporter) send() {
	ctx, enough := context.WithTimeout(context.Background(), reportWithin)
	defer enough()
	to := r.server(ctx)
	for {
		r.mu.Lock()
		some := r.waiting[:min(len(r.waiting), gatewaylog.MaxReported)]
		if to == nil || len(some) == 0 {
			if r.sending = false; to == nil {
				r.tried = time.Now()
			}
			r.mu.Unlock()
			return
		}
		r.waiting = r.waiting[len(some):]
		r.mu.Unlock()
		err := to.ReportCalls(ctx, some)
		if err == nil {
			continue
		}
		r.mu.Lock()
		if _, refused := errors.AsType[*httpapi.Problem](err); refused {
			r.dropped += len(some)
			r.log.Warn("the server did not take calls for its log", "calls", len(some), "err", err)
		} else { // it is not there
			r.waiting = append(slices.Clone(some), r.waiting...)
			if more := len(r.waiting) - maxUnsent; more > 0 {
				r.waiting, r.dropped = r.waiting[more:], r.dropped+more
			}
		}
		r.mu.Unlock()
		to = nil
	}
}

// close reports the last calls, if a server runs. What a server that was named did not get is
// said.
func (r *reporter) close(named bool) {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.work.Wait()
	r.send()
	if n := r.dropped + len(r.waiting); n > 0 && (named || r.dropped > 0) {
		r.log.Warn("calls are missing in the log of the server", "calls", n)
	}
}

// existing returns the server that a command would use, if it runs; otherwise nil.
func (g *globals) existing(ctx context.Context, o attachOptions) *httpapi.Client {
	if o.explicit {
		return httpapi.NewClient(g.server, nil).WithToken(tokenFor(g.server))
	}
	f := &follower{next: http.DefaultTransport, errs: io.Discard}
	if f.choose(ctx, o) != nil {
		return nil
	}
	at, err := f.find(ctx)
	if err != nil || at == "" {
		return nil
	}
	return httpapi.NewClient(at, nil).WithToken(tokenFor(at))
}
