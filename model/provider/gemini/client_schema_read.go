// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits of the translation: deeper schemas and recursive references become an
// object without properties.
const (
	maxSchemaDepth = 24
	maxSchemaNodes = 1000
)

// parameters translates a JSON Schema of type object to the subset of OpenAPI that
// the API takes, always in the same way. const, null, references, allOf, oneOf,
// lists of types and exclusive limits are translated; default, formats, enum values
// that are no strings, and free keys become notes in descriptions; the rest is left
// out. The result is nil for a function without parameters.
func parameters(raw json.RawMessage) json.RawMessage {
	t := translator{root: raw, left: maxSchemaNodes}
	s := t.read(raw, 0)
	if s == nil {
		return nil
	}
	s = s.flat()
	s.kind, s.nullable = "OBJECT", false
	if len(s.properties) == 0 {
		return nil
	}
	return s.json()
}

type translator struct {
	root json.RawMessage
	left int      // nodes
	refs []string // being followed
}

// read translates one schema; nil if no value satisfies it or it is no schema.
func (t *translator) read(raw json.RawMessage, depth int) *schema {
	raw = bytes.TrimSpace(raw)
	if t.left--; depth > maxSchemaDepth || t.left < 0 {
		return &schema{kind: "OBJECT"}
	}
	if len(raw) == 0 || raw[0] != '{' {
		if string(raw) == "true" {
			return anything()
		}
		return nil
	}
	s := &schema{}
	var types []string
	var keys words
	all := Members(raw)
	for _, m := range all {
		if m.Key == "type" {
			types = stringsOf(m.Value)
		}
	}
	for _, m := range all {
		t.keyword(s, types, &keys, m, depth)
	}
	if keys.ref != "" {
		s.merge(t.follow(keys.ref, depth))
	}
	for _, one := range keys.all {
		s.merge(t.read(one, depth+1))
	}
	t.setType(s, types, keys.any, depth)
	return s
}

// words are the keywords that refer to other schemas.
type words struct {
	ref      string
	all, any []json.RawMessage
}

// follow translates the target of a reference.
func (t *translator) follow(ref string, depth int) *schema {
	if slices.Contains(t.refs, ref) {
		return &schema{kind: "OBJECT"}
	}
	target := t.find(ref)
	if target == nil {
		return nil
	}
	t.refs = append(t.refs, ref)
	defer func() { t.refs = t.refs[:len(t.refs)-1] }()
	return t.read(target, depth+1)
}

// keyword adds one keyword to s.
func (t *translator) keyword(s *schema, types []string, keys *words, m Member, depth int) {
	switch m.Key {
	case "description":
		s.description = textOf(m.Value)
	case "title":
		if s.description == "" {
			s.notes = append(s.notes, textOf(m.Value))
		}
	case "nullable":
		s.nullable = s.nullable || string(m.Value) == "true"
	case "$ref":
		keys.ref = textOf(m.Value)
	case "allOf":
		keys.all = append(keys.all, listOf(m.Value)...)
	case "anyOf", "oneOf":
		keys.any = append(keys.any, listOf(m.Value)...)
	case "const":
		s.values([]json.RawMessage{m.Value})
	case "enum":
		s.values(listOf(m.Value))
	case "default":
		if string(m.Value) != "null" && len(m.Value) <= 200 {
			s.notes = append(s.notes, "default: "+compact(m.Value))
		}
	case "format":
		switch f := textOf(m.Value); f {
		case "date-time", "float", "double", "int32", "int64":
			s.format = f
		case "", "enum":
		default:
			s.notes = append(s.notes, "format: "+f)
		}
	case "properties":
		for _, p := range Members(m.Value) {
			if one := t.read(p.Value, depth+1); one != nil {
				s.properties = append(s.properties, property{p.Key, *one})
			}
		}
	case "required":
		s.required = append(s.required, stringsOf(m.Value)...)
	case "items":
		if list := listOf(m.Value); list != nil {
			s.items = t.oneOf(list, depth)
		} else {
			s.items = t.read(m.Value, depth+1)
		}
	case "prefixItems":
		if s.items == nil {
			s.items = t.oneOf(listOf(m.Value), depth)
		}
	case "additionalProperties", "patternProperties":
		if len(m.Value) > 0 && m.Value[0] == '{' && string(bytes.TrimSpace(m.Value)) != "{}" || string(m.Value) == "true" {
			s.notes = append(s.notes, "with keys of your choice")
		}
	case "exclusiveMinimum", "exclusiveMaximum":
		s.exclusive(m, types)
	case "minimum", "maximum":
		if _, err := strconv.ParseFloat(string(m.Value), 64); err == nil {
			s.limits = append(s.limits, m)
		}
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		if _, err := strconv.ParseUint(string(m.Value), 10, 31); err == nil {
			s.limits = append(s.limits, m)
		}
	case "pattern":
		if textOf(m.Value) != "" {
			s.limits = append(s.limits, m)
		}
	}
}

// oneOf returns the schema of the elements of a tuple.
func (t *translator) oneOf(list []json.RawMessage, depth int) *schema {
	s := &schema{}
	t.setType(s, nil, list, depth)
	return s
}

// setType decides what s is: of some types, one of several schemas, or the type
// that its keywords imply.
func (t *translator) setType(s *schema, types []string, options []json.RawMessage, depth int) {
	for _, raw := range options {
		o := t.read(raw, depth+1)
		switch {
		case o == nil:
		case o.kind == "NULL":
			s.nullable = true
		default:
			s.nullable, o.nullable = s.nullable || o.nullable, false
			if !slices.ContainsFunc(s.options, func(have *schema) bool { return bytes.Equal(have.json(), o.json()) }) {
				s.options = append(s.options, o)
			}
		}
	}
	if len(s.options) == 1 {
		only := s.options[0]
		s.options = nil
		s.merge(only)
	}
	var kinds []string
	for _, name := range types {
		switch kind := strings.ToUpper(name); kind {
		case "NULL":
			s.nullable = true
		case "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT":
			kinds = append(kinds, kind)
		}
	}
	switch {
	case len(s.options) > 1:
		t.distribute(s)
		return
	case len(kinds) > 1:
		base := *s
		for _, kind := range kinds {
			one := base
			one.kind, one.description, one.notes, one.nullable = kind, "", nil, false
			one.complete()
			s.options = append(s.options, &one)
		}
		s.kind = ""
		return
	case len(kinds) == 1:
		s.kind = kinds[0]
	case len(types) > 0 && s.nullable && s.kind == "":
		// Other keywords are about other values, and the API takes them for their types alone.
		*s = schema{kind: "NULL", description: s.description, notes: s.notes, nullable: true}
		return
	}
	s.complete()
}

// distribute moves the keywords beside options into each of them, as far as they
// fit: the API takes options alone.
func (t *translator) distribute(s *schema) {
	for _, o := range s.options {
		if len(o.options) > 0 || len(s.properties) > 0 && o.kind != "OBJECT" {
			continue
		}
		for _, p := range s.properties {
			if o.property(p.name) == nil {
				o.properties = append(o.properties, p)
			}
		}
		if o.kind == "OBJECT" {
			o.required = append(o.required, s.required...)
		}
	}
	s.kind = ""
}

// find returns the target of a reference inside the schema; nil: none.
func (t *translator) find(ref string) json.RawMessage {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at := t.root
	for _, key := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if key == "" {
			continue
		}
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		var next json.RawMessage
		for _, m := range Members(at) {
			if m.Key == key {
				next = m.Value
			}
		}
		if next == nil {
			return nil
		}
		at = next
	}
	return at
}

func textOf(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // other JSON: empty
	return s
}

func listOf(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // other JSON: empty
	return list
}

// stringsOf returns a string, or the strings of a list.
func stringsOf(raw json.RawMessage) []string {
	if s := textOf(raw); s != "" {
		return []string{s}
	}
	var out []string
	for _, item := range listOf(raw) {
		if s := textOf(item); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return fmt.Sprintf("%q", raw)
	}
	return b.String()
}
