// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/internal/logctx"
	"github.com/artelhq/artel/model"
)

// Request begins the span of a request to a part of the server, which continues the
// trace of the header traceparent. The result is the request with the span in its
// context, and a function for its status; 0: broken off. Lines of the log get the id
// of the trace.
func (t *Telemetry) Request(r *http.Request, face string) (*http.Request, func(status int)) {
	if isUnwatched(r.URL.Path) {
		return r, func(int) {}
	}
	method := r.Method
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "_OTHER"
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, method+" "+face, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", method), attribute.String("url.path", strings.ToValidUTF8(r.URL.Path, "�")), attribute.String("artel.face", face)))
	if c := span.SpanContext(); c.HasTraceID() {
		ctx = logctx.WithLazy(ctx, func() slog.Attr { return slog.String("trace_id", c.TraceID().String()) })
	}
	return r.WithContext(ctx), func(status int) {
		if status != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", status))
		}
		if status == 0 || status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// isUnwatched reports whether requests for a path are too many and too small to be
// traced.
func isUnwatched(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/metrics" || strings.HasPrefix(path, "/static/")
}

// Run begins the span of a run. The result has it in its context; the function ends it.
func (t *Telemetry) Run(ctx context.Context, r artel.Run) (context.Context, func(artel.Run)) {
	ctx, span := t.tracer.Start(ctx, "invoke_agent "+string(r.Agent), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", string(r.Agent)),
		attribute.String("gen_ai.conversation.id", string(r.Conversation)), attribute.String("artel.run.id", string(r.ID))))
	return ctx, func(r artel.Run) {
		span.SetAttributes(attribute.String("artel.run.state", string(r.State)))
		if r.State == artel.RunFailed {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// An OnAttempt watches attempts of model calls; see [model.CallerOptions].
type OnAttempt = func(context.Context, model.Service, int) (context.Context, func(model.Finish, error))

// Call returns next with a span around each attempt of a model call.
func (t *Telemetry) Call(next OnAttempt) OnAttempt {
	if t == nil {
		return next
	}
	return func(ctx context.Context, s model.Service, attempt int) (context.Context, func(model.Finish, error)) {
		ctx, end := next(ctx, s, attempt)
		began := time.Now()
		all := append(callAttributes(s.Dialect, s.Model), attribute.String("artel.service.id", string(s.ID)), attribute.Int("artel.attempt", attempt))
		if u, err := url.Parse(s.BaseURL); err == nil && u.Hostname() != "" {
			all = append(all, attribute.String("server.address", u.Hostname()))
		}
		ctx, span := t.tracer.Start(ctx, "chat "+s.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(all...))
		return ctx, func(f model.Finish, err error) {
			end(f, err)
			key := callKey{dialect: s.Dialect, name: s.Model}
			more := usageAttributes(f.Usage)
			if f.Reason != "" {
				more = append(more, attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(f.Reason)}))
			}
			if err != nil {
				key.failure = string(artel.KindOf(err))
				span.SetStatus(codes.Error, "")
				more = append(more, attribute.String("error.type", key.failure))
			}
			span.SetAttributes(more...)
			t.record(ctx, key, f.Usage, time.Since(began))
			span.End()
		}
	}
}

// Gateway makes the span of a request that was forwarded; the calls of translated ones
// have those of [Telemetry.Call].
func (t *Telemetry) Gateway(ctx context.Context, e gatewaylog.GatewayEntry) {
	if t == nil || e.Service == "" || e.Inbound != e.Outbound {
		return
	}
	took := time.Duration(e.Millis * float64(time.Millisecond))
	all := append(callAttributes(e.Outbound, e.Model), attribute.String("artel.service.id", string(e.Service)), attribute.Int("artel.attempt", e.Tries), attribute.Int("artel.changes", len(e.Changes)+e.Unlisted))
	all = append(all, usageAttributes(e.Usage)...)
	if e.Status >= http.StatusBadRequest {
		all = append(all, attribute.String("error.type", strconv.Itoa(e.Status)))
	}
	ctx, span := t.tracer.Start(ctx, "chat "+string(e.Service), trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(e.Time), trace.WithAttributes(all...))
	if e.Status >= http.StatusBadRequest {
		span.SetStatus(codes.Error, "")
	}
	t.record(ctx, callKey{dialect: e.Outbound, name: string(e.Service)}, e.Usage, took) // clients may name any model
	span.End(trace.WithTimestamp(e.Time.Add(took)))
}

// A callKey says which counters a model call has.
type callKey struct {
	dialect model.Dialect
	name    string // of the model, or of the service
	failure string
}

// callOptions are the attributes of a callKey, in the form that recording needs.
type callOptions struct{ duration, input, output []metric.RecordOption }

// optionsOf returns the options of a key, which are made once.
func (t *Telemetry) optionsOf(k callKey) callOptions {
	if o, ok := t.options.Load(k); ok {
		return o.(callOptions)
	}
	of := callAttributes(k.dialect, k.name)
	if k.failure != "" {
		of = append(of, attribute.String("error.type", k.failure))
	}
	with := func(more ...attribute.KeyValue) []metric.RecordOption {
		return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(slices.Concat(of, more)...))}
	}
	o := callOptions{with(), with(attribute.String("gen_ai.token.type", "input")), with(attribute.String("gen_ai.token.type", "output"))}
	t.options.Store(k, o)
	return o
}

// record counts what a model call took.
func (t *Telemetry) record(ctx context.Context, k callKey, u artel.Usage, took time.Duration) {
	if t.duration == nil {
		return
	}
	o := t.optionsOf(k)
	t.duration.Record(ctx, took.Seconds(), o.duration...)
	if model.Reported(u) {
		t.tokens.Record(ctx, u.InputTokens, o.input...)
		t.tokens.Record(ctx, u.OutputTokens, o.output...)
	}
}

// usageAttributes are those of a span; none without reported usage.
func usageAttributes(u artel.Usage) []attribute.KeyValue {
	if !model.Reported(u) {
		return nil
	}
	return []attribute.KeyValue{
		attribute.Int64("gen_ai.usage.input_tokens", u.InputTokens), attribute.Int64("gen_ai.usage.output_tokens", u.OutputTokens),
		attribute.Int64("gen_ai.usage.cache_read.input_tokens", u.CachedTokens),
	}
}

// providerNames are the names of the conventions for dialects.
var providerNames = map[model.Dialect]string{model.OpenAI: "openai", model.OpenAIResponses: "openai", model.Anthropic: "anthropic", model.Gemini: "gcp.gemini", model.Demo: "artel.demo"}

func callAttributes(d model.Dialect, name string) []attribute.KeyValue {
	return append(make([]attribute.KeyValue, 0, 12), // with room for those of a span
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", providerNames[d]), attribute.String("gen_ai.request.model", artel.Shorten(strings.ToValidUTF8(name, "�"), 200)))
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Event makes the span of a tool call, when the event of its end is stored.
func (t *Telemetry) Event(ctx context.Context, e artel.Event) {
	if e.Type != artel.EventToolCompleted || !json.Valid(e.Data) {
		return
	}
	of := gjson.GetManyBytes(e.Data, "name", "ok", "duration_ms", "call_id")
	name := of[0].String()
	if !toolName.MatchString(name) { // a model may call what does not exist
		name = "other"
	}
	end := time.Now()
	_, span := t.tracer.Start(ctx, "execute_tool "+name, trace.WithTimestamp(end.Add(-time.Duration(of[2].Float()*float64(time.Millisecond)))), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name), attribute.String("gen_ai.tool.call.id", of[3].String())))
	if !of[1].Bool() {
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(end))
}
