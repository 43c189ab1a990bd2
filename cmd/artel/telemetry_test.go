// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
)

// A receiver takes traces and metrics by OTLP over HTTP.
type receiver struct {
	mu      sync.Mutex
	raw     bytes.Buffer
	spans   []*trace.Span
	metrics map[string]bool
	service map[string]bool
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	c := &receiver{metrics: map[string]bool{}, service: map[string]bool{}}
	mux := http.NewServeMux()
	take := func(into proto.Message, keep func()) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.raw.Write(b)
			if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(b, into) != nil {
				t.Errorf("%s: %v, %d bytes of %s", r.URL.Path, err, len(b), r.Header.Get("Content-Type"))
			}
			keep()
			w.Header().Set("Content-Type", "application/x-protobuf")
		}
	}
	var traces collectortrace.ExportTraceServiceRequest
	mux.Handle("POST /v1/traces", take(&traces, func() {
		for _, r := range traces.ResourceSpans {
			c.service[attribute(r.Resource.Attributes, "service.name")] = true
			for _, s := range r.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	}))
	var metrics collectormetrics.ExportMetricsServiceRequest
	mux.Handle("POST /v1/metrics", take(&metrics, func() {
		for _, r := range metrics.ResourceMetrics {
			for _, s := range r.ScopeMetrics {
				for _, m := range s.Metrics {
					c.metrics[m.Name] = true
				}
			}
		}
	}))
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", h.URL)
	return c
}

func attribute(all []*otlp.KeyValue, key string) string {
	for _, kv := range all {
		if kv.Key == key {
			if v, ok := kv.Value.Value.(*otlp.AnyValue_StringValue); ok {
				return v.StringValue
			}
			return kv.Value.String()
		}
	}
	return ""
}

// find returns the span of a name that has attributes, given as pairs.
func (c *receiver) find(t *testing.T, name string, pairs ...string) *trace.Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, s := range c.spans {
		names = append(names, s.Name)
		ok := s.Name == name
		for i := 0; ok && i < len(pairs); i += 2 {
			ok = strings.Contains(attribute(s.Attributes, pairs[i]), pairs[i+1])
		}
		if ok {
			return s
		}
	}
	t.Fatalf("there is no span %s with %v among %q", name, pairs, names)
	return nil
}

// TestTelemetry: requests, runs and model calls are one trace at a receiver of OTLP,
// without texts, and it gets the metrics.
func TestTelemetry(t *testing.T) {
	c := newReceiver(t)
	g := newGuarded(t, access.Options{}, nil)
	const remote = "4bf92f3577b34da6a3ce929d0e0e4736"
	var made, sent struct {
		ID  string
		Run string `json:"run_id"`
	}
	g.must(&made, "POST", "/api/v1/conversations", `{}`)
	g.must(&sent, "POST", "/api/v1/conversations/"+made.ID+"/messages", `{"text":"a secret text"}`, "Traceparent", "00-"+remote+"-00f067aa0ba902b7-01")
	for state := ""; state != "done"; {
		var run struct{ State string }
		g.must(&run, "GET", "/api/v1/runs/"+sent.Run, "")
		if state = run.State; state == "failed" || state == "cancelled" {
			t.Fatalf("the run is %s", state)
		}
	}
	g.must(nil, "POST", "/v1/chat/completions?key=hidden", `{"model":"demo","messages":[{"role":"user","content":"a secret text"}]}`)
	if err := g.server.app.Close(t.Context()); err != nil { // what ends the spans of runs
		t.Fatal(err)
	}
	if err := g.server.telemetry.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	request := c.find(t, "POST api", "url.path", "/messages", "http.response.status_code", "202")
	run := c.find(t, "invoke_agent lead_agent", "artel.run.id", sent.Run, "gen_ai.conversation.id", made.ID, "artel.run.state", "done")
	call := c.find(t, "chat demo", "gen_ai.operation.name", "chat", "gen_ai.provider.name", "artel.demo", "gen_ai.request.model", "demo", "gen_ai.usage.input_tokens", "")
	c.find(t, "POST gateway", "url.path", "/v1/chat/completions")
	for _, s := range []*trace.Span{request, run, call} {
		if got := hexOf(s.TraceId); got != remote {
			t.Errorf("%s is of the trace %s", s.Name, got)
		}
	}
	if hexOf(request.ParentSpanId) != "00f067aa0ba902b7" || !bytes.Equal(run.ParentSpanId, request.SpanId) || !bytes.Equal(call.ParentSpanId, run.SpanId) {
		t.Errorf("the spans are not below each other: %v, %v, %v", request, run, call)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{"artel_http_requests_total", "artel_gateway_request_seconds", "gen_ai.client.operation.duration", "gen_ai.client.token.usage"} {
		if !c.metrics[name] {
			t.Errorf("there is no metric %s", name)
		}
	}
	if !c.service["artel"] {
		t.Errorf("got the services %v", c.service)
	}
	for _, text := range []string{"secret text", "hidden"} {
		if bytes.Contains(c.raw.Bytes(), []byte(text)) {
			t.Errorf("the export contains %q", text)
		}
	}
}

// TestTelemetryContent: with OpenTelemetry's variable, spans of model calls have what was
// sent and answered, by the conventions, with refs in the place of bytes; without it, or
// for requests that are forwarded, they have not.
func TestTelemetryContent(t *testing.T) {
	c := newReceiver(t)
	t.Setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
	upstream := newPaid(t)
	g := newGuarded(t, access.Options{}, func(c *config) { c.Services = paidServices(upstream) })
	picture, err := os.ReadFile("samples/workbench.png")
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(picture)
	var made, sent struct {
		ID  string
		Run string `json:"run_id"`
	}
	g.must(&made, "POST", "/api/v1/conversations", `{}`)
	g.must(&sent, "POST", "/api/v1/conversations/"+made.ID+"/messages", `{"service":"demo","text":"an exported text data:image/png;base64,`+encoded+`"}`)
	for state := ""; state != "done"; {
		var run struct{ State string }
		g.must(&run, "GET", "/api/v1/runs/"+sent.Run, "")
		if state = run.State; state == "failed" || state == "cancelled" {
			t.Fatalf("the run is %s", state)
		}
	}
	g.must(nil, "POST", "/v1/messages", `{"model":"paid","max_tokens":100,"system":"be brief","tools":[{"name":"look","description":"looks","input_schema":{"type":"object","properties":{}}}],"messages":[{"role":"user","content":"a translated text"}]}`)
	g.must(nil, "POST", "/v1/chat/completions", `{"model":"paid","messages":[{"role":"user","content":"a forwarded text"}]}`)
	if err := g.server.app.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.server.telemetry.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := c.find(t, "chat demo", "gen_ai.input.messages", "an exported text")
	for key, wants := range map[string][]string{
		"gen_ai.input.messages":      {`"role":"user"`, `{"type":"text","content":"an exported text`, `"type":"uri","modality":"image","mime_type":"image/png","uri":"`},
		"gen_ai.system_instructions": {`[{"type":"text","content":"`},
		"gen_ai.tool.definitions":    {`{"type":"function","name":"create_artifact"`, `"parameters":{`},
		"gen_ai.output.messages":     {`[{"role":"assistant","parts":[{"type":"`, `"finish_reason":"`},
	} {
		got := attribute(run.Attributes, key)
		for _, want := range wants {
			if !strings.Contains(got, want) || !json.Valid([]byte(got)) {
				t.Errorf("%s is without %s: %s", key, want, artel.Shorten(got, 2000))
			}
		}
	}
	translated := c.find(t, "chat paid", "gen_ai.input.messages", "a translated text", "gen_ai.system_instructions", "be brief", "gen_ai.tool.definitions", `"name":"look"`)
	if got := attribute(translated.Attributes, "gen_ai.output.messages"); got != `[{"role":"assistant","parts":[{"type":"text","content":"hi"}],"finish_reason":"stop"}]` {
		t.Errorf("the answer is %s", got)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range []string{"a forwarded text", encoded[:200]} {
		if bytes.Contains(c.raw.Bytes(), []byte(text)) {
			t.Errorf("the export contains %q", artel.Shorten(text, 60))
		}
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	for _, c := range b {
		out.WriteByte(digits[c>>4])
		out.WriteByte(digits[c&15])
	}
	return out.String()
}

// TestTelemetryOff: without a variable, nothing is wrapped.
func TestTelemetryOff(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"} {
		t.Setenv(name, "")
	}
	if g := newGuarded(t, access.Options{}, nil); g.server.telemetry != nil || g.server.onRun != nil {
		t.Error("telemetry is on")
	}
}
