// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/internal/render"
)

var counted = render.Options{Cut: func(n int, unit render.Unit) string { return fmt.Sprintf("%d %s <left out>", n, unit) }}

func TestJSON(t *testing.T) {
	got, ok := render.JSON([]byte(`{"z": 1.50, "a": ["<b>", null, true, {}], "n": 12345678901234567890}`), render.Options{})
	want := `<figure class="values"><details open><summary>{}</summary><ul class="object">` +
		`<li><span class="key">z</span>: <span class="number">1.50</span></li>` +
		`<li><span class="key">a</span>: <details open><summary>[]</summary><ol class="array">` +
		`<li><span class="string">&#34;&lt;b&gt;&#34;</span></li><li><span class="null">null</span></li><li><span class="true">true</span></li><li><span class="null">{}</span></li></ol></details></li>` +
		`<li><span class="key">n</span>: <span class="number">12345678901234567890</span></li></ul></details></figure>` + "\n"
	if d := cmp.Diff(want, string(got)); d != "" || !ok {
		t.Errorf("ok %v, -want +got\n%s", ok, d)
	}
	for _, in := range []string{"", "{", "a", `{"a":1} 2`, `[1,]`} {
		if _, ok := render.JSON([]byte(in), render.Options{}); ok {
			t.Errorf("%q is taken for JSON", in)
		}
	}
}

func TestJSONSaysWhatIsLeftOut(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"entries", "[" + strings.Repeat("1,", 9999) + "1]", "5001 entries &lt;left out&gt;"},
		{"entries of objects", "[" + strings.Repeat("1,", 4998) + `{"a":[{"b":1},2],"c":3}]`, "4 entries &lt;left out&gt;"},
		{"levels", strings.Repeat("[", 50) + "1,2,[3]" + strings.Repeat("]", 50), "1 levels &lt;left out&gt;"},
		{"bytes", `"` + strings.Repeat("x", 70_000) + `"`, "4464 bytes &lt;left out&gt;"},
	}
	for _, test := range tests {
		got, ok := render.JSON([]byte(test.in), counted)
		if !ok || !strings.Contains(string(got), test.want) {
			t.Errorf("%s: ok %v, not said in %d bytes: %.300q", test.name, ok, len(got), got[max(0, len(got)-300):])
		}
		if err := inspect(string(got)); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	got, _ := render.JSON([]byte(`"`+strings.Repeat("é", 300)+`"`), counted)
	if s := string(got); !strings.Contains(s, "<details><summary>") || !strings.Contains(s, strings.Repeat("é", 300)+"</pre>") {
		t.Errorf("a long string is not folded: %q", s)
	}
}

func TestTable(t *testing.T) {
	want := `<div class="table" tabindex="0" role="group" aria-label="a, b"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr>` + "\n" +
		`</thead><tbody><tr><td>1, &lt;2&gt;</td><td></td></tr>` + "\n" + `</tbody></table></div>` + "\n"
	for _, in := range []string{"a,b\n\"1, <2>\",\n", "\uFEFFa;b\r\n1, <2>;\r\n", "a\tb\n1, <2>\t\n"} {
		got, ok := render.Table(in, 0, render.Options{})
		if d := cmp.Diff(want, string(got)); d != "" || !ok {
			t.Errorf("%q: ok %v, -want +got\n%s", in, ok, d)
		}
	}
	for _, in := range []string{"", "a,b\n", "a\nb\n", "a,b\n1\n2\n3,4,5\n", "A sentence.\nAnother, longer one.\n"} {
		if _, ok := render.Table(in, 0, render.Options{}); ok {
			t.Errorf("%q is taken for a table", in)
		}
	}
	if _, ok := render.Table("a,b\n1,2\n", '"', render.Options{}); ok {
		t.Error("a separator that cannot be one passes")
	}
	big := strings.Repeat(strings.Repeat("x,", 49)+strings.Repeat("y", 600)+"\n", 300)
	got, ok := render.Table(big, ',', counted)
	if s := string(got); !ok || !strings.Contains(s, "99 rows") || !strings.Contains(s, "10 columns") {
		t.Errorf("ok %v, ends %q", ok, s[max(0, len(s)-200):])
	}
}

func TestDiff(t *testing.T) {
	got := string(render.Diff("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- <old>\n+++ new\n same\n\\ No newline\n", render.Options{}))
	for _, want := range []string{
		`<span class="line meta">--- a/x` + "\n</span>", `<span class="line meta">@@ -1,2`, `<span class="line removed">--- &lt;old&gt;`,
		`<span class="line added">+++ new`, `<span class="line same"> same`, `<span class="line meta">\ No newline`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if got := string(render.Diff(strings.Repeat("+a\n", 6000), counted)); !strings.Contains(got, "1000 lines") {
		t.Errorf("ends %q", got[len(got)-100:])
	}
}

func TestHostileValues(t *testing.T) {
	const n = 1 << 19
	for name, in := range map[string]string{
		"brackets": strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "objects": strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000),
		"quotes": strings.Repeat(`"`, n), "commas": strings.Repeat(",", n), "lines": strings.Repeat("a,b\n", n/4), "number": "1" + strings.Repeat("0", n),
	} {
		a, _ := render.JSON([]byte(in), counted)
		b, _ := render.Table(in, 0, counted)
		c := render.Diff(in, counted)
		for _, page := range []string{string(a), string(b), string(c)} {
			if err := inspect(page); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if len(page) > 8<<20 {
				t.Errorf("%s: %d bytes became %d", name, len(in), len(page))
			}
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":["<script>",1e400,-0,"\ud800"]}`))
	f.Add([]byte(`{"":{"":""}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		page, _ := render.JSON(raw, counted)
		if err := inspect(string(page)); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add("a,b\n<b>,\"c\n", ',')
	f.Add("a;b\n1;2;3\n", rune(0))
	f.Fuzz(func(t *testing.T, text string, comma rune) {
		page, _ := render.Table(text, comma, counted)
		if err := inspect(string(page)); err != nil {
			t.Fatal(err)
		}
		if err := inspect(string(render.Diff(text, counted))); err != nil {
			t.Fatal(err)
		}
	})
}
