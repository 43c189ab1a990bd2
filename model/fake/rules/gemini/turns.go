// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	wire "github.com/artelhq/artel/model/provider/gemini"
)

// The API's messages for turns in the wrong order.
const (
	callsOutOfPlace     = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
	responsesOutOfPlace = "Please ensure that function response turn comes immediately after a function call turn."
	responsesMissing    = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
)

func callsIn(c wire.Content) (calls []wire.FunctionCall) {
	for _, p := range c.Parts {
		if p.FunctionCall != nil {
			calls = append(calls, *p.FunctionCall)
		}
	}
	return calls
}

func responsesIn(c wire.Content) (responses []wire.FunctionResponse) {
	for _, p := range c.Parts {
		if p.FunctionResponse != nil {
			responses = append(responses, *p.FunctionResponse)
		}
	}
	return responses
}

// turns checks that calls and responses follow each other.
func (v *validator) turns() *wire.APIError {
	contents := v.request.Contents
	for i, c := range contents {
		calls, responses := callsIn(c), responsesIn(c)
		var before, after wire.Content
		if i > 0 {
			before = contents[i-1]
		}
		if i+1 < len(contents) {
			after = contents[i+1]
		}
		switch {
		case len(calls) > 0 && (i == 0 || before.Role == "model"):
			return wire.Bad(callsOutOfPlace)
		case len(calls) > 0 && len(responsesIn(after)) != len(calls):
			return wire.Bad(responsesMissing)
		case len(responses) > 0 && len(callsIn(before)) == 0:
			return wire.Bad(responsesOutOfPlace)
		case len(responses) > 1 && len(c.Parts) != len(responses):
			return wire.Bad(responsesMissing) // the API counts other parts beside parallel responses as one
		}
		for _, r := range responses {
			if r.ID != "" && !slices.ContainsFunc(callsIn(before), func(c wire.FunctionCall) bool { return c.ID == r.ID || c.ID == "" }) {
				return wire.Bad("Function response with id %q has no function call with that id.", r.ID)
			}
		}
	}
	return nil
}

// signatures checks that the first call of each step of the current turn, which
// begins with the last user message, has its signature, and that each signature
// belongs to its call.
func (v *validator) signatures() *wire.APIError {
	contents := v.request.Contents
	begin := len(contents) - 1
	for begin > 0 && (contents[begin].Role == "model" || len(responsesIn(contents[begin])) > 0) {
		begin--
	}
	for i, c := range contents {
		first := true
		for _, p := range c.Parts {
			if p.FunctionCall == nil {
				continue
			}
			switch {
			case p.ThoughtSignature == "" && first && i > begin && wire.Signs(v.request.Model):
				return wire.Bad("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", p.FunctionCall.Name, i+1)
			case p.ThoughtSignature != "" && !skips(p.ThoughtSignature) && v.options.Signed != nil && !v.options.Signed(*p.FunctionCall, p.ThoughtSignature):
				return wire.Bad("Corrupted thought signature.")
			}
			first = false
		}
	}
	return nil
}

// skips reports whether a signature is a documented placeholder for foreign calls.
func skips(signature string) bool {
	return signature == wire.SkipSignature || signature == "context_engineering_is_the_way_to_go"
}

// wireType returns the type of a schema.
func wireType(raw json.RawMessage) string {
	var s struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &s) // the caller refuses what is left empty
	return s.Type
}

// checkSchema checks a schema against the API's rules, except the names of its
// fields.
func checkSchema(at string, raw json.RawMessage, root bool) *wire.APIError {
	var s struct {
		Type       string                     `json:"type"`
		Format     string                     `json:"format"`
		Enum       []string                   `json:"enum"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Items      json.RawMessage            `json:"items"`
		AnyOf      []json.RawMessage          `json:"anyOf"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return nil // its types were checked before
	}
	kind := strings.ToUpper(s.Type)
	if kind == "" && len(s.AnyOf) > 0 {
		kind = "ANY"
	}
	if !slices.Contains([]string{"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL", "ANY"}, kind) {
		return badEnum(at+".type", "Type", s.Type)
	}
	formats := map[string][]string{
		"STRING": {"", "enum", "date-time"}, "NUMBER": {"", "float", "double"}, "INTEGER": {"", "int32", "int64"},
	}
	switch allowed := formats[kind]; {
	case allowed != nil && !slices.Contains(allowed, s.Format):
		return fieldError(at+".format", "only %s are supported for %s type", "'"+strings.Join(allowed[1:], "' and '")+"'", kind)
	case len(s.Enum) > 0 && kind != "STRING":
		return fieldError(at+".enum", "only allowed for STRING type")
	case kind == "ARRAY" && len(s.Items) == 0:
		return fieldError(at+".items", "missing field.")
	case kind == "OBJECT" && len(s.Properties) == 0 && root:
		return fieldError(at+".properties", "should be non-empty for OBJECT type")
	case len(s.Properties) > 0 && kind != "OBJECT":
		return fieldError(at+".properties", "only allowed for OBJECT type")
	case len(s.AnyOf) > 0 && kind != "ANY":
		return fieldError(at, "schema specified other fields alongside any_of. When using any_of, it must be the only field set.")
	}
	for i, e := range s.Enum {
		if e == "" {
			return fieldError(fmt.Sprintf("%s.enum[%d]", at, i), "cannot be empty")
		}
	}
	for i, name := range s.Required {
		if _, ok := s.Properties[name]; !ok {
			return fieldError(fmt.Sprintf("%s.required[%d]", at, i), "property is not defined")
		}
	}
	for i, p := range wire.Members(propertiesOf(raw)) {
		if err := checkSchema(fmt.Sprintf("%s.properties[%d].value", at, i), p.Value, false); err != nil {
			return err
		}
	}
	for i, o := range s.AnyOf {
		if err := checkSchema(fmt.Sprintf("%s.any_of[%d]", at, i), o, false); err != nil {
			return err
		}
	}
	if len(s.Items) > 0 {
		return checkSchema(at+".items", s.Items, false)
	}
	return nil
}

func propertiesOf(raw json.RawMessage) json.RawMessage {
	var s struct {
		Properties json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(raw, &s) // it was read before
	return s.Properties
}
