// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/internal/render"
)

func TestCode(t *testing.T) {
	want := `<figure class="code document"><figcaption><span class="lang">Go</span></figcaption><pre tabindex="0" role="group" aria-label="Go"><code class="language-go">` +
		`<span class="line"><span class="c">/* a` + "\n" + `</span></span><span class="line"><span class="c">&lt;b&gt; */</span>` + "\n" + `</span>` +
		`<span class="line">x</span></code></pre></figure>` + "\n"
	if d := cmp.Diff(want, string(render.Code("/* a\r\n<b> */\nx", "go"))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	want = `<figure class="code document"><figcaption></figcaption><pre tabindex="0"><code><span class="line">a` + "\n" + `</span></code></pre></figure>` + "\n"
	if d := cmp.Diff(want, string(render.Code("a\n", ""))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestLanguageOf(t *testing.T) {
	tests := []struct{ file, media, want string }{
		{"main.go", "", "go"},
		{"a/b/Dockerfile", "", "docker"},
		{"x.tsx", "", "typescript"},
		{"x.JSON", "", "json"},
		{"a.h", "", "c"},
		{"Makefile", "text/plain", "makefile"},
		{"x.patch", "", "diff"},
		{"", "application/json; charset=utf-8", "json"},
		{"", "text/x-python", "python"},
		{"", "image/svg+xml", "xml"},
		{"", "application/vnd.api+json", "json"},
		{"notes.unknown", "text/css", "css"},
		{"notes.txt", "text/plain", ""},
		{"", "", ""},
		{strings.Repeat("a", 10_000) + ".go", "", ""},
		{"[", "[", ""},
	}
	for _, test := range tests {
		if got := render.LanguageOf(test.file, test.media); got != test.want {
			t.Errorf("%.40q, %q: %q, want %q", test.file, test.media, got, test.want)
		}
	}
}

// TestNamesOfLanguages are what models write behind fences.
func TestNamesOfLanguages(t *testing.T) {
	for _, name := range []string{
		"go", "golang", "js", "javascript", "ts", "typescript", "jsx", "tsx", "py", "python", "python3", "sh", "bash", "shell", "zsh", "console", "ps1", "powershell",
		"html", "css", "scss", "json", "jsonc", "yaml", "yml", "toml", "xml", "svg", "sql", "postgresql", "c", "cpp", "c++", "cs", "csharp", "c#", "java", "kotlin", "swift", "rust", "rs", "rb", "ruby",
		"php", "diff", "patch", "md", "markdown", "dockerfile", "docker", "makefile", "make", "proto", "graphql", "hcl", "terraform", "nginx", "ini", "lua", "r", "julia", "latex", "tex", "vue", "zig", "Go", "JSON",
	} {
		if got := render.LanguageOf("x."+name, ""); got == "" {
			if got = render.LanguageOf(name, ""); got == "" {
				t.Errorf("%s is not known", name)
			}
		}
		page := string(render.Markdown("```"+name+"\nx\n```\n", linked))
		if strings.Contains(page, `<span class="lang">`+strings.ToLower(name)+`</span>`) {
			t.Errorf("%s is shown as it was written: %s", name, page)
		}
	}
}

// TestEveryLanguage colors the same text in all languages: nothing of it may
// get lost.
func TestEveryLanguage(t *testing.T) {
	source := "<?php /* a */ \"b\" 'c' # d\n{% e %} `f` -- g\n\tif (x < 1 && y) { return \"\\u00e9\" }\n<a href=\"b\">c</a>\n<script>var x = 1</script>\n\n@h [i](j) $k ${l} 中\n+m\n-n"
	for _, name := range chosen() {
		page := render.Code(source, name)
		if err := inspect(string(page)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.TrimSuffix(plainText(t, page), "\n"); !strings.HasSuffix(got, source) {
			t.Errorf("%s: -want +got\n%s", name, cmp.Diff(source, got))
		}
		if !strings.Contains(strings.ToLower(string(page)), `<span class="lang">`+strings.ToLower(name)+`</span>`) && name != "react" {
			t.Errorf("%s: shown as another language: %.120s", name, page)
		}
	}
}

// TestHostileCode feeds lexers what makes expressions backtrack. Each must end
// in the bounds of the package, and the text stay as it is.
func TestHostileCode(t *testing.T) {
	for name, source := range map[string]string{
		"quotes": strings.Repeat(`"\`, 4000), "comments": strings.Repeat("/*", 4000), "tags": strings.Repeat("<a ", 3000),
		"stars": strings.Repeat(" *a", 3000), "spaces": strings.Repeat(strings.Repeat(" ", 4000)+"\n", 8), "brackets": strings.Repeat("[(", 4000), "lines": strings.Repeat("a\n", 4000),
	} {
		for _, language := range []string{"go", "python", "markdown"} {
			page := render.Markdown("```"+language+"\n"+source+"\n```\n", linked)
			if !strings.Contains(plainText(t, page), source) {
				t.Errorf("%s in %s: the text changed", name, language)
			}
		}
	}
}

func FuzzCode(f *testing.F) {
	f.Add("package main // a\n\"b", "go")
	f.Add("<script>x</script>\x00\xff\r", "html")
	f.Add("\n\n x", "a\" onclick=x")
	f.Fuzz(func(t *testing.T, source, language string) {
		if len(source) > 4<<10 {
			return
		}
		page := render.Code(source, language)
		if err := inspect(string(page)); err != nil {
			t.Fatal(err)
		}
		if got := plainText(t, render.Code(source, "go")); len(got) < len(strings.TrimSpace(source)) {
			t.Fatalf("%q lost text: %q", source, got)
		}
	})
}

func BenchmarkCode(b *testing.B) {
	source, err := os.ReadFile("render.go")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		render.Code(string(source), "go")
	}
}
