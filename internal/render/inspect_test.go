// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// allowed is what may come out, written down a second time and independently
// of the package.
var allowed = map[string][]string{
	"p": nil, "br": nil, "hr": nil, "h1": nil, "h2": nil, "h3": nil, "h4": nil, "h5": nil, "h6": nil,
	"blockquote": nil, "ul": {"class"}, "ol": {"start", "class"}, "li": nil, "em": nil, "strong": nil, "del": nil,
	"code": {"class"}, "pre": {"tabindex", "role", "aria-label"}, "table": nil, "div": {"class", "tabindex", "role", "aria-label"},
	"figure": {"class"}, "figcaption": nil, "span": {"class"}, "details": {"open"}, "summary": nil, "thead": nil, "tbody": nil, "tr": nil,
	"th": {"align", "scope"}, "td": {"align"}, "input": {"type", "checked", "disabled"},
	"a": {"href", "title", "rel", "target"}, "img": {"src", "alt", "title", "loading"},
}

// inspect reads a page as a browser does and says what is wrong with it.
func inspect(page string) error {
	doc, err := html.Parse(strings.NewReader("<!DOCTYPE html><html><head></head><body>" + page + "</body></html>"))
	if err != nil {
		return err
	}
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.CommentNode:
			return fmt.Errorf("comment %q", n.Data)
		case n.Type != html.ElementNode || n.Data == "html" || n.Data == "head" || n.Data == "body":
			continue
		}
		names, ok := allowed[n.Data]
		if !ok {
			return fmt.Errorf("element %s", n.Data)
		}
		attrs := map[string]string{}
		for _, a := range n.Attr {
			attrs[a.Key] = a.Val
			if !slices.Contains(names, a.Key) {
				return fmt.Errorf("attribute %s=%q on %s", a.Key, a.Val, n.Data)
			}
		}
		if err := inspectAddress(n.Data, attrs); err != nil {
			return err
		}
	}
	return nil
}

func inspectAddress(element string, attrs map[string]string) error {
	switch element {
	case "a":
		to := strings.ToLower(attrs["href"])
		web := strings.HasPrefix(to, "http://") || strings.HasPrefix(to, "https://")
		own := len(to) > 1 && to[0] == '/' && to[1] != '/' && to[1] != '\\'
		if !web && !own && !strings.HasPrefix(to, "mailto:") {
			return fmt.Errorf("link to %q", to)
		}
		if web && (attrs["target"] != "_blank" || !strings.Contains(attrs["rel"], "noopener")) || !strings.Contains(attrs["rel"], "noreferrer") || !strings.Contains(attrs["rel"], "nofollow") {
			return fmt.Errorf("link to %q has rel %q and target %q", to, attrs["rel"], attrs["target"])
		}
	case "img":
		if !strings.HasPrefix(attrs["src"], "/api/v1/files/") {
			return fmt.Errorf("image from %q", attrs["src"])
		}
	case "input":
		if attrs["type"] != "checkbox" {
			return fmt.Errorf("input of type %q", attrs["type"])
		}
		if _, ok := attrs["disabled"]; !ok {
			return fmt.Errorf("input that can be changed")
		}
	}
	return inspectClass(element, attrs)
}

// classes are those of the package's documentation.
var classes = map[string]*regexp.Regexp{
	"code":   regexp.MustCompile(`^(language-[\p{L}\p{N}+#_.\-]{1,40})$`),
	"figure": regexp.MustCompile(`^(code( document)?|values|diff)$`),
	"div":    regexp.MustCompile(`^(table)$`),
	"span":   regexp.MustCompile(`^(line|lang|[cdfhikmnost]|key|string|number|true|false|null|cut|(line )?(added|removed|meta|same))$`),
	"ul":     regexp.MustCompile(`^(object)$`), "ol": regexp.MustCompile(`^(array)$`),
}

func inspectClass(element string, attrs map[string]string) error {
	if c, ok := attrs["class"]; ok && (classes[element] == nil || !classes[element].MatchString(c)) {
		return fmt.Errorf("%s of class %q", element, c)
	}
	if v, ok := attrs["tabindex"]; ok && v != "0" {
		return fmt.Errorf("%s with tabindex %q", element, v)
	}
	if v, ok := attrs["role"]; ok && (v != "group" || attrs["aria-label"] == "") {
		return fmt.Errorf("%s with role %q and label %q", element, v, attrs["aria-label"])
	}
	return nil
}

// TestInspect holds the inspector to pages that are wrong.
func TestInspect(t *testing.T) {
	for _, page := range []string{
		"<script>x</script>", "<p onclick=x>", "<p style=x>", "<!-- a -->", "<a href=javascript:x rel='noreferrer nofollow'>", "<a href=//x.y>",
		"<a href=http://x.y rel='nofollow noreferrer noopener'>", "<a href=/x>", "<img src=http://x.y>", "<input type=text disabled>", "<input type=checkbox>", "<code class=x>", "<form>", "<span class=x>", "<div class=page>", "<pre tabindex=1>", "<pre role=main>", "<iframe>",
	} {
		if inspect(page) == nil {
			t.Errorf("%s passes", page)
		}
	}
}

// plainText is what a page shows of a block.
func plainText(t *testing.T, page template.HTML) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(string(page)))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range doc.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		for _, a := range n.Attr {
			if a.Key == "alt" {
				b.WriteString(a.Val)
			}
		}
	}
	return b.String()
}
