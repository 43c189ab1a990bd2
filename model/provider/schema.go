// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// maxSchemaDepth limits the nesting of schemas that are inspected.
const maxSchemaDepth = 100

// StrictSchema reports whether the strict mode of OpenAI's APIs takes a JSON Schema:
// all its objects are closed and require all their properties, and it has no keyword
// that the mode lacks.
//
// Source: "Structured model outputs" of OpenAI's documentation, "Supported schemas".
func StrictSchema(schema json.RawMessage) bool {
	root := gjson.ParseBytes(schema)
	return gjson.ValidBytes(schema) && root.Get("type").Str == "object" && strict(root, 0)
}

func strict(schema gjson.Result, depth int) bool {
	if !schema.IsObject() || depth > maxSchemaDepth {
		return false
	}
	var properties, required []string
	object, closed, ok := false, false, true
	schema.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "$ref", "enum", "const", "title", "description", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems":
		case "type":
			object = object || value.Str == "object" || slices.ContainsFunc(value.Array(), func(t gjson.Result) bool { return t.Str == "object" })
		case "properties", "$defs", "definitions":
			value.ForEach(func(name, inner gjson.Result) bool {
				if key.Str == "properties" {
					object, properties = true, append(properties, name.Str)
				}
				ok = ok && strict(inner, depth+1)
				return ok
			})
		case "required":
			for _, name := range value.Array() {
				required = append(required, name.Str)
			}
		case "additionalProperties":
			closed = value.Type == gjson.False
		case "items":
			ok = strict(value, depth+1)
		case "anyOf":
			for _, inner := range value.Array() {
				ok = ok && strict(inner, depth+1)
			}
		default:
			ok = false
		}
		return ok
	})
	for _, name := range properties {
		ok = ok && slices.Contains(required, name)
	}
	return ok && (!object || closed)
}

// WithFormatInstruction returns messages with the form of the answer among the
// instructions, for APIs that cannot enforce it.
func WithFormatInstruction(messages []model.Message, f model.Format) []model.Message {
	text := "Answer with JSON alone: no Markdown and no text before or after it."
	if len(f.Schema) > 0 {
		text += " It conforms to this JSON Schema:\n" + string(f.Schema)
	}
	at := slices.IndexFunc(messages, func(m model.Message) bool { return m.Role != artel.RoleSystem })
	if at < 0 {
		at = len(messages)
	}
	return slices.Insert(slices.Clone(messages), at, model.Message{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: text}}})
}
