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

// countTokens answers a request that asks how many tokens it has. The service
// itself is asked where it can say it; else they are estimated, and media count
// as what models reckon for them.
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
	s, err := x.backend.Service(ctx, x.head.model, x.key)
	if err != nil {
		return modelNotFound(x.head.model)
	}
	x.entry.Service, x.entry.Outbound = s.ID, s.Dialect
	if err := x.rewrite(ctx); err != nil {
		return err
	}
	if f, ok := x.o.Forwarders[s.Dialect].(*anthropic.Provider); ok && s.Dialect == x.d.name() {
		done, err := x.askServiceCount(ctx, f, s)
		if done {
			return err
		}
	}
	p, err := x.prepareTranslation(ctx, s, nil)
	if err != nil {
		return err
	}
	n, err := x.backend.Count(ctx, p.request)
	if err != nil {
		return err
	}
	return x.writeJSON(say(n))
}

// askServiceCount asks the service. done is false where it does not know.
func (x *exchange) askServiceCount(ctx context.Context, f *anthropic.Provider, s model.Service) (done bool, err error) {
	text, _, err := x.conform(ctx, s, nil)
	if err != nil {
		return true, err
	}
	body := x.extraction.Body([]byte(x.withModel(text, s)), x.backend.Blobs())
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
	// compareEvery is how often at most a request is counted to compare it with what
	// its service reports: counting costs more than sending on.
	compareEvery = time.Minute
	// minCompared is the shortest request that says something, in bytes.
	minCompared = 4 << 10
)

// A schoolbook says when requests of a service were counted last.
type countLimiter struct {
	mu   sync.Mutex
	last map[artel.ServiceID]time.Time
}

// due reports whether a request of a service is to be counted now, and notes it.
func (b *countLimiter) allow(id artel.ServiceID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, ok := b.last[id]; ok && now.Sub(last) < compareEvery {
		return false
	}
	b.last[id] = now
	return true
}

// compare tells how far the tokens that a service has reported of a request are
// from what is counted here. What media cost is another matter than how text is
// counted.
func (x *exchange) compareCount(ctx context.Context, s model.Service) {
	if x.entry.Usage.InputTokens <= 0 || len(x.text) < minCompared || len(x.extraction.Payloads()) > 0 ||
		len(x.scan(x.text).media) > 0 || !x.counts.allow(s.ID, x.began) {
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
	if m, ok := s.MeasureRatio(n, x.entry.Usage.InputTokens); ok {
		x.backend.Correct(m)
	}
}
