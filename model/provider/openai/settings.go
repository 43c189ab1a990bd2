// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"encoding/json"
	"slices"

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

// MaxStops is how many stop sequences the API takes.
const MaxStops = 4

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
		e.Field("stop", stop[:min(len(stop), MaxStops)])
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
