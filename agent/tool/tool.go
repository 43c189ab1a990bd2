// SPDX-License-Identifier: Apache-2.0

// Package tool holds the functions that a model may call.
//
// A [Tool] is a name, a description for the model, a JSON Schema and a Go
// function; [Func] makes one from a function with typed arguments. A [Set] is
// the set of tools of a program: it describes them to models ([Set.Specs]) and
// calls them ([Set.Call]). [BuiltIn] lists the tools for artifacts, each in a
// file of its own, with its description in the Markdown file beside it.
//
// Invariants: a failure that the model can correct is a [Result] that says how,
// never a Go error; arguments are checked against the schema before a tool sees
// them; no result carries bytes: media are refs in [Result.Parts]. The packages
// above decide which tools an agent may call, in which order, and what is
// logged.
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

// A Tool is a function that a model may call. It is a value and holds no state
// of a conversation.
type Tool struct {
	Name     string          // 1 to 64 letters, digits, "_" or "-", as every model API accepts
	Doc      string          // description for the model: what it does and when to use it
	Help     string          // more about it, for the model after the first failed call in a run; "": none
	Schema   json.RawMessage // JSON Schema (draft 2020-12) of the arguments, of type object
	Parallel bool            // calls of one turn may run at the same time

	// Deferrable: a request may leave the specification out if there are many
	// tools. So are those of servers.
	Deferrable bool

	Repeat Repeat // what to do with a call that was interrupted by the end of the process

	// TakesContent: the arguments hold the text of an artifact. ShowsContent:
	// the result does. Media encoded in such a text are not extracted, so that
	// it is written, read and matched exactly.
	TakesContent, ShowsContent bool

	// Effect returns what a call would do outside the artifacts that agents made
	// in the conversation. Nil: nothing.
	Effect func(ctx context.Context, e *Env, args json.RawMessage) (Effect, error)

	// Call runs the tool. The arguments match Schema. A failure that the model
	// can correct is a Result with IsError; an error ends the run.
	Call func(ctx context.Context, e *Env, args json.RawMessage) (Result, error)

	// StandsFor is the beginning of the names of tools that this one stands for until
	// they are available; "": none. Who may call one of them may call it.
	StandsFor string

	err error // why Func failed; returned by NewSet
}

// Repeat says what to do with a call that was interrupted by the end of its
// process, when another process continues the run.
type Repeat int

// The ways.
const (
	// RepeatNever tells the model that the outcome is unknown.
	RepeatNever Repeat = iota
	// RepeatAlways repeats the call, which is idempotent.
	RepeatAlways
	// RepeatUnlessEdited repeats the call unless the journal has an edit of
	// it. The edit is the only effect of the call, and is atomic.
	RepeatUnlessEdited
)

// Env is the environment of a call. It belongs to one call, which does not
// change it; the values that it points to are safe for concurrent calls.
type Env struct {
	Owner        artel.Owner
	Conversation artel.ConversationID
	Call         artel.CallID         // id of the model's call; "": not called by a model
	At           artel.MessageID      // the current branch
	Workspace    *artifact.Workspace  // the conversation's artifacts with the run's changes
	Artifacts    *artifact.Collection // other conversations and blobs; nil: not accessible
	Target       route.Target         // what the calling model can take
	Renditions   *rendition.Maker     // transcribes recordings and captions pictures; nil: unavailable
	Skills       Skills               // of the agent; nil: none

	// History returns the messages that [SearchHistory] searches, oldest first: in a run,
	// those that the newest summary stands for; otherwise the branch. Nil: there are none.
	History func(ctx context.Context) ([]artel.Message, error)

	// Fetch downloads the content at an http or https address. Its errors are
	// for the model. Nil: downloads are not allowed.
	Fetch func(ctx context.Context, address string) (artifact.Staged, error)

	Host   Host // asks people and keeps states; nil: no one can be asked, nothing is kept
	Locale phrase.Locale
	Shown  Shown // how much of a result is shown
}

// Result is the outcome of a call.
type Result struct {
	Content  string         // text for the model; never bytes
	Parts    artel.Parts    // media, each after the text that labels it
	IsError  bool           // the call failed; Content says why and what to do
	Help     string         // of a failed call: the help of the tool; "": none
	Metadata map[string]any // for events and users; not sent to the model
}

// Failed returns a Result with IsError and a message for the model.
func Failed(format string, args ...any) Result {
	return Result{Content: fmt.Sprintf(format, args...), IsError: true, Metadata: map[string]any{"content_type": "error"}}
}

// Func makes a Tool from a function whose arguments are a struct. The schema is
// inferred from its fields: names from the json tags, descriptions from the
// jsonschema tags, optional if tagged omitempty. Unknown fields are refused.
// What follows a line "---" in doc is the Help. [NewSet] reports a struct without
// a schema.
func Func[In any](name, doc string, call func(context.Context, *Env, In) (Result, error)) Tool {
	t := Tool{Name: name}
	t.Doc, t.Help = SplitDoc(doc)
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

// SplitDoc splits a description at the line "---" into what a model always gets
// and the help after a mistake.
func SplitDoc(doc string) (short, help string) {
	short, help, _ = strings.Cut(doc, "\n---\n")
	return strings.TrimSpace(short), strings.TrimSpace(help)
}

func schemaFor[In any]() (json.RawMessage, error) {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, fmt.Errorf("infer the schema: %w", err)
	}
	dropNullTypes(s)
	return json.Marshal(s)
}

// dropNullTypes changes "null or T" to T, because some model APIs refuse lists
// of types. A null for an optional argument is dropped before validation.
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

// arguments normalises the arguments written by a model to one JSON object:
// missing arguments are an empty object, an object inside a string is
// unwrapped, and a null for an optional argument is removed.
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
