// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/app/meter"
	"github.com/artelhq/artel/model"
)

// Values of [gatewaylog.GatewayChange.Did] that are counted.
const (
	didDrop     = "dropped"
	didFallBack = "fell_back"
)

// gatewayMetrics are those of the gateway's requests.
type gatewayMetrics struct {
	seconds *prometheus.HistogramVec // inbound, outbound, outcome
	relents *prometheus.CounterVec   // service
	dropped *prometheus.CounterVec   // inbound, outbound

	mu    sync.RWMutex
	known map[gatewayKey]prometheus.Observer // so that a request allocates nothing
}

type gatewayKey struct {
	inbound, outbound model.Dialect
	outcome           string
}

func newGatewayMetrics(m *Metrics) *gatewayMetrics {
	return &gatewayMetrics{
		seconds: m.histogram("artel_gateway_request_seconds", "Time of requests of the gateway, by the dialects of client and service.", callSeconds[:], "inbound", "outbound", "outcome"),
		relents: m.counter("artel_gateway_relents_total", "Calls that were made again with less after a refusal.", "service"),
		dropped: m.counter("artel_gateway_dropped_fields_total", "Fields of requests that did not reach the service.", "inbound", "outbound"),
		known:   map[gatewayKey]prometheus.Observer{},
	}
}

func (g *gatewayMetrics) observer(k gatewayKey) prometheus.Observer {
	g.mu.RLock()
	o := g.known[k]
	g.mu.RUnlock()
	if o == nil {
		o = g.seconds.WithLabelValues(string(k.inbound), string(k.outbound), k.outcome)
		g.mu.Lock()
		g.known[k] = o
		g.mu.Unlock()
	}
	return o
}

// Gateway counts a request of the gateway.
func (m *Metrics) Gateway(e gatewaylog.GatewayEntry) {
	g := m.gateway
	g.observer(gatewayKey{e.Inbound, e.Outbound, statusClass(e.Status)}).Observe(e.Millis / 1000)
	if e.Relents > 0 {
		g.relents.WithLabelValues(string(e.Service)).Add(float64(e.Relents))
	}
	again := e.Tries - e.Relents - 1
	for _, c := range e.Changes {
		switch c.Did {
		case didDrop:
			g.dropped.WithLabelValues(string(e.Inbound), string(e.Outbound)).Inc()
		case didFallBack:
			again--
			m.fallbacks.WithLabelValues(string(c.Service)).Inc()
		default:
			m.route(fromGateway, artel.Step(c.Did), c.Reason)
		}
	}
	if again > 0 && e.Inbound == e.Outbound { // those of translated requests are counted by Call
		m.retries.WithLabelValues(string(e.Service)).Add(float64(again))
	}
}

// route counts the decision about the form of one file. Steps and reasons that
// are not of the vocabulary are left out.
func (m *Metrics) route(source string, s artel.Step, r artel.Reason) {
	switch s {
	case artel.StepNative, artel.StepConverted, artel.StepExtracted, artel.StepTranscribed, artel.StepDescribed:
	default:
		return
	}
	m.routed.WithLabelValues(source, string(s), reasonClass(r)).Inc()
}

func reasonClass(r artel.Reason) string {
	switch r {
	case artel.ReasonNone:
		return "none"
	case artel.ReasonText, artel.ReasonCapabilityMissing, artel.ReasonNotAccepted, artel.ReasonOverLimit, artel.ReasonUndetected,
		artel.ReasonUnreadable, artel.ReasonEmpty, artel.ReasonRefused, artel.ReasonRequestFull, artel.ReasonNotMade, artel.ReasonPolicy, artel.ReasonStale:
		return string(r)
	}
	return "other"
}

// spentMetrics are those of tokens and costs.
type spentMetrics struct {
	tokens *prometheus.CounterVec   // source, service, kind
	cost   *prometheus.CounterVec   // source, service
	prefix *prometheus.HistogramVec // source, service

	mu    sync.RWMutex
	known map[spentKey]*spent
}

type spentKey struct {
	source  string
	service artel.ServiceID
}

type spent struct {
	input, cached, output, cost prometheus.Counter
	prefix                      prometheus.Observer
}

func newSpentMetrics(m *Metrics) *spentMetrics {
	return &spentMetrics{
		tokens: m.counter("artel_tokens_total", "Tokens of model calls: input (all of it), cached (of the input, read from the provider's cache) and output.", "source", "service", "kind"),
		cost:   m.counter("artel_cost_dollars_total", "Known cost of model calls in US dollars.", "source", "service"),
		prefix: m.histogram("artel_cache_prefix_ratio", "Share of the input of a model call that the provider read from its cache.", ratios[:], "source", "service"),
		known:  map[spentKey]*spent{},
	}
}

// Usage returns the function that counts in m what a paid call has used.
func Usage(m *Metrics) func(meter.Record) {
	return func(r meter.Record) { m.spent.add(spentKey{r.Source, r.Service}, r.Usage) }
}

func (s *spentMetrics) add(k spentKey, u artel.Usage) {
	s.mu.RLock()
	to := s.known[k]
	s.mu.RUnlock()
	if to == nil {
		source, service := k.source, string(k.service)
		to = &spent{
			s.tokens.WithLabelValues(source, service, "input"), s.tokens.WithLabelValues(source, service, "cached"), s.tokens.WithLabelValues(source, service, "output"),
			s.cost.WithLabelValues(source, service), s.prefix.WithLabelValues(source, service),
		}
		s.mu.Lock()
		s.known[k] = to
		s.mu.Unlock()
	}
	// A counter refuses to fall, and providers have reported negative numbers.
	to.input.Add(float64(max(0, u.InputTokens)))
	to.cached.Add(float64(max(0, u.CachedTokens)))
	to.output.Add(float64(max(0, u.OutputTokens)))
	to.cost.Add(max(0, u.Cost.USD))
	if u.InputTokens > 0 {
		to.prefix.Observe(float64(u.CachedTokens) / float64(u.InputTokens))
	}
}
