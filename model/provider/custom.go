// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"strings"

	"github.com/artelhq/artel/model"
)

// A CustomTool is a tool of a client that takes free text instead of JSON, with the
// grammar of the text if it has one. Other dialects know it as a function whose only
// argument is the text.
type CustomTool struct {
	Name        string
	Description string
	Syntax      string // of the grammar: lark or regex; empty: any text
	Definition  string // the grammar
}

const customSchema = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`

// Spec returns the function; its description has the grammar.
func (t CustomTool) Spec() model.ToolSpec {
	d := t.Description
	if t.Definition != "" {
		if d != "" {
			d += "\n\n"
		}
		d += "The input is text that matches this grammar (" + t.Syntax + "):\n\n" + strings.TrimSpace(t.Definition)
	}
	return model.ToolSpec{Name: t.Name, Description: d, Schema: json.RawMessage(customSchema)}
}

// CustomArguments returns the text of a call of a [CustomTool] as the arguments of
// the function.
func CustomArguments(text string) json.RawMessage {
	return MustMarshal(map[string]string{"input": text})
}

// CustomInput is the reverse of [CustomArguments]; other arguments are returned
// whole.
func CustomInput(arguments json.RawMessage) string {
	var o struct {
		Input *string `json:"input"`
	}
	if json.Unmarshal(arguments, &o) == nil && o.Input != nil {
		return *o.Input
	}
	return string(arguments)
}

// An InputReader reads the text of a [CustomTool] from the pieces of the arguments
// that a model writes.
type InputReader struct {
	begun, ended bool
	pending      string // JSON that is not read yet
}

// Read returns the text that a piece completes. An escape that the piece cuts is
// read with the next piece; another object has no text here.
func (r *InputReader) Read(piece string) string {
	if r.ended {
		return ""
	}
	r.pending += piece
	if !r.begun {
		rest, ok := beginOfInput(r.pending)
		if !ok {
			return ""
		}
		r.begun, r.pending = true, rest
	}
	end := 0
	for end < len(r.pending) && !r.ended {
		n := unitLength(r.pending[end:])
		if n == 0 {
			break
		}
		if r.ended = r.pending[end] == '"'; !r.ended {
			end += n
		}
	}
	var text string
	if json.Unmarshal([]byte(`"`+r.pending[:end]+`"`), &text) != nil {
		return ""
	}
	r.pending = r.pending[end:]
	return text
}

// beginOfInput returns what follows the opening quote of the text; false if that has
// not arrived.
func beginOfInput(s string) (string, bool) {
	for _, token := range []string{"{", `"input"`, ":", `"`} {
		rest, ok := strings.CutPrefix(strings.TrimLeft(s, " \t\r\n"), token)
		if !ok {
			return "", false
		}
		s = rest
	}
	return s, true
}

// unitLength returns the length of the character or escape that begins the inside of
// a JSON string; 0: it is cut. Two escapes of surrogates are one unit.
func unitLength(s string) int {
	switch {
	case s[0] != '\\':
		return 1
	case len(s) < 2:
		return 0
	case s[1] != 'u':
		return 2
	case len(s) < 6:
		return 0
	case !strings.ContainsAny(s[2:3], "dD") || !strings.ContainsAny(s[3:4], "89abAB"):
		return 6
	case len(s) >= 8 && s[6:8] != `\u`, len(s) == 7 && s[6] != '\\':
		return 6
	case len(s) < 12:
		return 0
	}
	return 12
}
