// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/artelhq/artel/model/provider"
)

// The API's limits.
const (
	maxTools      = 128
	maxToolName   = 64
	maxImages     = 1500
	maxImageBytes = 512 << 20
	maxFileBytes  = 50 << 20
)

// Validate holds the JSON of a request to the rules of the real API. The
// error is an [*APIError] as the API would answer.
func Validate(body []byte) error {
	r, err := Decode(context.Background(), bytes.NewReader(body), provider.DecodeOptions{MaxText: len(body) + 1<<20})
	if err != nil {
		return err
	}
	return r.Validate()
}

// Validate holds a decoded request to the rules of the real API; see
// [Validate].
func (r *Request) Validate() error { return r.ValidateBy(Rules{}) }

// Rules say where servers of the dialect differ from the real API.
type Rules struct {
	ToolMedia bool // media may stand in tool messages
	// Fields are taken that compatible servers have: the reasoning of messages,
	// and the ids of media.
	Compatible bool
}

// ValidateBy is [Request.Validate] with the rules of another server.
func (r *Request) ValidateBy(rules Rules) error {
	v := validator{request: r, rules: rules}
	for _, check := range []func() *APIError{v.fields, v.top, v.tools, v.settings, v.messages} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

type validator struct {
	request    *Request
	rules      Rules
	images     int
	imageBytes int64
	fileBytes  int64
}

// The fields that the API knows, by the kind of object.
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

// fields finds what the API does not know.
func (v *validator) fields() *APIError {
	var top map[string]json.RawMessage
	if json.Unmarshal(v.request.Extraction().JSON(), &top) != nil {
		return nil // not decoded from JSON
	}
	if k := unknown(top, "request"); k != "" {
		return Bad("", "", "Unrecognized request argument supplied: %s", k)
	}
	var messages []map[string]json.RawMessage
	if json.Unmarshal(top["messages"], &messages) != nil {
		return nil
	}
	for i, m := range messages {
		at := fmt.Sprintf("messages[%d]", i)
		v.forgive(m, "reasoning", "reasoning_content", "reasoning_details")
		if k := unknown(m, "message"); k != "" {
			return Bad(at+"."+k, "unknown_parameter", "Unknown parameter: '%s.%s'.", at, k)
		}
		var parts []map[string]json.RawMessage
		if json.Unmarshal(m["content"], &parts) != nil {
			continue
		}
		for j, p := range parts {
			v.forgive(p, "uuid")
			if k := unknown(p, "part"); k != "" {
				at := fmt.Sprintf("%s.content[%d].%s", at, j, k)
				return Bad(at, "unknown_parameter", "Unknown parameter: '%s'.", at)
			}
		}
	}
	return nil
}

// forgive takes fields out of an object that other servers know.
func (v *validator) forgive(object map[string]json.RawMessage, fields ...string) {
	for _, k := range fields {
		if v.rules.Compatible {
			delete(object, k)
		}
	}
}

// unknown returns the first unknown key by the alphabet.
func unknown(m map[string]json.RawMessage, object string) string {
	first := ""
	for k := range m {
		if !slices.Contains(known(object), k) && (first == "" || k < first) {
			first = k
		}
	}
	return first
}

func (v *validator) top() *APIError {
	r := v.request
	switch {
	case r.Model == "":
		return Bad("", "", "you must provide a model parameter")
	case r.Messages == nil:
		return Bad("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	case len(r.Messages) == 0:
		return Bad("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case r.StreamOptions != nil && !r.Stream:
		return Bad("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case r.MaxTokens != nil && r.MaxCompletionTokens != nil:
		return Bad("max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	for name, n := range map[string]*int{"max_tokens": r.MaxTokens, "max_completion_tokens": r.MaxCompletionTokens} {
		if n != nil && *n < 1 {
			return Bad(name, "integer_below_min_value", "Invalid '%s': integer below minimum value. Expected a value >= 1, but got %d instead.", name, *n)
		}
	}
	return nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func (v *validator) tools() *APIError {
	tools := v.request.Tools
	if tools != nil && len(tools) == 0 {
		return Bad("tools", "empty_array", "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	if len(tools) > maxTools {
		return Bad("tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", maxTools, len(tools))
	}
	seen := map[string]bool{}
	for i, t := range tools {
		at := fmt.Sprintf("tools[%d].", i)
		if t.Type != "function" {
			return Bad(at+"type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function' and 'custom'.", t.Type)
		}
		at += "function."
		name := t.Function.Name
		if err := checkToolName(at+"name", name); err != nil {
			return err
		}
		if seen[name] {
			return Bad(at+"name", "duplicate_function_name", "Invalid '%sname': the tool name '%s' is used more than once.", at, name)
		}
		seen[name] = true
		if err := checkSchema(at+"parameters", name, t.Function.Parameters); err != nil {
			return err
		}
	}
	return nil
}

func checkToolName(at, name string) *APIError {
	switch {
	case name == "":
		return Bad(at, "missing_required_parameter", "Missing required parameter: '%s'.", at)
	case len(name) > maxToolName:
		return tooLong(at, maxToolName, len(name))
	case !toolName.MatchString(name):
		return Bad(at, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at)
	}
	return nil
}

func tooLong(at string, limit, n int) *APIError {
	return Bad(at, "string_above_max_length", "Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, limit, n)
}

func checkSchema(at, name string, schema json.RawMessage) *APIError {
	if len(schema) == 0 || string(schema) == "null" {
		return nil // a function without parameters
	}
	var fields struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(schema, &fields) != nil {
		return Bad(at, "invalid_type", "Invalid type for '%s': expected an object.", at)
	}
	if fields.Type != "object" {
		return Bad(at, "invalid_function_parameters", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%v\"'.", name, fields.Type)
	}
	return nil
}

func (v *validator) messages() *APIError {
	open := map[string]bool{} // calls of the group in work that have no answer yet
	inGroup := false
	for i, m := range v.request.Messages {
		at := fmt.Sprintf("messages[%d]", i)
		if !slices.Contains([]string{"system", "developer", "user", "assistant", "tool", "function"}, m.Role) {
			return Bad(at+".role", "invalid_value", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
		}
		if m.Role != "tool" {
			if err := unanswered(open, i); err != nil {
				return err
			}
			inGroup = false
		}
		switch m.Role {
		case "tool":
			if m.ToolCallID == "" {
				return Bad(at+".tool_call_id", "missing_required_parameter", "Missing required parameter: '%s.tool_call_id'.", at)
			}
			if len(m.ToolCallID) > maxCallID {
				return tooLong(at+".tool_call_id", maxCallID, len(m.ToolCallID))
			}
			if !inGroup || !open[m.ToolCallID] {
				return Bad(fmt.Sprintf("messages.[%d].role", i), "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
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

func unanswered(open map[string]bool, i int) *APIError {
	if len(open) == 0 {
		return nil
	}
	var ids []string
	for id := range open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return Bad(fmt.Sprintf("messages.[%d].role", i), "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(ids, ", "))
}

func (v *validator) calls(at string, m Message, open map[string]bool) *APIError {
	if m.ToolCalls != nil && len(m.ToolCalls) == 0 {
		return Bad(at+".tool_calls", "empty_array", "Invalid '%s.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.", at)
	}
	for j, c := range m.ToolCalls {
		at := fmt.Sprintf("%s.tool_calls[%d].", at, j)
		switch {
		case c.ID == "":
			return Bad(at+"id", "missing_required_parameter", "Missing required parameter: '%sid'.", at)
		case len(c.ID) > maxCallID:
			return tooLong(at+"id", maxCallID, len(c.ID))
		case c.Type != "function":
			return Bad(at+"type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function'.", c.Type)
		case open[c.ID]:
			return Bad(at+"id", "invalid_value", "Invalid '%sid': the id '%s' is used more than once.", at, c.ID)
		case !json.Valid([]byte(c.Function.Arguments)):
			return Bad(at+"function.arguments", "invalid_value", "Invalid '%sfunction.arguments': expected a string of JSON.", at)
		}
		if err := checkToolName(at+"function.name", c.Function.Name); err != nil {
			return err
		}
		open[c.ID] = true
	}
	return nil
}

func (v *validator) content(i int, at string, m Message) *APIError {
	if m.Content.Text == nil && m.Content.Parts == nil {
		if m.Role == "assistant" && (len(m.ToolCalls) > 0 || m.Refusal != nil) {
			return nil
		}
		return Bad(fmt.Sprintf("messages.[%d].content", i), "", "Invalid value for 'content': expected a string, got null.")
	}
	if m.Content.Parts != nil && len(m.Content.Parts) == 0 {
		return Bad(at+".content", "empty_array", "Invalid '%s.content': empty array. Expected an array with minimum length 1, but got an empty array instead.", at)
	}
	for j, p := range m.Content.Parts {
		at2 := fmt.Sprintf("%s.content[%d]", at, j)
		if err := v.part(at, at2, m.Role, p); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) part(message, at, role string, p Part) *APIError {
	allowed := []string{"text"}
	switch {
	case role == "user", role == "tool" && v.rules.ToolMedia:
		allowed = []string{"text", "image_url", "input_audio", "file"}
	case role == "assistant":
		allowed = []string{"text", "refusal"}
	}
	if !slices.Contains(allowed, p.Type) {
		if p.Type == "image_url" {
			return Bad(message, "invalid_value", "Invalid '%s'. Image URLs are only allowed for messages with role 'user', but this message with role '%s' contains an image URL.", message, role)
		}
		return Bad(at+".type", "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", p.Type, strings.Join(allowed, "', '"))
	}
	switch p.Type {
	case "image_url":
		if v.rules.Compatible && p.UUID != "" && p.ImageURL == nil {
			return nil // it is known by its id
		}
		return v.image(at+".image_url", p.ImageURL)
	case "input_audio":
		return v.audio(at+".input_audio", p.InputAudio)
	case "file":
		return v.file(at+".file", p.File)
	}
	return nil
}

func missing(at string) *APIError {
	return Bad(at, "missing_required_parameter", "Missing required parameter: '%s'.", at)
}

func (v *validator) image(at string, p *ImageURL) *APIError {
	if p == nil || p.URL == "" {
		return missing(at + ".url")
	}
	if p.bare {
		return Bad(at, "invalid_type", "Invalid type for '%s': expected an object, but got a string instead.", at)
	}
	if !slices.Contains([]string{"", "auto", "low", "high", "original"}, p.Detail) {
		return Bad(at+".detail", "invalid_value", "Invalid value: '%s'. Supported values are: 'auto', 'low', 'high', and 'original'.", p.Detail)
	}
	if v.images++; v.images > maxImages {
		return Bad(at, "too_many_images", "Too many images in request. Max is %d.", maxImages)
	}
	if strings.HasPrefix(p.URL, "https://") || strings.HasPrefix(p.URL, "http://") {
		return nil
	}
	m, mediaType, ok := v.request.Extraction().DataURL(p.URL)
	if !ok {
		return Bad(at+".url", "invalid_value", "Invalid '%s.url'. Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=') or an http(s) URL.", at)
	}
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mediaType) {
		return Bad(at+".url", "invalid_image_format", "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].")
	}
	if m.Bad || m.Size == 0 {
		return Bad(at+".url", "invalid_base64", "Invalid base64 image_url.")
	}
	if v.imageBytes += m.Size; v.imageBytes > maxImageBytes {
		return provider.RequestTooLarge(at, "The images of the request are larger than the limit of 512 MB.")
	}
	return nil
}

func (v *validator) audio(at string, p *InputAudio) *APIError {
	if p == nil || p.Data == "" {
		return missing(at + ".data")
	}
	if p.Format != "wav" && p.Format != "mp3" {
		return Bad(at+".format", "invalid_value", "Invalid value: '%s'. Supported values are: 'wav' and 'mp3'.", p.Format)
	}
	if m := v.request.Extraction().Base64(p.Data); m.Bad || m.Size == 0 {
		return Bad(at+".data", "invalid_base64", "Invalid '%s.data': expected base64 without a 'data:' prefix.", at)
	}
	return nil
}

func (v *validator) file(at string, p *File) *APIError {
	if p == nil {
		return missing(at)
	}
	if p.FileID != "" {
		if p.FileData != "" || p.Filename != "" {
			return Bad(at, "mutually_exclusive_parameters", "Mutually exclusive parameters: '%s.file_id' and '%s.file_data' or '%s.filename'.", at, at, at)
		}
		return nil
	}
	if p.FileData == "" {
		return missing(at + ".file_data")
	}
	if p.Filename == "" {
		return missing(at + ".filename")
	}
	m, mediaType, ok := v.request.Extraction().DataURL(p.FileData)
	if !ok {
		return Bad(at+".file_data", "invalid_value", "Invalid '%s.file_data'. Expected a base64-encoded data URL with an application/pdf MIME type (e.g. 'data:application/pdf;base64,aW1nIGJ5dGVzIGhlcmU='), but got a value without the 'data:' prefix.", at)
	}
	if mediaType != "application/pdf" {
		return Bad(at+".file_data", "invalid_value", "Invalid '%s.file_data'. Expected a base64-encoded data URL with an application/pdf MIME type (e.g. 'data:application/pdf;base64,aW1nIGJ5dGVzIGhlcmU='), but got unsupported MIME type '%s'.", at, mediaType)
	}
	if m.Bad || m.Size == 0 {
		return Bad(at+".file_data", "invalid_base64", "Invalid '%s.file_data': expected valid base64.", at)
	}
	if v.fileBytes += m.Size; v.fileBytes > maxFileBytes {
		return provider.RequestTooLarge(at, "The files of the request are larger than the limit of 50 MB.")
	}
	return nil
}
