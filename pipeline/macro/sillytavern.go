// SPDX-License-Identifier: Apache-2.0

package macro

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/artelhq/artel"
)

// FromSillyTavern translates the macros of a text written for SillyTavern, such
// as {{random:a,b}}, {{roll d20}} or {{time_UTC+2}}, to those of this package.
// losses name, without duplicates, the macros that have another effect here or
// none; these stay in the text unchanged. Text outside of macros is kept, except
// for the old forms <user>, <char> and <bot>, which become macros.
//
// The formats are those of SillyTavern's macro engine and of the regular
// expressions before it.
func FromSillyTavern(text string) (translated string, losses []string) {
	text = oldForms.ReplaceAllStringFunc(text, func(found string) string {
		if strings.EqualFold(found, "<user>") {
			return "{{user}}"
		}
		return "{{char}}"
	})
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	found, err := scan(text)
	if err != nil {
		return text, []string{err.Error()}
	}
	t := &translation{src: text, found: found}
	out := t.text(0, len(text), 0)
	return out, t.losses
}

var oldForms = regexp.MustCompile(`(?i)<(user|bot|char|charifnotgroup|group)>`)

// A translation is the translation of one text.
type translation struct {
	src    string
	found  []span
	next   int // index in found of the next macro
	losses []string

	endless int // no comment that begins from here on ends before this offset
}

func (t *translation) lost(source, format string, args ...any) {
	loss := artel.Shorten(source, 60) + ": " + fmt.Sprintf(format, args...)
	if len(t.losses) < maxProblems && !slices.Contains(t.losses, loss) {
		t.losses = append(t.losses, loss)
	}
}

// text translates src[from:to]; its macros begin at t.next.
func (t *translation) text(from, to, depth int) string {
	var out strings.Builder
	at := from
	for t.next < len(t.found) && t.found[t.next].open < to {
		s := &t.found[t.next]
		t.next++
		if s.close < 0 || s.open < at || depth > MaxDepth {
			continue
		}
		out.WriteString(t.src[at:s.open])
		inner := strings.TrimSpace(t.src[s.open+2 : s.close])
		at = s.close + 2
		if strings.HasPrefix(inner, "//") {
			t.skip(at)
			if inner == "//" {
				at = max(at, t.commentEnd(to))
			}
			continue
		}
		out.WriteString(t.macro(s, depth))
		t.skip(at)
	}
	out.WriteString(t.src[min(at, to):to])
	return out.String()
}

// skip passes over the macros that begin before an offset.
func (t *translation) skip(to int) {
	for t.next < len(t.found) && t.found[t.next].open < to {
		t.next++
	}
}

// commentEnd returns the offset after the {{///}} that ends a comment of several
// lines, and skips the macros in it; 0: there is none.
func (t *translation) commentEnd(to int) int {
	if to <= t.endless {
		return 0
	}
	for i := t.next; i < len(t.found) && t.found[i].open < to; i++ {
		if s := t.found[i]; s.close >= 0 && strings.TrimSpace(t.src[s.open+2:s.close]) == "///" {
			t.next = i + 1
			return s.close + 2
		}
	}
	t.endless = to
	return 0
}

var (
	macroHead = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_-]*)(::|:|[+]|\s+|$)`)
	shorthand = regexp.MustCompile(`^\s*([.$])\s*([A-Za-z][A-Za-z0-9_-]*)\s*$`)
	utcOffset = regexp.MustCompile(`(?i)^(?:UTC)?\s*([+-]\d{1,2})$`)
	diceOf    = regexp.MustCompile(`(?i)^\s*(\d*)(d?)(\d*)\s*(?:([+-])\s*(\d+))?\s*$`)
)

// macro translates one macro.
func (t *translation) macro(s *span, depth int) string {
	source, inner := t.src[s.open:s.close+2], t.src[s.open+2:s.close]
	if m := shorthand.FindStringSubmatch(inner); m != nil {
		if m[1] == "$" {
			return written("getglobalvar", m[2])
		}
		return written("getvar", m[2])
	}
	// time_UTC-5 has its argument behind a minus, which names may contain.
	if name, offset, ok := cutFold(strings.TrimSpace(inner), "time_utc"); ok && name == "" && utcOffset.MatchString(offset) {
		return written("time_utc", utcOffset.FindStringSubmatch(offset)[1])
	}
	m := macroHead.FindStringSubmatchIndex(inner)
	if m == nil {
		t.lost(source, "it is not known here and stays as it is")
		return source
	}
	name := strings.ToLower(inner[m[2]:m[3]])
	single := inner[m[4]:m[5]] != "::" // the argument is behind a colon or white space
	args := t.args(s, s.open+2+m[5], depth)
	if m[5] == len(inner) && (single || len(s.seps) == 0) && strings.TrimSpace(inner[m[3]:]) == "" {
		args = nil
	}
	if do, ok := translations()[name]; ok {
		out, problem := do(args, single)
		if problem == "" {
			return out
		}
		t.lost(source, "%s", problem)
		return source
	}
	if _, ok := definitions()[name]; !ok {
		t.lost(source, "it is not known here and stays as it is")
		return source
	}
	if d := definitions()[name]; len(args) < d.min || len(args) > d.max {
		t.lost(source, "%s; it stays as it is", arity(d))
		return source
	}
	return written(inner[m[2]:m[3]], args...)
}

// args returns the translated arguments, which begin at from.
func (t *translation) args(s *span, from, depth int) []string {
	var out []string
	for _, sep := range s.seps {
		if sep >= from {
			out = append(out, strings.TrimSpace(t.text(from, sep, depth+1)))
			from = sep + 2
		}
	}
	return append(out, strings.TrimSpace(t.text(min(from, s.close), s.close, depth+1)))
}

func written(name string, args ...string) string {
	return "{{" + strings.Join(append([]string{name}, args...), "::") + "}}"
}

func cutFold(s, prefix string) (before, after string, ok bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, "", false
	}
	return "", s[len(prefix):], true
}

// A translated macro returns what stands in its place, or why there is nothing.
type translator func(args []string, single bool) (out, problem string)

// translations are the macros that are written differently here, by their names
// in lower case.
var translations = sync.OnceValue(func() map[string]translator {
	renamed := func(name string, n int) translator {
		return func(args []string, _ bool) (string, string) {
			if len(args) != n {
				return "", fmt.Sprintf("it has %d arguments and takes %d", len(args), n)
			}
			return written(name, args...), ""
		}
	}
	none := func(why string) translator { return func([]string, bool) (string, string) { return "", why } }
	out := map[string]translator{
		"random": choices("random"), "pick": choices("pick"), "roll": rolls,
		"time": func(args []string, _ bool) (string, string) {
			if len(args) == 0 {
				return written("time"), ""
			}
			if m := utcOffset.FindStringSubmatch(args[0]); m != nil && len(args) == 1 {
				return written("time_utc", m[1]), ""
			}
			return "", "its argument is not an offset as UTC+2"
		},
		"incvar": counted("incvar", "getvar"), "decvar": counted("decvar", "getvar"),
		"incglobalvar": counted("incglobalvar", "getglobalvar"), "decglobalvar": counted("decglobalvar", "getglobalvar"),
		"comment": func([]string, bool) (string, string) { return "", "" },
	}
	for from, to := range map[string]string{
		"isotime": "time24", "isodate": "date_ymd", "model": "modelId", "idleduration": "idle_duration", "idle_duration": "idle_duration",
		"chardescription": "description", "charpersonality": "personality", "charscenario": "scenario",
		"charversion": "agentVersion", "version": "agentVersion", "char_version": "agentVersion", "mesexamplesraw": "mesExamples",
		"group": "char", "charifnotgroup": "char", "groupnotmuted": "char", "notchar": "user",
	} {
		out[from] = renamed(to, 0)
	}
	for from, to := range map[string]string{
		"datetimeformat": "datetime_format", "varexists": "hasvar", "flushvar": "deletevar",
		"globalvarexists": "hasglobalvar", "flushglobalvar": "deleteglobalvar",
	} {
		out[from] = renamed(to, 1)
	}
	const block = "conditions are not evaluated here; it stays as it is"
	for name, why := range map[string]string{
		"if": block, "else": block,
		"banned":        "words cannot be banned here; it stays as it is, so remove it",
		"lastmessageid": "messages have no numbers here; it stays as it is",
		"outlet":        "entries of world books are placed by their own settings here; it stays as it is",
		"original":      "there is no other prompt in whose place this one stands; it stays as it is",
	} {
		out[name] = none(why)
	}
	return out
})

// choices translates lists, which are separated by :: or by commas.
func choices(name string) translator {
	return func(args []string, _ bool) (string, string) {
		if len(args) == 1 {
			args = splitCommas(args[0])
		}
		if len(args) == 0 {
			return "", "it has no choices; it stays as it is"
		}
		return written(name, args...), ""
	}
}

// splitCommas splits at commas outside of macros; \, is a comma.
func splitCommas(list string) []string {
	var out []string
	var item strings.Builder
	depth := 0
	for i := 0; i < len(list); i++ {
		switch {
		case strings.HasPrefix(list[i:], `\,`):
			item.WriteByte(',')
			i++
			continue
		case strings.HasPrefix(list[i:], "{{"):
			depth++
		case strings.HasPrefix(list[i:], "}}"):
			depth--
		case list[i] == ',' && depth <= 0:
			out = append(out, strings.TrimSpace(item.String()))
			item.Reset()
			continue
		}
		item.WriteByte(list[i])
	}
	return append(out, strings.TrimSpace(item.String()))
}

// rolls translates dice; the sum is written there, without the single dice.
func rolls(args []string, _ bool) (string, string) {
	if len(args) == 1 && strings.Contains(args[0], "{{") {
		return written("roll_total", args[0]), ""
	}
	if len(args) != 1 || !diceOf.MatchString(args[0]) {
		return "", "these dice cannot be rolled here; it stays as it is"
	}
	if _, err := parseDice(args[0]); err != nil {
		return "", err.Error() + "; it stays as it is"
	}
	return written("roll_total", strings.ReplaceAll(args[0], " ", "")), ""
}

// counted translates macros that change a variable and write its new value.
func counted(change, read string) translator {
	return func(args []string, _ bool) (string, string) {
		if len(args) != 1 {
			return "", "it has " + strconv.Itoa(len(args)) + " arguments and takes 1"
		}
		return written(change, args[0]) + written(read, args[0]), ""
	}
}
