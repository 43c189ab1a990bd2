// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// captureVariable is OpenTelemetry's own for the contents of model calls.
const captureVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// captures reports whether spans of model calls get their texts.
func captures(value string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "false", "no_content":
		return false, nil
	case "true", "span_only", "span_and_event":
		return true, nil
	case "event_only":
		return false, artel.Errorf(artel.Unsupported, "telemetry.Open", captureVariable, "this server exports contents on spans, not as events: want true, span_only or no_content")
	}
	return false, artel.Errorf(artel.Invalid, "telemetry.Open", captureVariable, "%q is unknown: want true, false, no_content, span_only or span_and_event", artel.Shorten(value, 40))
}

// maxCaptured is the longest text of one part that is exported, in bytes. What is cut
// ends in "…".
const maxCaptured = 64 << 10

// Providers returns all, whose calls add what they send and get to the span of the
// attempt, if [captureVariable] asks for it: by the conventions, as JSON in
// gen_ai.system_instructions, gen_ai.input.messages, gen_ai.tool.definitions and
// gen_ai.output.messages. Media are refs, never bytes.
func (t *Telemetry) Providers(all map[model.Dialect]model.Provider) map[model.Dialect]model.Provider {
	if t == nil || !t.capture {
		return all
	}
	out := maps.Clone(all)
	for d, p := range out {
		out[d] = capturing(p)
	}
	return out
}

// capturing returns p with capture, and what else p can do.
func capturing(p model.Provider) model.Provider {
	c := capture{p}
	w, writes := p.(model.Writer)
	s, transcribes := p.(model.Transcriber)
	switch {
	case writes && transcribes:
		return struct {
			capture
			model.Writer
			model.Transcriber
		}{c, w, s}
	case writes:
		return struct {
			capture
			model.Writer
		}{c, w}
	case transcribes:
		return struct {
			capture
			model.Transcriber
		}{c, s}
	}
	return c
}

type capture struct{ next model.Provider }

// Generate implements [model.Provider].
func (c capture) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		span := trace.SpanFromContext(ctx)
		if !span.IsRecording() { // not sampled
			c.next.Generate(ctx, r)(yield)
			return
		}
		sent(span, r)
		var got answer
		defer func() { got.add(span) }() // also of an answer that breaks off
		for d, err := range c.next.Generate(ctx, r) {
			if err == nil {
				got.take(d)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// The JSON of the conventions.
type (
	contentMessage struct {
		Role   artel.Role    `json:"role"`
		Parts  []contentPart `json:"parts"`
		Finish string        `json:"finish_reason,omitempty"` // of output messages
	}
	contentPart struct {
		Type      string          `json:"type"`
		Content   string          `json:"content,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Response  any             `json:"response,omitempty"`
		Modality  string          `json:"modality,omitempty"`
		MIMEType  string          `json:"mime_type,omitempty"`
		URI       string          `json:"uri,omitempty"`
	}
	contentTool struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
)

// sent adds what a request sends.
func sent(span trace.Span, r *model.Request) {
	var system []contentPart
	var messages []contentMessage
	for _, m := range r.Messages {
		parts := contentParts(m.Parts)
		if m.Role == artel.RoleSystem {
			system = append(system, parts...)
			continue
		}
		messages = append(messages, contentMessage{Role: m.Role, Parts: parts})
	}
	var tools []contentTool
	for _, s := range r.Tools {
		tools = append(tools, contentTool{"function", s.Name, cut(s.Description), small(s.Schema)})
	}
	addJSON(span, "gen_ai.system_instructions", system, len(system))
	addJSON(span, "gen_ai.input.messages", messages, len(messages))
	addJSON(span, "gen_ai.tool.definitions", tools, len(tools))
}

func contentParts(ps artel.Parts) []contentPart {
	out := make([]contentPart, 0, len(ps))
	for _, p := range ps {
		switch p := p.(type) {
		case artel.Text:
			out = append(out, contentPart{Type: "text", Content: cut(p.Text)})
		case artel.Reasoning:
			if p.Text != "" { // the state of a service is for that service alone
				out = append(out, contentPart{Type: "reasoning", Content: cut(p.Text)})
			}
		case artel.ToolCall:
			out = append(out, contentPart{Type: "tool_call", ID: string(p.ID), Name: p.Name, Arguments: small(p.Arguments)})
		case artel.ToolResult:
			out = append(out, contentPart{Type: "tool_call_response", ID: string(p.CallID), Response: cut(p.Content)})
			out = append(out, contentParts(p.Parts)...)
		case artel.Media:
			out = append(out, contentPart{Type: "uri", Modality: modality(p.Kind), MIMEType: p.MediaType, URI: p.Ref.String()})
		}
	}
	return out
}

// modality is the word of the conventions for a kind of media.
func modality(k artel.MediaKind) string {
	switch k {
	case artel.KindImage, artel.KindAudio, artel.KindVideo:
		return string(k)
	}
	return "document"
}

// An answer collects what a model says.
type answer struct {
	text, reasoning strings.Builder
	calls           []contentPart
	finish          model.StopReason
}

func (a *answer) take(d model.Delta) {
	switch d := d.(type) {
	case model.TextDelta:
		write(&a.text, string(d))
	case model.ReasoningDelta:
		write(&a.reasoning, string(d))
	case model.CallDelta:
		a.calls = append(a.calls, contentPart{Type: "tool_call", ID: string(d.ID), Name: d.Name, Arguments: small(d.Arguments)})
	case model.Finish:
		a.finish = d.Reason
	}
}

// write appends what may still be exported, and a little more, by which [cut] sees that
// there was more.
func write(to *strings.Builder, s string) {
	if left := maxCaptured + 1 - to.Len(); left > 0 {
		to.WriteString(s[:min(left, len(s))])
	}
}

// add adds the answer to the span of its call.
func (a *answer) add(span trace.Span) {
	m := contentMessage{Role: artel.RoleAssistant, Finish: finishReason(a.finish), Parts: []contentPart{}}
	if a.reasoning.Len() > 0 {
		m.Parts = append(m.Parts, contentPart{Type: "reasoning", Content: cut(a.reasoning.String())})
	}
	if a.text.Len() > 0 {
		m.Parts = append(m.Parts, contentPart{Type: "text", Content: cut(a.text.String())})
	}
	m.Parts = append(m.Parts, a.calls...)
	addJSON(span, "gen_ai.output.messages", []contentMessage{m}, len(m.Parts))
}

// finishReason is the word of the conventions.
func finishReason(r model.StopReason) string {
	switch r {
	case model.StopEnd:
		return "stop"
	case model.StopTools:
		return "tool_call"
	case model.StopLength:
		return "length"
	case model.StopRefusal:
		return "content_filter"
	}
	return "error"
}

// cut returns the part of a text that is exported.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= maxCaptured {
		return s
	}
	return artel.Shorten(s, maxCaptured)
}

// small returns JSON unchanged if it may be exported, else a string with its beginning.
func small(b json.RawMessage) json.RawMessage {
	if len(b) <= maxCaptured && json.Valid(b) {
		return b
	}
	text, _ := json.Marshal(cut(string(b))) // a string is always JSON
	return text
}

// addJSON adds a list as JSON, if it has elements.
func addJSON(span trace.Span, key string, v any, elements int) {
	if elements == 0 {
		return
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		span.AddEvent("content not captured", trace.WithAttributes(attribute.String("error.message", err.Error())))
		return
	}
	span.SetAttributes(attribute.String(key, strings.TrimSuffix(b.String(), "\n")))
}
