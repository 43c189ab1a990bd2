// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"slices"
	"strings"
)

// promises reports whether a model can be held to a schema. Those before
// Claude 4.1 cannot, and of models by others behind the dialect nobody knows.
//
// Source: "Structured outputs" of the Claude documentation.
func promises(model string) bool {
	name := strings.ToLower(model)
	if !strings.Contains(name, "claude") {
		return false
	}
	return !slices.ContainsFunc([]string{
		"claude-2", "claude-instant", "claude-3", "claude-v", "sonnet-4-0", "opus-4-0",
		"sonnet-4-2025", "opus-4-2025", "sonnet-4@2025", "opus-4@2025",
	}, func(old string) bool { return strings.Contains(name, old) })
}

// Enforceable reports whether the API takes a schema: its objects say that they
// have no further properties, and it has none of the constraints that the API
// does not know.
func Enforceable(schema json.RawMessage) bool {
	var v any
	return json.Unmarshal(schema, &v) == nil && enforced(v)
}

func enforced(v any) bool {
	object, ok := v.(map[string]any)
	if !ok {
		return false // "anything" is no form
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
