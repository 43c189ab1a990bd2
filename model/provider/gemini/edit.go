// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// editor is the [provider.Editor] of Gemini's API.
type editor struct{ *provider.BaseEditor }

// Editor returns the editor of the dialect. It has no state.
var Editor = sync.OnceValue(func() provider.Editor {
	return editor{&provider.BaseEditor{
		BaseRequests: provider.BaseRequests{Name: model.Gemini, Rule: Payloads},
		BaseParts:    provider.BaseParts{Text: `{"text":`, User: `{"role":"user","parts":[`},
	}}
})

func (editor) Target(r *http.Request) (provider.Head, bool) {
	name, method, _ := Target(r.URL.Path)
	stream := method == "streamGenerateContent"
	return provider.Head{Model: name, Stream: stream, AsList: stream && r.URL.Query().Get("alt") != "sse"}, true
}

// countWrapper is the member that holds the request in countTokens.
const countWrapper = "generateContentRequest"

func (editor) Operation(path string) provider.Operation {
	switch _, method, _ := Target(path); method {
	case "generateContent", "streamGenerateContent":
		return provider.OperationGenerate
	case "countTokens":
		return provider.OperationCount
	}
	return provider.OperationNone
}

func (editor) CountedText(text string) string {
	if inner := gjson.Get(text, countWrapper); inner.IsObject() {
		return inner.Raw
	}
	return text
}

func (editor) CountBody(tokens int) any { return map[string]int{"totalTokens": tokens} }

// ModelBody returns an element of GET /v1beta/models of Gemini.
func (editor) ModelBody(s model.Service) any {
	c := s.OnWire().Capabilities
	return map[string]any{
		"name": "models/" + string(s.ID), "baseModelId": s.ID, "version": "1", "displayName": s.Name, "description": s.Description,
		"inputTokenLimit": c.ContextWindow.Value, "outputTokenLimit": c.MaxOutput.Value,
		"supportedGenerationMethods": []string{"generateContent", "countTokens"},
	}
}

func (d editor) ModelsBody(all []model.Service) any {
	return map[string]any{"models": provider.EachModel(all, d.ModelBody)}
}

// eitherField returns a member of an object under either of its names.
func eitherField(v gjson.Result, camel, snake string) gjson.Result {
	if f := v.Get(camel); f.Exists() {
		return f
	}
	return v.Get(snake)
}

func (editor) Scan(text string) provider.Layout {
	l := provider.Layout{Split: true}
	provider.EachElement(gjson.Get(text, "contents"), func(_, c gjson.Result) bool {
		if !c.IsObject() {
			return true
		}
		n := len(l.Elements)
		e := provider.Element{Span: provider.SpanOf(c), Role: artel.RoleUser}
		if c.Get("role").String() == "model" {
			e.Role = artel.RoleAssistant
		}
		parts := c.Get("parts")
		if parts.IsArray() {
			e.Content = provider.SpanOf(parts)
			parts.ForEach(func(_, p gjson.Result) bool {
				if eitherField(p, "functionCall", "function_call").Exists() {
					e.Calls = e.Role == artel.RoleAssistant
				}
				if f := eitherField(p, "functionResponse", "function_response"); f.IsObject() {
					e.Result = true
					l.Results = append(l.Results, geminiResult(&l, text, f, n))
				}
				if x, ok := geminiMedium(text, p); ok {
					x.Result, x.Element = -1, n
					l.Media = append(l.Media, x)
				}
				return true
			})
		}
		l.Elements = append(l.Elements, e)
		return true
	})
	return l
}

func geminiResult(l *provider.Layout, text string, f gjson.Result, n int) provider.Result {
	r := provider.Result{Call: artel.CallID(f.Get("id").String()), Element: n}
	if r.Call == "" {
		r.Call = artel.CallID(f.Get("name").String())
	}
	f.ForEach(func(key, value gjson.Result) bool {
		switch key.String() {
		case "response":
			r.Content = provider.SpanOf(value)
			r.Texts = StringsIn(value, nil)
		case "parts":
			if !value.IsArray() {
				return true
			}
			r.MediaList, r.MediaMember = provider.SpanOf(value), memberAt(text, key, value)
			value.ForEach(func(_, p gjson.Result) bool {
				if x, ok := geminiMedium(text, p); ok {
					x.Result, x.Element = len(l.Results), n
					l.Media = append(l.Media, x)
				}
				return true
			})
		}
		return true
	})
	return r
}

// StringsIn returns the spans of the strings in a value, at any depth.
func StringsIn(v gjson.Result, found []provider.Span) []provider.Span {
	switch {
	case v.Type == gjson.String:
		return append(found, provider.SpanOf(v))
	case v.IsObject(), v.IsArray():
		v.ForEach(func(_, inner gjson.Result) bool {
			found = StringsIn(inner, found)
			return true
		})
	}
	return found
}

// memberAt returns the span of a member of an object with a comma.
func memberAt(text string, key, value gjson.Result) provider.Span {
	return withComma(text, provider.Span{From: key.Index, To: provider.SpanOf(value).To})
}

// withComma extends the span of a member or an element by one adjacent comma.
func withComma(text string, s provider.Span) provider.Span {
	if rest := strings.TrimLeft(text[s.To:], " \t\r\n"); strings.HasPrefix(rest, ",") {
		s.To = len(text) - len(rest) + 1
		return s
	}
	if before := strings.TrimRight(text[:s.From], " \t\r\n"); strings.HasSuffix(before, ",") {
		s.From = len(before) - 1
	}
	return s
}

func geminiMedium(text string, p gjson.Result) (provider.Medium, bool) {
	m := provider.Medium{Part: provider.SpanOf(p)}
	if d := eitherField(p, "inlineData", "inline_data"); d.IsObject() {
		m.Slot, m.Value = provider.SpanOf(d), d.Get("data").String()
		m.Declared, m.Filename = eitherField(d, "mimeType", "mime_type").String(), eitherField(d, "displayName", "display_name").String()
		return m, true
	}
	found := false
	p.ForEach(func(key, value gjson.Result) bool {
		if k := key.String(); (k == "fileData" || k == "file_data") && value.IsObject() {
			m.Slot, m.SlotHasKey, found = provider.Span{From: key.Index, To: provider.SpanOf(value).To}, true, true
			m.Value, m.Declared = eitherField(value, "fileUri", "file_uri").String(), eitherField(value, "mimeType", "mime_type").String()
		}
		return true
	})
	return m, found
}

func (editor) SentCalls(text string) []provider.CallText {
	return geminiCalls(gjson.Get(text, "contents"), "parts")
}

func (editor) GotCalls(data string) []provider.CallText {
	return geminiCalls(gjson.Get(data, "candidates"), "content.parts")
}

// geminiCalls returns the arguments of the calls among the parts of each element of a
// list, whose path is parts.
func geminiCalls(list gjson.Result, parts string) []provider.CallText {
	return provider.AppendCalls(nil, list, func(to []provider.CallText, c gjson.Result) []provider.CallText {
		return provider.AppendCalls(to, c.Get(parts), func(to []provider.CallText, p gjson.Result) []provider.CallText {
			if args := eitherField(p, "functionCall", "function_call").Get("args"); args.Exists() {
				to = append(to, provider.CallText{Span: provider.SpanOf(args)})
			}
			return to
		})
	})
}

func (editor) MediaPart(m artel.Media, _ bool, add func(string) string) string {
	return `{"inlineData":` + inlineData(m, "", add) + `}`
}

// inlineData returns media; name is what the client called them.
func inlineData(m artel.Media, name string, add func(string) string) string {
	if name != "" {
		name = `,"displayName":` + provider.QuoteJSON(name)
	}
	return `{"mimeType":` + provider.QuoteJSON(m.MediaType) + `,"data":"` + add("") + `"` + name + `}`
}

func (editor) ReplaceMedia(at provider.Medium, m artel.Media, add func(string) string) (provider.Edit, bool) {
	if at.SlotHasKey {
		return provider.Edit{Span: at.Slot, With: `"inlineData":` + inlineData(m, at.Filename, add)}, true
	}
	return provider.Edit{Span: at.Slot, With: inlineData(m, at.Filename, add)}, true
}

// FillResult adds media to a result; its text is edited in place.
func (editor) FillResult(text string, r provider.Result, _ *string, parts []string) []provider.Edit {
	switch {
	case len(parts) == 0:
		return nil
	case r.MediaList.To > 0:
		return []provider.Edit{{Span: provider.Span{From: r.MediaList.To - 1, To: r.MediaList.To - 1}, With: provider.JoinParts(r.MediaList.Of(text), parts, false)}}
	}
	return []provider.Edit{{Span: provider.Span{From: r.Content.To, To: r.Content.To}, With: `,"parts":[` + strings.Join(parts, ",") + `]`}}
}

func (d editor) Filler() string {
	return `{"role":"model","parts":[` + d.TextPart(provider.FillerMessage) + `]}`
}

func (editor) Decode(ctx context.Context, r io.Reader) (provider.ServerCall, error) {
	return provider.DecodeCall(ctx, r, Decode, fault, func(_ *Request, name string, _ artel.ServiceID) provider.Answerer {
		return Answer{ID: provider.RandomID(), Model: name}
	})
}

func (editor) ErrorBody(f provider.Fault) []byte {
	return Fail(f.Status, "%s", f.Message).MarshalBody()
}

func (editor) IsError(body []byte) bool {
	e := gjson.GetBytes(body, "error")
	return e.Get("message").Type == gjson.String && e.Get("code").Type == gjson.Number
}

func (d editor) ErrorEvent(f provider.Fault, _, _ []byte) []byte {
	return append(append([]byte("data: "), d.ErrorBody(f)...), "\r\n\r\n"...)
}

// KeepAlive is an empty thought, because clients of the API fail on comments. Text
// without letters would be a faulty answer for some.
func (editor) KeepAlive() []byte {
	return []byte(`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"","thought":true}]},"index":0}]}` + "\r\n\r\n")
}

// IsPrelude reports whether a chunk has token counts alone.
func (editor) IsPrelude(event []byte) bool {
	chunk := gjson.ParseBytes(provider.EventData(event))
	return chunk.Get("usageMetadata").Exists() && !chunk.Get("candidates").Exists() && !chunk.Get("promptFeedback").Exists()
}

func (editor) Inspect(event []byte) provider.EventInfo {
	data := provider.EventData(event)
	v := provider.EventInfo{Usage: bytes.Contains(data, []byte(`"usageMetadata"`)), States: !provider.ContainsNone(data, signatureNames...)}
	if bytes.Contains(data, []byte(`"error"`)) {
		v.Failed = provider.IsGiven(gjson.GetBytes(data, "error")) && !gjson.GetBytes(data, "candidates").Exists()
	}
	if bytes.Contains(data, []byte(`"finishReason"`)) || bytes.Contains(data, []byte(`"blockReason"`)) {
		v.MayEnd = gjson.GetBytes(data, "candidates.0.finishReason").String() != "" || gjson.GetBytes(data, "promptFeedback.blockReason").Exists()
	}
	return v
}

func (editor) Skippable(run []byte) bool {
	return provider.ContainsNone(run, `"usageMetadata"`, `"error"`, `"finishReason"`, `"blockReason"`) && provider.ContainsNone(run, signatureNames...)
}

func (d editor) CheckBody(body []byte) (artel.Usage, bool) {
	if gjson.GetBytes(body, "error").Exists() {
		return artel.Usage{}, false
	}
	return d.Usage(body, artel.Usage{}), true
}

func (editor) FilterStop(data []byte) (stopped, empty bool) {
	m := gjson.ParseBytes(data)
	stopped, empty = m.Get("promptFeedback.blockReason").String() != "", true
	m.Get("candidates").ForEach(func(_, candidate gjson.Result) bool {
		switch candidate.Get("finishReason").String() {
		case "SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII":
			stopped = true
		}
		empty = empty && !candidate.Get("content.parts.0").Exists()
		return true
	})
	return stopped, empty
}

func (editor) Usage(data []byte, before artel.Usage) artel.Usage {
	u := gjson.GetBytes(data, "usageMetadata")
	if !u.IsObject() {
		return before
	}
	return ReadUsage([]byte(u.Raw))
}

// NameMedia implements [provider.PartWriter].
func (editor) NameMedia(part string, m artel.Media, name model.Name) (string, bool) {
	done := false
	out := provider.EditMembers(part, func(key string, _ gjson.Result) (string, bool) {
		if key != "inlineData" && key != "inline_data" {
			return "", false
		}
		done = true
		return `"fileData":{"mimeType":` + provider.QuoteJSON(m.MediaType) + `,"fileUri":` + provider.QuoteJSON(name.Text) + `}`, true
	})
	return out, done
}
