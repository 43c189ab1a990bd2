// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var (
	body    = regexp.MustCompile(`(?s)^<artifact_slice [^\n]*>\n<title>[^\n]*</title>\n(.*)\n</artifact_slice>$`)
	forward = regexp.MustCompile(`hint="To continue: read_artifact\(id='([^']*)', offset=(\d+)(?:, column=(\d+))?(?:, limit=(\d+))?`)
)

// readAll follows the hints and joins the pages.
func (b *bench) readAll(t interface{ Fatalf(string, ...any) }, args m) (text string, pages int) {
	for {
		out := b.ok("read_artifact", args).Content
		got := body.FindStringSubmatch(out)
		if got == nil {
			t.Fatalf("not a slice: %.300s", out)
		}
		text += got[1]
		pages++
		head, _, _ := strings.Cut(out, "\n")
		if strings.Contains(head, `has_more="false"`) {
			return text, pages
		}
		h := forward.FindStringSubmatch(html.UnescapeString(head))
		if h == nil || pages > 100_000 {
			t.Fatalf("no way on: %s", head)
		}
		args = m{"id": h[1]}
		for i, k := range []string{"offset", "column", "limit"} {
			if n, err := strconv.Atoi(h[i+2]); err == nil {
				args[k] = n
			}
		}
	}
}

func TestReadSlice(t *testing.T) {
	b := newBench(t)
	b.ok("create_artifact", m{"id": "x", "title": `A "b" <c>`, "content": "one\r\ntwo <b>\nthree\u2028\x0cstill\n"})
	for _, c := range []struct {
		args m
		head []string
		body string
	}{
		{m{}, []string{`total_lines="3"`, `shown_lines="1-3"`, `truncated_by="none"`, `has_more="false"`}, "one\r\ntwo <b>\nthree\u2028\x0cstill\n"},
		{m{"offset": 2, "limit": 1}, []string{`shown_lines="2-2"`, `truncated_by="line_limit"`, `hint="To continue: read_artifact(id='x', offset=3, limit=1)"`}, "two <b>\n"},
		{m{"offset": 3}, []string{`shown_lines="3-3"`, `has_more="false"`}, "three\u2028\x0cstill\n"},
		{m{"offset": 9}, []string{`has_more="false"`, `hint="The text ends at line 3."`, `shown_chars="0"`}, ""},
		{m{"offset": 1, "limit": 1, "column": 3}, []string{`shown_lines="1-1"`}, "e\r\n"},
		{m{"version": 1, "limit": 1 << 62}, []string{`version="1"`, `has_more="false"`}, "one\r\ntwo <b>\nthree\u2028\x0cstill\n"},
	} {
		c.args["id"] = "x"
		out := b.ok("read_artifact", c.args).Content
		head, _, _ := strings.Cut(out, "\n")
		for _, w := range c.head {
			if !strings.Contains(head, w) {
				t.Errorf("%v: %s lacks %s", c.args, head, w)
			}
		}
		if got := body.FindStringSubmatch(out); got == nil || got[1] != c.body {
			t.Errorf("%v: body %q, want %q", c.args, got, c.body)
		}
		if !strings.Contains(out, "<title>A &quot;b&quot; &lt;c&gt;</title>") {
			t.Errorf("title: %s", out)
		}
	}
	b.refused("read_artifact", m{"id": "x", "version": 9}, "x")
}

func TestEveryCharacterCanBeReached(t *testing.T) {
	b := newBench(t)
	for i, text := range []string{
		"",
		strings.Repeat("é", 120_001),
		strings.Repeat("x", 50_000) + "\n" + strings.Repeat("y", 50_001) + "\r\nz",
		strings.Repeat(strings.Repeat("w", 99)+"\n", 1500),
	} {
		id := fmt.Sprintf("t%d", i)
		b.ok("create_artifact", m{"id": id, "title": "", "content": text})
		got, pages := b.readAll(t, m{"id": id})
		if got != text {
			t.Errorf("%s: the pages do not make up the text", id)
		}
		if most := len([]rune(text))/49_000 + 2; pages > most {
			t.Errorf("%s: %d pages, want at most %d", id, pages, most)
		}
		first := b.ok("get_artifact", m{"ref": id}).Content
		if len(text) > 60_000 && !strings.Contains(first, "characters are shown. To continue: read_artifact(id='"+id+"', offset=") {
			t.Errorf("%s: no way on after the first page", id)
		}
		if len(text) < 50_000 && first != text {
			t.Errorf("%s: %q", id, first)
		}
	}
}

func TestPagesMakeUpTheText(t *testing.T) {
	b := newBench(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\r\té\u2028")), 0, 24, -1).Draw(rt, "text")
		limit := rapid.IntRange(1, 5).Draw(rt, "limit")
		n++
		id := fmt.Sprintf("p%d", n)
		b.ok("create_artifact", m{"id": id, "title": "t", "content": text})
		if got, _ := b.readAll(rt, m{"id": id, "limit": limit}); got != text {
			rt.Fatalf("got %q, want %q", got, text)
		}
	})
}
