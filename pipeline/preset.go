// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// Bounds on presets.
const (
	maxPresets  = 500
	maxPreset   = 1 << 20 // bytes of text
	maxPatterns = 100
	maxPattern  = 1000 // bytes
	maxDepth    = 1000 // bytes of a depth
)

// CheckPresets refuses (kind Invalid, TooLarge) presets that cannot be
// intended: two with the same id, an unknown role, kind or side, an invalid
// pattern. Errors that depend on the conversation, such as an anchor without a
// slot, are logged by the build instead. The subject names the preset.
func CheckPresets(presets []Preset) error {
	const op = "pipeline.CheckPresets"
	if len(presets) > maxPresets {
		return artel.Errorf(artel.TooLarge, op, "preset_messages", "%d presets, and at most %d are taken", len(presets), maxPresets)
	}
	seen := map[string]bool{}
	for i, p := range presets {
		at := fmt.Sprintf("preset_messages[%d]", i)
		if p.ID != "" {
			at += " " + artel.Shorten(p.ID, 60)
		}
		if seen[p.ID] && p.ID != "" {
			return artel.Errorf(artel.Invalid, op, at, "two presets have this id")
		}
		seen[p.ID] = true
		if len(p.Text) > maxPreset {
			return artel.Errorf(artel.TooLarge, op, at, "a text of %d bytes, and at most %d are taken", len(p.Text), maxPreset)
		}
		if err := p.check(); err != nil {
			return artel.Errorf(artel.Invalid, op, at, "%w", err)
		}
	}
	return nil
}

func (p Preset) check() error {
	switch {
	case len(p.ID) > artel.MaxIDLength:
		return fmt.Errorf("the id is longer than %d bytes", artel.MaxIDLength)
	case !slices.Contains([]artel.Role{"", artel.RoleSystem, artel.RoleUser, artel.RoleAssistant}, p.Role):
		return fmt.Errorf("the role is %q: want system, user or assistant", artel.Shorten(string(p.Role), 60))
	case !slices.Contains([]PlaceKind{"", InList, AtDepth, AtAnchor}, p.Place.Kind):
		return fmt.Errorf("place.kind is %q: want list, depth or anchor", artel.Shorten(string(p.Place.Kind), 60))
	case !slices.Contains([]Side{"", Before, After}, p.Place.Side):
		return fmt.Errorf("place.side is %q: want before or after", artel.Shorten(string(p.Place.Side), 60))
	case len(p.Place.Depth) > maxDepth:
		return fmt.Errorf("place.depth is longer than %d bytes", maxDepth)
	case len(p.Slot) > artel.MaxIDLength || len(p.Place.Anchor) > artel.MaxIDLength:
		return fmt.Errorf("the name of a slot is longer than %d bytes", artel.MaxIDLength)
	case p.When != nil:
		return p.When.check()
	}
	return nil
}

func (c Condition) check() error {
	if !slices.Contains([]Match{"", MatchAny, MatchAll}, c.Match) {
		return fmt.Errorf("when.match is %q: want any or all", artel.Shorten(string(c.Match), 60))
	}
	if len(c.Models)+len(c.Providers) > maxPatterns {
		return fmt.Errorf("when has %d patterns, and at most %d are taken", len(c.Models)+len(c.Providers), maxPatterns)
	}
	for _, pattern := range slices.Concat(c.Models, c.Providers) {
		if len(pattern) > maxPattern {
			return fmt.Errorf("a pattern in when is longer than %d bytes", maxPattern)
		}
		if _, err := compile(pattern); err != nil {
			return fmt.Errorf("when: the pattern %q is no regular expression: %w", artel.Shorten(pattern, 80), err)
		}
	}
	return nil
}

func compile(pattern string) (*regexp.Regexp, error) { return regexp.Compile("(?i:" + pattern + ")") }

// enabled reports whether the preset is on.
func (p Preset) enabled() bool { return p.Enabled == nil || *p.Enabled }

// holds reports whether a preset with this condition is sent to a service. An
// invalid pattern matches nothing.
func (c *Condition) holds(s model.Service) bool {
	if c == nil || len(c.Models) == 0 && len(c.Providers) == 0 {
		return true
	}
	models := matches(c.Models, s.Model, lastSegment(s.Model), s.Name)
	providers := matches(c.Providers, string(s.ID), s.Name, string(s.Dialect))
	ok := models || providers
	if c.Match == MatchAll {
		ok = (models || len(c.Models) == 0) && (providers || len(c.Providers) == 0)
	}
	return ok != c.Exclude
}

// matches reports whether any pattern matches any of the names.
func matches(patterns []string, names ...string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		re, err := compile(p)
		return err == nil && slices.ContainsFunc(names, func(n string) bool { return n != "" && re.MatchString(n) })
	})
}
