// SPDX-License-Identifier: Apache-2.0

// Package elicit reads the forms by which MCP servers ask people, and checks the
// answers.
//
// [Parse] reads a schema of the restricted kind that the protocol allows: an object
// whose properties are texts, numbers, booleans and choices. [Form.Check] compares an
// answer with it. The package does no I/O.
package elicit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
)

// The bounds of forms.
const (
	MaxSchema  = 64 << 10 // bytes
	MaxFields  = 50
	MaxOptions = 200   // of a field
	MaxText    = 16000 // code points of a value without a bound of its own
)

// A Kind is what a field takes.
type Kind string

// The kinds.
const (
	Text    Kind = "text"
	Number  Kind = "number"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
	Choice  Kind = "choice"  // one of the options
	Choices Kind = "choices" // any of the options
)

// A Form is a question with fields, in the order of its schema.
type Form struct{ Fields []Field }

// A Field is one value of an answer.
type Field struct {
	Name        string
	Title       string // "": Name is shown
	Description string
	Kind        Kind
	Required    bool
	Default     any    // nil: none
	Format      string // of texts: email, uri, date, date-time or ""
	Options     []Option
	Bounds
}

// Bounds limit a value; nil: they do not.
type Bounds struct {
	Least, Most   *float64 // of numbers
	Short, Long   *int     // of texts, in code points
	Fewest, Total *int     // of choices
	Pattern       string   // of texts; "": none
}

// An Option is a value that can be chosen.
type Option struct{ Value, Title string }

// Label is what people see of the field.
func (f Field) Label() string { return cmp.Or(f.Title, f.Name) }

// Label is what people see of the option.
func (o Option) Label() string { return cmp.Or(o.Title, o.Value) }

// schema is a property as the protocol allows it.
type schema struct {
	Type        string            `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Default     any               `json:"default"`
	Format      string            `json:"format"`
	Pattern     string            `json:"pattern"`
	MinLength   *int              `json:"minLength"`
	MaxLength   *int              `json:"maxLength"`
	Minimum     *float64          `json:"minimum"`
	Maximum     *float64          `json:"maximum"`
	MinItems    *int              `json:"minItems"`
	MaxItems    *int              `json:"maxItems"`
	Enum        []json.RawMessage `json:"enum"`
	EnumNames   []string          `json:"enumNames"` // of the protocol before 2025-11-25
	OneOf       []option          `json:"oneOf"`
	AnyOf       []option          `json:"anyOf"`
	Items       *schema           `json:"items"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
}

type option struct {
	Const json.RawMessage `json:"const"`
	Title string          `json:"title"`
}

// Parse reads the schema of a form. The error says what the protocol does not allow.
func Parse(raw json.RawMessage) (Form, error) {
	var f Form
	if len(raw) == 0 || string(raw) == "null" {
		return f, nil
	}
	if len(raw) > MaxSchema {
		return f, fmt.Errorf("the schema has %d bytes; at most %d are shown to a person", len(raw), MaxSchema)
	}
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return f, fmt.Errorf("the schema is not one: %w", err)
	}
	if s.Type != "" && s.Type != "object" {
		return f, fmt.Errorf("the schema is of type %q, want object", artel.Shorten(s.Type, 40))
	}
	names, properties, err := inOrder(s.Properties)
	if err != nil {
		return f, err
	}
	if len(names) > MaxFields {
		return f, fmt.Errorf("the schema has %d properties; at most %d are shown to a person", len(names), MaxFields)
	}
	for i, name := range names {
		field, err := fieldOf(name, properties[i])
		if err != nil {
			return f, fmt.Errorf("property %q: %w", artel.Shorten(name, 80), err)
		}
		field.Required = slices.Contains(s.Required, name)
		f.Fields = append(f.Fields, field)
	}
	for _, name := range s.Required {
		if !slices.Contains(names, name) {
			return f, fmt.Errorf("%q is required and no property", artel.Shorten(name, 80))
		}
	}
	return f, nil
}

// inOrder returns the members of an object in their order.
func inOrder(raw json.RawMessage) (names []string, values []schema, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.New("the properties are no object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		name, _ := t.(string)
		var s schema
		if err := d.Decode(&s); err != nil {
			return nil, nil, fmt.Errorf("property %q: %w", artel.Shorten(name, 80), err)
		}
		if slices.Contains(names, name) {
			return nil, nil, fmt.Errorf("property %q is there twice", artel.Shorten(name, 80))
		}
		names, values = append(names, name), append(values, s)
	}
	return names, values, nil
}

func fieldOf(name string, s schema) (Field, error) {
	f := Field{
		Name: name, Title: s.Title, Description: s.Description, Format: s.Format, Default: s.Default,
		Bounds: Bounds{s.Minimum, s.Maximum, s.MinLength, s.MaxLength, s.MinItems, s.MaxItems, s.Pattern},
	}
	var err error
	switch {
	case len(s.Properties) > 0:
		return f, errors.New("has properties of its own; only single values can be asked for")
	case s.Type == "string" && (s.Enum != nil || s.OneOf != nil):
		f.Kind = Choice
		f.Options, err = options(s.Enum, s.EnumNames, s.OneOf)
	case s.Type == "string":
		f.Kind = Text
	case s.Type == "number":
		f.Kind = Number
	case s.Type == "integer":
		f.Kind = Integer
	case s.Type == "boolean":
		f.Kind = Boolean
	case s.Type == "array" && s.Items != nil:
		f.Kind = Choices
		f.Options, err = options(s.Items.Enum, s.Items.EnumNames, append(slices.Clone(s.Items.AnyOf), s.Items.OneOf...))
	default:
		return f, fmt.Errorf("is of type %q; want string, number, integer, boolean, or an array of choices", artel.Shorten(s.Type, 40))
	}
	if err != nil {
		return f, err
	}
	if f.Default != nil && f.check(f.Default) != nil {
		f.Default = nil // a form does not begin with a mistake
	}
	return f, nil
}

// options returns the options of an enum, with titles or without.
func options(enum []json.RawMessage, titles []string, of []option) ([]Option, error) {
	for i, v := range enum {
		o := option{Const: v}
		if len(titles) == len(enum) {
			o.Title = titles[i]
		}
		of = append(of, o)
	}
	if len(of) == 0 {
		return nil, errors.New("has no options")
	}
	if len(of) > MaxOptions {
		return nil, fmt.Errorf("has %d options; at most %d are shown to a person", len(of), MaxOptions)
	}
	out := make([]Option, len(of))
	for i, o := range of {
		if err := json.Unmarshal(o.Const, &out[i].Value); err != nil {
			return nil, errors.New("has an option that is no text")
		}
		out[i].Title = o.Title
	}
	return out, nil
}

// Read makes the value of a field from what a person wrote or chose; nil: nothing.
// What cannot be read stays a text, which [Form.Check] refuses.
func (f Field) Read(texts []string) any {
	one := ""
	if len(texts) > 0 {
		one = texts[0]
	}
	switch f.Kind {
	case Boolean:
		switch strings.ToLower(strings.TrimSpace(one)) {
		case "true", "on", "yes", "y":
			return true
		case "", "false", "no", "n":
			return false
		}
		return one
	case Choices:
		out := []any{}
		for _, t := range texts {
			if t != "" {
				out = append(out, t)
			}
		}
		if len(out) == 0 && !f.Required {
			return nil
		}
		return out
	case Number, Integer:
		if strings.TrimSpace(one) == "" {
			return nil
		}
		if n, err := strconv.ParseFloat(strings.TrimSpace(one), 64); err == nil {
			return n
		}
		return one
	}
	if one == "" && (!f.Required || f.Short == nil || *f.Short > 0) {
		return nil
	}
	if f.Format == "date-time" { // browsers write neither seconds nor a zone
		for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
			if t, err := time.Parse(layout, one); err == nil {
				return t.Format(time.RFC3339)
			}
		}
	}
	return one
}

// Read makes an answer from what a person wrote or chose in each field.
func (f Form) Read(texts func(name string) []string) map[string]any {
	out := map[string]any{}
	for _, field := range f.Fields {
		if v := field.Read(texts(field.Name)); v != nil {
			out[field.Name] = v
		}
	}
	return out
}
