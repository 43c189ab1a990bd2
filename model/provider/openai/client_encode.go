// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// The API's limits on the length of the id of a call and the name of a tool.
const (
	MaxCallID = 40
	MaxName   = 64
)

// Encode writes r as the body of a streamed call. No blob is read. The error is an
// [*artel.Error] of kind Unsupported for media that the dialect has no part for, or
// Invalid for media without a digest or type.
func Encode(r *model.Request, blobs blob.Store) (*provider.Body, error) {
	r = toolNames().Fitted(r)
	e := encoder{OpenAIEncoder: provider.OpenAIEncoder{Encoder: provider.NewEncoder("openai.Encode", r, blobs)}}
	e.Body.WriteString(`{"model":`)
	e.JSON(r.Service.Model)
	e.Body.WriteString(`,"messages":[`)
	e.quirks = r.Service.Quirks()
	form := provider.MessageRules{UniqueIDs: true}
	if e.quirks.Reasoning != model.ReplayNothing {
		form.Own = r.Service.ID
	}
	messages := form.Conform(r.Messages, resultMedia(e.quirks, r.Service.Capabilities))
	if r.Format.JSON && len(r.Format.Schema) == 0 {
		messages = provider.AskForJSON(messages)
	}
	provider.EachOf(&e.Encoder, messages, func(_ int, m model.Message) { e.message(m) })
	e.Body.WriteString("]")
	if len(r.Tools) > 0 {
		tools := make([]Tool, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = Tool{Type: "function", Function: Function{Name: t.Name, Description: t.Description, Parameters: t.Schema}}
			if e.StrictTool(t) {
				tools[i].Function.Strict = &t.Strict
			}
		}
		e.Field("tools", tools)
	}
	e.settings(r)
	if r.MaxOutput > 0 {
		e.Field(e.quirks.OutputLimit, r.MaxOutput)
	}
	e.Body.WriteString(`,"stream":true`)
	if !e.quirks.NoUsage {
		e.Body.WriteString(`,"stream_options":{"include_usage":true}`)
	}
	e.Body.WriteString("}")
	return e.Body, e.Err
}

type encoder struct {
	provider.OpenAIEncoder

	quirks model.Quirks
}

func (e *encoder) message(m model.Message) {
	e.Body.WriteString(`{"role":`)
	e.JSON(string(m.Role))
	switch m.Role {
	case artel.RoleTool:
		r, _ := m.Parts[0].(artel.ToolResult) // Conform leaves exactly one
		r.Content = provider.ErrorText(r)
		e.Field("tool_call_id", e.callID(r.CallID))
		parts := r.Parts
		if len(parts) > 0 {
			parts = append(artel.Parts{artel.Text{Text: r.Content}}, parts...)
			e.content(parts)
		} else {
			e.Field("content", r.Content)
		}
	case artel.RoleAssistant:
		e.assistant(m.Parts)
	default:
		e.content(m.Parts)
	}
	e.Body.WriteString("}")
}

func (e *encoder) assistant(parts artel.Parts) {
	var calls []ToolCall
	for _, c := range artel.CallsOf(parts) {
		call := ToolCall{
			ID: e.callID(c.ID), Type: "function",
			Function: CalledByName{Name: c.Name, Arguments: Arguments(provider.SentArguments(c.Arguments))},
		}
		if c.Service == e.Failures.Service.ID && json.Valid(c.Opaque) {
			call.ExtraContent = c.Opaque
		}
		calls = append(calls, call)
	}
	text := artel.TextOf(parts)
	e.Body.WriteString(`,"content":`)
	if text == "" && len(calls) > 0 {
		e.Body.WriteString("null")
	} else {
		e.JSON(text)
	}
	if len(calls) > 0 {
		e.Field("tool_calls", calls)
	}
	e.reasoning(parts, len(calls) > 0)
}

// content writes text as a string, which every server takes, and parts with media
// as a list.
func (e *encoder) content(parts artel.Parts) {
	e.Body.WriteString(`,"content":`)
	if !provider.HasMedia(parts) {
		e.JSON(artel.TextOf(parts))
		return
	}
	e.List(parts, func(text string) { e.JSON(Part{Type: "text", Text: text}) }, e.media)
}

func (e *encoder) media(m artel.Media) {
	mediaType, name, ok := e.Media(m)
	if !ok {
		return
	}
	named := e.Names[m.Ref.Digest]
	detail := ""
	switch m.Detail {
	case "":
	case "original": // of the Responses API
		detail = `,"detail":"high"`
	default:
		detail = `,"detail":` + string(provider.MustMarshal(m.Detail))
	}
	switch form := e.mediaForm(mediaType); {
	case form == "image" && named.By == model.ByMediaID: // the id is written below
		e.Body.WriteString(`{"type":"image_url","image_url":null`)
	case form == "image" && named.By == model.ByURL:
		e.Body.WriteString(`{"type":"image_url","image_url":{"url":"` + named.Text + `"` + detail + `}`)
	case form == "image":
		e.Blob(`{"type":"image_url","image_url":{"url":"data:`+mediaType+`;base64,`, m, `"`+detail+`}`)
	case form == "video":
		e.Blob(`{"type":"video_url","video_url":{"url":"data:`+mediaType+`;base64,`, m, `"}`)
	case form == "file" && named.By == model.ByFileID: // the API takes no filename beside it
		e.Body.WriteString(`{"type":"file","file":{"file_id":"` + named.Text + `"}`)
	case form == "file":
		filename := m.Filename
		if filename == "" {
			filename = "document.pdf"
		}
		e.Body.WriteString(`{"type":"file","file":{"filename":`)
		e.JSON(filename)
		e.Blob(`,"file_data":"data:application/pdf;base64,`, m, `"}`)
	case form == "":
		e.Fail(artel.Unsupported,
			"%s is %s: Chat Completions takes images, PDF, WAV and MP3 only", name, mediaType)
		return
	default: // an audio format
		head := ""
		if e.quirks.AudioAsURL {
			head = "data:;base64,"
		}
		e.Blob(`{"type":"input_audio","input_audio":{"data":"`+head, m, `","format":"`+form+`"}`)
	}
	if e.quirks.MediaIDs {
		e.Field("uuid", string(m.Ref.Digest))
	}
	e.Body.WriteString("}")
}

// MaxStops is how many stop sequences the API takes.
const MaxStops = 4

// settings writes the choice of tools, the format and the sampling.
func (e *encoder) settings(r *model.Request) {
	if len(r.Tools) > 0 {
		e.Choice(r.Choice, choiceObject{Type: "function", Function: &choiceNamed{r.Choice.Name}})
	}
	if f := e.wireFormat(r.Format); f != nil {
		e.Field("response_format", f)
	}
	e.Sampling(r)
	if s := r.Sampling; s.Seed != nil {
		e.Field("seed", *s.Seed)
	}
	if k := r.Sampling.TopK; k != nil && provider.TakesTopK(r.Service) {
		e.Field("top_k", *k)
	}
	if stop := r.Sampling.Stop; len(stop) > 0 {
		if len(stop) > MaxStops {
			e.Drop("stop", model.TooMany)
		}
		e.Field("stop", stop[:min(len(stop), MaxStops)])
	}
	e.effort(r)
	e.extras(r.Extras)
}

// effort writes how much the model is to reason.
func (e *encoder) effort(r *model.Request) {
	if e.quirks.Server == model.OpenRouterAPI {
		if x := (Reasoning{Effort: string(r.Reasoning.Effort), MaxTokens: r.Reasoning.Budget}); x != (Reasoning{}) {
			if x.MaxTokens > 0 {
				x.Effort = "" // the API takes one of them
			}
			e.Field("reasoning", x)
		}
		return
	}
	if effort := e.Effort(r); effort != "" {
		e.Field("reasoning_effort", effort)
	}
}

// extras writes the extras. Vendors that are not OpenAI know the user alone, and
// some refuse unknown fields.
func (e *encoder) extras(x model.Extras) {
	vendor := e.quirks.Server != "" || len(e.quirks.Hosts) > 0
	if vendor && e.quirks.Name != "OpenAI" && e.quirks.Server != model.OpenRouterAPI {
		for _, f := range [][2]string{{"safety_identifier", x.SafetyID}, {"service_tier", x.Tier}, {"prompt_cache_key", x.CacheKey}, {"verbosity", x.Verbosity}} {
			if f[1] != "" {
				e.Drop(f[0], model.DialectLacks)
			}
		}
		x = model.Extras{User: x.User}
	}
	e.Extras(x)
	if x.Verbosity != "" {
		e.Field("verbosity", x.Verbosity)
	}
}

// wireFormat returns nil for plain text.
func (e *encoder) wireFormat(f model.Format) *ResponseFormat {
	switch {
	case len(f.Schema) > 0:
		return &ResponseFormat{Type: "json_schema", Schema: &JSONSchema{Name: provider.SchemaName(f.Name), Schema: f.Schema, Strict: e.StrictFormat(f)}}
	case f.JSON:
		return &ResponseFormat{Type: "json_object"}
	}
	return nil
}

// resultMedia returns c without media in tool results, unless the server takes
// lists in tool messages or the operator has configured them.
func resultMedia(q model.Quirks, c model.Capabilities) model.Capabilities {
	for _, f := range []*model.Fact[bool]{&c.ToolImage, &c.ToolFile} {
		if !q.ToolLists && f.Source != model.FromOperator {
			*f = model.Fact[bool]{}
		}
	}
	return c
}

// callID returns id in the form that the server takes, always the same one.
func (e *encoder) callID(id artel.CallID) string {
	n := e.quirks.CallIDs
	plain := !strings.ContainsFunc(string(id), func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if n == 0 || plain && len(id) == n {
		return provider.CallID(id, MaxCallID)
	}
	sum := sha256.Sum256([]byte(id))
	return base32.StdEncoding.EncodeToString(sum[:])[:n]
}

// mediaForm returns how media of a type are written: "image", "video", "file", or
// the API's name of an audio format; "" if the server does not take them.
func (e *encoder) mediaForm(mediaType string) string {
	major, _, _ := strings.Cut(mediaType, "/")
	takes := slices.Contains(e.quirks.Takes, mediaType)
	switch {
	case major == "image":
		return "image"
	case mediaType == "application/pdf":
		return "file"
	case major == "video" && takes:
		return "video"
	case audioFormat(mediaType) != "":
		return audioFormat(mediaType)
	case mediaType == "audio/mp4" && takes:
		return "m4a"
	case major == "audio" && takes:
		return strings.TrimPrefix(mediaType, "audio/")
	}
	return ""
}

// audioFormat returns the API's name of an audio type, or "".
func audioFormat(mediaType string) string {
	switch mediaType {
	case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return "wav"
	case "audio/mpeg", "audio/mp3", "audio/mpeg3", "audio/x-mpeg-3":
		return "mp3"
	}
	return ""
}

// A reasoningState is the opaque state of reasoning: the field in which the server
// sent the text, and its reasoning details.
type reasoningState struct {
	Field   string          `json:"field,omitempty"`
	Details json.RawMessage `json:"reasoning_details,omitempty"`
}

// reasoning writes the reasoning of an assistant message that the server needs
// back.
func (e *encoder) reasoning(parts artel.Parts, calls bool) {
	field, text := "", ""
	var details []json.RawMessage
	for _, p := range parts {
		r, ok := p.(artel.Reasoning)
		var state reasoningState
		if !ok || json.Unmarshal(r.Opaque, &state) != nil {
			continue
		}
		if state.Field != "" {
			field, text = state.Field, text+r.Text
		}
		var list []json.RawMessage
		if json.Unmarshal(state.Details, &list) == nil {
			details = append(details, list...)
		}
	}
	switch e.quirks.Reasoning {
	case model.ReplayDetails:
		if len(details) > 0 {
			e.Field("reasoning_details", details)
		}
	case model.ReplayAlways:
		if calls {
			e.Field("reasoning_content", text)
		}
	case model.ReplayCalls:
		if calls && (field == "reasoning" || field == "reasoning_content") {
			e.Field(field, text)
		}
	}
}
