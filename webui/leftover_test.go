// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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

// Every text, class and icon of the page is used, so that what a view leaves
// behind goes with it.
func TestNothingIsLeftOver(t *testing.T) {
	t.Parallel()
	page := sources(t, "templates/*.html", "static/*.js", "*.go")

	// A key is named by its constant, by itself, or by how it begins where the
	// rest is a word of another room.
	begins := found(`"(page\.[a-z_]+_)"`, page)
	for _, m := range regexp.MustCompile(`(?m)^\t(Page\w+)\s+Key = "(page\.\w+)"`).FindAllStringSubmatch(sources(t, "../phrase/page*.go"), -1) {
		constant, key := m[1], m[2]
		if !regexp.MustCompile(`phrase\.`+constant+`\b|"`+regexp.QuoteMeta(key)+`"`).MatchString(page) &&
			!slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(key, b) }) {
			t.Errorf("nothing says %s", key)
		}
	}

	words := map[string]bool{}
	for _, w := range regexp.MustCompile(`[A-Za-z][\w-]*`).FindAllString(page+sources(t, "../render/*.go", "../conversation.go"), -1) {
		words[w] = true
	}
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
	for _, icon := range found(`<symbol id="([^"]+)"`, sources(t, "static/vendor/icons.svg")) {
		if !regexp.MustCompile(`(icon[( ]|return |Icon: |Icon[^=\n]*= |[,{] ?)"` + icon + `"[^:]`).MatchString(page) {
			t.Errorf("nothing shows the icon %s; scripts/vendor lists it", icon)
		}
	}
}
