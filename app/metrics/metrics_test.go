// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/app/meter"
	"github.com/artelhq/artel/app/metrics"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// scrape returns the metrics of the product.
func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// want holds that lines are among the metrics.
func want(t *testing.T, m *metrics.Metrics, lines ...string) {
	t.Helper()
	got := scrape(t, m)
	for _, line := range lines {
		if !strings.Contains(got, "\n"+line+"\n") {
			name, _, _ := strings.Cut(line, "{")
			t.Errorf("no line\n%s\namong\n%s", line, strings.Join(regexp.MustCompile("(?m)^"+name+".*$").FindAllString(got, -1), "\n"))
		}
	}
}

func request() gatewaylog.GatewayEntry {
	return gatewaylog.GatewayEntry{
		Key: "secret-key-name", Inbound: model.Anthropic, Outbound: model.OpenAI, Service: "main", Model: "name-by-client", Status: 200, Millis: 40, Tries: 4, Relents: 1,
		Usage: artel.Usage{Calls: 1, InputTokens: 100, CachedTokens: 75, OutputTokens: 10, Cost: artel.Cost{USD: 0.25, Calls: 1}},
		Changes: []gatewaylog.GatewayChange{
			{Did: "dropped", Field: "citations"},
			{Did: "described", Reason: artel.ReasonCapabilityMissing},
			{Did: "converted", Reason: "a sentence"},
			{Did: "fell_back", Service: "first"},
			{Did: "resolved"},
		},
	}
}

func TestGateway(t *testing.T) {
	m := metrics.New("1.2.3")
	m.Gateway(request())
	metrics.Usage(m)(meter.Record{Source: meter.Gateway, Service: "main", Key: "secret", Model: "by-client", Usage: request().Usage})
	e := request()
	e.Inbound, e.Status, e.Usage, e.Changes = model.OpenAI, 503, artel.Usage{}, nil
	m.Gateway(e)
	for _, status := range []int{429, 499, 404, 0} {
		m.Gateway(gatewaylog.GatewayEntry{Inbound: model.Gemini, Status: status})
	}
	want(t, m,
		`artel_build_info{version="1.2.3"} 1`,
		`artel_gateway_request_seconds_bucket{inbound="anthropic",outbound="openai",outcome="2xx",le="0.05"} 1`,
		`artel_gateway_request_seconds_bucket{inbound="anthropic",outbound="openai",outcome="2xx",le="0.025"} 0`,
		`artel_gateway_request_seconds_count{inbound="openai",outbound="openai",outcome="5xx"} 1`,
		`artel_gateway_request_seconds_count{inbound="gemini",outbound="",outcome="limited"} 1`,
		`artel_gateway_request_seconds_count{inbound="gemini",outbound="",outcome="canceled"} 1`,
		`artel_gateway_request_seconds_count{inbound="gemini",outbound="",outcome="4xx"} 1`,
		`artel_gateway_request_seconds_count{inbound="gemini",outbound="",outcome="other"} 1`,
		`artel_gateway_dropped_fields_total{inbound="anthropic",outbound="openai"} 1`,
		`artel_gateway_relents_total{service="main"} 2`,
		`artel_tokens_total{kind="input",service="main",source="gateway"} 100`,
		`artel_tokens_total{kind="cached",service="main",source="gateway"} 75`,
		`artel_tokens_total{kind="output",service="main",source="gateway"} 10`,
		`artel_cost_dollars_total{service="main",source="gateway"} 0.25`,
		`artel_cache_prefix_ratio_bucket{service="main",source="gateway",le="0.75"} 1`,
		`artel_cache_prefix_ratio_bucket{service="main",source="gateway",le="0.5"} 0`,
		`artel_routing_decisions_total{form="described",reason="capability_missing",source="gateway"} 1`,
		`artel_routing_decisions_total{form="converted",reason="other",source="gateway"} 1`,
		`artel_fallbacks_total{service="first"} 1`,
		`artel_retries_total{service="main"} 2`, // of the forwarded request alone
	)
	if got := scrape(t, m); strings.Contains(got, "secret") || strings.Contains(got, "by-client") || strings.Contains(got, "citations") || strings.Contains(got, "sentence") {
		t.Error("a key, a model of a client, a field or a text is a label")
	}
}

// TestGatewayAllocates: after the first of its kind, a request of the gateway costs
// no memory.
func TestGatewayAllocates(t *testing.T) {
	m := metrics.New("")
	e := request()
	e.Changes, e.Tries, e.Relents = nil, 1, 0
	if n := testing.AllocsPerRun(100, func() { m.Gateway(e) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	h := m.HTTP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(*http.Request) string { return "page" })
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if n := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); n > 2 {
		t.Errorf("%v allocations of a request", n)
	}
}

func TestEvents(t *testing.T) {
	m := metrics.New("")
	s := m.Store(rowstest.Open(t))
	c := artel.Conversation{ID: artel.NewConversationID(time.Now())}
	add := func(fail error, payloads ...artel.Payload) {
		t.Helper()
		err := s.Update(t.Context(), "me", func(tx store.Tx) error {
			for _, p := range payloads {
				e, err := artel.NewEvent("", "", time.Now(), p)
				if err != nil {
					return err
				}
				if _, err := tx.Events.Append(c.ID, e); err != nil {
					return err
				}
			}
			return fail
		})
		if !errors.Is(err, fail) {
			t.Fatal(err)
		}
	}
	if err := s.Update(t.Context(), "me", func(tx store.Tx) error { return tx.Conversations.Create(c) }); err != nil {
		t.Fatal(err)
	}
	undone := errors.New("undone")
	metrics.Usage(m)(meter.Record{Source: meter.Run, Service: "main", Usage: artel.Usage{Calls: 1, InputTokens: 8, OutputTokens: 2}})
	add(undone, artel.RunFinished{State: artel.RunDone})
	add(nil, artel.RunFinished{State: artel.RunDone}, artel.RunResumed{Attempt: 1}, artel.ServiceChanged{From: "first", To: "main"},
		artel.ContextBuilt{Attachments: []artel.AttachmentRoute{{Route: artel.Route{Step: artel.StepNative}}, {Route: artel.Route{Step: artel.StepExtracted, Reason: artel.ReasonNotAccepted}}}},
		artel.ToolCompleted{Name: "invented_by_a_model", Millis: 5},
		artel.ToolCompleted{Name: "create_artifact", OK: true, Millis: 20},
		artel.ToolCompleted{Name: "create_artifact", Millis: 20},
		artel.ToolCompleted{Name: "two words", OK: true},
		artel.ArtifactCreated{}, artel.ArtifactUpdated{})
	want(t, m,
		`artel_tokens_total{kind="input",service="main",source="run"} 8`,
		`artel_runs_total{state="done"} 1`,
		`artel_runs_resumed_total 1`,
		`artel_fallbacks_total{service="first"} 1`,
		`artel_routing_decisions_total{form="native",reason="none",source="run"} 1`,
		`artel_routing_decisions_total{form="extracted",reason="not_accepted",source="run"} 1`,
		`artel_tool_call_seconds_count{outcome="ok",tool="create_artifact"} 1`,
		`artel_tool_call_seconds_count{outcome="failed",tool="create_artifact"} 1`,
		`artel_tool_call_seconds_count{outcome="failed",tool="other"} 1`,
		`artel_tool_call_seconds_count{outcome="ok",tool="other"} 1`,
		`artel_journal_edits_total 2`,
		`artel_store_update_seconds_count{outcome="ok"} 2`,
		`artel_store_update_seconds_count{outcome="undone"} 1`,
	)
}

func TestCalls(t *testing.T) {
	m := metrics.New("")
	s := model.Service{ID: "main", Dialect: model.Gemini}
	for attempt, err := range []error{artel.Errorf(artel.Unavailable, "", "", "busy"), nil} {
		_, end := m.Call(t.Context(), s, attempt+1)
		end(model.Finish{}, err)
	}
	want(t, m,
		`artel_model_call_seconds_count{dialect="gemini",outcome="unavailable"} 1`,
		`artel_model_call_seconds_count{dialect="gemini",outcome="ok"} 1`,
		`artel_retries_total{service="main"} 1`,
	)
}

func TestGauges(t *testing.T) {
	m := metrics.New("")
	n := m.Notifier(event.NewNotifier())
	first, second := n.Listen("a"), n.Listen("b")
	first.Close()
	first.Close()
	blobs := blob.NewMemory()
	for _, text := range []string{"one", "three"} {
		if _, err := blobs.Put(t.Context(), strings.NewReader(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	counting, end := context.WithCancel(t.Context())
	m.CountBlobs(counting, endAfter{blobs, end}, slog.New(slog.DiscardHandler))
	m.CountRuns(func(context.Context) (run.Load, error) { return run.Load{Active: 3, Queued: 4}, nil })
	want(t, m, "artel_followers 1", "artel_blobs 2", "artel_blob_bytes 8", "artel_runs_active 3", "artel_runs_queued 4")
	second.Close()
	want(t, m, "artel_followers 0")
}

// TestHTTP: requests count by face and status, also those that break off; streams
// of events have no time.
func TestHTTP(t *testing.T) {
	m := metrics.New("")
	h := m.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stream":
			w.Header().Set("Content-Type", "text/event-stream")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		case "/missing":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNotFound)
		case "/broken":
			panic(http.ErrAbortHandler)
		default:
			if _, err := io.Copy(w, strings.NewReader("ok")); err != nil {
				t.Error(err)
			}
		}
	}), func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") })
	up := httptest.NewServer(h)
	defer up.Close()
	for _, path := range []string{"/page", "/stream", "/missing", "/broken"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, up.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := up.Client().Do(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		} else if path != "/broken" {
			t.Error(err)
		}
	}
	up.Close() // waits for the handlers
	want(t, m,
		`artel_http_requests_total{face="page",status="200"} 1`,
		`artel_http_requests_total{face="missing",status="404"} 1`,
		`artel_http_requests_total{face="broken",status="aborted"} 1`,
		`artel_http_requests_total{face="stream",status="200"} 1`,
		`artel_http_request_seconds_count{face="page"} 1`,
		`artel_http_requests_open 0`,
	)
	if strings.Contains(scrape(t, m), `artel_http_request_seconds_count{face="stream"}`) {
		t.Error("a stream of events has a time")
	}
}

// endAfter ends a context after its blobs have been listed.
type endAfter struct {
	blob.Store
	end func()
}

func (s endAfter) List(ctx context.Context, yield func(blob.Info) bool) error {
	defer s.end()
	return s.Store.List(ctx, yield)
}
