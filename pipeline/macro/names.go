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
		"lastMessage", "lastUserMessage", "lastCharMessage", "input", "idle_duration",
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
		{"noop", 0, 0, func(*Expander, call) (string, error) { return "", nil }},
		{"newline", 0, 1, times("\n")},
		{"space", 0, 1, times(" ")},
		{"reverse", 1, 1, reverse},
		{"tools", 0, anyNumber, tools(func(t Tool) string { return t.Description })},
		{"tool_usage", 0, anyNumber, tools(func(t Tool) string { return t.Schema })},
		{"random", 1, anyNumber, random},
		{"pick", 1, anyNumber, pick},
		{"randomInt", 2, 2, randomInt},
		{"roll", 1, 1, roll},
		{"roll_total", 1, 1, rollTotal},
		{"repeat", 2, 2, repeat},
		{"setvar", 2, 2, set(local)},
		{"getvar", 1, 1, get(local)},
		{"hasvar", 1, 1, has(local)},
		{"deletevar", 1, 1, remove(local)},
		{"addvar", 2, 2, add(local)},
		{"incvar", 1, 1, count(local, 1)},
		{"decvar", 1, 1, count(local, -1)},
		{"setglobalvar", 2, 2, set(global)},
		{"getglobalvar", 1, 1, get(global)},
		{"hasglobalvar", 1, 1, has(global)},
		{"deleteglobalvar", 1, 1, remove(global)},
		{"addglobalvar", 2, 2, add(global)},
		{"incglobalvar", 1, 1, count(global, 1)},
		{"decglobalvar", 1, 1, count(global, -1)},
		{"datetime_format", 1, 1, datetimeFormat},
		{"datetime_locale", 1, 1, datetimeLocale},
		{"time_utc", 1, 1, timeUTC},
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
	case d.min == 0 && d.max == 1:
		return "it takes at most 1 argument"
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
	maxPlus  = 1_000_000
)

// roll writes the sum, and after it each of several dice.
func roll(e *Expander, c call) (string, error) {
	d, err := parseDice(c.args[0])
	if err != nil {
		return "", err
	}
	total, rolls := d.roll(e)
	if d.n == 1 {
		return strconv.Itoa(total), nil
	}
	return fmt.Sprintf("%d (%s)", total, strings.Join(rolls, ", ")), nil
}

func rollTotal(e *Expander, c call) (string, error) {
	d, err := parseDice(c.args[0])
	if err != nil {
		return "", err
	}
	total, _ := d.roll(e)
	return strconv.Itoa(total), nil
}

// dice are n dice of some sides, and a number added to their sum.
type dice struct{ n, sides, plus int }

func (d dice) roll(e *Expander) (total int, rolls []string) {
	total = d.plus
	for range d.n {
		x := 1 + e.random.IntN(d.sides)
		total += x
		rolls = append(rolls, strconv.Itoa(x))
	}
	return total, rolls
}

// parseDice reads dice: 2d6, d20 or 20 for one die, each with +1 or -1 behind it.
func parseDice(s string) (dice, error) {
	wrong := fmt.Errorf("it takes dice as 2d6, d20 or 2d6+1: 1 to %d dice of 1 to %d sides, and at most %d more", maxDice, maxSides, maxPlus)
	s = strings.ToLower(strings.ReplaceAll(s, " ", ""))
	d, sign := dice{n: 1}, 1
	if i := strings.IndexAny(s, "+-"); i >= 0 {
		if s[i] == '-' {
			sign = -1
		}
		plus, ok := digits(s[i+1:])
		if !ok || plus > maxPlus {
			return d, wrong
		}
		d.plus, s = sign*plus, s[:i]
	}
	a, b, has := strings.Cut(s, "d")
	if !has {
		a, b = "1", a
	}
	ok := true
	if a != "" {
		d.n, ok = digits(a)
	}
	sides, ok2 := digits(b)
	if d.sides = sides; !ok || !ok2 || d.n < 1 || d.n > maxDice || sides < 1 || sides > maxSides {
		return d, wrong
	}
	return d, nil
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

// times writes a character once, or as often as its argument says.
func times(s string) func(*Expander, call) (string, error) {
	return func(e *Expander, c call) (string, error) {
		if len(c.args) == 0 {
			return s, nil
		}
		return repeat(e, call{args: []string{s, c.args[0]}})
	}
}

// reverse writes the characters of a text backwards.
func reverse(_ *Expander, c call) (string, error) {
	r := []rune(c.args[0])
	slices.Reverse(r)
	return string(r), nil
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

func has(in scope) func(*Expander, call) (string, error) {
	return func(e *Expander, c call) (string, error) {
		_, ok := (*in(e.c.Variables))[c.args[0]]
		return strconv.FormatBool(ok), nil
	}
}

func remove(in scope) func(*Expander, call) (string, error) {
	return func(e *Expander, c call) (string, error) {
		delete(*in(e.c.Variables), c.args[0])
		return "", nil
	}
}

// add adds a number to a variable that is a number or absent, and appends to any
// other.
func add(in scope) func(*Expander, call) (string, error) {
	number := func(s string) (float64, bool) {
		n, err := strconv.ParseFloat(s, 64)
		return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
	}
	return func(e *Expander, c call) (string, error) {
		old := (*in(e.c.Variables))[c.args[0]]
		a, ok := number(old)
		b, ok2 := number(c.args[1])
		if ok2 && (ok || old == "") {
			return "", in.put(e, c.args[0], strconv.FormatFloat(a+b, 'f', -1, 64))
		}
		return "", in.put(e, c.args[0], old+c.args[1])
	}
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
