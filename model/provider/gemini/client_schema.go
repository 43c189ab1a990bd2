// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel/model/provider"
)

// A schema is what the API can express about a value.
type schema struct {
	kind        string // STRING, NUMBER, INTEGER, BOOLEAN, ARRAY, OBJECT; empty if there are options
	description string
	notes       []string // for the description
	nullable    bool
	enum        []string
	format      string
	properties  []property
	required    []string
	items       *schema
	options     []*schema // anyOf
	limits      []Member  // minimum, maxItems, pattern, …: constraints that both forms share
}

type property struct {
	name string
	schema
}

// json writes s with its fields in a fixed order.
func (s *schema) json() json.RawMessage {
	var out []json.RawMessage
	add := func(name string, v any) {
		out = append(out, slices.Concat(quote(name), []byte{':'}, provider.MustMarshal(v)))
	}
	if s.kind != "" {
		add("type", s.kind)
	}
	if text := s.text(); text != "" {
		add("description", text)
	}
	if s.nullable {
		add("nullable", true)
	}
	if len(s.options) > 0 {
		all := make([]json.RawMessage, len(s.options))
		for i, o := range s.options {
			all[i] = o.json()
		}
		add("anyOf", join('[', all, ']'))
		return join('{', out, '}')
	}
	if len(s.enum) > 0 {
		add("format", "enum")
		add("enum", s.enum)
	} else if s.format != "" {
		add("format", s.format)
	}
	for _, l := range s.limits {
		add(l.Key, l.Value)
	}
	if len(s.properties) > 0 {
		all := make([]json.RawMessage, len(s.properties))
		for i, p := range s.properties {
			all[i] = slices.Concat(quote(p.name), []byte{':'}, p.json())
		}
		add("properties", join('{', all, '}'))
		if required := s.defined(); len(required) > 0 {
			add("required", required)
		}
	}
	if s.items != nil {
		add("items", s.items.json())
	}
	return join('{', out, '}')
}

// defined returns the required properties that exist.
func (s *schema) defined() []string {
	var out []string
	for _, name := range s.required {
		if s.property(name) != nil && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (s *schema) property(name string) *property {
	for i := range s.properties {
		if s.properties[i].name == name {
			return &s.properties[i]
		}
	}
	return nil
}

func (s *schema) text() string {
	if len(s.notes) == 0 {
		return s.description
	}
	return strings.TrimSpace(s.description + " (" + strings.Join(s.notes, "; ") + ")")
}

// flat returns s with the properties of its options as its own: the root must be
// one object.
func (s *schema) flat() *schema {
	for i, o := range s.options {
		o = o.flat()
		for _, p := range o.properties {
			if s.property(p.name) == nil {
				s.properties = append(s.properties, p)
			}
		}
		if i == 0 {
			s.required = append(slices.Clip(s.required), o.required...)
			continue
		}
		s.required = slices.DeleteFunc(slices.Clone(s.required), func(name string) bool { return !slices.Contains(o.required, name) })
	}
	s.options = nil
	return s
}

func anything() *schema { return &schema{kind: "STRING", notes: []string{"any JSON value"}} }

// exclusive turns an exclusive limit of integers into an inclusive one. For other
// numbers it adds a note.
func (s *schema) exclusive(m Member, types []string) {
	n, err := strconv.ParseFloat(string(m.Value), 64)
	if err != nil {
		return // draft 4: a flag of the other keyword
	}
	key, step, sign := "minimum", 1.0, "more than "
	if m.Key == "exclusiveMaximum" {
		key, step, sign = "maximum", -1.0, "less than "
	}
	if slices.Contains(types, "integer") && math.Abs(n) < 1<<52 {
		limit := math.Floor(n) + 1
		if step < 0 {
			limit = math.Ceil(n) - 1
		}
		s.limits = append(s.limits, Member{key, json.RawMessage(strconv.FormatInt(int64(limit), 10))})
		return
	}
	s.limits = append(s.limits, Member{key, m.Value})
	s.notes = append(s.notes, sign+string(m.Value))
}

// values adds the allowed values. The API takes only strings; others become a note.
func (s *schema) values(all []json.RawMessage) {
	var others []string
	for _, v := range all {
		v = bytes.TrimSpace(v)
		switch {
		case string(v) == "null":
			s.nullable = true
		case len(v) > 0 && v[0] == '"':
			if text := textOf(v); text != "" && !slices.Contains(s.enum, text) {
				s.enum = append(s.enum, text)
			}
		default:
			others = append(others, compact(v))
			if s.kind == "" {
				s.kind = kindOf(v)
			}
		}
	}
	if len(others) > 0 {
		for _, v := range s.enum {
			others = append(others, strconv.Quote(v))
		}
		s.enum = nil
		s.notes = append(s.notes, "one of: "+strings.Join(others, ", "))
	}
}

// kindOf returns the type of a value.
func kindOf(v json.RawMessage) string {
	switch {
	case len(v) == 0:
		return ""
	case v[0] == 't' || v[0] == 'f':
		return "BOOLEAN"
	case v[0] == '{':
		return "OBJECT"
	case v[0] == '[':
		return "ARRAY"
	case bytes.ContainsAny(v, ".eE"):
		return "NUMBER"
	}
	return "INTEGER"
}

// merge adds to s what only o states.
func (s *schema) merge(o *schema) {
	if o == nil {
		return
	}
	if s.kind == "" {
		s.kind = o.kind
	}
	if s.description == "" {
		s.description = o.description
	}
	for _, n := range o.notes {
		if !slices.Contains(s.notes, n) {
			s.notes = append(s.notes, n)
		}
	}
	s.nullable = s.nullable || o.nullable
	if len(s.enum) == 0 {
		s.enum = o.enum
	}
	if s.format == "" {
		s.format = o.format
	}
	for _, p := range o.properties {
		if s.property(p.name) == nil {
			s.properties = append(s.properties, p)
		}
	}
	s.required = append(s.required, o.required...)
	if s.items == nil {
		s.items = o.items
	}
	if len(s.options) == 0 {
		s.options = o.options
	}
	for _, l := range o.limits {
		if !slices.ContainsFunc(s.limits, func(have Member) bool { return have.Key == l.Key }) {
			s.limits = append(s.limits, l)
		}
	}
}

// complete makes a schema of one type consistent.
func (s *schema) complete() {
	if len(s.options) > 0 {
		s.kind = ""
		return
	}
	if s.kind == "" || s.kind == "NULL" {
		switch {
		case len(s.properties) > 0:
			s.kind = "OBJECT"
		case s.items != nil:
			s.kind = "ARRAY"
		case len(s.enum) > 0:
			s.kind = "STRING"
		default:
			s.kind = kindByLimits(s.limits)
		}
	}
	if s.kind == "" {
		whatever := anything()
		s.kind, s.notes = whatever.kind, append(s.notes, whatever.notes...)
	}
	if s.kind != "OBJECT" {
		s.properties, s.required = nil, nil
	}
	switch {
	case s.kind != "ARRAY":
		s.items = nil
	case s.items == nil:
		s.items = anything()
	}
	if s.kind != "STRING" {
		s.enum = nil
	}
	fits := map[string]string{"date-time": "STRING", "float": "NUMBER", "double": "NUMBER", "int32": "INTEGER", "int64": "INTEGER"}
	if fits[s.format] != s.kind {
		s.format = ""
	}
	var limits []Member
	for _, l := range s.limits {
		if slices.Contains(limitsOf(s.kind), l.Key) && !slices.ContainsFunc(limits, func(have Member) bool { return have.Key == l.Key }) {
			limits = append(limits, l)
		}
	}
	s.limits = limits
}

// limitsOf returns the constraints on values of a type.
func limitsOf(kind string) []string {
	switch kind {
	case "NUMBER", "INTEGER":
		return []string{"minimum", "maximum"}
	case "STRING":
		return []string{"minLength", "maxLength", "pattern"}
	case "ARRAY":
		return []string{"minItems", "maxItems"}
	case "OBJECT":
		return []string{"minProperties", "maxProperties"}
	}
	return nil
}

func kindByLimits(limits []Member) string {
	for _, l := range limits {
		for _, kind := range []string{"NUMBER", "STRING", "ARRAY", "OBJECT"} {
			if slices.Contains(limitsOf(kind), l.Key) {
				return kind
			}
		}
	}
	return ""
}
