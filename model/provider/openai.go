// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// An OpenAIError is a refusal in the form that all APIs of OpenAI have. As an
// error it reads as its message.
type OpenAIError struct {
	Status  int     `json:"-"` // HTTP
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Error returns the message.
func (e *OpenAIError) Error() string { return e.Message }

// MarshalBody returns the body of the HTTP answer.
func (e *OpenAIError) MarshalBody() []byte {
	b, err := json.Marshal(map[string]*OpenAIError{"error": e})
	if err != nil { // of strings alone
		return []byte(`{"error":{"message":"` + http.StatusText(e.Status) + `"}}`)
	}
	return b
}

// BadRequest makes an "invalid_request_error" of status 400. An empty param or
// code is null.
func BadRequest(param, code, format string, args ...any) *OpenAIError {
	e := &OpenAIError{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: "invalid_request_error"}
	if param != "" {
		e.Param = &param
	}
	if code != "" {
		e.Code = &code
	}
	return e
}

// LooseSchema says what OpenAI's strict mode refuses of a JSON Schema, in its
// words: objects that allow other properties, or that do not require all that
// they have. "": nothing.
func LooseSchema(schema map[string]any) string { return loose(schema, "") }

func loose(schema map[string]any, at string) string {
	if properties, ok := schema["properties"].(map[string]any); ok || schema["type"] == "object" {
		if schema["additionalProperties"] != false {
			return fmt.Sprintf("In context=(%s), 'additionalProperties' is required to be supplied and to be false.", at)
		}
		required, _ := schema["required"].([]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if !slices.Contains(required, any(name)) {
				return fmt.Sprintf("In context=(%s), 'required' is required to be supplied and to be an array including every key in properties. Missing '%s'.", at, name)
			}
			if inner, ok := properties[name].(map[string]any); ok {
				if where := loose(inner, at+"'properties', '"+name+"'"); where != "" {
					return where
				}
			}
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return loose(items, at+"'items'")
	}
	return ""
}

// OpenAIUpload returns the fields of an upload to OpenAI's Files API: its purpose
// ("user_data", or "vision" for pictures), and when the file ends.
func OpenAIUpload(purpose string) [][2]string {
	return [][2]string{
		{"purpose", purpose},
		{"expires_after[anchor]", "created_at"},
		{"expires_after[seconds]", strconv.Itoa(int(UploadLifetime.Seconds()))},
	}
}
