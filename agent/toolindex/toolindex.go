// SPDX-License-Identifier: Apache-2.0

// Package toolindex finds tools by words, and lists many tools in few tokens. It is for
// requests whose tools are deferred: a model gets [Index.List] in place of their schemas,
// looks for tools with [Index.Find], reads [Found], and calls them with arguments that
// [Tool.Check] has checked.
//
// The package is pure: equal tools give equal texts and equal order, so that a cached prefix
// of a request stays valid. Tokens are counted by the function that the caller passes.
package toolindex

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Budget is the number of tokens of schemas from which tools are deferred, and the most that
// the list in their place has.
const Budget = 2000

// A Tool is what a model may know about a tool.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments; empty: any object
}

// Tokens returns the number of tokens of tools in a request: names, descriptions and schemas.
func Tokens(tools []Tool, count func(string) int) int {
	n := 0
	for _, t := range tools {
		n += count(t.Name) + count(t.Description) + count(string(t.Schema))
	}
	return n
}

// Check returns why arguments do not match the schema of the tool, in words for a model, with
// the schema; "" if they do. A schema that cannot be used matches all objects.
func (t Tool) Check(arguments json.RawMessage) string {
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	var instance map[string]any
	if err := json.Unmarshal(arguments, &instance); err != nil || instance == nil {
		return t.mistake("the arguments are not a JSON object")
	}
	if len(t.Schema) == 0 {
		return ""
	}
	var s jsonschema.Schema
	if json.Unmarshal(t.Schema, &s) != nil {
		return ""
	}
	// References to other documents are not loaded.
	r, err := s.Resolve(nil)
	if err != nil {
		return ""
	}
	if err := r.Validate(instance); err != nil {
		return t.mistake(err.Error())
	}
	return ""
}

// maxShownSchema is the most bytes of a schema in an explanation.
const maxShownSchema = 3000

func (t Tool) mistake(what string) string {
	text := fmt.Sprintf("%s was not called: %s.", t.Name, strings.TrimSuffix(cut(what, 500), "."))
	if len(t.Schema) > 0 {
		text += "\nSchema of its arguments: " + cut(string(t.Schema), maxShownSchema)
	}
	return text
}

// Found describes tools to the model that looked for them, in at most limit bytes: the best
// with their schemas, the others as far as there is room, and then their names.
func Found(tools []Tool, limit int) string {
	var b strings.Builder
	for i, t := range tools {
		text := fmt.Sprintf("%s: %s\narguments: %s\n", t.Name, cut(strings.TrimSpace(t.Description), maxShownSchema/2), schemaText(t.Schema))
		rest := names(tools[i:])
		if b.Len()+len(text)+len(names(tools[i+1:])) > limit {
			if i == 0 { // at least the first says what it takes
				text = cut(text, max(limit-len(names(tools[1:]))-len("…\n"), 0)) + "\n"
				b.WriteString(text)
				rest = names(tools[1:])
			}
			b.WriteString(rest)
			return cut(b.String(), limit)
		}
		b.WriteString(text)
	}
	return b.String()
}

func schemaText(s json.RawMessage) string {
	if len(s) == 0 {
		return "{}"
	}
	return string(s)
}

func names(tools []Tool) string {
	if len(tools) == 0 {
		return ""
	}
	return "further: " + strings.Join(namesOf(tools), ", ") + "\n"
}

func namesOf(tools []Tool) []string {
	all := make([]string, len(tools))
	for i, t := range tools {
		all[i] = t.Name
	}
	return all
}

// cut returns at most n bytes of s and a mark, at the end of a character.
func cut(s string, n int) string {
	switch {
	case len(s) <= n:
		return strings.ToValidUTF8(s, "?")
	case n < len("…"):
		return ""
	}
	return strings.ToValidUTF8(s[:max(n-len("…"), 0)], "") + "…"
}
