// SPDX-License-Identifier: Apache-2.0

// Package rules holds what the rules of OpenAI's two dialects share. The rules of each
// dialect are in the subfolder with its name: Validate refuses a request as the real
// API does, with its own words. The servers of package fake enforce them, and the
// tests of the dialects check what the clients write.
package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/artelhq/artel/model/provider"
)

// The limits of OpenAI's APIs.
const (
	MaxTools      = 128
	MaxName       = 64
	MaxUserID     = 64 // of the client's user, and of keys of the prompt cache
	MaxImages     = 1500
	MaxImageBytes = 512 << 20
	MaxFileBytes  = 50 << 20
)

var nameForm = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// CheckName checks the name of a tool or schema.
func CheckName(at, name string) *provider.OpenAIError {
	switch {
	case name == "":
		return Missing(at)
	case len(name) > MaxName:
		return TooLong(at, MaxName, len(name))
	case !nameForm.MatchString(name):
		return provider.BadRequest(at, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at)
	}
	return nil
}

// CheckParameters checks that the parameters of a function are an object.
func CheckParameters(at, name string, schema json.RawMessage) *provider.OpenAIError {
	var fields struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(schema, &fields) != nil {
		return provider.BadRequest(at, "invalid_type", "Invalid type for '%s': expected an object.", at)
	}
	if fields.Type != "object" {
		return provider.BadRequest(at, "invalid_function_parameters", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%v\"'.", name, fields.Type)
	}
	return nil
}

// CheckRange checks an optional number from 0 to most.
func CheckRange(name string, n *float64, most float64) *provider.OpenAIError {
	if n == nil || *n >= 0 && *n <= most {
		return nil
	}
	return provider.BadRequest(name, "decimal_out_of_range", "Invalid '%s': expected a value from 0 to %v, but got %v instead.", name, most, *n)
}

// Missing is the error of a required parameter that is absent.
func Missing(at string) *provider.OpenAIError {
	return provider.BadRequest(at, "missing_required_parameter", "Missing required parameter: '%s'.", at)
}

// TooLong is the error of a string of n bytes where limit are allowed.
func TooLong(at string, limit, n int) *provider.OpenAIError {
	return provider.BadRequest(at, "string_above_max_length", "Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, limit, n)
}

// TooMany is the error of a list of n elements where limit are allowed.
func TooMany(at string, limit, n int) *provider.OpenAIError {
	return provider.BadRequest(at, "array_above_max_length", "Invalid '%s': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", at, limit, n)
}

// Unknown returns the first key of object, in alphabetical order, that is not
// among known; "": none.
func Unknown(object map[string]json.RawMessage, known []string) string {
	first := ""
	for k := range object {
		if !slices.Contains(known, k) && (first == "" || k < first) {
			first = k
		}
	}
	return first
}

// ImageTypes are the formats of images that the APIs take.
func ImageTypes() []string {
	return []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
}

// IsAddress reports whether an image is named by its http address.
func IsAddress(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

// LooseSchema returns why OpenAI's strict mode refuses a JSON Schema, in its own
// words: an object allows other properties, or does not require all of its own.
// "": it is accepted.
func LooseSchema(schema map[string]any) string { return loose(schema, "") }

func loose(schema map[string]any, at string) string {
	allowed := strings.Fields(`type properties required additionalProperties items anyOf $defs definitions $ref enum const title description pattern
		format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems`)
	for _, word := range slices.Sorted(maps.Keys(schema)) {
		if !slices.Contains(allowed, word) {
			return fmt.Sprintf("In context=(%s), '%s' is not permitted.", at, word)
		}
	}
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
	for _, word := range []string{"$defs", "definitions"} {
		definitions, _ := schema[word].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(definitions)) {
			if inner, ok := definitions[name].(map[string]any); ok {
				if where := loose(inner, at+"'"+word+"', '"+name+"'"); where != "" {
					return where
				}
			}
		}
	}
	anyOf, _ := schema["anyOf"].([]any)
	for i, one := range anyOf {
		if inner, ok := one.(map[string]any); ok {
			if where := loose(inner, fmt.Sprintf("%s'anyOf', '%d'", at, i)); where != "" {
				return where
			}
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return loose(items, at+"'items'")
	}
	return ""
}
