// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

const (
	// ratioEvery is how often at most a request is counted to compare it with what
	// its service reports: counting costs more than sending on.
	ratioEvery = time.Minute
	// ratioFrom is the shortest request that says something, in bytes.
	ratioFrom = 4 << 10
)

// A schoolbook says when requests of a service were counted last.
type schoolbook struct {
	mu   sync.Mutex
	last map[artel.ServiceID]time.Time
}

// due reports whether a request of a service is to be counted now, and notes it.
func (b *schoolbook) due(id artel.ServiceID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, ok := b.last[id]; ok && now.Sub(last) < ratioEvery {
		return false
	}
	b.last[id] = now
	return true
}

// compare tells how far the tokens that a service has reported of a request are
// from what is counted here. What media cost is another matter than how text is
// counted.
func (x *exchange) compare(ctx context.Context, s model.Service) {
	if x.entry.Usage.InputTokens <= 0 || len(x.text) < ratioFrom || len(x.lifting.Payloads()) > 0 ||
		len(x.scan(x.text).media) > 0 || !x.counted.due(s.ID, x.began) {
		return
	}
	_ = http.NewResponseController(x.w).Flush() // the client need not wait for the count
	if x.call == nil {
		call, err := x.d.decode(ctx, strings.NewReader(x.text))
		if err != nil {
			return // the service took it; here it has no words
		}
		x.call = call
	}
	r := x.call.neutral()
	r.Service = s
	n, err := x.backend.Count(ctx, r)
	if err != nil {
		return
	}
	if m, ok := s.Counted(n, x.entry.Usage.InputTokens); ok {
		x.backend.Correct(m)
	}
}
