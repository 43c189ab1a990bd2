// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// countTokens serves a request for its number of tokens. A service that can
// count is asked; otherwise the tokens are estimated, media by the usual cost
// of models.
func (s *server) countTokens(w http.ResponseWriter, r *http.Request, d provider.Editor) {
	x := s.newExchange(w, r, d)
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		x.finish(notAllowed(r))
		return
	}
	x.finish(x.count())
}

func (x *exchange) count() error {
	leave, err := x.admit()
	if err != nil {
		return err
	}
	defer leave()
	ctx := x.r.Context()
	if err := x.readRequest(ctx); err != nil {
		return err
	}
	x.head.Stream, x.entry.Stream = false, false
	x.text = x.d.CountedText(x.text)
	targets, err := x.findTargets(ctx)
	if err != nil {
		return err
	}
	s := targets[0]
	x.setService(s)
	if err := x.rewrite(ctx); err != nil {
		return err
	}
	d, err := x.deferral(ctx, s)
	if err != nil {
		return err
	}
	if f, ok := x.gw.o.Forwarders[s.Dialect].(provider.Counter); ok && s.Dialect == x.d.Dialect() && d == nil {
		done, err := x.askServiceCount(ctx, f, s)
		if done {
			return err
		}
	}
	p, err := x.prepareTranslation(ctx, s, nil, d)
	if err != nil {
		return err
	}
	n, err := x.gw.backend.Count(ctx, p.request)
	if err != nil {
		return err
	}
	return x.writeJSON(x.d.CountBody(n))
}

// askServiceCount asks the service. done is false if it cannot count.
func (x *exchange) askServiceCount(ctx context.Context, f provider.Counter, s *model.Service) (done bool, err error) {
	text, _, err := x.conform(ctx, s, nil)
	if err != nil {
		return true, err
	}
	body := x.extraction.Body([]byte(x.withModel(text, s)), x.gw.backend.Blobs())
	x.entry.Tries++
	resp, err := f.ForwardCount(ctx, s, body, x.forwardedHeaders())
	if err != nil {
		e := faultOf(err)
		return e.Status != http.StatusNotFound && e.Status < 500, err
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

// compareCount compares the input tokens that a service reported with ours. Without
// media, it records how far they differ; with pictures in the results of tools, sent,
// whether the service has shown them to its model.
func (x *exchange) compareCount(ctx context.Context, s *model.Service, sent []model.PlacedMedia) {
	media := len(x.extraction.Payloads()) + len(x.scan(x.text).Media)
	which := s.ID
	switch {
	case x.entry.Usage.InputTokens <= 0, media == 0 && len(x.text) < minCompared:
		return
	case media > 0:
		which += "/pictures"
		if len(sent) == 0 || len(sent) != len(x.scan(x.text).Media) { // others are named only, or described
			return
		}
	}
	if !x.gw.counts.allow(which, x.began) {
		return
	}
	_ = http.NewResponseController(x.w).Flush() // do not make the client wait
	if x.call == nil {
		call, err := x.d.Decode(ctx, x.extraction.Reader([]byte(x.text)))
		if err != nil {
			return // the service took it; our decoder does not
		}
		x.call = call
	}
	r := x.call.Neutral()
	r.Service = *s
	if s.Dialect != x.d.Dialect() {
		x.request.RestoreCalls(ctx, r) // as it was sent
	}
	count := func(r *model.Request) (int, error) { return x.gw.backend.Count(ctx, r) }
	if media > 0 {
		if m, ok := model.MeasureUnseen(r, sent, count, x.entry.Usage.InputTokens); ok {
			x.gw.backend.Learn([]model.Mark{m})
		}
		return
	}
	n, err := count(r)
	if err != nil {
		return
	}
	if m, ok := s.MeasureRatio(n, x.entry.Usage.InputTokens); ok {
		x.gw.backend.Correct(m)
	}
}
