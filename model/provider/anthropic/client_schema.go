// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// promises reports whether the API can enforce a schema for a model: not before
// Claude 4.1, and unknown for models of others behind the dialect.
//
// Source: "Structured outputs" of the Claude documentation.
func promises(name string) bool {
	v, ok := version(name)
	return ok && v >= 401
}

// format returns the schema that the API enforces for r, and the messages. If the
// API cannot enforce the form of the answer, the messages ask for it.
func (e *encoder) format(r *model.Request) (schema json.RawMessage, messages []model.Message) {
	f := r.Format
	if !f.JSON && len(f.Schema) == 0 {
		return nil, r.Messages
	}
	if len(f.Schema) > 0 && promises(r.Service.Model) {
		if schema, ok := enforceable(f.Schema); ok && e.grammar.admit(schema) {
			return schema, r.Messages
		}
	}
	e.Drop("response_format", model.NotEnforced)
	return nil, provider.WithFormatInstruction(r.Messages, f)
}

// enforceable returns schema in the form that the API enforces: its objects are
// closed, and constraints that the API does not know are in the descriptions. ok is
// false for a schema whose form would change: one with objects of any properties, or
// one that refers to itself.
//
// Source: transform_schema of Anthropic's SDKs.
func enforceable(schema json.RawMessage) (out json.RawMessage, ok bool) {
	root := gjson.ParseBytes(schema)
	if !gjson.ValidBytes(schema) || recursive(root) {
		return nil, false
	}
	w := schemaWriter{ok: true}
	w.write(root, 0)
	if !w.ok {
		return nil, false
	}
	return []byte(w.String()), true
}

var refs = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"\$ref"\s*:\s*"([^"]*)"`) })

// recursive reports whether a schema refers to a part that contains the reference,
// or to something outside its definitions.
func recursive(root gjson.Result) bool {
	definitions := map[string]string{} // JSON by reference
	for _, word := range []string{"$defs", "definitions"} {
		root.Get(gjson.Escape(word)).ForEach(func(name, value gjson.Result) bool {
			definitions["#/"+word+"/"+name.Str] = value.Raw
			return true
		})
	}
	done := map[string]bool{} // false while its references are followed
	var follow func(raw string) bool
	follow = func(raw string) bool {
		for _, m := range refs().FindAllStringSubmatch(raw, -1) {
			text, known := definitions[m[1]]
			finished, seen := done[m[1]]
			if !known || seen && !finished {
				return true
			}
			if seen {
				continue
			}
			done[m[1]] = false
			if follow(text) {
				return true
			}
			done[m[1]] = true
		}
		return false
	}
	return follow(root.Raw)
}

// maxSchemaDepth limits the nesting of schemas.
const maxSchemaDepth = 100

// A schemaWriter writes a schema in the form that the API enforces.
type schemaWriter struct {
	strings.Builder
	ok bool
}

func (w *schemaWriter) write(schema gjson.Result, depth int) {
	if !schema.IsObject() || depth > maxSchemaDepth {
		w.ok = false // the schema true allows everything
		return
	}
	first := true
	member := func(name string) {
		if !first {
			w.WriteByte(',')
		}
		first = false
		w.WriteString(`"` + name + `":`)
	}
	kinds := schema.Get("type")
	object := kinds.Str == "object" || schema.Get("properties").Exists() ||
		slices.ContainsFunc(kinds.Array(), func(t gjson.Result) bool { return t.Str == "object" })
	if object && len(schema.Get("properties").Map()) == 0 && schema.Get("additionalProperties").Type != gjson.False {
		w.ok = false // any properties are allowed
		return
	}
	var described []string
	w.WriteByte('{')
	schema.ForEach(func(key, value gjson.Result) bool {
		switch name := key.Str; name {
		case "$schema", "$id", "$comment", "description", "additionalProperties":
		case "properties", "$defs", "definitions":
			member(name)
			w.WriteByte('{')
			comma := ""
			value.ForEach(func(name, inner gjson.Result) bool {
				w.WriteString(comma + name.Raw + ":")
				w.write(inner, depth+1)
				comma = ","
				return w.ok
			})
			w.WriteByte('}')
		case "items":
			member(name)
			w.write(value, depth+1)
		case "anyOf", "allOf", "oneOf":
			member(strings.Replace(name, "oneOf", "anyOf", 1))
			w.WriteByte('[')
			for i, inner := range value.Array() {
				if i > 0 {
					w.WriteByte(',')
				}
				w.write(inner, depth+1)
			}
			w.WriteByte(']')
		default:
			if known(name, value) {
				member(name)
				w.WriteString(value.Raw)
			} else {
				described = append(described, name+": "+value.Raw)
			}
		}
		return w.ok
	})
	if object {
		member("additionalProperties")
		w.WriteString("false")
	}
	text := schema.Get("description").Str
	if len(described) > 0 {
		if text != "" {
			text += "\n\n"
		}
		text += "{" + strings.Join(described, ", ") + "}"
	}
	if text != "" {
		member("description")
		w.Write(provider.MustMarshal(text))
	}
	w.WriteByte('}')
}

// known reports whether the API takes a keyword of a schema with a value.
func known(name string, value gjson.Result) bool {
	switch name {
	case "type", "enum", "const", "$ref", "required", "title":
		return true
	case "format":
		return slices.Contains([]string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}, value.Str)
	case "minItems":
		return value.Num == 0 || value.Num == 1
	}
	return false
}

// What the API enforces in one request.
//
// Source: "Structured outputs" of the Claude documentation, "Schema complexity limits".
const (
	maxStrictTools = 20
	maxOptional    = 24 // properties that are not required
	maxUnions      = 16 // schemas with several types
)

// A grammar counts what the schemas of a request have that the API limits.
type grammar struct{ tools, optional, unions int }

// admit adds an enforceable schema, unless the API would refuse the request.
func (g *grammar) admit(schema json.RawMessage) bool {
	sum := *g
	sum.add(gjson.ParseBytes(schema))
	if sum.optional > maxOptional || sum.unions > maxUnions {
		return false
	}
	*g = sum
	return true
}

// admitTool is admit for the arguments of a tool.
func (g *grammar) admitTool(schema json.RawMessage) bool {
	if g.tools == maxStrictTools || !g.admit(schema) {
		return false
	}
	g.tools++
	return true
}

func (g *grammar) add(schema gjson.Result) {
	if !schema.IsObject() {
		return
	}
	if len(schema.Get("type").Array()) > 1 || schema.Get("anyOf").Exists() {
		g.unions++
	}
	required := len(schema.Get("required").Array())
	schema.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "properties", "$defs", "definitions":
			n := 0
			value.ForEach(func(_, inner gjson.Result) bool {
				n++
				g.add(inner)
				return true
			})
			if key.Str == "properties" {
				g.optional += max(0, n-required)
			}
		case "items":
			g.add(value)
		case "anyOf", "allOf":
			for _, inner := range value.Array() {
				g.add(inner)
			}
		}
		return true
	})
}
