// SPDX-License-Identifier: Apache-2.0

package responses

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

// Validate holds a decoded request to the rules of the real API for requests
// of which nothing is stored; see [Validate]. What only a stored response could
// give is refused as if it were not there.
func (r *Request) Validate() error {
	v := validator{request: r}
	for _, check := range []func() *APIError{v.fields, v.top, v.settings, v.tools, v.items, v.pairs} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

type validator struct {
	request    *Request
	images     int
	imageBytes int64
	fileBytes  int64
}

// known are the fields that the API knows at the top.
func known() []string {
	return strings.Fields(`access_programs background context_management conversation include input instructions max_output_tokens max_tool_calls metadata
		model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention
		reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p
		truncation user`)
}

// fieldsOf are the fields that the API knows of an item or a part; nil: the
// type is not looked into.
func fieldsOf(kind string) []string {
	switch kind {
	case "message":
		return strings.Fields("type role content id status phase")
	case "reasoning":
		return strings.Fields("type id summary content encrypted_content status")
	case "function_call":
		return strings.Fields("type id call_id name arguments status caller namespace async")
	case "function_call_output", "custom_tool_call_output":
		return strings.Fields("type id call_id name namespace output status caller")
	case "custom_tool_call":
		return strings.Fields("type id call_id name input status caller namespace async")
	case "input_text":
		return strings.Fields("type text prompt_cache_breakpoint")
	case "input_image":
		return strings.Fields("type image_url file_id detail prompt_cache_breakpoint")
	case "input_file":
		return strings.Fields("type file_data file_id file_url filename detail prompt_cache_breakpoint")
	case "output_text":
		return strings.Fields("type text annotations logprobs")
	case "refusal":
		return strings.Fields("type refusal")
	}
	return nil
}

// fields finds what the API does not know.
func (v *validator) fields() *APIError {
	var top map[string]json.RawMessage
	if json.Unmarshal(v.request.Extraction().JSON(), &top) != nil {
		return nil // not decoded from JSON
	}
	if k := unknown(top, known()); k != "" {
		return Bad(k, "unknown_parameter", "Unknown parameter: '%s'.", k)
	}
	for i := range v.request.Input.Items {
		item := &v.request.Input.Items[i]
		at := fmt.Sprintf("input[%d]", i)
		var fields map[string]json.RawMessage
		if json.Unmarshal(item.Raw, &fields) != nil {
			continue
		}
		if err := v.unknownIn(at, fields, item.kind()); err != nil {
			return err
		}
		for _, list := range []string{"content", "output"} {
			var parts []map[string]json.RawMessage
			if json.Unmarshal(fields[list], &parts) != nil {
				continue
			}
			for j, p := range parts {
				var kind string
				if json.Unmarshal(p["type"], &kind) != nil {
					continue
				}
				if err := v.unknownIn(fmt.Sprintf("%s.%s[%d]", at, list, j), p, kind); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (v *validator) unknownIn(at string, fields map[string]json.RawMessage, kind string) *APIError {
	list := fieldsOf(kind)
	if list == nil {
		return nil
	}
	if k := unknown(fields, list); k != "" {
		at += "." + k
		return Bad(at, "unknown_parameter", "Unknown parameter: '%s'.", at)
	}
	return nil
}

// unknown returns the first unknown key by the alphabet.
func unknown(m map[string]json.RawMessage, known []string) string {
	first := ""
	for k := range m {
		if !slices.Contains(known, k) && (first == "" || k < first) {
			first = k
		}
	}
	return first
}

func missing(at string) *APIError {
	return Bad(at, "missing_required_parameter", "Missing required parameter: '%s'.", at)
}

func wrongValue(at, value string, allowed ...string) *APIError {
	return Bad(at, "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", value, strings.Join(allowed, "', '"))
}

func tooLong(at string, limit, n int) *APIError {
	return Bad(at, "string_above_max_length", "Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, limit, n)
}

func (v *validator) top() *APIError {
	r := v.request
	switch {
	case r.Model == "":
		return missing("model")
	case r.PreviousResponse != "":
		return Bad("previous_response_id", "previous_response_not_found", "Previous response with id '%s' not found: responses are not stored here. Send the whole conversation as 'input'.", r.PreviousResponse)
	case set(r.Conversation):
		return Bad("conversation", "conversation_not_found", "The conversation was not found: conversations are not stored here. Send the whole conversation as 'input'.")
	case set(r.Prompt):
		return Bad("prompt", "prompt_not_found", "The prompt was not found: prompts are not stored here. Send its text as 'instructions'.")
	case r.Background:
		return Bad("background", "unsupported_parameter", "Background mode needs stored responses, and responses are not stored here.")
	case r.Input.Text == nil && r.Input.Items == nil:
		return missing("input")
	case r.Input.Items != nil && len(r.Input.Items) == 0:
		return Bad("input", "empty_array", "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	return nil
}

func set(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (v *validator) settings() *APIError {
	r := v.request
	if n := r.MaxOutputTokens; n != nil && *n < minOutput {
		return Bad("max_output_tokens", "integer_below_min_value", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= %d, but got %d instead.", minOutput, *n)
	}
	for _, n := range []struct {
		name  string
		value *float64
		most  float64
	}{{"temperature", r.Temperature, 2}, {"top_p", r.TopP, 1}} {
		if n.value != nil && (*n.value < 0 || *n.value > n.most) {
			return Bad(n.name, "decimal_out_of_range", "Invalid '%s': expected a value from 0 to %v, but got %v instead.", n.name, n.most, *n.value)
		}
	}
	includes := []string{
		"file_search_call.results", "web_search_call.results", "web_search_call.action.sources", "message.input_image.image_url",
		"computer_call_output.output.image_url", "code_interpreter_call.outputs", encryptedReasoning, "message.output_text.logprobs",
	}
	for i, word := range r.Include {
		if !slices.Contains(includes, word) {
			return wrongValue(fmt.Sprintf("include[%d]", i), word, includes...)
		}
	}
	if slices.Contains(r.Include, encryptedReasoning) && !reasons(r.Model) {
		return Bad("include", "", "Encrypted content is not supported with this model.")
	}
	if r.Text != nil && r.Text.Format != nil {
		return v.format(r.Text.Format)
	}
	return nil
}

func (v *validator) format(f *Format) *APIError {
	const at = "text.format"
	switch f.Type {
	case "text":
		return nil
	case "json_object":
		if !v.speaksOfJSON() {
			return Bad("input", "", "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.")
		}
		return nil
	case "json_schema":
	default:
		return wrongValue(at+".type", f.Type, "text", "json_object", "json_schema")
	}
	if err := checkName(at+".name", f.Name); err != nil {
		return err
	}
	if len(f.Schema) == 0 {
		return missing(at + ".schema")
	}
	return checkSchema(at, "response_format '"+f.Name+"'", f.Schema, f.Strict != nil && *f.Strict)
}

func (v *validator) speaksOfJSON() bool {
	speaks := func(s string) bool { return strings.Contains(strings.ToLower(s), "json") }
	r := v.request
	if r.Instructions != nil && speaks(*r.Instructions) || r.Input.Text != nil && speaks(*r.Input.Text) {
		return true
	}
	return slices.ContainsFunc(r.Input.Items, func(i Item) bool {
		return speaks(i.Content.String()) || i.Output != nil && speaks(i.Output.String())
	})
}

var nameForm = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func checkName(at, name string) *APIError {
	switch {
	case name == "":
		return missing(at)
	case len(name) > maxName:
		return tooLong(at, maxName, len(name))
	case !nameForm.MatchString(name):
		return Bad(at, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at)
	}
	return nil
}

func checkSchema(at, of string, raw json.RawMessage, strict bool) *APIError {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil {
		return Bad(at, "invalid_type", "Invalid type for '%s': expected an object.", at)
	}
	if !strict {
		return nil
	}
	if where := provider.LooseSchema(schema); where != "" {
		return Bad(at, "invalid_json_schema", "Invalid schema for %s: %s", of, where)
	}
	return nil
}

// serviceTools are the tools that the service runs by itself, or defines.
func serviceTools() []string {
	return strings.Fields(`apply_patch code_interpreter computer computer_use computer_use_preview file_search image_generation local_shell mcp
		namespace programmatic_tool_calling shell tool_search web_search web_search_2025_08_26 web_search_preview web_search_preview_2025_03_11`)
}

func (v *validator) tools() *APIError {
	r := v.request
	if len(r.Tools) > maxTools {
		return Bad("tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", maxTools, len(r.Tools))
	}
	seen := map[string]bool{}
	for i, t := range r.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		switch {
		case t.Type == "":
			return missing(at + ".type")
		case slices.Contains(serviceTools(), t.Type):
			continue
		case t.Type != "function" && t.Type != "custom":
			return wrongValue(at+".type", t.Type, append([]string{"function", "custom"}, serviceTools()...)...)
		}
		if err := checkName(at+".name", t.Name); err != nil {
			return err
		}
		if seen[t.Name] {
			return Bad(at+".name", "duplicate_function_name", "Invalid '%s.name': the tool name '%s' is used more than once.", at, t.Name)
		}
		seen[t.Name] = true
		if t.Type == "custom" || !set(t.Parameters) {
			continue
		}
		var schema struct {
			Type any `json:"type"`
		}
		if json.Unmarshal(t.Parameters, &schema) == nil && schema.Type != "object" {
			return Bad(at+".parameters", "invalid_function_parameters", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%v\"'.", t.Name, schema.Type)
		}
		if err := checkSchema(at+".parameters", "function '"+t.Name+"'", t.Parameters, t.Strict != nil && *t.Strict); err != nil {
			return err
		}
	}
	return v.choice()
}

func (v *validator) choice() *APIError {
	c := v.request.ToolChoice
	if c == nil {
		return nil
	}
	has := func(kind, name string) bool {
		return slices.ContainsFunc(v.request.Tools, func(t Tool) bool { return t.Type == kind && (name == "" || t.Name == name) })
	}
	switch {
	case c.Word != "":
		if !slices.Contains([]string{"none", "auto", "required"}, c.Word) {
			return wrongValue("tool_choice", c.Word, "none", "auto", "required")
		}
		if c.Word == "required" && len(v.request.Tools) == 0 {
			return Bad("tool_choice", "", "Tool choice 'required' must be specified with 'tools' parameter.")
		}
	case c.Type == "allowed_tools":
		if c.Mode != "auto" && c.Mode != "required" {
			return wrongValue("tool_choice.mode", c.Mode, "auto", "required")
		}
	case c.Type == "function", c.Type == "custom":
		if !has(c.Type, c.Name) {
			return Bad("tool_choice", "", "Tool choice '%s' not found in 'tools' parameter.", c.Name)
		}
	case !slices.Contains(serviceTools(), c.Type):
		return wrongValue("tool_choice.type", c.Type, append([]string{"allowed_tools", "function", "custom"}, serviceTools()...)...)
	case !has(c.Type, ""):
		return Bad("tool_choice", "", "Tool choice '%s' not found in 'tools' parameter.", c.Type)
	}
	return nil
}
