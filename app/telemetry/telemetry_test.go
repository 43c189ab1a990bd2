// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		on   bool
		want string // of the error; empty: none
	}{
		{},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, on: true},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, on: true},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, on: true},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, want: "http/protobuf"},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", captureVariable: "SPAN_AND_EVENT"}, on: true},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", captureVariable: "event_only"}, want: "on spans"},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", captureVariable: "yes"}, want: "want true"},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, want: "otlp or none"},
	} {
		tel, err := Open(t.Context(), Options{Env: func(name string) string { return c.env[name] }, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		if (tel != nil) != c.on || (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, %v", c.env, tel != nil, err)
		}
		now, stop := context.WithCancel(t.Context())
		stop()
		_ = tel.Close(now) // nothing listens
	}
}

func TestPassesOn(t *testing.T) {
	for env, want := range map[string]bool{"": false, "baggage": false, "tracecontext": true, "baggage, tracecontext": true} {
		if got := passesOn(env); got != want {
			t.Errorf("%q: %t", env, got)
		}
	}
	var off *Telemetry
	if off.Transport(http.DefaultTransport) != http.DefaultTransport || (&Telemetry{}).Transport(http.DefaultTransport) != http.DefaultTransport {
		t.Error("the transport is wrapped")
	}
}
