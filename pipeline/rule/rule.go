// SPDX-License-Identifier: Apache-2.0

// Package rule finds and replaces text in messages by configurable rules.
//
// A [Rule] is a JavaScript regular expression with a replacement, and with the
// roles, depths and stages that it applies to. Begin with [New], which makes an
// [Engine]; [Engine.Compile] reads the rules of all layers into a [Set], and
// [Set.Apply] applies it to the texts of a build. Requests and pages use the
// same engine, which never changes stored messages.
//
// Patterns have their JavaScript meaning: text is a sequence of UTF-16 units,
// or of code points with the flag u. A pattern with the same meaning in RE2
// runs there, in linear time, and texts without a string that the pattern needs
// are not searched. Other patterns run on a backtracking engine with time
// limits: per text, per rule, and for all rules of a build. A rule that is
// stopped or cannot be used is left out of the whole build, and a [Problem]
// names it; the other rules are applied.
package rule

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// A Stage is a use of rules.
type Stage string

// The stages.
const (
	Request Stage = "request" // for requests to models
	Display Stage = "display" // for pages
)

// Expand says how macros in a pattern are expanded.
type Expand string

// The ways to expand macros in a pattern.
const (
	ExpandNone    Expand = "none"
	ExpandRaw     Expand = "raw"     // values become part of the pattern
	ExpandEscaped Expand = "escaped" // values are text to find
)

// A Rule finds and replaces text. With only Find set, it removes the matches,
// for all roles, at every depth, in both stages.
type Rule struct {
	// ID names the rule in what is applied and in problems; "": its place,
	// as "rules[0]" or "presets[1].rules[0]".
	ID string `json:"id,omitempty"`

	// Find is a pattern, or /pattern/flags with flags of the letters gimsuy;
	// with any other letter all of it is the pattern. The flags are those of
	// Flags, or else those of the slashes, or else "gm" without slashes.
	Find  string `json:"find"`
	Flags string `json:"flags,omitempty"`

	// Replace is what comes in the place of a match. As in JavaScript $1 to
	// $99, $<name>, $&, $`, $' and $$ are replaced; beyond that \n, \t and \\.
	// Macros in it are expanded first, their values are literal.
	Replace string `json:"replace,omitempty"`

	Roles   []artel.Role `json:"roles,omitempty"`  // empty: all
	Depth   *Depth       `json:"depth,omitempty"`  // nil: every one
	Stages  []Stage      `json:"stages,omitempty"` // empty: both
	Order   int          `json:"order,omitempty"`  // ascending, inside of a preset
	Enabled *bool        `json:"enabled,omitempty"`

	// Trim strings are removed from every group that is inserted, but not from
	// $&. Macros in them are expanded.
	Trim   []string `json:"trim,omitempty"`
	Expand Expand   `json:"expand,omitempty"` // of macros in Find; "": none
}

// Depth bounds the distance of a message from the newest, which has depth 0.
// Both bounds are inclusive; nil is no bound.
type Depth struct {
	Min *int `json:"min,omitempty"`
	Max *int `json:"max,omitempty"`
}

// A Preset is a list of rules that run one after the other, without rules of
// other presets in between.
type Preset struct {
	Name     string `json:"name,omitempty"`
	Priority *int   `json:"priority,omitempty"` // ascending; nil: 100
	Order    int    `json:"order,omitempty"`    // ascending, inside of one priority
	Enabled  *bool  `json:"enabled,omitempty"`
	Rules    []Rule `json:"rules,omitempty"`
}

// Config is one layer of rules. Rules is a preset of the default priority,
// before the others.
type Config struct {
	Rules   []Rule   `json:"rules,omitempty"`
	Presets []Preset `json:"presets,omitempty"`
}

const defaultPriority = 100

// The limits of rules.
const (
	MaxRules   = 1_000    // of all layers together
	MaxFind    = 10_000   // bytes of a pattern
	MaxReplace = 100_000  // bytes of a replacement
	MaxTrim    = 100      // strings, of at most maxTrimmed bytes
	MaxResult  = 16 << 20 // bytes of a text after a rule
	maxTrimmed = 1_000
)

// A Problem is the reason why a rule is left out.
type Problem struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// ParseConfig reads a configuration from JSON. A syntax error or an unknown key
// is of kind Invalid; mistakes in single rules are found by [Engine.Compile].
func ParseConfig(raw []byte) (Config, error) {
	var c Config
	if len(bytes.TrimSpace(raw)) == 0 {
		return c, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return Config{}, artel.Errorf(artel.Invalid, "rule.ParseConfig", "config", "%w", err)
	}
	return c, nil
}

// A Location is the position of a rule in its layers.
type Location struct {
	Layer  int // of those that are compiled, from 0
	Preset int // of the layer's presets; -1: its rules beside them
	Rule   int // of the preset
}

// A locatedRule is a rule with its name and location.
type locatedRule struct {
	Rule
	name  string
	where Location
}

// arrange returns the enabled rules of the layers in the order in which they
// run: presets by priority, order, layer and place; in a preset by order and
// place.
func arrange(layers []Config) []locatedRule {
	type preset struct {
		Preset
		name  string
		where Location
	}
	var presets []preset
	for n, c := range layers {
		presets = append(presets, preset{Preset{Rules: c.Rules}, "rules", Location{n, -1, 0}})
		for i, p := range c.Presets {
			presets = append(presets, preset{p, fmt.Sprintf("presets[%d].rules", i), Location{n, i, 0}})
		}
	}
	presets = slices.DeleteFunc(presets, func(p preset) bool { return p.Enabled != nil && !*p.Enabled })
	slices.SortStableFunc(presets, func(a, b preset) int {
		return cmp.Or(cmp.Compare(a.priority(), b.priority()), cmp.Compare(a.Order, b.Order))
	})
	var all []locatedRule
	for _, p := range presets {
		var rules []locatedRule
		for i, r := range p.Rules {
			if r.Enabled == nil || *r.Enabled {
				where := Location{p.where.Layer, p.where.Preset, i}
				rules = append(rules, locatedRule{r, cmp.Or(r.ID, fmt.Sprintf("%s[%d]", p.name, i)), where})
			}
		}
		slices.SortStableFunc(rules, func(a, b locatedRule) int { return cmp.Compare(a.Order, b.Order) })
		all = append(all, rules...)
	}
	return all
}

func (p Preset) priority() int {
	if p.Priority == nil {
		return defaultPriority
	}
	return *p.Priority
}

// check returns the mistake in a rule, apart from its pattern.
func (r Rule) check() error {
	switch {
	case r.Find == "":
		return fmt.Errorf("find is empty; give a pattern")
	case len(r.Find) > MaxFind:
		return fmt.Errorf("find has %d bytes; a pattern may have %d", len(r.Find), MaxFind)
	case len(r.Replace) > MaxReplace:
		return fmt.Errorf("replace has %d bytes; it may have %d", len(r.Replace), MaxReplace)
	case strings.ContainsAny(r.Replace, valueBegin+valueEnd):
		return fmt.Errorf("replace holds U+FDD0 or U+FDD1, which are no characters")
	case len(r.Trim) > MaxTrim:
		return fmt.Errorf("trim has %d strings; it may have %d", len(r.Trim), MaxTrim)
	case slices.ContainsFunc(r.Trim, func(s string) bool { return len(s) > maxTrimmed }):
		return fmt.Errorf("a string of trim has more than %d bytes", maxTrimmed)
	case !slices.Contains([]Expand{"", ExpandNone, ExpandRaw, ExpandEscaped}, r.Expand):
		return fmt.Errorf("expand is %q; it may be none, raw or escaped", artel.Shorten(string(r.Expand), 40))
	case r.Depth != nil && r.Depth.Min != nil && r.Depth.Max != nil && *r.Depth.Min > *r.Depth.Max:
		return fmt.Errorf("depth is from %d to %d; min has to be the smaller one", *r.Depth.Min, *r.Depth.Max)
	}
	for _, s := range r.Stages {
		if s != Request && s != Display {
			return fmt.Errorf("%q is no stage; there are request and display", artel.Shorten(string(s), 40))
		}
	}
	for _, role := range r.Roles {
		if !slices.Contains([]artel.Role{artel.RoleSystem, artel.RoleUser, artel.RoleAssistant, artel.RoleTool}, role) {
			return fmt.Errorf("%q is no role; there are system, user, assistant and tool", artel.Shorten(string(role), 40))
		}
	}
	return nil
}

// source returns the pattern of find and its flags.
func (r Rule) source(find string) (pattern, flags string) {
	pattern, flags = find, "gm"
	if end := strings.LastIndexByte(find, '/'); strings.HasPrefix(find, "/") && end > 1 && strings.Trim(find[end+1:], "gimsuy") == "" {
		pattern, flags = find[1:end], find[end+1:]
	}
	if r.Flags != "" {
		flags = r.Flags
	}
	return pattern, flags
}

// A flagSet holds the flags of a pattern.
type flagSet struct {
	global, ignoreCase, multiline, dotAll, unicode, sticky bool
}

func parseFlags(s string) (flagSet, error) {
	var f flagSet
	for _, c := range s {
		i := strings.IndexRune("gimsuy", c)
		if i < 0 || strings.Count(s, string(c)) > 1 {
			return f, fmt.Errorf("the flags %q are not valid: each of g, i, m, s, u and y may stand there once", artel.Shorten(s, 20))
		}
		*[]*bool{&f.global, &f.ignoreCase, &f.multiline, &f.dotAll, &f.unicode, &f.sticky}[i] = true
	}
	return f, nil
}
