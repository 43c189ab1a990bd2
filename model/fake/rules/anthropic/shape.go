// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	wire "github.com/artelhq/artel/model/provider/anthropic"
)

// A shape lists the fields of an object of the API; required ones have a star.
type shape []string

func shapeOf(fields string) shape { return strings.Fields(fields) }

// check checks the fields of an object. Fields in more are allowed too.
func (s shape) check(at string, object map[string]json.RawMessage, more ...string) *wire.APIError {
	for _, field := range s {
		name, must := strings.CutSuffix(field, "*")
		if _, there := object[name]; must && !there {
			return wire.Bad(join(at, name), "Field required")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(s, name) && !slices.Contains(s, name+"*") && !slices.Contains(more, name) {
			return wire.Bad(join(at, name), "Extra inputs are not permitted")
		}
	}
	return nil
}

func join(at string, names ...string) string {
	for _, name := range names {
		if at != "" {
			at += "."
		}
		at += name
	}
	return at
}

func item(at string, i int) string { return join(at, strconv.Itoa(i)) }

// requestShape returns the fields of a request.
func requestShape(count bool) shape {
	s := shapeOf(`model* messages* system tools tool_choice thinking output_config cache_control`)
	if count {
		return s
	}
	return append(s, shapeOf(`max_tokens* stream temperature top_p top_k stop_sequences metadata service_tier container
		inference_geo speed diagnostics`)...)
}

func betaFields() []string {
	return strings.Fields(`context_management mcp_servers compaction fallbacks fallback_credit_token output_format`)
}

// blockShapes are the shapes of types of blocks. Other types are unknown or the
// service's own, and their fields are not checked.
var blockShapes = map[string]string{
	"text":              "type* text* citations cache_control",
	"image":             "type* source* cache_control transformations",
	"document":          "type* source* title context citations cache_control",
	"search_result":     "type* source* title* content* citations cache_control",
	"thinking":          "type* thinking* signature*",
	"redacted_thinking": "type* data*",
	"tool_use":          "type* id* name* input* toolset_name caller cache_control",
	"tool_result":       "type* tool_use_id* content is_error toolset_name cache_control",
	"tool_reference":    "type* tool_name* cache_control",
	"container_upload":  "type* file_id* cache_control",
}

// allowed returns the types of blocks that are allowed in a place.
func allowed(where string) []string {
	switch where {
	case "system":
		return []string{"text"}
	case "tool_result":
		return []string{"document", "image", "search_result", "text", "tool_reference", "browser_state"}
	case "content": // of a document
		return []string{"image", "text"}
	}
	return []string{
		"advisor_tool_result", "bash_code_execution_tool_result", "code_execution_tool_result", "compaction",
		"container_upload", "document", "fallback", "image", "mcp_tool_listing", "mcp_tool_result", "mcp_tool_use",
		"redacted_thinking", "search_result", "server_tool_use", "text", "text_editor_code_execution_tool_result",
		"thinking", "tool_addition", "tool_removal", "tool_result", "tool_search_tool_result", "tool_use",
		"web_fetch_tool_result", "web_search_tool_result",
	}
}

func quoted(words []string) string { return "'" + strings.Join(words, "', '") + "'" }

// object reads a JSON object.
func object(at string, raw json.RawMessage) (map[string]json.RawMessage, *wire.APIError) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return nil, wire.Bad(at, "Input should be a valid dictionary")
	}
	return fields, nil
}

// list reads a JSON list.
func list(at string, raw json.RawMessage) ([]json.RawMessage, *wire.APIError) {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil || all == nil {
		return nil, wire.Bad(at, "Input should be a valid list")
	}
	return all, nil
}

func text(at string, raw json.RawMessage) (string, *wire.APIError) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", wire.Bad(at, "Input should be a valid string")
	}
	return *s, nil
}

// number checks an optional number.
func number(at string, raw json.RawMessage, least, most float64, whole bool) *wire.APIError {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	var n *float64
	if json.Unmarshal(raw, &n) != nil || n == nil || whole && *n != float64(int64(*n)) {
		kind := "number"
		if whole {
			kind = "integer"
		}
		return wire.Bad(at, "Input should be a valid %s", kind)
	}
	switch {
	case *n < least:
		return wire.Bad(at, "Input should be greater than or equal to %v", least)
	case *n > most:
		return wire.Bad(at, "Input should be less than or equal to %v", most)
	}
	return nil
}

// tag reads the type of an object that is a union.
func tag(at string, fields map[string]json.RawMessage, of []string) (string, *wire.APIError) {
	var kind string
	if raw, there := fields["type"]; !there || json.Unmarshal(raw, &kind) != nil {
		return "", wire.Bad(at, "Unable to extract tag using discriminator 'type'")
	}
	if !slices.Contains(of, kind) {
		return "", wire.Bad(at, "Input tag '%s' found using 'type' does not match any of the expected tags: %s", kind, quoted(of))
	}
	return kind, nil
}

// named checks the form of an id or name of at most most characters.
func named(at, s string, most int) *wire.APIError {
	if !wire.LegalID(s) || len(s) > most {
		return wire.Bad(at, "String should match pattern '^[a-zA-Z0-9_-]{1,%d}$'", most)
	}
	return nil
}

var dated = regexp.MustCompile(`^[a-z0-9_]+_20\d{6}$`)

// ofServiceTool reports whether a type of tool is one of the service's.
func ofServiceTool(kind string) bool { return dated.MatchString(kind) || kind == "mcp_toolset" }

// tool checks one of the tools, and returns its name.
func tool(at string, raw json.RawMessage) (string, *wire.APIError) {
	fields, err := object(at, raw)
	if err != nil {
		return "", err
	}
	kind := "custom"
	if raw, there := fields["type"]; there && string(raw) != "null" {
		if kind, err = text(join(at, "type"), raw); err != nil {
			return "", err
		}
	}
	var name string
	if kind != "custom" {
		if !ofServiceTool(kind) {
			return "", wire.Bad(at, "Input tag '%s' found using 'type' does not match any of the expected tags: 'bash_20250124', 'custom', 'text_editor_20250728', 'web_search_20250305'", kind)
		}
		_ = json.Unmarshal(fields["name"], &name) // toolsets have none
		return name, nil
	}
	at = join(at, kind)
	err = shapeOf(`type name* description input_schema* strict cache_control defer_loading eager_input_streaming
		allowed_callers input_examples`).check(at, fields)
	if err != nil {
		return "", err
	}
	if name, err = text(join(at, "name"), fields["name"]); err != nil {
		return "", err
	}
	if err := named(join(at, "name"), name, wire.MaxName); err != nil {
		return "", err
	}
	at = join(at, "input_schema")
	schema, err := object(at, fields["input_schema"])
	if err != nil {
		return "", err
	}
	if _, there := schema["type"]; !there {
		return "", wire.Bad(join(at, "type"), "Field required")
	}
	if string(schema["type"]) != `"object"` {
		return "", wire.Bad(join(at, "type"), "Input should be 'object'")
	}
	if string(fields["strict"]) == "true" && !enforceable(fields["input_schema"]) {
		return "", wire.Bad(at, "For 'object' type, 'additionalProperties' must be explicitly set to false")
	}
	for _, word := range []string{"oneOf", "allOf", "anyOf"} {
		if _, there := schema[word]; there {
			return "", wire.Bad("", "%s: input_schema does not support oneOf, allOf, or anyOf at the top level", strings.TrimSuffix(at, ".input_schema"))
		}
	}
	return name, nil
}

// source checks the origin of the bytes of a block.
func (v *validator) source(at, block string, raw json.RawMessage) *wire.APIError {
	fields, err := object(at, raw)
	if err != nil {
		return err
	}
	kinds := []string{"base64", "file", "url"}
	if block == "document" {
		kinds = []string{"base64", "content", "file", "text", "url"}
	}
	kind, err := tag(at, fields, kinds)
	if err != nil {
		return err
	}
	at = join(at, kind)
	switch kind {
	case "base64":
		if err := shapeOf("type* media_type* data*").check(at, fields); err != nil {
			return err
		}
		mediaType, _ := text(at, fields["media_type"])
		data, err := text(join(at, "data"), fields["data"])
		if err != nil {
			return err
		}
		return v.bytes(at, block, mediaType, data)
	case "url":
		if err := shapeOf("type* url*").check(at, fields); err != nil {
			return err
		}
		address, _ := text(at, fields["url"])
		if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
			return wire.Bad(join(at, "url"), "Only HTTPS URLs are supported.")
		}
	case "file":
		return shapeOf("type* file_id*").check(at, fields)
	case "text":
		if err := shapeOf("type* media_type* data*").check(at, fields); err != nil {
			return err
		}
		if mediaType, _ := text(at, fields["media_type"]); mediaType != "text/plain" {
			return wire.Bad(join(at, "media_type"), "Input should be 'text/plain'")
		}
		_, err := text(join(at, "data"), fields["data"])
		return err
	case "content":
		if err := shapeOf("type* content*").check(at, fields); err != nil {
			return err
		}
		return v.content(join(at, "content"), "content", fields["content"])
	}
	if block == "image" {
		return v.oneMore(at)
	}
	return nil
}

// ephemeral checks a cache mark, and counts it.
func (v *validator) ephemeral(at string, raw json.RawMessage) *wire.APIError {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	fields, err := object(at, raw)
	if err != nil {
		return err
	}
	kind, err := tag(at, fields, []string{"ephemeral"})
	if err != nil {
		return err
	}
	more := []string(nil)
	if len(v.options.Betas) > 0 {
		more = []string{"scope"}
	}
	at = join(at, kind)
	if err := shapeOf("type* ttl").check(at, fields, more...); err != nil {
		return err
	}
	if ttl, there := fields["ttl"]; there && string(ttl) != `"5m"` && string(ttl) != `"1h"` {
		return wire.Bad(join(at, "ttl"), "Input should be '5m' or '1h'")
	}
	v.marks++
	return nil
}

// choice checks tool_choice.
func choice(raw json.RawMessage, tools []string) *wire.APIError {
	at := "tool_choice"
	fields, err := object(at, raw)
	if err != nil {
		return err
	}
	kind, err := tag(at, fields, []string{"any", "auto", "none", "tool"})
	if err != nil {
		return err
	}
	if len(tools) == 0 && kind != "none" {
		return wire.Bad(at, "tool_choice may only be specified while providing tools.")
	}
	at = join(at, kind)
	switch kind {
	case "none":
		return shapeOf("type*").check(at, fields)
	case "tool":
		if err := shapeOf("type* name* disable_parallel_tool_use").check(at, fields); err != nil {
			return err
		}
		if name, _ := text(at, fields["name"]); !slices.Contains(tools, name) {
			return wire.Bad("", "Tool '%s' not found in provided tools", name)
		}
		return nil
	}
	return shapeOf("type* disable_parallel_tool_use").check(at, fields)
}
