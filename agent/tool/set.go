// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
)

// A Set is an ordered set of tools. It is immutable and safe for concurrent
// use.
type Set struct {
	names []string
	tools map[string]checkedTool
}

type checkedTool struct {
	Tool
	schema *jsonschema.Resolved
}

// maxNames bounds the names of tools in a message, in bytes.
const maxNames = 4000

// MaxName is the longest name of a tool, in bytes.
const MaxName = 64

// NewSet makes a set of tools. It refuses (kind Invalid) a name that is taken
// or that some model API refuses, and a schema that is not one of an object.
func NewSet(tools ...Tool) (*Set, error) {
	b := &Set{tools: make(map[string]checkedTool, len(tools))}
	for _, t := range tools {
		s, err := check(t)
		if err == nil {
			if _, taken := b.tools[t.Name]; taken {
				err = fmt.Errorf("two tools have this name")
			}
		}
		if err != nil {
			return nil, artel.Errorf(artel.Invalid, "tool.NewBox", artel.Shorten(t.Name, 80), "%w", err)
		}
		b.names = append(b.names, t.Name)
		b.tools[t.Name] = checkedTool{Tool: t, schema: s}
	}
	return b, nil
}

func check(t Tool) (*jsonschema.Resolved, error) {
	if t.err != nil {
		return nil, t.err
	}
	if t.Name == "" || len(t.Name) > MaxName || strings.Trim(t.Name, nameBytes) != "" {
		return nil, fmt.Errorf("not a name for a tool: want 1 to %d letters, digits, _ or -", MaxName)
	}
	if t.Call == nil {
		return nil, fmt.Errorf("the tool has no function")
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(t.Schema, &s); err != nil {
		return nil, fmt.Errorf("the schema is not a JSON Schema: %w", err)
	}
	if s.Type != "object" {
		return nil, fmt.Errorf(`the schema has the type %q, want "object"`, s.Type)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	return r, nil
}

const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// Only returns a set with just the named tools; unknown names are ignored. "x*"
// names all tools whose names begin with x.
func (b *Set) Only(names ...string) *Set {
	out := &Set{tools: make(map[string]checkedTool, len(names))}
	take := func(n string) {
		if t, ok := b.tools[n]; ok && !out.Has(n) {
			out.names = append(out.names, n)
			out.tools[n] = t
		}
	}
	for _, n := range names {
		start, many := strings.CutSuffix(n, "*")
		if !many {
			take(n)
			for _, name := range b.names {
				if p := b.tools[name].StandsFor; p != "" && !b.Has(n) && strings.HasPrefix(n, p) {
					take(name)
				}
			}
			continue
		}
		for _, name := range b.names {
			if strings.HasPrefix(name, start) {
				take(name)
			}
		}
	}
	return out
}

// With returns a set with more tools after those of b. Tools that [NewSet]
// would refuse are left out.
func (b *Set) With(more ...Tool) *Set {
	out := &Set{names: slices.Clone(b.names), tools: maps.Clone(b.tools)}
	for _, t := range more {
		if s, err := check(t); err == nil && !out.Has(t.Name) {
			out.names = append(out.names, t.Name)
			out.tools[t.Name] = checkedTool{Tool: t, schema: s}
		}
	}
	return out
}

// Follow returns the tools of next in the order of known, and new ones after them. Tools
// that next does not have stay, because a request whose beginning changes is not found in
// the cache of a model service; their calls say that they are gone.
func Follow(known, next *Set) *Set {
	out := &Set{tools: maps.Clone(known.tools), names: slices.Clone(known.names)}
	for _, n := range next.names {
		if !out.Has(n) {
			out.names = append(out.names, n)
		}
		out.tools[n] = next.tools[n]
	}
	return out
}

// Names returns the names of all tools.
func (b *Set) Names() []string { return append([]string(nil), b.names...) }

// Has reports whether the set contains the named tool.
func (b *Set) Has(name string) bool {
	_, ok := b.tools[name]
	return ok
}

// Of returns the named tool; without one, the zero Tool.
func (b *Set) Of(name string) Tool { return b.tools[name].Tool }

// Specs returns the descriptions for a model of the named tools, in that order,
// or of all tools if no name is given. Unknown names are left out; see
// [Set.Has].
func (b *Set) Specs(names ...string) []model.ToolSpec {
	if len(names) == 0 {
		names = b.names
	}
	specs := make([]model.ToolSpec, 0, len(names))
	for _, n := range names {
		if t, ok := b.tools[n]; ok {
			specs = append(specs, model.ToolSpec{Name: t.Name, Description: t.Doc, Schema: t.Schema})
		}
	}
	return specs
}

// Call runs the named tool. An unknown name, and arguments that do not match
// the schema, become a Result with IsError that says what is wanted. An error
// is of kind Canceled if ctx ended, of kind Internal if the tool panicked,
// otherwise the tool's own.
func (b *Set) Call(ctx context.Context, e *Env, name string, args json.RawMessage) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, artel.Errorf(artel.Canceled, "tool.Call", name, "%w", err)
	}
	t, ok := b.tools[name]
	if !ok {
		return Failed("%s", e.Locale.Say(phrase.ToolUnknown, map[string]any{
			"Name": artel.Shorten(name, MaxName), "Names": artel.Shorten(strings.Join(b.names, ", "), maxNames),
		})), nil
	}
	raw, instance, err := arguments(args, t.schema.Schema().Required)
	if err == nil {
		err = t.schema.Validate(instance)
	}
	if err != nil {
		problem := e.Locale.Say(phrase.ToolBadArguments, map[string]any{"Name": name, "Problem": artel.Shorten(err.Error(), 1000)})
		r := Failed("%s\nJSON Schema: %s", problem, t.Schema)
		r.Help = t.Help
		return r, nil
	}
	r, err := t.call(ctx, e, raw)
	if err == nil {
		r, err = e.finishResult(ctx, t.Tool, r)
	}
	if artel.CodeOf(err) == artifact.CodeStorage { // the model may continue without it
		r, err = Failed("the result of %s could not be stored: %v", name, err), nil
	}
	if r.IsError {
		r.Help = t.Help
	}
	return r, err
}

// Arguments extracts media from the arguments of a call before the call is
// stored or shown. told are the arguments to store, to show and to send to
// models; given are those to pass to the tool. They differ only if the tool
// takes contents: given is then unchanged, and told describes the media.
func (b *Set) Arguments(ctx context.Context, e *Env, name string, args json.RawMessage) (told, given json.RawMessage, err error) {
	keep := NewKeeper(e).Keep
	takes := b.tools[name].Tool.TakesContent
	if takes {
		keep = scrub.Describe
	}
	text, err := scrub.Text(ctx, string(args), keep)
	if err != nil {
		return nil, nil, artel.Errorf(artel.KindOf(err), "tool.Arguments", artel.Shorten(name, MaxName), "%w", err)
	}
	told = json.RawMessage(text)
	if takes {
		return told, args, nil
	}
	return told, told, nil
}

func (t checkedTool) call(ctx context.Context, e *Env, args json.RawMessage) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r = Result{}
			err = artel.Errorf(artel.Internal, "tool.Call", t.Name, "the tool panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return t.Tool.Call(ctx, e, args)
}
