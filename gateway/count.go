// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/anthropic"
)

// countTokens serves a request for its number of tokens. A service that can
// count is asked; otherwise the tokens are estimated, media by the usual cost
// of models.
func (s *server) countTokens(w http.ResponseWriter, r *http.Request, d dialect, say func(int) any) {
	x := s.newExchange(w, r, d)
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		x.finish(notAllowed(r))
		return
	}
	x.finish(x.count(say))
}

func (x *exchange) count(say func(int) any) error {
	leave, err := x.admit()
	if err != nil {
		return err
	}
	defer leave()
	ctx := x.r.Context()
	if err := x.readRequest(ctx); err != nil {
		return err
	}
	x.head.stream, x.entry.Stream = false, false
	if inner := gjson.Get(x.text, countWrapper); inner.IsObject() && x.d.name() == model.Gemini {
		x.text = inner.Raw
	}
	s, err := x.gw.backend.Service(ctx, x.head.model, x.key)
	if err != nil {
		return modelNotFound(x.head.model)
	}
	x.entry.Service, x.entry.Outbound = s.ID, s.Dialect
	if err := x.rewrite(ctx); err != nil {
		return err
	}
	if f, ok := x.gw.o.Forwarders[s.Dialect].(*anthropic.Provider); ok && s.Dialect == x.d.name() {
		done, err := x.askServiceCount(ctx, f, s)
		if done {
			return err
		}
	}
	p, err := x.prepareTranslation(ctx, s, nil)
	if err != nil {
		return err
	}
	n, err := x.gw.backend.Count(ctx, p.request)
	if err != nil {
		return err
	}
	return x.writeJSON(say(n))
}

// askServiceCount asks the service. done is false if it cannot count.
func (x *exchange) askServiceCount(ctx context.Context, f *anthropic.Provider, s model.Service) (done bool, err error) {
	text, _, err := x.conform(ctx, s, nil)
	if err != nil {
		return true, err
	}
	body := x.extraction.Body([]byte(x.withModel(text, s)), x.gw.backend.Blobs())
	x.entry.Tries++
	resp, err := f.ForwardCount(ctx, s, body, x.forwardedHeaders())
	if err != nil {
		e := faultOf(err)
		return e.status != http.StatusNotFound && e.status < 500, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxInspected))
	if err != nil || !bytes.Contains(answer, []byte(`"input_tokens"`)) || !gjson.ValidBytes(answer) {
		return false, nil
	}
	return true, x.writeBody(answer)
}

const (
	// compareEvery is the shortest time between two comparisons for one service:
	// counting costs more than forwarding.
	compareEvery = time.Minute
	// minCompared is the length of the shortest request that is compared, in
	// bytes.
	minCompared = 4 << 10
)

// A countLimiter allows one comparison per service and minute.
type countLimiter struct {
	mu   sync.Mutex
	last map[artel.ServiceID]time.Time
}

// allow reports whether a request of a service may be counted now, and records
// it.
func (b *countLimiter) allow(id artel.ServiceID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, ok := b.last[id]; ok && now.Sub(last) < compareEvery {
		return false
	}
	b.last[id] = now
	return true
}

// compareCount records how far the input tokens that a service reported differ
// from our count. Requests with media are left out: their cost is another
// matter.
func (x *exchange) compareCount(ctx context.Context, s model.Service) {
	if x.entry.Usage.InputTokens <= 0 || len(x.text) < minCompared || len(x.extraction.Payloads()) > 0 ||
		len(x.scan(x.text).media) > 0 || !x.gw.counts.allow(s.ID, x.began) {
		return
	}
	_ = http.NewResponseController(x.w).Flush() // do not make the client wait
	if x.call == nil {
		call, err := x.d.decode(ctx, strings.NewReader(x.text))
		if err != nil {
			return // the service took it; our decoder does not
		}
		x.call = call
	}
	r := x.call.neutral()
	r.Service = s
	n, err := x.gw.backend.Count(ctx, r)
	if err != nil {
		return
	}
	if m, ok := s.MeasureRatio(n, x.entry.Usage.InputTokens); ok {
		x.gw.backend.Correct(m)
	}
}
