// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"slices"
	"strings"
)

// jsonSchema translates what a declaration says of its parameters to the JSON
// Schema of an object.
func (d FunctionDeclaration) jsonSchema() json.RawMessage {
	switch {
	case len(d.ParametersJSONSchema) > 0:
		return d.ParametersJSONSchema
	case len(d.Parameters) > 0:
		return fromSchema(d.Parameters, 0)
	}
	return json.RawMessage(`{"type":"object","properties":{}}`)
}

// fromSchema translates the API's subset of OpenAPI to JSON Schema.
func fromSchema(raw json.RawMessage, depth int) json.RawMessage {
	all := members(raw)
	if all == nil || depth > 256 {
		return json.RawMessage("{}")
	}
	nullable := slices.ContainsFunc(all, func(m member) bool { return m.key == "nullable" && string(m.value) == "true" })
	var out []json.RawMessage
	add := func(name string, v json.RawMessage) {
		out = append(out, slices.Concat(quote(name), []byte{':'}, v))
	}
	for _, m := range all {
		switch m.key {
		case "type":
			kind := quote(strings.ToLower(textOf(m.value)))
			if nullable {
				kind = join('[', []json.RawMessage{kind, quote("null")}, ']')
			}
			add("type", kind)
		case "nullable", "propertyOrdering":
		case "format":
			if textOf(m.value) != "enum" {
				add("format", m.value)
			}
		case "enum":
			values := listOf(m.value)
			if nullable {
				values = append(values, json.RawMessage("null"))
			}
			add("enum", join('[', values, ']'))
		case "example":
			add("examples", join('[', []json.RawMessage{m.value}, ']'))
		case "properties":
			props := members(m.value)
			inner := make([]json.RawMessage, len(props))
			for i, p := range props {
				inner[i] = slices.Concat(quote(p.key), []byte{':'}, fromSchema(p.value, depth+1))
			}
			add("properties", join('{', inner, '}'))
		case "items":
			add("items", fromSchema(m.value, depth+1))
		case "anyOf":
			list := listOf(m.value)
			for i, o := range list {
				list[i] = fromSchema(o, depth+1)
			}
			if nullable {
				list = append(list, json.RawMessage(`{"type":"null"}`))
			}
			add("anyOf", join('[', list, ']'))
		default:
			add(m.key, m.value)
		}
	}
	return join('{', out, '}')
}
