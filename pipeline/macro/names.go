// SPDX-License-Identifier: Apache-2.0

package macro

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Values returns the names of the macros whose values are in [Context.Values].
func Values() []string {
	return []string{
		"user", "persona",
		"char", "description", "personality", "scenario", "mesExamples", "agentVersion",
		"modelId", "modelName", "profileId", "profileName", "provider",
		"lastMessage", "lastUserMessage", "lastCharMessage", "input",
		"os", "osVersion", "arch", "platform", "hostname", "locale",
	}
}

// Names returns the names of all macros, sorted.
func Names() []string {
	var names []string
	for _, d := range definitions() {
		names = append(names, d.name)
	}
	slices.Sort(names)
	return names
}

// A definition is one macro. min and max are numbers of arguments.
type definition struct {
	name     string
	min, max int
	do       func(*Expander, call) (string, error)
}

// A call is the use of a macro in a text.
type call struct {
	name   string
	source string // as it is written
	args   []string
}

const anyNumber = math.MaxInt32

// trim affects the text around it, so the expansion implements it.
const trim = "trim"

// definitions maps the names of all macros, in lower case, to their
// definitions.
var definitions = sync.OnceValue(func() map[string]definition {
	list := []definition{
		{"agent", 0, 0, func(e *Expander, _ call) (string, error) { return e.c.Values["char"], nil }},
		{trim, 0, 0, nil},
		{"newline", 0, 0, func(*Expander, call) (string, error) { return "\n", nil }},
		{"tools", 0, anyNumber, tools(func(t Tool) string { return t.Description })},
		{"tool_usage", 0, anyNumber, tools(func(t Tool) string { return t.Schema })},
		{"random", 1, anyNumber, random},
		{"pick", 1, anyNumber, pick},
		{"randomInt", 2, 2, randomInt},
		{"roll", 1, 1, roll},
		{"repeat", 2, 2, repeat},
		{"setvar", 2, 2, set(local)},
		{"getvar", 1, 1, get(local)},
		{"incvar", 1, 1, count(local, 1)},
		{"decvar", 1, 1, count(local, -1)},
		{"setglobalvar", 2, 2, set(global)},
		{"getglobalvar", 1, 1, get(global)},
		{"incglobalvar", 1, 1, count(global, 1)},
		{"decglobalvar", 1, 1, count(global, -1)},
		{"datetime_format", 1, 1, datetimeFormat},
		{"datetime_locale", 1, 1, datetimeLocale},
	}
	for _, name := range Values() {
		list = append(list, definition{name, 0, 0, func(e *Expander, c call) (string, error) { return e.c.Values[c.name], nil }})
	}
	for name, form := range clockForms {
		list = append(list, definition{name, 0, 0, func(e *Expander, _ call) (string, error) { return form(e.c.Now) }})
	}
	table := make(map[string]definition, len(list))
	for _, d := range list {
		table[strings.ToLower(d.name)] = d
	}
	return table
})

// arity describes the number of arguments of a macro.
func arity(d definition) string {
	switch {
	case d.max == 0:
		return "it takes no arguments"
	case d.max == anyNumber:
		return fmt.Sprintf("it takes at least %d %s", d.min, plural(d.min))
	}
	return fmt.Sprintf("it takes %d %s", d.min, plural(d.min))
}

func plural(n int) string {
	if n == 1 {
		return "argument"
	}
	return "arguments"
}

// tools lists all tools, or the named ones, with a property of each.
func tools(about func(Tool) string) func(*Expander, call) (string, error) {
	return func(e *Expander, c call) (string, error) {
		var lines []string
		for _, t := range e.c.Tools {
			if len(c.args) == 0 || slices.Contains(c.args, t.Name) {
				lines = append(lines, "- "+t.Name+": "+about(t))
			}
		}
		return strings.Join(lines, "\n"), nil
	}
}

func random(e *Expander, c call) (string, error) { return c.args[e.random.IntN(len(c.args))], nil }

// pick chooses by a hash of the conversation and the macro, so that the choice
// is stable.
func pick(e *Expander, c call) (string, error) {
	h := sha256.Sum256([]byte(e.c.Conversation + "\x00" + c.source))
	return c.args[binary.BigEndian.Uint64(h[:])%uint64(len(c.args))], nil
}

func randomInt(e *Expander, c call) (string, error) {
	low, err1 := strconv.ParseInt(c.args[0], 10, 32)
	high, err2 := strconv.ParseInt(c.args[1], 10, 32)
	if err1 != nil || err2 != nil || low > high {
		return "", errors.New("it takes two whole numbers of at most 2147483647, the smaller one first")
	}
	return strconv.FormatInt(low+e.random.Int64N(high-low+1), 10), nil
}

// The most dice that are rolled at once, and sides of each.
const (
	maxDice  = 100
	maxSides = 1_000
)

func roll(e *Expander, c call) (string, error) {
	n, sides, ok := dice(c.args[0])
	if !ok {
		return "", fmt.Errorf("it takes dice as 2d6: 1 to %d dice of 1 to %d sides", maxDice, maxSides)
	}
	total := 0
	rolls := make([]string, n)
	for i := range rolls {
		x := 1 + e.random.IntN(sides)
		total += x
		rolls[i] = strconv.Itoa(x)
	}
	if n == 1 {
		return rolls[0], nil
	}
	return fmt.Sprintf("%d (%s)", total, strings.Join(rolls, ", ")), nil
}

func dice(s string) (n, sides int, ok bool) {
	a, b, ok := strings.Cut(strings.ToLower(s), "d")
	n, ok1 := digits(a)
	sides, ok2 := digits(b)
	return n, sides, ok && ok1 && ok2 && n >= 1 && n <= maxDice && sides >= 1 && sides <= maxSides
}

// digits parses a number without a sign.
func digits(s string) (int, bool) {
	if strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

const maxRepeat = 1_000

func repeat(_ *Expander, c call) (string, error) {
	n, ok := digits(c.args[1])
	if !ok || n > maxRepeat {
		return "", fmt.Errorf("it takes a text and how often it is repeated, 0 to %d", maxRepeat)
	}
	if n*len(c.args[0]) > MaxOutput {
		return "", tooLarge("the macros write more than %d bytes", MaxOutput)
	}
	return strings.Repeat(c.args[0], n), nil
}

// A scope selects one of the maps of variables.
type scope func(*Variables) *map[string]string

func local(v *Variables) *map[string]string  { return &v.Local }
func global(v *Variables) *map[string]string { return &v.Global }

func (in scope) put(e *Expander, name, value string) error {
	m := in(e.c.Variables)
	if _, ok := (*m)[name]; !ok && len(*m) >= maxVars {
		return fmt.Errorf("%d variables are set; there cannot be more", maxVars)
	}
	if name == "" {
		return errors.New("the variable has no name")
	}
	if len(name)+len(value) > maxVar {
		return fmt.Errorf("a variable holds at most %d bytes", maxVar)
	}
	if *m == nil {
		*m = make(map[string]string)
	}
	(*m)[name] = value
	return nil
}

func set(in scope) func(*Expander, call) (string, error) {
	return func(e *Expander, c call) (string, error) { return "", in.put(e, c.args[0], c.args[1]) }
}

func get(in scope) func(*Expander, call) (string, error) {
	return func(e *Expander, c call) (string, error) { return (*in(e.c.Variables))[c.args[0]], nil }
}

// count adds to a variable; a value that is not a number counts as 0.
func count(in scope, by float64) func(*Expander, call) (string, error) {
	return func(e *Expander, c call) (string, error) {
		n, err := strconv.ParseFloat((*in(e.c.Variables))[c.args[0]], 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			n = 0
		}
		return "", in.put(e, c.args[0], strconv.FormatFloat(n+by, 'f', -1, 64))
	}
}
