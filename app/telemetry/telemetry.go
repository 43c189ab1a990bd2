// SPDX-License-Identifier: Apache-2.0

// Package telemetry exports traces and metrics by OTLP over HTTP, as the standard
// variables OTEL_* say.
//
// Begin with [Open], which returns nil if no variable asks for an export; all methods
// of a nil [Telemetry] do nothing, and leave what they would wrap as it is. Spans are
// made of what other packages report anyway: [Telemetry.Request] for requests,
// [Telemetry.Run] for runs, [Telemetry.Call] and [Telemetry.Gateway] for model calls,
// [Telemetry.Event] for tool calls. Their attributes follow the conventions of
// OpenTelemetry for generative AI. They hold ids, names and counts; texts only if
// the variable for message content asks for them ([Telemetry.Providers]), and never bytes.
package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	promtel "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/artelhq/artel"
)

// scope names the instrumentation in traces and metrics.
const scope = "github.com/artelhq/artel"

// A Telemetry exports what one server does. It is safe for concurrent use.
type Telemetry struct {
	tracer   trace.Tracer
	close    []func(context.Context) error
	capture  bool                    // spans of model calls get their texts
	passOn   bool                    // services get the header traceparent
	duration metric.Float64Histogram // nil: metrics are not exported
	tokens   metric.Int64Histogram
	options  sync.Map // callOptions by callKey
}

// Options are the parts of a [Telemetry].
type Options struct {
	Version string
	Env     func(string) string // reads a variable
	// Metrics are exported as they are, under their names.
	Metrics prometheus.Gatherer
	Log     *slog.Logger // of failed exports
}

// Open returns nil if the variables ask for nothing: neither
// OTEL_EXPORTER_OTLP_ENDPOINT nor one for traces or metrics is set, nor is
// OTEL_TRACES_EXPORTER or OTEL_METRICS_EXPORTER "otlp". The other variables are read
// by the SDK. The caller closes the result.
func Open(ctx context.Context, o Options) (*Telemetry, error) {
	traces, err := wanted(o.Env, "TRACES")
	if err != nil {
		return nil, err
	}
	metrics, err := wanted(o.Env, "METRICS")
	if err != nil || !traces && !metrics {
		return nil, err
	}
	capture, err := captures(o.Env(captureVariable))
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		o.Log.Warn("traces or metrics could not be exported", "err", err)
	}))
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "artel"), attribute.String("service.version", o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, "telemetry.Open", "OTEL_RESOURCE_ATTRIBUTES", "%w", err)
	}
	t := &Telemetry{tracer: noop.NewTracerProvider().Tracer(scope), passOn: passesOn(o.Env("OTEL_PROPAGATORS")), capture: capture}
	if traces {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, artel.Errorf(artel.Invalid, "telemetry.Open", "OTEL_EXPORTER_OTLP_ENDPOINT", "%w", err)
		}
		p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
		t.tracer, t.close = p.Tracer(scope), append(t.close, p.Shutdown)
	}
	if metrics {
		exporter, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return nil, errors.Join(artel.Errorf(artel.Invalid, "telemetry.Open", "OTEL_EXPORTER_OTLP_ENDPOINT", "%w", err), t.Close(ctx))
		}
		reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(promtel.NewMetricProducer(promtel.WithGatherer(o.Metrics))))
		p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(about))
		t.close = append(t.close, p.Shutdown)
		meter := p.Meter(scope)
		if t.duration, err = meter.Float64Histogram("gen_ai.client.operation.duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)); err == nil {
			t.tokens, err = meter.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"), metric.WithExplicitBucketBoundaries(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304))
		}
		if err != nil {
			return nil, errors.Join(artel.Errorf(artel.Internal, "telemetry.Open", "", "%w", err), t.Close(ctx))
		}
	}
	return t, nil
}

// wanted reports whether a signal is exported.
func wanted(env func(string) string, signal string) (bool, error) {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	switch exporter := env("OTEL_" + signal + "_EXPORTER"); exporter {
	case "":
		if env("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && env("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") == "" {
			return false, nil
		}
	case "none":
		return false, nil
	case "otlp":
	default:
		return false, artel.Errorf(artel.Unsupported, "telemetry.Open", "OTEL_"+signal+"_EXPORTER", "%q is not an exporter of this server; want otlp or none", artel.Shorten(exporter, 40))
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch protocol := env(name); protocol {
		case "":
			continue
		case "http/protobuf":
			return true, nil
		default:
			return false, artel.Errorf(artel.Unsupported, "telemetry.Open", name, "%q is not supported; set it to http/protobuf, and the endpoint to that of OTLP over HTTP (usually port 4318)", artel.Shorten(protocol, 40))
		}
	}
	return true, nil
}

// passesOn reports whether services get the header traceparent: only if
// OTEL_PROPAGATORS names it, because services may belong to others.
func passesOn(propagators string) bool {
	for name := range strings.SplitSeq(propagators, ",") {
		if strings.TrimSpace(name) == "tracecontext" {
			return true
		}
	}
	return false
}

// Close exports what is left. It waits no longer than ctx.
func (t *Telemetry) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	var err error
	for _, c := range t.close {
		err = errors.Join(err, c(ctx))
	}
	if err != nil {
		return artel.Errorf(artel.Unavailable, "telemetry.Close", "", "the last traces and metrics could not be exported: %w", err)
	}
	return nil
}

// Transport returns next, which sends the header traceparent if OTEL_PROPAGATORS
// names tracecontext.
func (t *Telemetry) Transport(next http.RoundTripper) http.RoundTripper {
	if t == nil || !t.passOn {
		return next
	}
	return passing{next}
}

type passing struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (p passing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
	return p.next.RoundTrip(r)
}

// CloseIdleConnections is for [http.Client.CloseIdleConnections].
func (p passing) CloseIdleConnections() {
	if c, ok := p.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
