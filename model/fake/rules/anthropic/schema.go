// SPDX-License-Identifier: Apache-2.0

package anthropic

import "encoding/json"

// enforceable reports whether the API takes a schema: its objects allow no further
// properties, and it uses no unsupported constraints.
func enforceable(schema json.RawMessage) bool {
	var v any
	return json.Unmarshal(schema, &v) == nil && enforced(v)
}

func enforced(v any) bool {
	object, ok := v.(map[string]any)
	if !ok {
		return false // the schema true allows everything
	}
	for _, word := range []string{
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
		"maxItems", "uniqueItems", "minProperties", "maxProperties", "patternProperties", "not", "if", "oneOf",
	} {
		if _, there := object[word]; there {
			return false
		}
	}
	if n, there := object["minItems"].(float64); there && n > 1 {
		return false
	}
	if object["type"] == "object" && object["additionalProperties"] != false {
		return false
	}
	for _, word := range []string{"properties", "$defs", "definitions"} {
		inner, _ := object[word].(map[string]any)
		for _, sub := range inner {
			if !enforced(sub) {
				return false
			}
		}
	}
	for _, word := range []string{"anyOf", "allOf"} {
		inner, _ := object[word].([]any)
		for _, sub := range inner {
			if !enforced(sub) {
				return false
			}
		}
	}
	items, there := object["items"]
	return !there || enforced(items)
}
