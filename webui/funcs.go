// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/internal/phrase"
)

// funcs are the template functions. say takes a key and pairs of name and
// value; args makes a map of such pairs.
func (ui *handler) funcs(l phrase.Locale) template.FuncMap {
	return template.FuncMap{
		"say":      func(key any, pairs ...any) string { return l.Say(phrase.Key(fmt.Sprint(key)), pairsOf(pairs)) },
		"args":     func(pairs ...any) map[string]any { return pairsOf(pairs) },
		"asset":    ui.assets.url,
		"prefix":   func() string { return ui.place.Prefix },
		"icon":     ui.icon,
		"typeName": func(mediaType string) string { return typeName(l, mediaType) },
		"agentURL": agentURL,
		"origin": func(s string) string {
			switch s {
			case "built in":
				return l.Say(phrase.PageSourceBuiltIn, nil)
			case entries.Origin:
				return l.Say(phrase.PageSourceAdded, nil)
			}
			return s
		},
		"foreign":    func(s string) bool { return foreign(l, s) },
		"tasks":      func(html template.HTML) template.HTML { return tasks(l, html) },
		"visible":    artel.Visible,
		"dimensions": dimensions,
		"playtime":   playtime,
		"number":     func(n int) string { return thousands(n) },
		"estimate":   estimate,
		"number64":   func(n int64) string { return thousands(int(n)) },
		"percent":    percent,
		"join":       func(list []string) string { return strings.Join(list, ", ") },
		"clock":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"hour":       func(t time.Time) string { return t.Local().Format("15:04") },
		"size":       phrase.Size,
		"day":        func(t time.Time) string { return t.Local().Format("2006-01-02 15:04") },
		"when":       func(t time.Time) string { return when(l, t.Local(), ui.o.Now()) },
	}
}

// languages are names of text formats that differ from the capitalized subtype
// of their media type.
var languages = map[string]string{
	"c++": "C++", "csharp": "C#", "fsharp": "F#", "css": "CSS", "scss": "SCSS", "php": "PHP", "vb": "Visual Basic", "javascript": "JavaScript",
	"typescript": "TypeScript", "jsx": "JSX", "tsx": "TSX", "objectivec": "Objective-C", "ocaml": "OCaml", "sql": "SQL", "graphql": "GraphQL",
	"asm": "Assembly", "toml": "TOML", "rst": "reStructuredText", "asciidoc": "AsciiDoc", "powershell": "PowerShell", "cmake": "CMake", "bibtex": "BibTeX", "tex": "TeX",
}

// typeName names a media type. Programming languages are called the same in
// every language.
func typeName(l phrase.Locale, mediaType string) string {
	name := l.TypeName(mediaType)
	major, minor, _ := strings.Cut(mediaType, "/")
	minor, private := strings.CutPrefix(minor, "x-")
	switch {
	case name != mediaType:
		return name
	case languages[minor] != "":
		return languages[minor]
	case major == "text" && private && minor != "":
		return strings.ToUpper(minor[:1]) + minor[1:]
	}
	return name
}

// tasks adds accessible names to the checkboxes of task lists. The renderer
// writes checkboxes in these two forms only and escapes all text, so nothing
// else matches.
func tasks(l phrase.Locale, html template.HTML) template.HTML {
	const done, open = `<input checked="" disabled="" type="checkbox"`, `<input disabled="" type="checkbox"`
	return template.HTML(strings.NewReplacer( //nolint:gosec // the renderer's HTML and phrases, escaped
		done, done+` aria-label="`+template.HTMLEscapeString(l.Say(phrase.PageTaskDone, nil))+`"`,
		open, open+` aria-label="`+template.HTMLEscapeString(l.Say(phrase.PageTaskOpen, nil))+`"`,
	).Replace(string(html)))
}

// icon references a vendored icon; more are additional classes.
func (ui *handler) icon(name string, more ...string) template.HTML {
	class := "icon"
	for _, m := range more {
		class += " " + m
	}
	return template.HTML(`<svg class="` + class + `" aria-hidden="true"><use href="` + ui.assets.url("vendor/icons.svg") + "#" + name + `"/></svg>`) //nolint:gosec // names are constants of this package
}

// foreign reports whether a text is English on a page in another language:
// error texts of other packages are.
func foreign(l phrase.Locale, s string) bool {
	return l == phrase.Chinese && !strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

func pairsOf(pairs []any) map[string]any {
	args := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		args[name] = pairs[i+1]
	}
	return args
}

// when formats a time briefly: the hour if today, the day if this year,
// otherwise the whole date.
func when(l phrase.Locale, t, now time.Time) string {
	switch {
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("15:04")
	case t.Year() != now.Year():
		return t.Format("2006-01-02")
	case l == phrase.Chinese:
		return t.Format("1月2日")
	}
	return t.Format("Jan 2")
}

// estimate formats a number that was not counted.
func estimate(n int) string { return "≈\u00a0" + thousands(n) }

func itoa(n int) string { return strconv.Itoa(n) }

// atoi parses a number in a URL; 0 if there is none.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
