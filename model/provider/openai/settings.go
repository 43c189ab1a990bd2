// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// A ToolChoice is a word (auto, none, required), or an object with a type.
type ToolChoice struct {
	Word    string // "": an object
	Type    string // function, custom, allowed_tools
	Name    string // of function and custom
	Mode    string // of allowed_tools: auto, required
	Allowed []string
}

// The object that a tool choice is.
type choiceObject struct {
	Type     string       `json:"type"`
	Function *choiceNamed `json:"function,omitempty"`
	Custom   *choiceNamed `json:"custom,omitempty"`
	Allowed  *struct {
		Mode  string         `json:"mode"`
		Tools []choiceObject `json:"tools"`
	} `json:"allowed_tools,omitempty"`
}

type choiceNamed struct {
	Name string `json:"name"`
}

// MarshalJSON writes a word, or the choice of a function.
func (c ToolChoice) MarshalJSON() ([]byte, error) {
	if c.Word != "" {
		return json.Marshal(c.Word)
	}
	return json.Marshal(choiceObject{Type: "function", Function: &choiceNamed{c.Name}})
}

// UnmarshalJSON accepts a string or an object.
func (c *ToolChoice) UnmarshalJSON(data []byte) error {
	*c = ToolChoice{}
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &c.Word)
	}
	var o choiceObject
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	c.Type = o.Type
	for _, n := range []*choiceNamed{o.Function, o.Custom} {
		if n != nil {
			c.Name = n.Name
		}
	}
	if o.Allowed != nil {
		c.Mode = o.Allowed.Mode
		for _, t := range o.Allowed.Tools {
			if t.Function != nil {
				c.Allowed = append(c.Allowed, t.Function.Name)
			}
		}
	}
	return nil
}

// A ResponseFormat is the form that an answer must have.
type ResponseFormat struct {
	Type   string      `json:"type"` // text, json_object, json_schema
	Schema *JSONSchema `json:"json_schema,omitempty"`
}

// A JSONSchema is the schema of a ResponseFormat.
type JSONSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// Texts is a string, a list of strings, or nothing (null).
type Texts []string

// UnmarshalJSON accepts a string, a list of strings, or null.
func (t *Texts) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil {
		*t = nil
		if one != nil {
			*t = Texts{*one}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

const maxStops = 4

// settings writes what r asks of the answer.
func (e *encoder) settings(r *model.Request) {
	if len(r.Tools) > 0 {
		if c := wireChoice(r.Choice); c != nil {
			e.Field("tool_choice", c)
		}
		if r.Choice.OneByOne {
			e.Field("parallel_tool_calls", false)
		}
	}
	if f := wireFormat(r.Format); f != nil {
		e.Field("response_format", f)
	}
	if r.Sampling.Temperature != nil {
		e.Field("temperature", *r.Sampling.Temperature)
	}
	if r.Sampling.TopP != nil {
		e.Field("top_p", *r.Sampling.TopP)
	}
	if stop := r.Sampling.Stop; len(stop) > 0 {
		e.Field("stop", stop[:min(len(stop), maxStops)])
	}
}

// wireChoice returns nil where the model decides.
func wireChoice(c model.ToolChoice) *ToolChoice {
	switch c.Mode {
	case model.ChooseNone:
		return &ToolChoice{Word: "none"}
	case model.ChooseAny:
		return &ToolChoice{Word: "required"}
	case model.ChooseNamed:
		return &ToolChoice{Type: "function", Name: c.Name}
	}
	return nil
}

// wireFormat returns nil for any text.
func wireFormat(f model.Format) *ResponseFormat {
	switch {
	case len(f.Schema) > 0:
		return &ResponseFormat{Type: "json_schema", Schema: &JSONSchema{Name: provider.SchemaName(f.Name), Schema: f.Schema, Strict: &f.Strict}}
	case f.JSON:
		return &ResponseFormat{Type: "json_object"}
	}
	return nil
}

// choice returns what r says about tools, and the tools that are left of those
// that it has.
func (r *Request) choice(tools []model.ToolSpec) (model.ToolChoice, []model.ToolSpec) {
	var out model.ToolChoice
	out.OneByOne = r.ParallelToolCalls != nil && !*r.ParallelToolCalls
	c := r.ToolChoice
	if c == nil {
		return out, tools
	}
	switch {
	case c.Word == "none":
		out.Mode = model.ChooseNone
	case c.Word == "required":
		out.Mode = model.ChooseAny
	case c.Type == "function":
		out.Mode, out.Name = model.ChooseNamed, c.Name
	case c.Type == "allowed_tools":
		if c.Mode == "required" {
			out.Mode = model.ChooseAny
		}
		tools = slices.DeleteFunc(tools, func(t model.ToolSpec) bool { return !slices.Contains(c.Allowed, t.Name) })
	}
	return out, tools
}

func (r *Request) format() model.Format {
	f := r.ResponseFormat
	switch {
	case f == nil:
	case f.Type == "json_object":
		return model.Format{JSON: true}
	case f.Type == "json_schema" && f.Schema != nil:
		return model.Format{
			JSON: true, Schema: f.Schema.Schema, Name: f.Schema.Name, Strict: f.Schema.Strict != nil && *f.Schema.Strict,
		}
	}
	return model.Format{}
}

// settings holds what the request asks of the answer to the API's rules.
func (v *validator) settings() *APIError {
	r := v.request
	if c := r.ToolChoice; c != nil {
		if len(r.Tools) == 0 && c.Word != "none" {
			return Bad("tool_choice", "", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
		}
		switch {
		case c.Word != "" && !slices.Contains([]string{"none", "auto", "required"}, c.Word):
			return Bad("tool_choice", "invalid_value", "Invalid value: '%s'. Supported values are: 'none', 'auto', and 'required'.", c.Word)
		case c.Word == "" && c.Type == "function" && !slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Function.Name == c.Name }):
			return Bad("tool_choice", "", "Invalid value for 'tool_choice': the function '%s' is not among 'tools'.", c.Name)
		case c.Word == "" && !slices.Contains([]string{"function", "custom", "allowed_tools"}, c.Type):
			return Bad("tool_choice.type", "invalid_value", "Invalid value: '%s'. Supported values are: 'allowed_tools', 'function', and 'custom'.", c.Type)
		}
	}
	if r.ParallelToolCalls != nil && len(r.Tools) == 0 {
		return Bad("parallel_tool_calls", "", "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	if f := r.ResponseFormat; f != nil {
		if err := v.format(f); err != nil {
			return err
		}
	}
	if err := within("temperature", r.Temperature, 2); err != nil {
		return err
	}
	if err := within("top_p", r.TopP, 1); err != nil {
		return err
	}
	if len(r.Stop) > maxStops {
		return Bad("stop", "array_above_max_length", "Invalid 'stop': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", maxStops, len(r.Stop))
	}
	return nil
}

func within(name string, n *float64, most float64) *APIError {
	if n == nil || *n >= 0 && *n <= most {
		return nil
	}
	return Bad(name, "decimal_out_of_range", "Invalid '%s': expected a value from 0 to %v, but got %v instead.", name, most, *n)
}

func (v *validator) format(f *ResponseFormat) *APIError {
	switch f.Type {
	case "text":
		return nil
	case "json_object":
		if !v.speaksOfJSON() {
			return Bad("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
		}
		return nil
	case "json_schema":
	default:
		return Bad("response_format.type", "invalid_value", "Invalid value: '%s'. Supported values are: 'json_object', 'json_schema', and 'text'.", f.Type)
	}
	const at = "response_format.json_schema"
	if f.Schema == nil {
		return missing(at)
	}
	if err := checkToolName(at+".name", f.Schema.Name); err != nil {
		return err
	}
	var schema map[string]any
	if len(f.Schema.Schema) > 0 && json.Unmarshal(f.Schema.Schema, &schema) != nil {
		return Bad(at+".schema", "invalid_type", "Invalid type for '%s.schema': expected an object.", at)
	}
	if strict := f.Schema.Strict; strict != nil && *strict {
		if where := provider.LooseSchema(schema); where != "" {
			return Bad("response_format", "invalid_json_schema", "Invalid schema for response_format '%s': %s", f.Schema.Name, where)
		}
	}
	return nil
}

func (v *validator) speaksOfJSON() bool {
	return slices.ContainsFunc(v.request.Messages, func(m Message) bool {
		return strings.Contains(strings.ToLower(m.Content.String()), "json")
	})
}
