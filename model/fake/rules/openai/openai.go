// SPDX-License-Identifier: Apache-2.0

// Package openai holds the rules of Chat Completions: [Validate] refuses a request as
// OpenAI does.
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/artelhq/artel/model/fake/rules"
	"github.com/artelhq/artel/model/provider"
	wire "github.com/artelhq/artel/model/provider/openai"
)

// ValidateJSON is [Validate] for the JSON of a request.
func ValidateJSON(body []byte) error {
	r, err := wire.Decode(context.Background(), bytes.NewReader(body), provider.DecodeOptions{MaxText: len(body) + 1<<20})
	if err != nil {
		return err
	}
	return Validate(r, Options{})
}

// Options are the differences of a server of the dialect from the real API.
type Options struct {
	ToolMedia bool // tool messages can hold media
	// Compatible accepts the fields of compatible servers: reasoning in messages, and
	// media ids.
	Compatible bool
}

// Validate checks r against the rules of the real API. The error is an [*APIError]
// as the API answers it.
func Validate(r *wire.Request, o Options) error {
	v := validator{request: r, options: o}
	for _, check := range []func() *wire.APIError{v.fields, v.top, v.tools, v.settings, v.messages} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

type validator struct {
	request    *wire.Request
	options    Options
	images     int
	imageBytes int64
	fileBytes  int64
}

// known returns the fields that the API knows, by the kind of object.
func known(object string) []string {
	switch object {
	case "request":
		return strings.Fields(`audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens
			max_tokens messages metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key
			prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier
			stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options`)
	case "message":
		return strings.Fields("role content name refusal tool_calls tool_call_id audio function_call annotations")
	}
	return strings.Fields("type text refusal image_url input_audio file prompt_cache_breakpoint")
}

// fields refuses unknown fields.
func (v *validator) fields() *wire.APIError {
	var top map[string]json.RawMessage
	if json.Unmarshal(v.request.Extraction().JSON(), &top) != nil {
		return nil // not decoded from JSON
	}
	if k := rules.Unknown(top, known("request")); k != "" {
		return wire.Bad("", "", "Unrecognized request argument supplied: %s", k)
	}
	var messages []map[string]json.RawMessage
	if json.Unmarshal(top["messages"], &messages) != nil {
		return nil
	}
	for i, m := range messages {
		at := fmt.Sprintf("messages[%d]", i)
		v.forgive(m, "reasoning", "reasoning_content", "reasoning_details")
		if k := rules.Unknown(m, known("message")); k != "" {
			return wire.Bad(at+"."+k, "unknown_parameter", "Unknown parameter: '%s.%s'.", at, k)
		}
		var parts []map[string]json.RawMessage
		if json.Unmarshal(m["content"], &parts) != nil {
			continue
		}
		for j, p := range parts {
			v.forgive(p, "uuid")
			if k := rules.Unknown(p, known("part")); k != "" {
				at := fmt.Sprintf("%s.content[%d].%s", at, j, k)
				return wire.Bad(at, "unknown_parameter", "Unknown parameter: '%s'.", at)
			}
		}
	}
	return nil
}

// forgive removes fields of compatible servers from an object.
func (v *validator) forgive(object map[string]json.RawMessage, fields ...string) {
	for _, k := range fields {
		if v.options.Compatible {
			delete(object, k)
		}
	}
}

func (v *validator) top() *wire.APIError {
	r := v.request
	switch {
	case r.Model == "":
		return wire.Bad("", "", "you must provide a model parameter")
	case r.Messages == nil:
		return rules.Missing("messages")
	case len(r.Messages) == 0:
		return wire.Bad("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case r.StreamOptions != nil && !r.Stream:
		return wire.Bad("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case r.MaxTokens != nil && r.MaxCompletionTokens != nil:
		return wire.Bad("max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	for name, n := range map[string]*int{"max_tokens": r.MaxTokens, "max_completion_tokens": r.MaxCompletionTokens} {
		if n != nil && *n < 1 {
			return wire.Bad(name, "integer_below_min_value", "Invalid '%s': integer below minimum value. Expected a value >= 1, but got %d instead.", name, *n)
		}
	}
	return nil
}

func (v *validator) tools() *wire.APIError {
	tools := v.request.Tools
	if tools != nil && len(tools) == 0 {
		return wire.Bad("tools", "empty_array", "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	if len(tools) > rules.MaxTools {
		return rules.TooMany("tools", rules.MaxTools, len(tools))
	}
	for i, f := range v.request.Functions {
		if err := rules.CheckName(fmt.Sprintf("functions[%d].name", i), f.Name); err != nil {
			return err
		}
	}
	if v.request.FunctionCall != nil && len(v.request.Functions) == 0 {
		return wire.Bad("function_call", "", "Invalid value for 'function_call': 'function_call' is only allowed when 'functions' are specified.")
	}
	seen := map[string]bool{}
	for i, t := range tools {
		at := fmt.Sprintf("tools[%d].", i)
		name := t.Function.Name
		switch {
		case t.Type == "function":
			at += "function."
		case t.Type != "custom":
			return wire.Bad(at+"type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function' and 'custom'.", t.Type)
		case t.Custom == nil:
			return rules.Missing(at + "custom")
		default:
			at += "custom."
			name = t.Custom.Name
		}
		if err := rules.CheckName(at+"name", name); err != nil {
			return err
		}
		if seen[name] {
			return wire.Bad(at+"name", "duplicate_function_name", "Invalid '%sname': the tool name '%s' is used more than once.", at, name)
		}
		seen[name] = true
		if schema := t.Function.Parameters; len(schema) > 0 && string(schema) != "null" {
			if err := rules.CheckParameters(at+"parameters", name, schema); err != nil {
				return err
			}
			if strict := t.Function.Strict; strict != nil && *strict {
				var decoded map[string]any
				_ = json.Unmarshal(schema, &decoded) // CheckParameters has read it
				if where := rules.LooseSchema(decoded); where != "" {
					return wire.Bad(at+"parameters", "invalid_function_parameters", "Invalid schema for function '%s': %s", name, where)
				}
			}
		}
	}
	return nil
}

func (v *validator) messages() *wire.APIError {
	open := map[string]bool{} // calls of the current group without a result
	inGroup := false
	for i, m := range v.request.Messages {
		at := fmt.Sprintf("messages[%d]", i)
		if !slices.Contains([]string{"system", "developer", "user", "assistant", "tool", "function"}, m.Role) {
			return wire.Bad(at+".role", "invalid_value", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
		}
		if m.Role != "tool" {
			if err := unanswered(open, i); err != nil {
				return err
			}
			inGroup = false
		}
		switch m.Role {
		case "function":
			if m.Name == "" {
				return rules.Missing(at + ".name")
			}
		case "tool":
			if m.ToolCallID == "" {
				return rules.Missing(at + ".tool_call_id")
			}
			if len(m.ToolCallID) > wire.MaxCallID {
				return rules.TooLong(at+".tool_call_id", wire.MaxCallID, len(m.ToolCallID))
			}
			if !inGroup || !open[m.ToolCallID] {
				return wire.Bad(fmt.Sprintf("messages.[%d].role", i), "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
			}
			delete(open, m.ToolCallID)
		case "assistant":
			if err := v.calls(at, m, open); err != nil {
				return err
			}
			inGroup = len(m.ToolCalls) > 0
		}
		if err := v.content(i, at, m); err != nil {
			return err
		}
	}
	return unanswered(open, len(v.request.Messages))
}

func unanswered(open map[string]bool, i int) *wire.APIError {
	if len(open) == 0 {
		return nil
	}
	var ids []string
	for id := range open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return wire.Bad(fmt.Sprintf("messages.[%d].role", i), "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(ids, ", "))
}

func (v *validator) calls(at string, m wire.Message, open map[string]bool) *wire.APIError {
	if m.ToolCalls != nil && len(m.ToolCalls) == 0 {
		return wire.Bad(at+".tool_calls", "empty_array", "Invalid '%s.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.", at)
	}
	for j, c := range m.ToolCalls {
		at := fmt.Sprintf("%s.tool_calls[%d].", at, j)
		switch {
		case c.ID == "":
			return rules.Missing(at + "id")
		case len(c.ID) > wire.MaxCallID:
			return rules.TooLong(at+"id", wire.MaxCallID, len(c.ID))
		case c.Type != "function" && (c.Type != "custom" || c.Custom == nil):
			return wire.Bad(at+"type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function' and 'custom'.", c.Type)
		case open[c.ID]:
			return wire.Bad(at+"id", "invalid_value", "Invalid '%sid': the id '%s' is used more than once.", at, c.ID)
		case c.Type == "custom":
			at, c.Function.Name = at+"custom.", c.Custom.Name
		case !json.Valid([]byte(c.Function.Arguments)):
			return wire.Bad(at+"function.arguments", "invalid_value", "Invalid '%sfunction.arguments': expected a string of JSON.", at)
		default:
			at += "function."
		}
		if err := rules.CheckName(at+"name", c.Function.Name); err != nil {
			return err
		}
		open[c.ID] = true
	}
	return nil
}

func (v *validator) content(i int, at string, m wire.Message) *wire.APIError {
	if m.Content.Text == nil && m.Content.Parts == nil {
		if m.Role == "assistant" && (len(m.ToolCalls) > 0 || m.FunctionCall != nil || m.Refusal != nil) {
			return nil
		}
		return wire.Bad(fmt.Sprintf("messages.[%d].content", i), "", "Invalid value for 'content': expected a string, got null.")
	}
	if m.Content.Parts != nil && len(m.Content.Parts) == 0 {
		return wire.Bad(at+".content", "empty_array", "Invalid '%s.content': empty array. Expected an array with minimum length 1, but got an empty array instead.", at)
	}
	for j, p := range m.Content.Parts {
		at2 := fmt.Sprintf("%s.content[%d]", at, j)
		if err := v.part(at, at2, m.Role, p); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) part(message, at, role string, p wire.Part) *wire.APIError {
	allowed := []string{"text"}
	switch {
	case role == "user", role == "tool" && v.options.ToolMedia:
		allowed = []string{"text", "image_url", "input_audio", "file"}
	case role == "assistant":
		allowed = []string{"text", "refusal"}
	}
	if !slices.Contains(allowed, p.Type) {
		if p.Type == "image_url" {
			return wire.Bad(message, "invalid_value", "Invalid '%s'. Image URLs are only allowed for messages with role 'user', but this message with role '%s' contains an image URL.", message, role)
		}
		return wire.Bad(at+".type", "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", p.Type, strings.Join(allowed, "', '"))
	}
	switch p.Type {
	case "image_url":
		if v.options.Compatible && p.UUID != "" && p.ImageURL == nil {
			return nil // the server knows it by its id
		}
		return v.image(at+".image_url", p.ImageURL)
	case "input_audio":
		return v.audio(at+".input_audio", p.InputAudio)
	case "file":
		return v.file(at+".file", p.File)
	}
	return nil
}

func (v *validator) image(at string, p *wire.ImageURL) *wire.APIError {
	if p == nil || p.URL == "" {
		return rules.Missing(at + ".url")
	}
	if p.Bare {
		return wire.Bad(at, "invalid_type", "Invalid type for '%s': expected an object, but got a string instead.", at)
	}
	if !slices.Contains([]string{"", "auto", "low", "high", "original"}, p.Detail) {
		return wire.Bad(at+".detail", "invalid_value", "Invalid value: '%s'. Supported values are: 'auto', 'low', 'high', and 'original'.", p.Detail)
	}
	if v.images++; v.images > rules.MaxImages {
		return wire.Bad(at, "too_many_images", "Too many images in request. Max is %d.", rules.MaxImages)
	}
	if rules.IsAddress(p.URL) {
		return nil
	}
	m, mediaType, ok := v.request.Extraction().DataURL(p.URL)
	if !ok {
		return wire.Bad(at+".url", "invalid_value", "Invalid '%s.url'. Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=') or an http(s) URL.", at)
	}
	if !slices.Contains(rules.ImageTypes(), mediaType) {
		return wire.Bad(at+".url", "invalid_image_format", "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].")
	}
	if m.Bad || m.Size == 0 {
		return wire.Bad(at+".url", "invalid_base64", "Invalid base64 image_url.")
	}
	if v.imageBytes += m.Size; v.imageBytes > rules.MaxImageBytes {
		return provider.RequestTooLarge(at, "The images of the request are larger than the limit of 512 MB.")
	}
	return nil
}

func (v *validator) audio(at string, p *wire.InputAudio) *wire.APIError {
	if p == nil || p.Data == "" {
		return rules.Missing(at + ".data")
	}
	if p.Format != "wav" && p.Format != "mp3" {
		return wire.Bad(at+".format", "invalid_value", "Invalid value: '%s'. Supported values are: 'wav' and 'mp3'.", p.Format)
	}
	if m := v.request.Extraction().Base64(p.Data); m.Bad || m.Size == 0 {
		return wire.Bad(at+".data", "invalid_base64", "Invalid '%s.data': expected base64 without a 'data:' prefix.", at)
	}
	return nil
}

func (v *validator) file(at string, p *wire.File) *wire.APIError {
	if p == nil {
		return rules.Missing(at)
	}
	if p.FileID != "" {
		if p.FileData != "" || p.Filename != "" {
			return wire.Bad(at, "mutually_exclusive_parameters", "Mutually exclusive parameters: '%s.file_id' and '%s.file_data' or '%s.filename'.", at, at, at)
		}
		return nil
	}
	if p.FileData == "" {
		return rules.Missing(at + ".file_data")
	}
	if p.Filename == "" {
		return rules.Missing(at + ".filename")
	}
	m, mediaType, ok := v.request.Extraction().DataURL(p.FileData)
	if !ok {
		return wire.Bad(at+".file_data", "invalid_value", "Invalid '%s.file_data'. Expected a base64-encoded data URL with an application/pdf MIME type (e.g. 'data:application/pdf;base64,aW1nIGJ5dGVzIGhlcmU='), but got a value without the 'data:' prefix.", at)
	}
	if mediaType != "application/pdf" {
		return wire.Bad(at+".file_data", "invalid_value", "Invalid '%s.file_data'. Expected a base64-encoded data URL with an application/pdf MIME type (e.g. 'data:application/pdf;base64,aW1nIGJ5dGVzIGhlcmU='), but got unsupported MIME type '%s'.", at, mediaType)
	}
	if m.Bad || m.Size == 0 {
		return wire.Bad(at+".file_data", "invalid_base64", "Invalid '%s.file_data': expected valid base64.", at)
	}
	if v.fileBytes += m.Size; v.fileBytes > rules.MaxFileBytes {
		return provider.RequestTooLarge(at, "The files of the request are larger than the limit of 50 MB.")
	}
	return nil
}

// settings checks the choice of tools, the format and the sampling.
func (v *validator) settings() *wire.APIError {
	r := v.request
	if c := r.ToolChoice; c != nil {
		if len(r.Tools) == 0 && c.Word != "none" {
			return wire.Bad("tool_choice", "", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
		}
		switch {
		case c.Word != "" && !slices.Contains([]string{"none", "auto", "required"}, c.Word):
			return wire.Bad("tool_choice", "invalid_value", "Invalid value: '%s'. Supported values are: 'none', 'auto', and 'required'.", c.Word)
		case c.Word == "" && c.Type == "function" && !slices.ContainsFunc(r.Tools, func(t wire.Tool) bool { return t.Function.Name == c.Name }):
			return wire.Bad("tool_choice", "", "Invalid value for 'tool_choice': the function '%s' is not among 'tools'.", c.Name)
		case c.Word == "" && !slices.Contains([]string{"function", "custom", "allowed_tools"}, c.Type):
			return wire.Bad("tool_choice.type", "invalid_value", "Invalid value: '%s'. Supported values are: 'allowed_tools', 'function', and 'custom'.", c.Type)
		}
	}
	if r.ParallelToolCalls != nil && len(r.Tools) == 0 {
		return wire.Bad("parallel_tool_calls", "", "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	if f := r.ResponseFormat; f != nil {
		if err := v.format(f); err != nil {
			return err
		}
	}
	if err := rules.CheckRange("temperature", r.Temperature, 2); err != nil {
		return err
	}
	if err := rules.CheckRange("top_p", r.TopP, 1); err != nil {
		return err
	}
	if len(r.Stop) > wire.MaxStops {
		return rules.TooMany("stop", wire.MaxStops, len(r.Stop))
	}
	for _, id := range [][2]string{{"user", r.User}, {"safety_identifier", r.SafetyIdentifier}, {"prompt_cache_key", r.PromptCacheKey}} {
		if len(id[1]) > rules.MaxUserID {
			return rules.TooLong(id[0], rules.MaxUserID, len(id[1]))
		}
	}
	return rules.CheckReasoning(r.Model, "reasoning_effort", r.ReasoningEffort, map[string]*float64{
		"temperature": r.Temperature, "top_p": r.TopP, "frequency_penalty": r.FrequencyPenalty, "presence_penalty": r.PresencePenalty,
	})
}

func (v *validator) format(f *wire.ResponseFormat) *wire.APIError {
	switch f.Type {
	case "text":
		return nil
	case "json_object":
		if !v.speaksOfJSON() {
			return wire.Bad("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
		}
		return nil
	case "json_schema":
	default:
		return wire.Bad("response_format.type", "invalid_value", "Invalid value: '%s'. Supported values are: 'json_object', 'json_schema', and 'text'.", f.Type)
	}
	const at = "response_format.json_schema"
	if f.Schema == nil {
		return rules.Missing(at)
	}
	if err := rules.CheckName(at+".name", f.Schema.Name); err != nil {
		return err
	}
	var schema map[string]any
	if len(f.Schema.Schema) > 0 && json.Unmarshal(f.Schema.Schema, &schema) != nil {
		return wire.Bad(at+".schema", "invalid_type", "Invalid type for '%s.schema': expected an object.", at)
	}
	if strict := f.Schema.Strict; strict != nil && *strict {
		if where := rules.LooseSchema(schema); where != "" {
			return wire.Bad("response_format", "invalid_json_schema", "Invalid schema for response_format '%s': %s", f.Schema.Name, where)
		}
	}
	return nil
}

func (v *validator) speaksOfJSON() bool {
	return slices.ContainsFunc(v.request.Messages, func(m wire.Message) bool {
		return strings.Contains(strings.ToLower(m.Content.String()), "json")
	})
}
