// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReference(t *testing.T) {
	const document = `{
	"paths": {"/api/v1/things/{id}": {"post": {
		"operationId": "make-thing", "summary": "Make a thing", "x-codeSamples": [{"lang": "Shell", "source": "curl x"}],
		"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string", "maxLength": 9}}],
		"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}, "example": {"a": 1}}}},
		"responses": {"201": {"description": "Created", "content": {"application/json": {"schema": {"type": ["array", "null"], "items": {"$ref": "#/components/schemas/Thing"}}}}}}
	}}},
	"components": {"schemas": {"Thing": {"type": "object", "required": ["name"], "properties": {
		"at": {"type": "string", "format": "date-time"}, "name": {"type": "string", "description": "its name"},
		"parts": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}},
		"tags": {"type": "object", "additionalProperties": {"type": "string"}}
	}}}}}`
	got, err := parseReference([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) ReferenceType { return ReferenceType{Text: s} }
	want := Reference{
		Groups: []ReferenceGroup{{"things", []ReferenceOperation{{
			ID: "make-thing", Method: "POST", Path: "/api/v1/things/{id}", Summary: "Make a thing", Sample: "curl x",
			Parameters: []ReferenceField{{"id", "path", text("string"), true, "", "maxLength: 9"}},
			Bodies:     []ReferenceBody{{MediaType: "application/json", Type: ReferenceType{Schema: "Thing"}, Example: "{\n  \"a\": 1\n}"}},
			Answers:    []ReferenceBody{{Status: "201", Description: "Created", MediaType: "application/json", Type: ReferenceType{"array of | null", "Thing"}}},
		}}}},
		Schemas: []ReferenceSchema{{"Thing", text("object"), []ReferenceField{
			{"name", "", text("string"), true, "its name", ""},
			{"at", "", text("string (date-time)"), false, "", ""},
			{"parts", "", text("array of object"), false, "", ""},
			{"parts.[].n", "", text("integer"), false, "", "minimum: 1"},
			{"tags", "", text("map of string"), false, "", ""},
		}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := parseReference([]byte("{")); err == nil {
		t.Error("a broken document was read")
	}
}
