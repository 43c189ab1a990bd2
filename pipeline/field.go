// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// A FieldType is the type of a Field, in configurations and in forms.
type FieldType string

// The field types, with their JSON types.
const (
	FieldText     FieldType = "text"     // a string, on one line
	FieldTextarea FieldType = "textarea" // a string
	FieldNumber   FieldType = "number"
	FieldBoolean  FieldType = "boolean"
	FieldSelect   FieldType = "select" // a string, one of Options
	FieldList     FieldType = "list"   // an array of strings
	FieldJSON     FieldType = "json"   // any value that Check accepts
)

// A Field describes one value of a processor's configuration. Forms are drawn
// from it, and configurations are checked against it.
type Field struct {
	Key         string    `json:"key"`
	Label       string    `json:"label"` // shown to users
	Type        FieldType `json:"type"`
	Placeholder string    `json:"placeholder,omitempty"` // shown to users: the meaning of an empty field
	Default     any       `json:"default,omitempty"`
	Options     []string  `json:"options,omitempty"` // of a select
	Range       *Range    `json:"range,omitempty"`   // of a number; nil: any

	// Check validates a value of the right type; nil: any value is valid. Its
	// error says what is wanted.
	Check func(value json.RawMessage) error `json:"-"`
}

// A Range bounds a number.
type Range struct {
	Min   float64  `json:"min"`
	Max   *float64 `json:"max,omitempty"`   // nil: no limit
	Whole bool     `json:"whole,omitempty"` // no fractions
}

// From is the range of the whole numbers from least on.
func From(least int) *Range { return &Range{Min: float64(least), Whole: true} }

// maxConfig is the longest configuration of one processor in bytes; it holds a
// large set of rules.
const maxConfig = 1 << 20

// checkConfig validates a configuration against fields. It accepts keys that
// only other processors of the group have. An unknown key and an invalid value
// are of kind Invalid, with the field in the subject.
func checkConfig(config json.RawMessage, fields, group []Field) error {
	const op = "pipeline.Check"
	if len(config) > maxConfig {
		return artel.Errorf(artel.TooLarge, op, "config", "%d bytes, and at most %d are taken", len(config), maxConfig)
	}
	values, err := keysOf(config)
	if err != nil {
		return artel.Errorf(artel.Invalid, op, "config", "%w", err)
	}
	for _, v := range values {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == v.key })
		if i < 0 {
			if slices.ContainsFunc(group, func(f Field) bool { return f.Key == v.key }) {
				continue
			}
			return artel.Errorf(artel.Invalid, op, "config."+artel.Shorten(v.key, 60), "unknown field; %s", keyList(fields))
		}
		if err := fields[i].Fits(v.value); err != nil {
			return artel.Errorf(artel.Invalid, op, "config."+v.key, "%w", err)
		}
	}
	return nil
}

func keyList(fields []Field) string {
	if len(fields) == 0 {
		return "the processor has no fields"
	}
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.Key
	}
	return "known fields: " + strings.Join(keys, ", ")
}

// A keyValue is a member of a JSON object. Slices keep the order of the object,
// so that the first mistake is the one reported.
type keyValue struct {
	key   string
	value json.RawMessage
}

func keysOf(config json.RawMessage) ([]keyValue, error) {
	if len(bytes.TrimSpace(config)) == 0 {
		return nil, nil
	}
	errObject := errors.New("want a JSON object")
	dec := json.NewDecoder(bytes.NewReader(config))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errObject
	}
	var out []keyValue
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return nil, errObject
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(k keyValue) bool { return k.key == key }) {
			return nil, fmt.Errorf("the key %q occurs twice", artel.Shorten(key, 60))
		}
		out = append(out, keyValue{key, value})
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return out, nil
}

func isNull(v json.RawMessage) bool { return string(bytes.TrimSpace(v)) == "null" }

// Fits validates a value; null stands for the default.
func (f Field) Fits(v json.RawMessage) error {
	if isNull(v) {
		return nil
	}
	if err := f.checkType(v); err != nil {
		return err
	}
	if f.Check != nil {
		return f.Check(v)
	}
	return nil
}

func (f Field) checkType(v json.RawMessage) error {
	switch f.Type {
	case FieldText, FieldTextarea, FieldSelect:
		var s string
		if json.Unmarshal(v, &s) != nil {
			return errors.New("want a string")
		}
		if f.Type == FieldSelect && !slices.Contains(f.Options, s) {
			return fmt.Errorf("%q is not an option: want one of %s", artel.Shorten(s, 60), strings.Join(f.Options, ", "))
		}
	case FieldBoolean:
		var b bool
		if json.Unmarshal(v, &b) != nil {
			return errors.New("want true or false")
		}
	case FieldList:
		var l []*string
		if json.Unmarshal(v, &l) != nil || slices.Contains(l, nil) {
			return errors.New("want a list of strings")
		}
	case FieldNumber:
		var n float64
		if json.Unmarshal(v, &n) != nil {
			return errors.New("want a number")
		}
		return f.Range.check(n)
	}
	return nil
}

func (r *Range) check(n float64) error {
	switch {
	case r == nil:
	case r.Whole && (n != math.Trunc(n) || math.Abs(n) > 1<<53):
		return fmt.Errorf("%v is not a whole number", n)
	case n < r.Min && r.Max == nil:
		return fmt.Errorf("%v is too little: want %v or more", n, r.Min)
	case n < r.Min, r.Max != nil && n > *r.Max:
		return fmt.Errorf("%v is out of range: want %v to %v", n, r.Min, *r.Max)
	}
	return nil
}

// checkFields refuses fields from which no form can be drawn.
func checkFields(fields []Field) error {
	types := []FieldType{FieldText, FieldTextarea, FieldNumber, FieldBoolean, FieldSelect, FieldList, FieldJSON}
	for i, f := range fields {
		switch {
		case f.Key == "" || f.Label == "":
			return fmt.Errorf("field %d has no key or no label", i)
		case slices.ContainsFunc(fields[:i], func(o Field) bool { return o.Key == f.Key }):
			return fmt.Errorf("two fields have the key %q", f.Key)
		case !slices.Contains(types, f.Type):
			return fmt.Errorf("the field %q is of type %q: want one of %q", f.Key, f.Type, types)
		case f.Type == FieldSelect && len(f.Options) == 0:
			return fmt.Errorf("the field %q has no options to select from", f.Key)
		}
		if f.Default == nil {
			continue
		}
		v, err := json.Marshal(f.Default)
		if err == nil {
			err = f.Fits(v)
		}
		if err != nil {
			return fmt.Errorf("the default of the field %q does not fit it: %w", f.Key, err)
		}
	}
	return nil
}
