// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// sources reads files by patterns, without tests, as one text.
func sources(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, p := range patterns {
		names, err := filepath.Glob(p)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no files (%v)", p, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
	}
	return all.String()
}

// found returns the first group of each match, each once.
func found(pattern, text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// namesIcon reports whether the name of an icon may stand behind a text.
func namesIcon(before string) bool {
	for _, end := range []string{"icon(", "icon ", "return ", "Icon: ", ",", ", ", "{", "{ "} {
		if strings.HasSuffix(before, end) {
			return true
		}
	}
	line, ok := strings.CutSuffix(before[strings.LastIndexByte(before, '\n')+1:], "= ")
	at := strings.LastIndex(line, "Icon")
	return ok && at >= 0 && !strings.Contains(line[at:], "=")
}

func set(all []string) map[string]bool {
	out := make(map[string]bool, len(all))
	for _, s := range all {
		out[s] = true
	}
	return out
}

// wordsOf returns the words of a text: letters, digits, "_" and "-" behind a
// letter.
func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && !unicode.IsDigit(r) && !unicode.IsLetter(r)
	})
}

// Every text, class and icon of the page is used, so that what a view leaves
// behind goes with it.
func TestNothingIsLeftOver(t *testing.T) {
	t.Parallel()
	page := sources(t, "templates/*.html", "static/*.js", "*.go")

	// A key is named by its constant, by itself, or by how it begins where the
	// rest is a word of another room. All names are looked for at once: one by one
	// they would be hundreds of searches of a megabyte.
	begins := found(`"(page\.[a-z_]+_)"`, page)
	constants, keys := set(found(`phrase\.(Page\w+)`, page)), set(found(`"(page\.\w+)"`, page))
	declared := sources(t, "../internal/phrase/keys.go")
	names, values := regexp.MustCompile(`\bPage\w+`).FindAllString(declared, -1), regexp.MustCompile(`page\.\w+`).FindAllString(declared, -1)
	if len(names) == 0 || len(names) != len(values) {
		t.Fatalf("keys.go has %d constants of the page for %d keys", len(names), len(values))
	}
	for i, constant := range names {
		key := values[i]
		if !constants[constant] && !keys[key] && !slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(key, b) }) {
			t.Errorf("nothing says %s", key)
		}
	}

	words := set(wordsOf(page + sources(t, "../internal/render/*.go", "../conversation.go")))
	style := regexp.MustCompile(`(?s)/\*.*?\*/|"[^"]*"`).ReplaceAllString(sources(t, "static/style.css"), "")
	selectors := regexp.MustCompile(`\{[^{}]*\}`).ReplaceAllString(style, "")
	for _, class := range found(`\.([a-z][\w-]*)`, selectors) {
		if name, _ := strings.CutPrefix(class, "role-"); !words[class] && !words[name] {
			t.Errorf("nothing has the class %s", class)
		}
	}
	for _, id := range found(`#([a-z][\w-]*)`, selectors) {
		if !words[id] {
			t.Errorf("nothing has the id %s", id)
		}
	}
	icons := map[string]bool{}
	for _, at := range regexp.MustCompile(`"[\w-]+"`).FindAllStringIndex(page, -1) {
		name := page[at[0]+1 : at[1]-1]
		if !icons[name] && !strings.HasPrefix(page[at[1]:], ":") && namesIcon(page[max(0, at[0]-120):at[0]]) {
			icons[name] = true
		}
	}
	for _, icon := range found(`<symbol id="([^"]+)"`, sources(t, "static/vendor/icons.svg")) {
		if !icons[icon] {
			t.Errorf("nothing shows the icon %s; scripts/vendor lists it", icon)
		}
	}
}
