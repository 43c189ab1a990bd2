// SPDX-License-Identifier: Apache-2.0

// Package tool holds the functions that a model may call.
//
// A [Tool] is a name, prose for the model, a JSON Schema and a Go function;
// [Func] makes one from a function with typed arguments. A [Set] is the set of
// tools of a program: it tells models about them ([Set.Specs]) and calls them
// ([Set.Call]). [BuiltIn] lists the tools that work on artifacts, one file
// each, with its prose in the Markdown file beside it.
//
// The package promises that a failure which the model can mend is a [Result]
// that says how, never a Go error; that arguments have been checked against
// the schema before a tool sees them; and that no result carries bytes: media
// travel as refs in [Result.Parts]. Which tools an agent may call, in which
// order, and what is logged is for the rooms above.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/model/route"
)

// A Tool is one function that a model may call. It is a value and holds no
// state of a conversation.
type Tool struct {
	Name     string          // 1 to 64 letters, digits, "_" or "-": what every model API takes
	Doc      string          // tells the model what it does and when to use it
	Schema   json.RawMessage // JSON Schema (draft 2020-12) of the arguments, of type object
	Parallel bool            // calls of one turn may run at the same time

	Repeat Repeat // what becomes of a call that the end of the process cut off

	// Its arguments hold what an artifact's text is to be, and its result shows
	// what one is. Both are passed on as they are: a text that holds media as
	// text is still text, and is written, read and matched letter by letter.
	TakesContent, ShowsContent bool

	// Call runs the tool. The arguments fit Schema. A failure that the model
	// can mend is a Result with IsError; an error ends the run.
	Call func(ctx context.Context, e *Env, args json.RawMessage) (Result, error)

	err error // why Func could not make it; told by NewSet
}

// Repeat says what becomes of a call that was cut off by the end of its process,
// when another process goes on with the run.
type Repeat int

// The ways.
const (
	// RepeatNever tells the model that the outcome is unknown.
	RepeatNever Repeat = iota
	// RepeatAlways makes the call again: it changes nothing, or twice is the
	// same as once.
	RepeatAlways
	// RepeatUnlessEdited makes the call again, unless the journal has an edit
	// of it: that is all it does, and it is there whole or not at all.
	RepeatUnlessEdited
)

// Env is what a call may use. It belongs to one call, is not changed by it,
// and what it points to is safe for the calls of one turn.
type Env struct {
	Owner        artel.Owner
	Conversation artel.ConversationID
	Call         artel.CallID         // of a model; "": nobody's
	At           artel.MessageID      // the branch that is worked on
	Workspace    *artifact.Workspace  // the conversation's artifacts as this run has made them
	Artifacts    *artifact.Collection // for what the workspace does not show: other conversations and blobs; nil: out of reach
	Target       route.Target         // what the model that asks can take
	Renditions   *rendition.Maker     // puts recordings and pictures into words; nil: nobody does

	// Fetch takes in the bytes behind an http or https address. Its errors are
	// for the model. Nil: nothing is fetched.
	Fetch func(ctx context.Context, address string) (artifact.Staged, error)

	Locale phrase.Locale
	Shown  Shown // how much of a result is shown
}

// Result is what comes of a call.
type Result struct {
	Content  string         // what the model reads; never bytes
	Parts    artel.Parts    // media that travel with it, each behind the text that labels it
	IsError  bool           // the call failed; Content says why and what to do
	Metadata map[string]any // for events and people; the model does not see it
}

// Failed returns a Result that tells the model what went wrong.
func Failed(format string, args ...any) Result {
	return Result{Content: fmt.Sprintf(format, args...), IsError: true, Metadata: map[string]any{"content_type": "error"}}
}

// Func makes a Tool of a function whose arguments are a struct. The schema is
// inferred from its fields: names from the json tags, descriptions from the
// jsonschema tags, optional where json says omitempty; fields that the struct
// does not have are refused. A struct that has no schema is told by [NewSet].
func Func[In any](name, doc string, call func(context.Context, *Env, In) (Result, error)) Tool {
	t := Tool{Name: name, Doc: strings.TrimSpace(doc)}
	t.Schema, t.err = schemaFor[In]()
	t.Call = func(ctx context.Context, e *Env, args json.RawMessage) (Result, error) {
		var in In
		if err := json.Unmarshal(args, &in); err != nil {
			return Failed("%s: the arguments cannot be read: %v", name, err), nil
		}
		return call(ctx, e, in)
	}
	return t
}

func schemaFor[In any]() (json.RawMessage, error) {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, fmt.Errorf("infer the schema: %w", err)
	}
	dropNullTypes(s)
	return json.Marshal(s)
}

// plain writes "null or T" as T. Not every model API takes a list of types,
// and a null in the place of an optional argument is dropped before the check.
func dropNullTypes(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		dropNullTypes(p)
	}
	if s.Items != nil {
		dropNullTypes(s.Items)
	}
}

// arguments brings what a model wrote into the form of one JSON object: no
// arguments are an empty one, an object inside a string is taken out of it,
// and a null stands for an argument that is not there.
func arguments(raw json.RawMessage, required []string) (json.RawMessage, map[string]any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	if raw[0] == '"' {
		var inner string
		if err := json.Unmarshal(raw, &inner); err != nil {
			return nil, nil, fmt.Errorf("not valid JSON: %w", err)
		}
		raw = json.RawMessage(inner)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if m == nil {
		m, raw = map[string]any{}, json.RawMessage("{}")
	}
	for k, v := range m {
		if v == nil && !slices.Contains(required, k) {
			delete(m, k)
		}
	}
	return raw, m, nil
}
