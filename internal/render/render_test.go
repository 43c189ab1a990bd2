// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/render"
)

var linked = render.Options{ArtifactURL: func(r artel.Ref) string {
	if r.Artifact == "missing" {
		return ""
	}
	if r.Artifact == "page" {
		return "/artifacts/page"
	}
	return "/api/v1/files/" + strings.TrimPrefix(r.String(), "artifact:")
}}

const away = ` rel="nofollow noreferrer noopener" target="_blank"`

// figure is a block of code.
func figure(name, id, code string) string {
	class := ""
	if id != "" {
		class = ` class="language-` + id + `"`
	}
	return `<figure class="code"><figcaption><span class="lang">` + name + `</span></figcaption><pre tabindex="0" role="group" aria-label="` + name + `"><code` + class + `>` + code + "</code></pre></figure>\n"
}

func TestMarkdown(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"prose", "# Plan\n\nOne *two* **three** ~~four~~\nfive\n", "<h1>Plan</h1>\n<p>One <em>two</em> <strong>three</strong> <del>four</del>\nfive</p>\n"},
		{"tasks", "- [ ] a\n- [x] b\n", "<ul>\n<li><input disabled=\"\" type=\"checkbox\"> a</li>\n<li><input checked=\"\" disabled=\"\" type=\"checkbox\"> b</li>\n</ul>\n"},
		{"table", "|a|b|\n|:-|-:|\n|1|2|\n", "<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"a, b\"><table>\n<thead>\n<tr>\n<th align=\"left\">a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"left\">1</td>\n<td align=\"right\">2</td>\n</tr>\n</tbody>\n</table></div>\n"},
		{"ordered", "3. c\n4. d\n", "<ol start=\"3\">\n<li>c</li>\n<li>d</li>\n</ol>\n"},
		{"code", "```go\nif a < b {}\n```\n", figure("Go", "go", "<span class=\"k\">if </span>a &lt; b {}\n")},
		{"odd language", "```go\"onclick=x\na\n```\n", figure(`go&#34;onclick=x`, "", "a\n")},
		{"Chinese", "**计划**：完成\n", "<p><strong>计划</strong>：完成</p>\n"},
		{"link", "[a](https://example.com/?q=1&r=2 \"t\")", `<p><a href="https://example.com/?q=1&amp;r=2" title="t"` + away + ">a</a></p>\n"},
		{"bare link", "see https://example.com.", `<p>see <a href="https://example.com"` + away + ">https://example.com</a>.</p>\n"},
		{"mail", "<a@example.com>", "<p><a href=\"mailto:a@example.com\" rel=\"nofollow noreferrer\">a@example.com</a></p>\n"},
		{"ref", "[p](artifact:task_plan@3)", "<p><a href=\"/api/v1/files/task_plan@3\" rel=\"nofollow noreferrer\">p</a></p>\n"},
		{"ref alone", "<artifact:task_plan>", "<p><a href=\"/api/v1/files/task_plan\" rel=\"nofollow noreferrer\">artifact:task_plan</a></p>\n"},
		{"ref without address", "[*p*](artifact:missing) <artifact:missing>", "<p><em>p</em> artifact:missing</p>\n"},
		{"ref that is none", "[p](artifact:a/b/c)", "<p>p</p>\n"},
		{"picture", "![a *b*](artifact:chart)", "<p><img src=\"/api/v1/files/chart\" alt=\"a b\" loading=\"lazy\"></p>\n"},
		{"picture outside of the API", "![a](artifact:page)", "<p>a</p>\n"},
		{"own picture", "![a](/api/v1/files/x?width=64)", "<p><img src=\"/api/v1/files/x?width=64\" alt=\"a\" loading=\"lazy\"></p>\n"},
		{"stored result", "![a](/api/v1/files/tool_results/0a.png)", "<p><img src=\"/api/v1/files/tool_results/0a.png\" alt=\"a\" loading=\"lazy\"></p>\n"},
		{"event stream as picture", "![a](/api/v1/conversations/cnv_1/events?n=1)", "<p>a</p>\n"},
		{"list as picture", "![a](/api/v1/conversations)", "<p>a</p>\n"},
		{"below files", "![a](/api/v1/files/x/sign)", "<p>a</p>\n"},
		{"picture that climbs", "![a](/api/v1/files/../conversations)", "<p>a</p>\n"},
		{"picture that climbs in code", "![a](/api/v1/files/tool_results/%2E.)", "<p>a</p>\n"},
		{"picture that climbs before its query", "![a](/api/v1/files/..?x)", "<p>a</p>\n"},
		{"remote picture", "![a](https://example.com/p.png)", "<p>a</p>\n"},
		{"picture in a link", "[![a](https://example.com/p.png)](https://example.com)", `<p><a href="https://example.com"` + away + ">a</a></p>\n"},
		{"script link", "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) <javascript:x>", "<p>a b javascript:x</p>\n"},
		{"data link", "[a](data:text/html,x) ![b](data:image/png;base64,x)", "<p>a b</p>\n"},
		{"other server", `[a](//example.com) [b](/\example.com) [c](/api)`, "<p>a b c</p>\n"},
		{"inline HTML", "a <b onclick=x>c</b>", "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>\n"},
		{"HTML", "<script>\nalert(1)\n</script>\n", figure("HTML", "html", "&lt;<span class=\"n\">script</span>&gt;\nalert(<span class=\"m\">1</span>)\n&lt;/<span class=\"n\">script</span>&gt;\n")},
		{"comment", "a <!-- b --> c", "<p>a &lt;!-- b --&gt; c</p>\n"},
		{"no text", "", ""},
		{"bad bytes", "a\xff\x00b", "<p>a\uFFFD\uFFFDb</p>\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, string(render.Markdown(tt.in, linked))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestRefsAreNotLinkedWithoutCallback(t *testing.T) {
	if got := render.Markdown("[p](artifact:x) ![q](artifact:y)", render.Options{}); got != "<p>p q</p>\n" {
		t.Errorf("got %q", got)
	}
}

func TestCallbackMustStayOnThisServer(t *testing.T) {
	for _, to := range []string{"https://example.com", "//example.com", `/\example.com`, "javascript:x", "/a b", "x"} {
		o := render.Options{ArtifactURL: func(artel.Ref) string { return to }}
		if got := render.Markdown("[p](artifact:x)", o); got != "<p>p</p>\n" {
			t.Errorf("%q: got %q", to, got)
		}
	}
}

func TestText(t *testing.T) {
	if got := render.Text("a <b>\n \"c\" &\xff"); got != "a &lt;b&gt;\n &#34;c&#34; &amp;\uFFFD" {
		t.Errorf("got %q", got)
	}
}

func TestLongTextIsPlain(t *testing.T) {
	long := "*a*" + strings.Repeat(" ", render.MaxMarkdown-3)
	if !strings.HasPrefix(string(render.Markdown(long, linked)), "<p><em>a") {
		t.Error("text of the greatest length is not read as Markdown")
	}
	if got := string(render.Markdown(long+"*", linked)); got != "<pre>"+long+"*</pre>\n" {
		t.Errorf("longer text begins %.40q", got)
	}
}

// TestHostile feeds what makes Markdown parsers slow or their output huge.
// Without the bounds of the package each input takes minutes, so that the test
// runs into the time limit of go test.
func TestHostile(t *testing.T) {
	const n = 1 << 17
	list := func(depth int) string {
		var b strings.Builder
		for i := range depth {
			b.WriteString(strings.Repeat("  ", i) + "- a\n\n")
		}
		return b.String()
	}
	tests := map[string]string{
		"quotes":             strings.Repeat(">", n),
		"quotes, allowed":    strings.Repeat(strings.Repeat(">", 16)+"a\n\n", n/20),
		"lists":              strings.Repeat("- ", n/2),
		"numbers":            strings.Repeat("1. ", n/3),
		"indented lists":     list(600),
		"lists, allowed":     strings.Repeat(list(120), n/16000),
		"open links":         strings.Repeat("[a](", n/4),
		"open links, many":   strings.Repeat(strings.Repeat("[a](", 30)+"\n\n", n/122),
		"open images":        strings.Repeat("![", n/2),
		"nested links":       strings.Repeat("[", 5000) + strings.Repeat("](http://a.b)", 5000),
		"nested images":      strings.Repeat("![", 1500) + strings.Repeat("](artifact:x)", 1500),
		"emphasis":           strings.Repeat("*a_ ", n/4),
		"emphasis, allowed":  strings.Repeat("*a_ ", 1500),
		"strong":             strings.Repeat("**a ", n/8) + strings.Repeat("b** ", n/8),
		"wide table":         "|" + strings.Repeat("a|", 2000) + "\n|" + strings.Repeat("-|", 2000) + "\n" + strings.Repeat("a\n", 2000),
		"many tables":        strings.Repeat("a|"+strings.Repeat("b|", 30)+"\n-|"+strings.Repeat("-|", 30)+"\n"+strings.Repeat("a\n", 30)+"\n", n/230),
		"long reference":     "[a]: http://a.b/" + strings.Repeat("x", 10_000) + "\n\n" + strings.Repeat("[a]\n\n", n/10),
		"backquotes":         strings.Repeat("`a``", n/4),
		"open tags":          strings.Repeat("<a ", n/3),
		"open comments":      strings.Repeat("<!--", n/4),
		"mail":               strings.Repeat("a@b.c ", n/6),
		"letters":            strings.Repeat("a", n),
		"rules":              strings.Repeat("---\n", n/4),
		"fences":             strings.Repeat("```\n", n/4),
		"backslashes":        strings.Repeat(`\`, n),
		"open parentheses":   "[a](" + strings.Repeat("(", n-4),
		"ampersands":         strings.Repeat("&amp", n/4),
		"addresses":          strings.Repeat("http://a.b/(", n/12),
		"definitions":        strings.Repeat("[a]: b\n", n/7),
		"lines in quotes":    "> a\n" + strings.Repeat("b\n", n/2-2),
		"deep in blockquote": strings.Repeat(strings.Repeat("> ", 12)+"[a](*b\n", n/40),
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			out := render.Markdown(in, linked)
			if len(out) > 32*len(in)+1<<16 && len(out) > 64*100_000 {
				t.Errorf("%d bytes became %d", len(in), len(out))
			}
		})
	}
}

// TestBoundsLeaveOrdinaryTextAlone holds the bounds to texts that people and
// models do write.
func TestBoundsLeaveOrdinaryTextAlone(t *testing.T) {
	tests := map[string]string{
		"code with many names": "```\n" + strings.Repeat("some_long_snake_case_name(an_argument, another_one)\n", 1000) + "```\n",
		"a long table":         "|a|b|c|d|\n|-|-|-|-|\n" + strings.Repeat("|1|2|3|4|\n", 2000),
		"a long list":          strings.Repeat("- [x] **a** [b](http://c.d)\n\n", 2000),
		"a wide gap":           "```\n" + strings.Repeat(" ", 200) + "x\n```\n",
		"a rule of dashes":     strings.Repeat("- ", 10) + "\n" + strings.Repeat("-", 200) + "\n",
	}
	for name, in := range tests {
		if strings.HasPrefix(string(render.Markdown(in, linked)), "<pre>`") || strings.HasPrefix(string(render.Markdown(in, linked)), "<pre>"+in[:1]) {
			t.Errorf("%s: shown as plain text", name)
		}
	}
}

// TestSafeProperty puts hostile pieces together at random.
func TestSafeProperty(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"<script>", "</script>", "<img src=x onerror=alert(1)>", "<svg/onload=x>", "javascript:alert(1)", "data:text/html,x",
		"[a](", "![", "](", ")", "<", ">", "&#106;avascript:", "&#x0A;", "\\", "`", "```", "~~~", "\n", "\n\n", "    ", "|", "-|-", "|\n",
		"> ", "- ", "1. ", "- [x] ", "[b]: ", "[b]", "artifact:x", "artel://", "https://a.b", "http:", "//c.d", "/\\e.f", "/api/", "..", "\"", "'",
		"*", "_", "**", "# ", "<!--", "-->", "<?", "<![CDATA[", "]]>", "<style>", "<a href='", "\x00", "\u2028", "\xff", "mailto:a@b.c", "www.a.b", "中",
	})
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
		out := string(render.Markdown(in, linked))
		if err := inspect(out); err != nil {
			t.Fatalf("%v\nin  %q\nout %q", err, in, out)
		}
		if again := string(render.Markdown(in, linked)); again != out {
			t.Fatalf("not the same twice: %q and %q", out, again)
		}
	})
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{
		"# a\n\n|b|\n|-|\n|c|\n", "[a](javascript:x)", "![a](artifact:b@1 \"c\")", "<script>a</script>", "- [x] a\n  > b\n", "```x\"y\na\n```",
		"[a]: artifact:b 'c'\n[a]", "<artifact:b>", "[a](</api/x>)", "![a](/api/&#46;&#46;/b)", "[a](java\nscript:x)", "[x](http://a\"b)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := string(render.Markdown(in, linked))
		if err := inspect(out); err != nil {
			t.Fatalf("%v\nout %q", err, out)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("<a>\x00\xff")
	f.Fuzz(func(t *testing.T, in string) {
		z := html.NewTokenizer(strings.NewReader(string(render.Text(in))))
		for z.Next() != html.ErrorToken {
			if k := z.Token().Type; k != html.TextToken {
				t.Fatalf("%q holds a %v", in, k)
			}
		}
	})
}

func BenchmarkMarkdown(b *testing.B) {
	page := "# Title\n\nSome **bold** text with `code`, a [link](https://example.com) and <b>HTML</b>.\n\n- one\n- two\n\n|a|b|\n|-|-|\n|1|2|\n\n```go\nfunc main() {}\n```\n\n"
	for _, n := range []int{1, 10, 100} {
		in := strings.Repeat(page, n)
		b.Run(fmt.Sprintf("%dB", len(in)), func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				render.Markdown(in, linked)
			}
		})
	}
}
