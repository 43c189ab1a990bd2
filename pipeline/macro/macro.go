// SPDX-License-Identifier: Apache-2.0

// Package macro expands macros in prompts.
//
// A macro is {{name}} or {{name::argument::argument}}; arguments may contain
// macros. Begin with [New] and [Expander.Expand].
//
// A text is read once, from left to right: changes of variables are visible to
// later macros, and values are never scanned again, so that text written by
// users and models cannot run as a macro. Names are case-insensitive; white
// space around the name and around arguments is ignored. \{{ writes {{. Braces
// that begin no macro, as in {{{ or in {{ without an end, are text, and }}
// closes the macro opened last.
//
// A macro that cannot be expanded (an unknown name, a wrong number of
// arguments, invalid arguments) stays in the text unchanged, including the
// macros in it, and the result names it. {{trim}} removes all white space on
// both sides of itself, including that of adjacent values.
//
// {{// text}} is a comment: nothing stands in its place, and macros in it are not
// expanded.
//
// The package is pure: time, randomness, names and variables are inputs. Time
// and output are linear in the text and in the values, and both are bounded.
package macro

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/artelhq/artel"
)

// The limits of one text.
const (
	MaxDepth  = 32        // macros inside of arguments of macros
	MaxMacros = 100_000   // beginnings of macros in one text
	MaxOutput = 4 << 20   // bytes that macros write, those into arguments included
	maxName   = 64        // bytes; longer names are text
	maxVars   = 1_000     // variables of one scope
	maxVar    = 256 << 10 // bytes of a variable
)

// A Context is the input of an expansion.
type Context struct {
	// Values are the values of the macros listed by [Values], by name. An
	// absent value is empty.
	Values map[string]string
	Tools  []Tool // tools that the agent may call

	Now          time.Time // in the zone to show times in; see [Clock]
	Conversation string    // pick is stable within it
	Seed         string    // of random choices
	Variables    *Variables
}

// A Tool is described by the macros tools and tool_usage.
type Tool struct {
	Name        string
	Description string
	Schema      string // a JSON Schema of its arguments
}

// Variables hold the state of setvar and related macros. The zero value is
// empty.
type Variables struct {
	Local  map[string]string `json:"local,omitempty"`
	Global map[string]string `json:"global,omitempty"`
}

// Empty reports whether no variable is set.
func (v *Variables) Empty() bool { return len(v.Local) == 0 && len(v.Global) == 0 }

// A Problem is a macro that was not expanded.
type Problem struct {
	Name    string // as written
	Macro   string // the beginning of its text
	Message string // what is wrong with it
}

// Result is an expanded text.
type Result struct {
	Text     string
	Problems []Problem // in the order of the text; at most one for each name and message
}

// Unknown returns the names of the macros that were not expanded, without
// duplicates.
func (r Result) Unknown() []string {
	var names []string
	for _, p := range r.Problems {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// An Expander expands the texts of one build in order. They share the variables
// and one sequence of random numbers, so that the same texts in the same order
// give the same results. It is not safe for concurrent use.
type Expander struct {
	c      Context
	random *rand.Rand
	escape func(string) string
}

// New returns an expander. It writes into c.Variables; if that is nil,
// variables are discarded with the expander.
func New(c Context) *Expander {
	if c.Variables == nil {
		c.Variables = new(Variables)
	}
	seed := sha256.Sum256([]byte(c.Seed))
	return &Expander{c: c, random: rand.New(rand.NewChaCha8(seed))}
}

// Expand expands the macros in text. The error, of kind TooLarge, names the
// exceeded limit; the result is empty then, but variables may have been set.
func (e *Expander) Expand(text string) (Result, error) { return e.ExpandInto(text, nil) }

// ExpandInto is Expand for text in another language, such as a pattern: escape
// makes each value literal in it.
func (e *Expander) ExpandInto(text string, escape func(string) string) (Result, error) {
	if !strings.Contains(text, "{{") {
		return Result{Text: text}, nil
	}
	found, err := scan(text)
	if err != nil {
		return Result{}, err
	}
	e.escape = escape
	x := &expansion{Expander: e, src: text, found: found}
	out, err := x.expand(0, len(text), 0)
	if err != nil {
		return Result{}, err
	}
	return Result{Text: out, Problems: x.problems}, nil
}

// A span is one macro in a text: the offsets of its braces, and of the
// separators in it. close is negative if the macro has no end.
type span struct {
	open, close int
	seps        []int // of "::", outside of the macros in it
}

// scan finds the macros of a text, by where they begin.
func scan(text string) ([]span, error) {
	var all []span
	var stack []int // indexes of open macros
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if strings.HasPrefix(text[i+1:], "{{") {
				i += 2
			}
		case '{':
			if !opens(text, i) {
				continue
			}
			if len(all) == MaxMacros {
				return nil, tooLarge("more than %d macros in one text", MaxMacros)
			}
			stack = append(stack, len(all))
			all = append(all, span{open: i, close: -1})
			i++
		case '}':
			if len(stack) > 0 && strings.HasPrefix(text[i:], "}}") {
				all[stack[len(stack)-1]].close = i
				stack = stack[:len(stack)-1]
				i++
			}
		case ':':
			if len(stack) > 0 && strings.HasPrefix(text[i:], "::") {
				s := &all[stack[len(stack)-1]]
				s.seps = append(s.seps, i)
				i++
			}
		}
	}
	return all, nil
}

// opens reports whether a macro begins at i; of more than two braces the last
// two count.
func opens(text string, i int) bool {
	return strings.HasPrefix(text[i:], "{{") && !strings.HasPrefix(text[i+2:], "{")
}

func tooLarge(format string, args ...any) error {
	return artel.Errorf(artel.TooLarge, "macro.Expand", "text", format, args...)
}

// An expansion is the expansion of one text.
type expansion struct {
	*Expander
	src      string
	found    []span
	next     int // index in found of the next macro
	written  int // bytes that macros have written
	problems []Problem
}

// An output collects expanded text.
type output struct {
	b    []byte
	trim bool // skip white space until other text is written
}

func (o *output) write(s string) {
	if o.trim {
		if s = strings.TrimLeftFunc(s, unicode.IsSpace); s == "" {
			return
		}
		o.trim = false
	}
	o.b = append(o.b, s...)
}

// expand returns src[from:to] with its macros expanded; they begin at x.next.
func (x *expansion) expand(from, to, depth int) (string, error) {
	var out output
	at := from
	for at < to {
		s := x.nextMacro(to)
		if s == nil {
			break
		}
		if x.isComment(s) {
			x.literal(&out, at, s.open)
			at = s.close + 2
			for x.next < len(x.found) && x.found[x.next].open < at {
				x.next++
			}
			continue
		}
		name, args := x.nameAndArgs(s)
		if s.close < 0 || name == "" {
			x.next++ // the braces are text
			continue
		}
		x.literal(&out, at, s.open)
		at = s.close + 2
		if depth == MaxDepth {
			return "", tooLarge("macros are nested deeper than %d", MaxDepth)
		}
		if strings.EqualFold(name, trim) && len(args) == 0 {
			x.next++
			out.b, out.trim = bytes.TrimRightFunc(out.b, unicode.IsSpace), true
			continue
		}
		value, err := x.value(s, name, args, depth)
		if err != nil {
			return "", err
		}
		if depth == 0 && x.escape != nil && value.macro {
			value.text = x.escape(value.text)
		}
		out.write(value.text)
		if value.macro {
			if x.written += len(value.text); x.written > MaxOutput {
				return "", tooLarge("the macros write more than %d bytes", MaxOutput)
			}
		}
	}
	x.literal(&out, at, to)
	return string(out.b), nil
}

// nextMacro returns the next macro that begins before end; nil: none.
func (x *expansion) nextMacro(end int) *span {
	if x.next == len(x.found) || x.found[x.next].open >= end {
		return nil
	}
	return &x.found[x.next]
}

// isComment reports whether a macro is a comment.
func (x *expansion) isComment(s *span) bool {
	return s.close >= 0 && strings.HasPrefix(strings.TrimLeftFunc(x.src[s.open+2:s.close], unicode.IsSpace), "//")
}

// nameAndArgs returns the name of a macro and the offsets of its arguments,
// without white space. An empty name means that it is not a macro.
func (x *expansion) nameAndArgs(s *span) (name string, args [][2]int) {
	if s.close < 0 {
		return "", nil
	}
	ends := append(slices.Clip(s.seps), s.close)
	name = strings.TrimSpace(x.src[s.open+2 : ends[0]])
	if len(name) > maxName || strings.ContainsAny(name, "{}\n") {
		return "", nil
	}
	for i, sep := range s.seps {
		from, to := sep+2, ends[i+1]
		arg := x.src[from:to]
		from += len(arg) - len(strings.TrimLeftFunc(arg, unicode.IsSpace))
		to = max(from, to-len(arg)+len(strings.TrimRightFunc(arg, unicode.IsSpace)))
		args = append(args, [2]int{from, to})
	}
	return name, args
}

// literal writes text outside of macros.
func (x *expansion) literal(out *output, from, to int) {
	out.write(unescape.Replace(x.src[from:to]))
}

var unescape = strings.NewReplacer(`\{{`, `{{`)

// A value is what stands in the place of a macro.
type value struct {
	text  string
	macro bool // text is an expansion, not the unchanged macro
}

// value expands one macro, and skips those in it.
func (x *expansion) value(s *span, name string, args [][2]int, depth int) (value, error) {
	x.next++
	source := x.src[s.open : s.close+2]
	leave := func(message string) (value, error) {
		for x.next < len(x.found) && x.found[x.next].open < s.close {
			x.next++
		}
		x.problem(Problem{Name: name, Macro: artel.Shorten(source, 80), Message: message})
		return value{text: source}, nil
	}
	d, ok := definitions()[strings.ToLower(name)]
	switch {
	case !ok:
		return leave("no macro has this name")
	case len(args) < d.min || len(args) > d.max:
		return leave(arity(d))
	}
	texts := make([]string, len(args))
	for i, a := range args {
		for x.next < len(x.found) && x.found[x.next].open < a[0] {
			x.next++
		}
		var err error
		if texts[i], err = x.expand(a[0], a[1], depth+1); err != nil {
			return value{}, err
		}
	}
	text, err := d.do(x.Expander, call{name: d.name, source: source, args: texts})
	if err != nil && artel.KindOf(err) == artel.TooLarge {
		return value{}, err
	}
	if err != nil {
		return leave(err.Error())
	}
	return value{text: text, macro: true}, nil
}

// maxProblems bounds the problems of one text.
const maxProblems = 100

func (x *expansion) problem(p Problem) {
	same := func(q Problem) bool { return q.Name == p.Name && q.Message == p.Message }
	if len(x.problems) < maxProblems && !slices.ContainsFunc(x.problems, same) {
		x.problems = append(x.problems, p)
	}
}
