// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what a server does, for Prometheus.
//
// Begin with [New]. Nothing else imports Prometheus: the numbers come from what
// other packages report anyway. [Metrics.Store] reads the events of runs while
// they are stored and times commits, [Metrics.Gateway] takes the entries of the
// gateway's log, [Usage] what paid calls have used, [Metrics.Call] watches
// the attempts of model calls,
// [Metrics.Notifier] counts followers, and [Metrics.HTTP] times requests.
//
// Every label has few values: names of services and tools that exist, and words
// of the vocabulary. Keys, users, ids, models that clients name and texts never
// become labels.
package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/meter"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/run"
)

// Metrics has the metrics of one server. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	gateway   *gatewayMetrics
	spent     *spentMetrics
	runs      *runMetrics
	http      *httpMetrics
	commits   *prometheus.HistogramVec // outcome
	calls     *prometheus.HistogramVec // dialect, outcome
	retries   *prometheus.CounterVec   // service
	fallbacks *prometheus.CounterVec   // service
	routed    *prometheus.CounterVec   // source, form, reason
	followers prometheus.Gauge
	onRequest func(*http.Request, string) (*http.Request, func(int)) // nil: not called
	onEvent   func(context.Context, artel.Event)                     // nil: not called
	blobs     prometheus.Gauge
	blobBytes prometheus.Gauge
}

// The values of the label "source": where a model call comes from.
const (
	fromGateway = meter.Gateway
	fromRun     = meter.Run
)

// Bounds of the histograms, in seconds.
var (
	callSeconds   = [...]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900}
	commitSeconds = [...]float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5}
	ratios        = [...]float64{0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99}
)

// New returns the metrics of a server of a version, in a registry of their own.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := m.gauge("artel_build_info", "The version of the server; the value is 1.", prometheus.Labels{"version": version})
	build.Set(1)
	m.spent = newSpentMetrics(m)
	m.gateway = newGatewayMetrics(m)
	m.runs = newRunMetrics(m)
	m.http = newHTTPMetrics(m)
	m.commits = m.histogram("artel_store_update_seconds", "Time of updates of the database, from the call to the commit.", commitSeconds[:], "outcome")
	m.calls = m.histogram("artel_model_call_seconds", "Time of attempts of model calls by runs and by translated requests of the gateway.", callSeconds[:], "dialect", "outcome")
	m.retries = m.counter("artel_retries_total", "Attempts of model calls after the first.", "service")
	m.fallbacks = m.counter("artel_fallbacks_total", "Changes to another service, by the one that did not answer.", "service")
	m.routed = m.counter("artel_routing_decisions_total", "Media in requests by the form in which they were sent, and why.", "source", "form", "reason")
	m.followers = m.gauge("artel_followers", "Connections that follow the events of conversations.", nil)
	m.blobs = m.gauge("artel_blobs", "Stored blobs, counted every ten minutes.", nil)
	m.blobBytes = m.gauge("artel_blob_bytes", "Bytes of stored blobs, counted every ten minutes.", nil)
	return m
}

// Watch calls onRequest at the beginning of every request that is counted, with the part
// of the server, and what it returns with the status; and onEvent with every stored
// event. It is called before the server begins.
func (m *Metrics) Watch(onRequest func(*http.Request, string) (*http.Request, func(status int)), onEvent func(context.Context, artel.Event)) {
	m.onRequest, m.onEvent = onRequest, onEvent
}

// Gatherer reads the metrics for another way of export.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Handler serves the metrics in the formats of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogram(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) gauge(name, help string, constant prometheus.Labels) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: constant})
	m.registry.MustRegister(g)
	return g
}

// CountRuns adds the numbers of active and of queued runs, which are read at
// each scrape.
func (m *Metrics) CountRuns(count func(context.Context) (run.Load, error)) {
	m.registry.MustRegister(&loadCollector{
		count: count, active: prometheus.NewDesc("artel_runs_active", "Runs at work in this process.", nil, nil),
		queued: prometheus.NewDesc("artel_runs_queued", "Runs that wait for their turn.", nil, nil),
	})
}

// CountStored adds to m what users store, which is read at each scrape: the bytes of all,
// those of the user who stores most, and the limit of each; 0: none.
func CountStored(m *Metrics, limit int64, count func(context.Context) (sum, most int64, err error)) {
	m.registry.MustRegister(&storedCollector{
		count: count, sum: prometheus.NewDesc("artel_stored_bytes", "Bytes that count towards the storage limits of all users.", nil, nil),
		most: prometheus.NewDesc("artel_stored_bytes_largest_user", "Bytes of the user who stores most.", nil, nil),
	})
	m.gauge("artel_storage_limit_bytes", "Bytes that each user may store; 0: any number.", nil).Set(float64(limit))
}

type storedCollector struct {
	count     func(context.Context) (sum, most int64, err error)
	sum, most *prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (c *storedCollector) Describe(to chan<- *prometheus.Desc) { to <- c.sum; to <- c.most }

// Collect implements [prometheus.Collector].
func (c *storedCollector) Collect(to chan<- prometheus.Metric) {
	ctx, stop := context.WithTimeout(context.Background(), scrapeTime)
	defer stop()
	sum, most, err := c.count(ctx)
	if err != nil {
		return // as for runs
	}
	to <- prometheus.MustNewConstMetric(c.sum, prometheus.GaugeValue, float64(sum))
	to <- prometheus.MustNewConstMetric(c.most, prometheus.GaugeValue, float64(most))
}

// scrapeTime is the longest that a scrape waits for the database.
const scrapeTime = 5 * time.Second

type loadCollector struct {
	count          func(context.Context) (run.Load, error)
	active, queued *prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (c *loadCollector) Describe(to chan<- *prometheus.Desc) { to <- c.active; to <- c.queued }

// Collect implements [prometheus.Collector].
func (c *loadCollector) Collect(to chan<- prometheus.Metric) {
	ctx, stop := context.WithTimeout(context.Background(), scrapeTime)
	defer stop()
	l, err := c.count(ctx)
	if err != nil {
		return // the other metrics are worth more than an error
	}
	to <- prometheus.MustNewConstMetric(c.active, prometheus.GaugeValue, float64(l.Active))
	to <- prometheus.MustNewConstMetric(c.queued, prometheus.GaugeValue, float64(l.Queued))
}

// blobsEvery is how often blobs are counted: each count lists all of them.
const blobsEvery = 10 * time.Minute

// CountBlobs counts the blobs now and then every ten minutes, until ctx ends.
func (m *Metrics) CountBlobs(ctx context.Context, s blob.Store, log *slog.Logger) {
	tick := time.NewTicker(blobsEvery)
	defer tick.Stop()
	for {
		var number, bytes int64
		err := s.List(ctx, func(i blob.Info) bool {
			number++
			bytes += i.Size
			return true
		})
		if err == nil {
			m.blobs.Set(float64(number))
			m.blobBytes.Set(float64(bytes))
		} else if ctx.Err() == nil {
			log.WarnContext(ctx, "blobs could not be counted", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// statusClass returns a status as few words.
func statusClass(status int) string {
	switch {
	case status == 429:
		return "limited"
	case status == 499:
		return "canceled"
	case status < 100 || status > 599:
		return "other"
	}
	return [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"}[status/100-1]
}
