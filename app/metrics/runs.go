// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"encoding/json"
	"regexp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// runMetrics are those of runs.
type runMetrics struct {
	ended   *prometheus.CounterVec // state
	resumed prometheus.Counter
	tools   *prometheus.HistogramVec // tool, outcome
	edits   prometheus.Counter

	mu    sync.Mutex
	names map[string]bool // tools that have succeeded once
}

func newRunMetrics(m *Metrics) *runMetrics {
	return &runMetrics{
		ended:   m.counter("artel_runs_total", "Ended runs by their final state.", "state"),
		resumed: m.counter("artel_runs_resumed_total", "Runs that were continued after their process ended.").WithLabelValues(),
		tools:   m.histogram("artel_tool_call_seconds", "Time of tool calls.", callSeconds[:], "tool", "outcome"),
		edits:   m.counter("artel_journal_edits_total", "Edits of artifacts that were stored in journals.").WithLabelValues(),
		names:   map[string]bool{},
	}
}

// Store returns s with its updates timed and the events that they store counted.
// An update that is not committed counts only by its time.
func (m *Metrics) Store(s store.Store) store.Store { return &timedStore{s, m} }

type timedStore struct {
	store.Store
	m *Metrics
}

// Update implements [store.Store].
func (s *timedStore) Update(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
	began := time.Now()
	var stored storedEvents
	err := s.Store.Update(ctx, owner, func(tx store.Tx) error {
		stored.events = stored.events[:0] // it may run more than once
		stored.Events = tx.Events
		tx.Events = &stored
		return fn(tx)
	})
	outcome := "ok"
	switch {
	case artel.KindOf(err) == artel.Unavailable:
		outcome = "unavailable"
	case err != nil:
		outcome = "undone"
	}
	s.m.commits.WithLabelValues(outcome).Observe(time.Since(began).Seconds())
	if err == nil {
		for _, e := range stored.events {
			s.m.event(e)
			if s.m.onEvent != nil {
				s.m.onEvent(ctx, e)
			}
		}
	}
	return err
}

// storedEvents remembers the events that are appended.
type storedEvents struct {
	store.Events
	events []artel.Event
}

// Append implements [store.Events].
func (s *storedEvents) Append(c artel.ConversationID, events ...artel.Event) (artel.Seq, error) {
	n, err := s.Events.Append(c, events...)
	if err == nil {
		s.events = append(s.events, events...)
	}
	return n, err
}

// event counts one event of a run.
func (m *Metrics) event(e artel.Event) {
	switch e.Type {
	case artel.EventContextBuilt:
		if p, ok := payload[artel.ContextBuilt](e); ok {
			for _, a := range p.Attachments {
				m.route(fromRun, a.Step, a.Reason)
			}
		}
	case artel.EventServiceChanged:
		if p, ok := payload[artel.ServiceChanged](e); ok {
			m.fallbacks.WithLabelValues(string(p.From)).Inc()
		}
	case artel.EventToolCompleted: // the message in it may be large
		ok := gjson.GetBytes(e.Data, "ok").Bool()
		seconds := gjson.GetBytes(e.Data, "duration_ms").Float() / 1000
		m.runs.tool(gjson.GetBytes(e.Data, "name").String(), ok, seconds)
	case artel.EventArtifactCreated, artel.EventArtifactUpdated:
		m.runs.edits.Inc()
	case artel.EventRunResumed:
		m.runs.resumed.Inc()
	case artel.EventRunFinished:
		m.runs.ended.WithLabelValues(gjson.GetBytes(e.Data, "state").String()).Inc()
	}
}

func payload[P artel.Payload](e artel.Event) (p P, ok bool) {
	return p, json.Unmarshal(e.Data, &p) == nil
}

// maxTools is the largest number of names of tools in labels.
const maxTools = 200

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// tool counts a tool call. A model may call a tool that does not exist, so a name
// becomes a label only after a call of it has succeeded.
func (r *runMetrics) tool(name string, ok bool, seconds float64) {
	r.mu.Lock()
	if ok && len(r.names) < maxTools && toolName.MatchString(name) {
		r.names[name] = true
	}
	if !r.names[name] {
		name = "other"
	}
	r.mu.Unlock()
	outcome := "ok"
	if !ok {
		outcome = "failed"
	}
	r.tools.WithLabelValues(name, outcome).Observe(seconds)
}

// Call watches one attempt of a model call; see [model.CallerOptions].
func (m *Metrics) Call(ctx context.Context, s model.Service, attempt int) (context.Context, func(model.Finish, error)) {
	if attempt > 1 {
		m.retries.WithLabelValues(string(s.ID)).Inc()
	}
	began := time.Now()
	return ctx, func(_ model.Finish, err error) {
		outcome := "ok"
		if err != nil {
			outcome = string(artel.KindOf(err))
		}
		m.calls.WithLabelValues(string(s.Dialect), outcome).Observe(time.Since(began).Seconds())
	}
}
