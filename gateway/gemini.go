// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/gemini"
)

// generateContent is Gemini's dialect.
type generateContent struct{}

func (generateContent) name() model.Dialect { return model.Gemini }

func (generateContent) target(r *http.Request) (head, bool) {
	name, method, _ := gemini.Target(r.URL.Path)
	stream := method == "streamGenerateContent"
	return head{model: name, stream: stream, asList: stream && r.URL.Query().Get("alt") != "sse"}, true
}

// countWrapper is the member that holds the request in countTokens.
const countWrapper = "generateContentRequest"

func (generateContent) payloads(path []string) provider.Encoding {
	if len(path) > 0 && path[0] == countWrapper {
		path = path[1:]
	}
	return gemini.Payloads(path)
}

// field returns a member of an object under either of its names.
func field(v gjson.Result, camel, snake string) gjson.Result {
	if f := v.Get(camel); f.Exists() {
		return f
	}
	return v.Get(snake)
}

func (generateContent) scan(text string) layout {
	l := layout{split: true}
	each(gjson.Get(text, "contents"), func(_, c gjson.Result) bool {
		if !c.IsObject() {
			return true
		}
		n := len(l.elements)
		e := element{span: at(c), role: artel.RoleUser}
		if c.Get("role").String() == "model" {
			e.role = artel.RoleAssistant
		}
		parts := c.Get("parts")
		if parts.IsArray() {
			e.content = at(parts)
			parts.ForEach(func(_, p gjson.Result) bool {
				if field(p, "functionCall", "function_call").Exists() {
					e.calls = e.role == artel.RoleAssistant
				}
				if f := field(p, "functionResponse", "function_response"); f.IsObject() {
					e.result = true
					l.results = append(l.results, geminiResult(&l, text, f, n))
				}
				if x, ok := geminiMedium(text, p); ok {
					x.result, x.element = -1, n
					l.media = append(l.media, x)
				}
				return true
			})
		}
		l.elements = append(l.elements, e)
		return true
	})
	return l
}

func geminiResult(l *layout, text string, f gjson.Result, n int) result {
	r := result{call: artel.CallID(f.Get("id").String()), element: n}
	if r.call == "" {
		r.call = artel.CallID(f.Get("name").String())
	}
	f.ForEach(func(key, value gjson.Result) bool {
		switch key.String() {
		case "response":
			r.content = at(value)
			r.texts = stringsIn(value, nil)
		case "parts":
			if !value.IsArray() {
				return true
			}
			r.mediaList, r.mediaMember = at(value), memberAt(text, key, value)
			value.ForEach(func(_, p gjson.Result) bool {
				if x, ok := geminiMedium(text, p); ok {
					x.result, x.element = len(l.results), n
					l.media = append(l.media, x)
				}
				return true
			})
		}
		return true
	})
	return r
}

// stringsIn returns the spans of the strings in a value, at any depth.
func stringsIn(v gjson.Result, found []span) []span {
	switch {
	case v.Type == gjson.String:
		return append(found, at(v))
	case v.IsObject(), v.IsArray():
		v.ForEach(func(_, inner gjson.Result) bool {
			found = stringsIn(inner, found)
			return true
		})
	}
	return found
}

// memberAt returns the span of a member of an object with a comma.
func memberAt(text string, key, value gjson.Result) span {
	return withComma(text, span{key.Index, at(value).to})
}

// withComma extends the span of a member or an element by one adjacent comma.
func withComma(text string, s span) span {
	if rest := strings.TrimLeft(text[s.to:], " \t\r\n"); strings.HasPrefix(rest, ",") {
		s.to = len(text) - len(rest) + 1
		return s
	}
	if before := strings.TrimRight(text[:s.from], " \t\r\n"); strings.HasSuffix(before, ",") {
		s.from = len(before) - 1
	}
	return s
}

func geminiMedium(text string, p gjson.Result) (medium, bool) {
	m := medium{part: at(p)}
	if d := field(p, "inlineData", "inline_data"); d.IsObject() {
		m.slot, m.value = at(d), d.Get("data").String()
		m.declared, m.filename = field(d, "mimeType", "mime_type").String(), field(d, "displayName", "display_name").String()
		return m, true
	}
	found := false
	p.ForEach(func(key, value gjson.Result) bool {
		if k := key.String(); (k == "fileData" || k == "file_data") && value.IsObject() {
			m.slot, m.slotHasKey, found = span{key.Index, at(value).to}, true, true
			m.value, m.declared = field(value, "fileUri", "file_uri").String(), field(value, "mimeType", "mime_type").String()
		}
		return true
	})
	return m, found
}

func (generateContent) stripForeign(text string) string { return text }

func (generateContent) textPart(s string) string { return `{"text":` + quote(s) + `}` }

func (generateContent) mediaPart(m artel.Media, _ bool, add func(string) string) string {
	return `{"inlineData":` + inlineData(m, add) + `}`
}

func inlineData(m artel.Media, add func(string) string) string {
	return `{"mimeType":` + quote(m.MediaType) + `,"data":"` + add("") + `"}`
}

func (generateContent) replaceMedia(at medium, m artel.Media, add func(string) string) (edit, bool) {
	if at.slotHasKey {
		return edit{at.slot, `"inlineData":` + inlineData(m, add)}, true
	}
	return edit{at.slot, inlineData(m, add)}, true
}

// fillResult adds media to a result; its text is edited in place.
func (generateContent) fillResult(text string, r result, _ *string, parts []string) []edit {
	switch {
	case len(parts) == 0:
		return nil
	case r.mediaList.to > 0:
		return []edit{{span{r.mediaList.to - 1, r.mediaList.to - 1}, joinParts(r.mediaList.of(text), parts, false)}}
	}
	return []edit{{span{r.content.to, r.content.to}, `,"parts":[` + strings.Join(parts, ",") + `]`}}
}

func (generateContent) userMessage(parts []string) string {
	return `{"role":"user","parts":[` + strings.Join(parts, ",") + `]}`
}

func (generateContent) prependParts(text string, e element, parts []string) []edit {
	if e.content.to == 0 {
		return nil
	}
	return []edit{{span{e.content.from + 1, e.content.from + 1}, joinParts(e.content.of(text), parts, true)}}
}

func (d generateContent) filler() string {
	return `{"role":"model","parts":[` + d.textPart(provider.FillerMessage) + `]}`
}

func (generateContent) decode(ctx context.Context, r io.Reader) (call, error) {
	req, err := gemini.Decode(ctx, r, provider.DecodeOptions{})
	if err != nil {
		if e, ok := errors.AsType[*gemini.APIError](err); ok {
			return nil, &fault{status: e.Code, message: e.Message}
		}
		return nil, err
	}
	if len(req.Contents) == 0 {
		return nil, invalid("* GenerateContentRequest.contents: contents is not specified")
	}
	return geminiCall{req}, nil
}

func (generateContent) errorBody(f *fault) []byte {
	return gemini.Fail(f.status, "%s", f.message).MarshalBody()
}

func (d generateContent) errorEvent(f *fault, _, _ []byte) []byte {
	return append(append([]byte("data: "), d.errorBody(f)...), "\r\n\r\n"...)
}

func (generateContent) inspect(event []byte) eventInfo {
	data := dataOf(event)
	v := eventInfo{usage: bytes.Contains(data, []byte(`"usageMetadata"`))}
	if bytes.Contains(data, []byte(`"error"`)) && gjson.GetBytes(data, "error.code").Exists() {
		v.failed = true
	}
	if bytes.Contains(data, []byte(`"finishReason"`)) || bytes.Contains(data, []byte(`"blockReason"`)) {
		v.mayEnd = gjson.GetBytes(data, "candidates.0.finishReason").String() != "" || gjson.GetBytes(data, "promptFeedback.blockReason").Exists()
	}
	return v
}

func (generateContent) skippable(run []byte) bool {
	return containsNone(run, `"usageMetadata"`, `"error"`, `"finishReason"`, `"blockReason"`)
}

func (d generateContent) checkBody(body []byte) (artel.Usage, bool) {
	if gjson.GetBytes(body, "error").Exists() {
		return artel.Usage{}, false
	}
	return d.usage(body, artel.Usage{}), true
}

func (generateContent) usage(data []byte, before artel.Usage) artel.Usage {
	u := gjson.GetBytes(data, "usageMetadata")
	if !u.IsObject() {
		return before
	}
	thought := u.Get("thoughtsTokenCount").Int()
	return artel.Usage{
		Calls: 1, InputTokens: u.Get("promptTokenCount").Int() + u.Get("toolUsePromptTokenCount").Int(),
		OutputTokens: u.Get("candidatesTokenCount").Int() + thought,
		CachedTokens: u.Get("cachedContentTokenCount").Int(), ThoughtTokens: thought,
	}
}

// geminiCall is a decoded request.
type geminiCall struct{ req *gemini.Request }

func (c geminiCall) neutral() *model.Request { return c.req.Neutral() }

func (c geminiCall) body(name string, _ artel.ServiceID, deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
	resp, err := gemini.Answer{ID: randomID(), Model: name}.Whole(deltas)
	if err != nil {
		return nil, err
	}
	return marshal(resp)
}

func (c geminiCall) stream(name string, _ artel.ServiceID, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	return gemini.Answer{ID: randomID(), Model: name}.Stream(w, flush, deltas)
}

// streamList implements [listStreamer].
func (c geminiCall) streamList(name string, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	return gemini.Answer{ID: randomID(), Model: name}.StreamList(w, flush, deltas)
}
