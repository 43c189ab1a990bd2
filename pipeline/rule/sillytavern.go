// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
)

// A Loss is a feature that an import could not represent exactly.
type Loss struct {
	Script  string `json:"script"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// FromSillyTavern converts regex scripts of SillyTavern to rules: one script, a
// list of them, or a settings file or character card that contains some.
// translate translates the macros of a text and returns those that it cannot
// translate; nil: macros stay as they are. The losses name every field with a
// different effect here. A file of another kind is of kind Invalid.
//
// Scripts become one preset, in their order. A script with neither of the flags
// markdownOnly and promptOnly changes stored messages there; here it applies to
// both stages, and stored messages stay unchanged.
func FromSillyTavern(raw []byte, translate func(text string) (string, []string)) (Config, []Loss, error) {
	scripts, err := scriptsIn(raw)
	if err != nil {
		return Config{}, nil, artel.Errorf(artel.Invalid, "rule.FromSillyTavern", "file", "%w", err)
	}
	if len(scripts) > MaxRules {
		return Config{}, nil, artel.Errorf(artel.TooLarge, "rule.FromSillyTavern", "file", "%d scripts, and at most %d rules are taken", len(scripts), MaxRules)
	}
	p := Preset{Name: "SillyTavern"}
	var losses []Loss
	names := make(map[string]bool)
	for i, fields := range scripts {
		s := script{fields: fields, translate: translate}
		s.rule.ID = unique(s.text("scriptName"), i, names)
		if s.convert() {
			p.Rules = append(p.Rules, s.rule)
		}
		losses = append(losses, s.losses...)
	}
	return Config{Presets: []Preset{p}}, losses, nil
}

// unique returns a name for a rule that is unique in the file.
func unique(name string, i int, taken map[string]bool) string {
	if name == "" {
		name = "script " + strconv.Itoa(i+1)
	}
	out := artel.Shorten(name, 100)
	for n := 2; taken[out]; n++ {
		out = artel.Shorten(name, 90) + " (" + strconv.Itoa(n) + ")"
	}
	taken[out] = true
	return out
}

type fields = map[string]json.RawMessage

// scriptsIn finds the scripts in a file.
func scriptsIn(raw []byte) ([]fields, error) {
	errNone := fmt.Errorf("no regex scripts in it: want one, a list of them, or a file with regex_scripts")
	raw = bytes.TrimPrefix(bytes.TrimSpace(raw), []byte("\uFEFF"))
	if len(raw) == 0 {
		return nil, errNone
	}
	if raw[0] == '[' {
		var list []fields
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		for _, f := range list {
			if f["findRegex"] == nil && f["scriptName"] == nil {
				return nil, errNone
			}
		}
		return list, nil
	}
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	if f["findRegex"] != nil {
		return []fields{f}, nil
	}
	for _, key := range []string{"regex_scripts", "regex", "extension_settings", "extensions", "data"} {
		if inner := f[key]; inner != nil {
			if list, err := scriptsIn(inner); err == nil {
				return list, nil
			}
		}
	}
	return nil, errNone
}

// A script is a SillyTavern script during its conversion.
type script struct {
	fields fields
	rule   Rule
	losses []Loss

	translate func(string) (string, []string)
}

func (s *script) lost(field, format string, args ...any) {
	s.losses = append(s.losses, Loss{s.rule.ID, field, fmt.Sprintf(format, args...)})
}

// read decodes a field into dst, a pointer. It is false if the field is absent
// or null, or of another type, which is a loss.
func (s *script) read(field string, dst any) bool {
	raw := s.fields[field]
	if raw == nil || string(raw) == "null" {
		return false
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		s.lost(field, "%s is not of the right type and does nothing", artel.Shorten(string(raw), 60))
		return false
	}
	return true
}

func (s *script) text(field string) (v string) {
	s.read(field, &v)
	return v
}

func (s *script) flag(field string) (v bool) {
	s.read(field, &v)
	return v
}

// convert fills the rule. It is false if the script does nothing.
func (s *script) convert() bool {
	find := s.text("findRegex")
	if find == "" {
		s.lost("findRegex", "it is empty: the script does nothing, and no rule is made of it")
		return false
	}
	if s.flag("disabled") {
		s.rule.Enabled = new(bool)
	}
	var trim []string
	if s.read("trimStrings", &trim) {
		s.rule.Trim = slices.DeleteFunc(trim, func(t string) bool { return t == "" })
	}
	s.substitute()
	stored := s.stages()
	s.placement()
	s.depth(stored)
	s.pattern(find)
	for i, text := range s.rule.Trim {
		s.rule.Trim[i] = s.macros("trimStrings", text)
	}
	if err := s.rule.check(); err != nil {
		s.lost("", "the rule is left out of builds: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		if !slices.Contains(scriptFields(), name) {
			s.lost(name, "the field is not known here and does nothing")
		}
	}
	return true
}

func scriptFields() []string {
	return []string{
		"id", "scriptName", "findRegex", "replaceString", "trimStrings", "placement", "disabled", "markdownOnly", "promptOnly", "runOnEdit",
		"substituteRegex", "minDepth", "maxDepth",
	}
}

// substitute reads the mode of expanding macros in the pattern: a number, or a
// boolean in older files.
func (s *script) substitute() {
	raw := s.fields["substituteRegex"]
	switch string(raw) {
	case "", "null", "false", "0":
	case "true", "1":
		s.rule.Expand = ExpandRaw
	case "2":
		s.rule.Expand = ExpandEscaped
	default:
		s.lost("substituteRegex", "%s is not known; macros in the pattern are not expanded", artel.Shorten(string(raw), 60))
	}
}

// stages sets the stages, and reports whether the script changes stored
// messages.
func (s *script) stages() (stored bool) {
	display, prompt := s.flag("markdownOnly"), s.flag("promptOnly")
	switch {
	case display && !prompt:
		s.rule.Stages = []Stage{Display}
	case prompt && !display:
		s.rule.Stages = []Stage{Request}
	case !display:
		s.lost("promptOnly", "without markdownOnly and promptOnly it changes stored messages; here it works on what is shown and on what is sent, and what is stored stays")
		if !s.flag("runOnEdit") {
			s.lost("runOnEdit", "messages that were edited are changed too")
		}
		return true
	}
	return false
}

// placement reads the kinds of texts that the script applies to.
func (s *script) placement() {
	var places []int
	s.read("placement", &places)
	for _, p := range slices.Compact(slices.Sorted(slices.Values(places))) {
		what, ok := map[int]string{0: "0 (display, which is markdownOnly now)", 3: "3 (slash commands)", 4: "4 (/sendas)", 5: "5 (world info)", 6: "6 (reasoning)"}[p]
		switch {
		case p == 1:
			s.rule.Roles = append(s.rule.Roles, artel.RoleUser)
		case p == 2:
			s.rule.Roles = append(s.rule.Roles, artel.RoleAssistant)
		case ok:
			s.lost("placement", "%s has no rules here", what)
		default:
			s.lost("placement", "%d is not known", p)
		}
	}
	if len(s.rule.Roles) == 0 {
		s.lost("placement", "none of its places is known here, so the rule is disabled; give it roles to use it")
		s.rule.Enabled = new(bool)
	}
}

func (s *script) depth(stored bool) {
	var low, high float64
	var d Depth
	if s.read("minDepth", &low) && low > 0 {
		n := int(min(low, 1e9))
		d.Min = &n
	}
	if s.read("maxDepth", &high) {
		if high < 0 {
			s.lost("maxDepth", "a negative bound is none")
		} else {
			n := int(min(high, 1e9))
			d.Max = &n
		}
	}
	if d == (Depth{}) {
		return
	}
	s.rule.Depth = &d
	if stored {
		s.lost("minDepth", "depths do not bound there what is changed when it is stored; here they do")
	}
}

// pattern converts the pattern and the replacement.
func (s *script) pattern(find string) {
	if s.rule.Expand != "" && s.rule.Expand != ExpandNone {
		find = s.macros("findRegex", find)
	}
	source, flags := scriptPattern(find)
	if strings.Contains(find, "\n") {
		s.lost("findRegex", "of a pattern of several lines one line counts there; here all of it does")
	}
	groups, names := 0, false
	if s.rule.Expand == "" || s.rule.Expand == ExpandNone {
		p, err := compile(source, flags, nil, false)
		if err != nil {
			s.lost("findRegex", "%v", err)
		} else {
			groups, names = p.groups, len(p.names) > 0
		}
	} else {
		groups = strings.Count(source, "(")
	}
	replace := s.macros("replaceString", wholeMatch.ReplaceAllString(s.text("replaceString"), "$$0"))
	shift := 0
	if len(s.rule.Trim) > 0 && wholeGroup.MatchString(replace) {
		if backReference.MatchString(source) {
			s.lost("trimStrings", "they are not removed from the whole match, $0 or {{match}}")
		} else { // a group around it all is trimmed like the others
			source, shift = "("+source+")", 1
		}
	}
	s.rule.Find = "/" + source + "/" + flags
	s.rule.Replace = s.template(replace, groups, names, shift)
}

var (
	wholeMatch    = regexp.MustCompile(`(?i)\{\{match\}\}`)
	wholeGroup    = regexp.MustCompile(`\$0+(?:\D|$)`)
	backReference = regexp.MustCompile(`\\[1-9]`)
)

// scriptPattern reads a pattern as SillyTavern does: between slashes with
// flags, otherwise without flags.
func scriptPattern(find string) (source, flags string) {
	end := strings.LastIndexByte(find, '/')
	if !strings.HasPrefix(find, "/") || end < 2 {
		return find, ""
	}
	source, flags = find[1:end], find[end+1:]
	for i, c := range flags {
		if !strings.ContainsRune("gimsu", c) || strings.ContainsRune(flags[:i], c) {
			return find, ""
		}
	}
	return source, flags
}

// template converts a replacement: group numbers get two digits, so that
// following digits do not count, and other special characters are escaped.
func (s *script) template(replace string, groups int, names bool, shift int) string {
	var b strings.Builder
	for i := 0; i < len(replace); i++ {
		rest := replace[i:]
		digits := rest[1:]
		digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
		switch {
		case rest[0] == '\\':
			b.WriteString(`\\`)
		case rest[0] != '$':
			b.WriteByte(rest[0])
		case digits != "":
			i += len(digits)
			n, err := strconv.Atoi(digits)
			switch {
			case n == 0 && shift == 0:
				b.WriteString("$&")
			case err != nil || n > groups:
				s.lost("replaceString", "$%s names no group, so nothing stands there", artel.Shorten(digits, 10))
			case n+shift > 99:
				s.lost("replaceString", "$%d is past 99, and left out", n)
			default:
				fmt.Fprintf(&b, "$%02d", n+shift)
			}
		case names && strings.HasPrefix(rest, "$<") && strings.Contains(rest, ">"):
			s.lost("replaceString", "$<name> is a group here; older versions write it literally")
			b.WriteByte('$')
		default:
			b.WriteString("$$")
		}
	}
	return b.String()
}

// macros translates the macros of a field, with a loss for each that cannot be.
func (s *script) macros(field, text string) string {
	if s.translate == nil {
		return text
	}
	out, lost := s.translate(text)
	for _, l := range lost {
		s.lost(field, "the macro %s", l)
	}
	return out
}
