// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"slices"
	"strings"
)

// closeObjects returns a schema whose objects allow no properties beyond their own:
// Gemini never fills others, and the APIs of others enforce a schema only if it
// says so. Schemas that are nested too deeply stay open.
func closeObjects(schema json.RawMessage, depth int) json.RawMessage {
	all := Members(schema)
	if all == nil || depth > 256 {
		return schema
	}
	named, limited := false, false
	out := make([]json.RawMessage, 0, len(all)+1)
	for _, m := range all {
		switch m.Key {
		case "properties", "$defs", "definitions":
			var each []json.RawMessage
			for _, p := range Members(m.Value) {
				named = named || m.Key == "properties"
				each = append(each, slices.Concat(quote(p.Key), []byte{':'}, closeObjects(p.Value, depth+1)))
			}
			m.Value = join('{', each, '}')
		case "anyOf", "prefixItems":
			each := listOf(m.Value)
			for i := range each {
				each[i] = closeObjects(each[i], depth+1)
			}
			m.Value = join('[', each, ']')
		case "items":
			m.Value = closeObjects(m.Value, depth+1)
		case "additionalProperties":
			limited = true
		}
		out = append(out, slices.Concat(quote(m.Key), []byte{':'}, m.Value))
	}
	if named && !limited {
		out = append(out, json.RawMessage(`"additionalProperties":false`))
	}
	return join('{', out, '}')
}

// jsonSchema returns the parameters of a declaration as JSON Schema of an object.
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
	all := Members(raw)
	if all == nil || depth > 256 {
		return json.RawMessage("{}")
	}
	nullable := slices.ContainsFunc(all, func(m Member) bool { return m.Key == "nullable" && string(m.Value) == "true" })
	var out []json.RawMessage
	add := func(name string, v json.RawMessage) {
		out = append(out, slices.Concat(quote(name), []byte{':'}, v))
	}
	for _, m := range all {
		switch m.Key {
		case "type":
			kind := quote(strings.ToLower(textOf(m.Value)))
			if nullable {
				kind = join('[', []json.RawMessage{kind, quote("null")}, ']')
			}
			add("type", kind)
		case "nullable", "propertyOrdering":
		case "format":
			if textOf(m.Value) != "enum" {
				add("format", m.Value)
			}
		case "enum":
			values := listOf(m.Value)
			if nullable {
				values = append(values, json.RawMessage("null"))
			}
			add("enum", join('[', values, ']'))
		case "example":
			add("examples", join('[', []json.RawMessage{m.Value}, ']'))
		case "properties":
			props := Members(m.Value)
			inner := make([]json.RawMessage, len(props))
			for i, p := range props {
				inner[i] = slices.Concat(quote(p.Key), []byte{':'}, fromSchema(p.Value, depth+1))
			}
			add("properties", join('{', inner, '}'))
		case "items":
			add("items", fromSchema(m.Value, depth+1))
		case "anyOf":
			list := listOf(m.Value)
			for i, o := range list {
				list[i] = fromSchema(o, depth+1)
			}
			if nullable {
				list = append(list, json.RawMessage(`{"type":"null"}`))
			}
			add("anyOf", join('[', list, ']'))
		default:
			add(m.Key, m.Value)
		}
	}
	return join('{', out, '}')
}
