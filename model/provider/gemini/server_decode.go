// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Decode reads a request; the caller sets Model and Stream from the address. The
// base64 of inline data is decoded meanwhile; see [provider.Extract]. Fields are
// read under both names, functionCall and function_call.
//
// The error is an [*APIError] if the request is wrong, otherwise that of r or of
// the sink. Decode does not check the rules of the API.
func Decode(ctx context.Context, r io.Reader, o provider.DecodeOptions) (*Request, error) {
	req := &Request{}
	if err := decode(ctx, r, o, "GenerateContentRequest", req, req); err != nil {
		return nil, err
	}
	return req, nil
}

// DecodeCount is [Decode] for the body of :countTokens: contents only, or a whole
// request under generateContentRequest.
func DecodeCount(ctx context.Context, r io.Reader, o provider.DecodeOptions) (*Request, error) {
	var body struct {
		Contents []Content `json:"contents"`
		Whole    *Request  `json:"generateContentRequest"`
	}
	req := &Request{}
	if err := decode(ctx, r, o, "CountTokensRequest", &body, req); err != nil {
		return nil, err
	}
	if body.Whole != nil {
		body.Whole.Decoded, body.Whole.unknown = req.Decoded, req.unknown
		return body.Whole, nil
	}
	req.Contents = body.Contents
	return req, nil
}

// decode reads a message of a kind into out, and its payloads and unknown fields
// into req.
func decode(ctx context.Context, r io.Reader, o provider.DecodeOptions, kind string, out any, req *Request) error {
	extraction, err := provider.Extract(ctx, r, Payloads, o)
	switch {
	case artel.CodeOf(err) == provider.CodeTextTooLarge:
		limit := o.MaxText
		if limit <= 0 {
			limit = 32 << 20
		}
		return Fail(http.StatusRequestEntityTooLarge, "Request payload size exceeds the limit: %d bytes.", limit)
	case artel.CodeOf(err) == provider.CodeTooDeep:
		return Bad("Invalid JSON payload received. Message too deep. Max recursion depth reached for key 'parts'")
	case err != nil:
		return err
	}
	text := bytes.TrimSpace(extraction.JSON())
	switch {
	case !json.Valid(text):
		return Bad("Invalid JSON payload received. %s", syntax(text))
	case text[0] != '{':
		return Bad("Invalid JSON payload received. Unknown name \"\": Root element must be a message.")
	}
	var read normalizer
	normal := read.message(text, kind, "")
	if len(read.wrong) > 0 {
		return Violated(read.wrong)
	}
	if err := json.Unmarshal(normal, out); err != nil {
		return Bad("Invalid JSON payload received. %v", err)
	}
	req.Decoded, req.unknown = provider.NewDecoded(extraction), read.unknown
	if kind == "GenerateContentRequest" {
		req.unread = unread(normal)
	}
	return nil
}

// unread returns the fields of a request under their camelCase names that have no
// neutral form.
func unread(normal []byte) []model.Drop {
	top := gjson.ParseBytes(normal)
	known := provider.Fields(reflect.TypeFor[Request]())
	known["model"] = true // of clients that repeat it
	out := provider.Unread(top, "", known, nil)
	known = provider.Fields(reflect.TypeFor[GenerationConfig]())
	delete(known, "candidateCount")
	out = append(out, provider.Unread(top.Get("generationConfig"), "generationConfig.", known, map[string]string{"candidateCount": "1"})...)
	return append(out, provider.UnreadIn(top.Get("contents.#.parts").Array(), "contents.parts.", provider.Fields(reflect.TypeFor[Part]()), nil)...)
}

func syntax(text []byte) string {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err.Error()
	}
	return "It is empty."
}

// Payloads is the [provider.Rule] of the dialect.
func Payloads(path []string) provider.Encoding {
	at := make([]string, 0, 9)
	for _, key := range path {
		if key != "" { // a single element may be written without its list
			at = append(at, key)
		}
	}
	if len(at) > 0 && is(at[0], "generateContentRequest") { // of countTokens
		at = at[1:]
	}
	if len(at) < 4 || at[len(at)-1] != "data" || !is(at[len(at)-2], "inlineData") {
		return provider.NoEncoding
	}
	switch at = at[:len(at)-2]; {
	case len(at) == 2 && (at[0] == "contents" || is(at[0], "systemInstruction")) && at[1] == "parts",
		len(at) == 4 && at[0] == "contents" && at[1] == "parts" && is(at[2], "functionResponse") && at[3] == "parts":
		return provider.WebBase64
	}
	return provider.NoEncoding
}

// is reports whether key is one of the two names of a field.
func is(key, name string) bool {
	return key == name || strings.Contains(key, "_") && key == snake(name)
}

// Unknown describes the fields of the request that the API does not know, in its
// own words.
func (r *Request) Unknown() []string {
	var out []string
	for _, v := range r.unknown {
		out = append(out, v.Description)
	}
	return out
}

// UnknownFields returns the API's error of unknown fields; nil: there are none.
func (r *Request) UnknownFields() error {
	if len(r.unknown) == 0 {
		return nil
	}
	return Violated(r.unknown)
}

// Neutral returns r in the form that is neutral of dialect. Its media have blob
// refs, whether or not the sink of [Decode] stored them. References by URI become
// texts. Calls without an id get one by their position, as do their responses.
// Signatures become the opaque state of calls and of reasoning, without a service.
func (r *Request) Neutral() *model.Request {
	out := &model.Request{
		Service: model.Service{Dialect: model.Gemini, Model: r.Model, Capabilities: model.TextOnly()},
		Dropped: r.unread,
	}
	g := r.GenerationConfig
	out.Sampling = model.Sampling{
		Temperature: g.Temperature, TopP: g.TopP, Seed: g.Seed,
		FrequencyPenalty: g.FrequencyPenalty, PresencePenalty: g.PresencePenalty, Stop: g.StopSequences,
	}
	if g.TopK != nil {
		k := int(*g.TopK)
		out.Sampling.TopK = &k
	}
	out.Reasoning = g.ThinkingConfig.neutral()
	if g.MaxOutputTokens != nil {
		out.MaxOutput = *g.MaxOutputTokens
	}
	if g.ResponseMimeType == "application/json" {
		out.Format.JSON = true
		if out.Format.Schema = g.ResponseJSONSchema; len(g.ResponseSchema) > 0 {
			out.Format.Schema = fromSchema(g.ResponseSchema, 0)
		}
		if len(out.Format.Schema) > 0 {
			out.Format.Schema, out.Format.Strict = closeObjects(out.Format.Schema, 0), true
		}
	}
	for _, t := range r.Tools {
		for _, f := range t.FunctionDeclarations {
			out.Tools = append(out.Tools, model.ToolSpec{Name: f.Name, Description: f.Description, Schema: f.jsonSchema()})
		}
	}
	out.Choice, out.Tools = r.choice(out.Tools)
	r.drop(out)
	n := neutralizer{extraction: r.Extraction(), ids: r.ids()}
	if s := r.SystemInstruction; s != nil {
		if parts := n.parts(s.Parts); len(parts) > 0 {
			out.Messages = append(out.Messages, model.Message{Role: artel.RoleSystem, Parts: parts})
		}
	}
	for _, c := range r.Contents {
		out.Messages = append(out.Messages, n.content(c)...)
	}
	return out
}

// neutral returns how much the model is to think; c may be nil.
func (c *ThinkingConfig) neutral() (out model.Reasoning) {
	if c == nil {
		return out
	}
	out.Effort = model.Effort(strings.ToLower(c.ThinkingLevel))
	if out.Effort == "thinking_level_unspecified" {
		out.Effort = ""
	}
	if b := c.ThinkingBudget; b != nil && *b == 0 {
		out.Effort = model.EffortNone
	} else if b != nil && *b > 0 {
		out.Budget = *b
	}
	if out.Show = c.IncludeThoughts; out.Show {
		out.Summary = "auto"
	}
	return out
}

// choice returns the choice of tools, and the tools that remain allowed.
func (r *Request) choice(tools []model.ToolSpec) (model.ToolChoice, []model.ToolSpec) {
	if r.ToolConfig == nil || r.ToolConfig.FunctionCallingConfig == nil {
		return model.ToolChoice{}, tools
	}
	c := r.ToolConfig.FunctionCallingConfig
	if allowed := c.AllowedFunctionNames; len(allowed) > 1 {
		tools = slices.DeleteFunc(tools, func(t model.ToolSpec) bool { return !slices.Contains(allowed, t.Name) })
	}
	switch {
	case c.Mode == "NONE":
		return model.ToolChoice{Mode: model.ChooseNone}, tools
	case c.Mode == "ANY" && len(c.AllowedFunctionNames) == 1:
		return model.ToolChoice{Mode: model.ChooseNamed, Name: c.AllowedFunctionNames[0]}, tools
	case c.Mode == "ANY":
		return model.ToolChoice{Mode: model.ChooseAny}, tools
	}
	return model.ToolChoice{}, tools
}

// ids returns the ids of all calls, so that none is used twice.
func (r *Request) ids() map[string]bool {
	ids := map[string]bool{}
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			if p.FunctionCall != nil {
				ids[p.FunctionCall.ID] = true
			}
		}
	}
	return ids
}

type neutralizer struct {
	extraction *provider.Extraction
	ids        map[string]bool
	made       int
	open       []FunctionCall // calls of the last content without a response
}

// content returns c as messages, its responses first.
func (n *neutralizer) content(c Content) []model.Message {
	if c.Role == "model" {
		n.open = nil
		if parts := n.parts(c.Parts); len(parts) > 0 {
			return []model.Message{{Role: artel.RoleAssistant, Parts: parts}}
		}
		return nil
	}
	var out []model.Message
	var rest []Part
	for _, p := range c.Parts {
		if p.FunctionResponse == nil {
			rest = append(rest, p)
			continue
		}
		out = append(out, model.Message{Role: artel.RoleTool, Parts: artel.Parts{n.result(*p.FunctionResponse)}})
	}
	if parts := n.parts(rest); len(parts) > 0 {
		out = append(out, model.Message{Role: artel.RoleUser, Parts: parts})
	}
	return out
}

func (n *neutralizer) parts(parts []Part) artel.Parts {
	var out artel.Parts
	for _, p := range parts {
		switch {
		case p.FunctionCall != nil:
			out = append(out, n.call(p))
		case p.Thought:
			r := artel.Reasoning{}
			if p.Text != nil {
				r.Text = *p.Text
			}
			if p.ThoughtSignature != "" {
				r.Opaque = provider.MustMarshal(state{ThoughtSignature: p.ThoughtSignature, Thought: true})
			}
			out = append(out, r)
		default:
			if one := n.part(p); one != nil {
				out = append(out, one)
			}
			if p.ThoughtSignature != "" {
				out = append(out, artel.Reasoning{Opaque: provider.MustMarshal(state{ThoughtSignature: p.ThoughtSignature})})
			}
		}
	}
	return out
}

// part returns the neutral part of p, or nil.
func (n *neutralizer) part(p Part) artel.Part {
	switch {
	case p.Text != nil:
		if *p.Text == "" {
			return nil
		}
		return artel.Text{Text: *p.Text}
	case p.InlineData != nil:
		return n.media(*p.InlineData)
	case p.FileData != nil:
		return artel.Text{Text: "[file at " + artel.Shorten(p.FileData.FileURI, 500) + "]"}
	}
	for _, other := range []struct {
		name string
		raw  json.RawMessage
	}{
		{"executable code", p.ExecutableCode},
		{"result of executed code", p.CodeExecutionResult},
		{"tool call", p.ToolCall},
		{"tool response", p.ToolResponse},
	} {
		if len(other.raw) > 0 {
			return artel.Text{Text: "[" + other.name + ": " + artel.Shorten(string(other.raw), 2000) + "]"}
		}
	}
	return nil
}

func (n *neutralizer) media(b Blob) artel.Media {
	m := DecodeBase64(n.extraction, b.Data)
	mediaType, _, err := mime.ParseMediaType(b.MimeType)
	if err != nil {
		mediaType = "application/octet-stream"
	}
	return artel.Media{Ref: artel.BlobRef(m.Digest), MediaType: mediaType, Kind: kindOfMedia(mediaType), Size: m.Size}
}

// DecodeBase64 returns the payload of base64 of either alphabet, which is s itself
// or replaced by the mark s.
func DecodeBase64(l *provider.Extraction, s string) provider.Payload {
	if m, ok := l.Find(s); ok {
		return m
	}
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
	return l.Base64(s + strings.Repeat("=", (4-len(s)%4)%4))
}

func kindOfMedia(mediaType string) artel.MediaKind {
	switch major, _, _ := strings.Cut(mediaType, "/"); major {
	case "image":
		return artel.KindImage
	case "audio":
		return artel.KindAudio
	case "video":
		return artel.KindVideo
	case "text":
		return artel.KindText
	}
	if mediaType == "application/pdf" {
		return artel.KindDocument
	}
	return artel.KindOther
}

func (n *neutralizer) call(p Part) artel.ToolCall {
	c := *p.FunctionCall
	for c.ID == "" {
		n.made++
		if id := fmt.Sprintf("call_%d", n.made); !n.ids[id] {
			c.ID = id
		}
	}
	n.open = append(n.open, c)
	call := artel.ToolCall{ID: artel.CallID(c.ID), Name: c.Name, Arguments: c.Args}
	if len(call.Arguments) == 0 {
		call.Arguments = json.RawMessage("{}")
	}
	if p.ThoughtSignature != "" {
		call.Opaque = provider.MustMarshal(state{ThoughtSignature: p.ThoughtSignature})
	}
	return call
}

// result returns a response as the result of its call: the call with its id, or the
// first one of its name, or the first one.
func (n *neutralizer) result(f FunctionResponse) artel.ToolResult {
	at := -1
	for _, fits := range []func(c FunctionCall) bool{
		func(c FunctionCall) bool { return f.ID != "" && c.ID == f.ID },
		func(c FunctionCall) bool { return f.ID == "" && c.Name == f.Name },
		func(FunctionCall) bool { return f.ID == "" },
	} {
		if at < 0 {
			at = slices.IndexFunc(n.open, fits)
		}
	}
	id := f.ID
	if at >= 0 {
		id = n.open[at].ID
		n.open = slices.Delete(slices.Clone(n.open), at, at+1)
	}
	r := artel.ToolResult{CallID: artel.CallID(id)}
	r.Content, r.IsError = responseText(f.Response)
	for _, p := range f.Parts {
		switch {
		case p.InlineData != nil:
			r.Parts = append(r.Parts, n.media(*p.InlineData))
		case p.FileData != nil:
			r.Parts = append(r.Parts, artel.Text{Text: "[file at " + artel.Shorten(p.FileData.FileURI, 500) + "]"})
		}
	}
	return r
}

// responseText returns the text of a function response: its only field if that is
// output, result or error, a string unquoted and other values as JSON.
func responseText(raw json.RawMessage) (text string, isError bool) {
	all := Members(raw)
	if len(all) == 1 {
		switch one := all[0]; one.Key {
		case "output", "result", "error":
			if len(one.Value) > 0 && one.Value[0] == '"' {
				return textOf(one.Value), one.Key == "error"
			}
			return compact(one.Value), one.Key == "error"
		}
	}
	if len(all) == 0 {
		return "", false
	}
	return compact(raw), slices.ContainsFunc(all, func(m Member) bool { return m.Key == "error" && string(m.Value) != "null" })
}
