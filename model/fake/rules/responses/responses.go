// SPDX-License-Identifier: Apache-2.0

// Package responses holds the rules of the Responses API: [Validate] refuses a
// request as OpenAI does.
package responses

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/artelhq/artel/model/fake/rules"
	"github.com/artelhq/artel/model/provider"
	wire "github.com/artelhq/artel/model/provider/responses"
)

// ValidateJSON is [Validate] for the JSON of a request.
func ValidateJSON(body []byte) error {
	r, err := wire.Decode(context.Background(), bytes.NewReader(body), provider.DecodeOptions{MaxText: len(body) + 1<<20})
	if err != nil {
		return err
	}
	return Validate(r, Options{})
}

// Options are empty: servers of the dialect do not differ.
type Options struct{}

// Validate checks r against the rules of the real API for requests that the
// service does not store. References to a stored response are refused as unknown.
// The error is an [*APIError] as the API answers it.
func Validate(r *wire.Request, _ Options) error {
	v := validator{request: r}
	for _, check := range []func() *wire.APIError{v.fields, v.top, v.settings, v.tools, v.items, v.pairs} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

type validator struct {
	request    *wire.Request
	images     int
	imageBytes int64
	fileBytes  int64
}

// known are the top-level fields that the API knows.
func known() []string {
	return strings.Fields(`access_programs background client_metadata context_management conversation include input instructions max_output_tokens max_tool_calls metadata
		model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention
		reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p
		truncation user`)
}

// fieldsOf are the fields that the API knows of an item or a part, by its type.
// Fields of other types are not checked.
var fieldsOf = map[string]string{
	"message":                 "type role content id status phase",
	"reasoning":               "type id summary content encrypted_content status",
	"function_call":           "type id call_id name arguments status caller namespace async",
	"function_call_output":    "type id call_id name namespace output status caller",
	"custom_tool_call_output": "type id call_id name namespace output status caller",
	"custom_tool_call":        "type id call_id name input status caller namespace async",
	"input_text":              "type text prompt_cache_breakpoint",
	"input_image":             "type image_url file_id detail prompt_cache_breakpoint",
	"input_file":              "type file_data file_id file_url filename detail prompt_cache_breakpoint",
	"output_text":             "type text annotations logprobs",
	"refusal":                 "type refusal",
}

// fields refuses unknown fields.
func (v *validator) fields() *wire.APIError {
	var top map[string]json.RawMessage
	if json.Unmarshal(v.request.Extraction().JSON(), &top) != nil {
		return nil // not decoded from JSON
	}
	if k := rules.Unknown(top, known()); k != "" {
		return wire.Bad(k, "unknown_parameter", "Unknown parameter: '%s'.", k)
	}
	for i := range v.request.Input.Items {
		item := &v.request.Input.Items[i]
		at := fmt.Sprintf("input[%d]", i)
		var fields map[string]json.RawMessage
		if json.Unmarshal(item.Raw, &fields) != nil {
			continue
		}
		if err := v.unknownIn(at, fields, item.Kind()); err != nil {
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

func (v *validator) unknownIn(at string, fields map[string]json.RawMessage, kind string) *wire.APIError {
	known := strings.Fields(fieldsOf[kind])
	if k := rules.Unknown(fields, known); k != "" && len(known) > 0 {
		at += "." + k
		return wire.Bad(at, "unknown_parameter", "Unknown parameter: '%s'.", at)
	}
	return nil
}

func wrongValue(at, value string, allowed ...string) *wire.APIError {
	return wire.Bad(at, "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", value, strings.Join(allowed, "', '"))
}

func (v *validator) top() *wire.APIError {
	r := v.request
	switch {
	case r.Model == "":
		return rules.Missing("model")
	case r.PreviousResponse != "":
		return wire.Bad("previous_response_id", "previous_response_not_found", "Previous response with id '%s' not found: responses are not stored here. Send the whole conversation as 'input'.", r.PreviousResponse)
	case set(r.Conversation):
		return wire.Bad("conversation", "conversation_not_found", "The conversation was not found: conversations are not stored here. Send the whole conversation as 'input'.")
	case set(r.Prompt):
		return wire.Bad("prompt", "prompt_not_found", "The prompt was not found: prompts are not stored here. Send its text as 'instructions'.")
	case r.Background:
		return wire.Bad("background", "unsupported_parameter", "Background mode needs stored responses, and responses are not stored here.")
	case r.Input.Text == nil && r.Input.Items == nil:
		return rules.Missing("input")
	case r.Input.Items != nil && len(r.Input.Items) == 0:
		return wire.Bad("input", "empty_array", "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	return nil
}

func set(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (v *validator) settings() *wire.APIError {
	r := v.request
	if n := r.MaxOutputTokens; n != nil && *n < wire.MinOutput {
		return wire.Bad("max_output_tokens", "integer_below_min_value", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= %d, but got %d instead.", wire.MinOutput, *n)
	}
	for _, err := range []*wire.APIError{rules.CheckRange("temperature", r.Temperature, 2), rules.CheckRange("top_p", r.TopP, 1)} {
		if err != nil {
			return err
		}
	}
	includes := []string{
		"file_search_call.results", "web_search_call.results", "web_search_call.action.sources", "message.input_image.image_url",
		"computer_call_output.output.image_url", "code_interpreter_call.outputs", wire.EncryptedReasoning, "message.output_text.logprobs",
	}
	for i, word := range r.Include {
		if !slices.Contains(includes, word) {
			return wrongValue(fmt.Sprintf("include[%d]", i), word, includes...)
		}
	}
	if slices.Contains(r.Include, wire.EncryptedReasoning) && !provider.OpenAIReasons(r.Model) {
		return wire.Bad("include", "", "Encrypted content is not supported with this model.")
	}
	for _, id := range [][2]string{{"user", r.User}, {"safety_identifier", r.SafetyIdentifier}, {"prompt_cache_key", r.PromptCacheKey}} {
		if len(id[1]) > rules.MaxUserID {
			return rules.TooLong(id[0], rules.MaxUserID, len(id[1]))
		}
	}
	var reasoning wire.Reasoning
	if r.Reasoning != nil {
		reasoning = *r.Reasoning
	}
	if words := []string{"", "auto", "concise", "detailed"}; !slices.Contains(words, reasoning.Summary) {
		return wrongValue("reasoning.summary", reasoning.Summary, words[1:]...)
	}
	if reasoning.Summary != "" && !provider.OpenAIReasons(r.Model) {
		return wire.Bad("reasoning.summary", "unsupported_parameter", "Unsupported parameter: 'reasoning.summary' is not supported with this model.")
	}
	if err := rules.CheckReasoning(r.Model, "reasoning.effort", reasoning.Effort, map[string]*float64{"temperature": r.Temperature, "top_p": r.TopP}); err != nil {
		return err
	}
	if r.Text != nil && r.Text.Format != nil {
		return v.format(r.Text.Format)
	}
	return nil
}

func (v *validator) format(f *wire.Format) *wire.APIError {
	const at = "text.format"
	switch f.Type {
	case "text":
		return nil
	case "json_object":
		if !v.speaksOfJSON() {
			return wire.Bad("input", "", "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.")
		}
		return nil
	case "json_schema":
	default:
		return wrongValue(at+".type", f.Type, "text", "json_object", "json_schema")
	}
	if err := rules.CheckName(at+".name", f.Name); err != nil {
		return err
	}
	if len(f.Schema) == 0 {
		return rules.Missing(at + ".schema")
	}
	return checkSchema(at, "response_format '"+f.Name+"'", f.Schema, f.Strict != nil && *f.Strict)
}

func (v *validator) speaksOfJSON() bool {
	speaks := func(s string) bool { return strings.Contains(strings.ToLower(s), "json") }
	r := v.request
	if r.Instructions != nil && speaks(*r.Instructions) || r.Input.Text != nil && speaks(*r.Input.Text) {
		return true
	}
	return slices.ContainsFunc(r.Input.Items, func(i wire.Item) bool {
		return speaks(i.Content.String()) || i.Output != nil && speaks(i.Output.String())
	})
}

func checkSchema(at, of string, raw json.RawMessage, strict bool) *wire.APIError {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil {
		return wire.Bad(at, "invalid_type", "Invalid type for '%s': expected an object.", at)
	}
	if !strict {
		return nil
	}
	if where := rules.LooseSchema(schema); where != "" {
		return wire.Bad(at, "invalid_json_schema", "Invalid schema for %s: %s", of, where)
	}
	return nil
}

// serviceTools are the tools that the service runs or defines.
func serviceTools() []string {
	return strings.Fields(`apply_patch code_interpreter computer computer_use computer_use_preview file_search image_generation local_shell mcp
		namespace programmatic_tool_calling shell tool_search web_search web_search_2025_08_26 web_search_preview web_search_preview_2025_03_11`)
}

func (v *validator) tools() *wire.APIError {
	r := v.request
	if len(r.Tools) > rules.MaxTools {
		return rules.TooMany("tools", rules.MaxTools, len(r.Tools))
	}
	seen := map[string]bool{}
	for i, t := range r.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		switch {
		case t.Type == "":
			return rules.Missing(at + ".type")
		case slices.Contains(serviceTools(), t.Type):
			continue
		case t.Type != "function" && t.Type != "custom":
			return wrongValue(at+".type", t.Type, append([]string{"function", "custom"}, serviceTools()...)...)
		}
		if err := rules.CheckName(at+".name", t.Name); err != nil {
			return err
		}
		if seen[t.Name] {
			return wire.Bad(at+".name", "duplicate_function_name", "Invalid '%s.name': the tool name '%s' is used more than once.", at, t.Name)
		}
		seen[t.Name] = true
		if t.Type == "custom" || !set(t.Parameters) {
			continue
		}
		if err := rules.CheckParameters(at+".parameters", t.Name, t.Parameters); err != nil {
			return err
		}
		if err := checkSchema(at+".parameters", "function '"+t.Name+"'", t.Parameters, t.Strict != nil && *t.Strict); err != nil {
			return err
		}
	}
	return v.choice()
}

func (v *validator) choice() *wire.APIError {
	c := v.request.ToolChoice
	if c == nil {
		return nil
	}
	has := func(kind, name string) bool {
		return slices.ContainsFunc(v.request.Tools, func(t wire.Tool) bool { return t.Type == kind && (name == "" || t.Name == name) })
	}
	switch {
	case c.Word != "":
		if !slices.Contains([]string{"none", "auto", "required"}, c.Word) {
			return wrongValue("tool_choice", c.Word, "none", "auto", "required")
		}
		if c.Word == "required" && len(v.request.Tools) == 0 {
			return wire.Bad("tool_choice", "", "Tool choice 'required' must be specified with 'tools' parameter.")
		}
	case c.Type == "allowed_tools":
		if c.Mode != "auto" && c.Mode != "required" {
			return wrongValue("tool_choice.mode", c.Mode, "auto", "required")
		}
	case c.Type == "function", c.Type == "custom":
		if !has(c.Type, c.Name) {
			return wire.Bad("tool_choice", "", "Tool choice '%s' not found in 'tools' parameter.", c.Name)
		}
	case !slices.Contains(serviceTools(), c.Type):
		return wrongValue("tool_choice.type", c.Type, append([]string{"allowed_tools", "function", "custom"}, serviceTools()...)...)
	case !has(c.Type, ""):
		return wire.Bad("tool_choice", "", "Tool choice '%s' not found in 'tools' parameter.", c.Type)
	}
	return nil
}
