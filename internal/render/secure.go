// SPDX-License-Identifier: Apache-2.0

package render

import (
	"regexp"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark/ast"

	"github.com/artelhq/artel"
)

// secure gives every link and image of the tree a safe destination, or replaces
// it by its text. It returns the total bytes of destinations and titles.
func secure(doc ast.Node, src []byte, o Options) (grown int) {
	// Collect first: a tree must not change during a walk.
	var found []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n.Kind() {
		case ast.KindLink, ast.KindImage, ast.KindAutoLink:
			if entering {
				found = append(found, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range found {
		switch n := n.(type) {
		case *ast.Link:
			grown += len(n.Destination) + len(n.Title)
			if to, ok := destination(string(n.Destination), o); ok {
				n.Destination = []byte(to)
			} else {
				unwrap(n)
			}
		case *ast.Image:
			grown += len(n.Destination) + len(n.Title)
			if to, ok := picture(string(n.Destination), o); ok {
				n.Destination = []byte(to)
				n.SetAttributeString("loading", []byte("lazy"))
			} else {
				unwrap(n)
			}
		case *ast.AutoLink:
			autolink(n, src, o)
		}
	}
	return grown
}

// allowance is the maximum total of destinations and titles for a text of n
// bytes: references repeat them, so a small source could make a huge page.
func allowance(n int) int { return maxGrow*n + 1<<16 }

func destination(dest string, o Options) (string, bool) {
	if ref, ok := parseRef(dest); ok {
		to := address(ref, o)
		return to, to != ""
	}
	return dest, external(dest)
}

func picture(dest string, o Options) (string, bool) {
	if ref, ok := parseRef(dest); ok {
		dest = address(ref, o)
	}
	return dest, ownFile.MatchString(dest) && !dotSegment.MatchString(dest)
}

// autolink handles <artifact:plan> and bare URLs. Only the former may need a
// destination that differs from its text.
func autolink(n *ast.AutoLink, src []byte, o Options) {
	label := string(n.Label(src))
	if n.AutoLinkType == ast.AutoLinkEmail {
		return
	}
	shown := ast.NewString([]byte(label))
	if ref, ok := parseRef(label); ok {
		if to := address(ref, o); to != "" {
			link := ast.NewLink()
			link.Destination = []byte(to)
			link.AppendChild(link, shown)
			n.Parent().ReplaceChild(n.Parent(), n, link)
			return
		}
	} else if external(string(n.URL(src))) {
		return
	}
	n.Parent().ReplaceChild(n.Parent(), n, shown)
}

// unwrap replaces n by its children.
func unwrap(n ast.Node) {
	parent := n.Parent()
	for c := n.FirstChild(); c != nil; c = n.FirstChild() {
		parent.InsertBefore(parent, n, c)
	}
	parent.RemoveChild(parent, n)
}

func parseRef(dest string) (artel.Ref, bool) {
	for _, scheme := range []string{"artifact:", "artel://", "blob:"} {
		if strings.HasPrefix(dest, scheme) {
			ref, err := artel.ParseRef(dest)
			return ref, err == nil
		}
	}
	return artel.Ref{}, false
}

// address enforces the contract of the callback: a path on this server.
// Browsers read "//" and "/\" as the beginning of another server's URL.
func address(r artel.Ref, o Options) string {
	if o.ArtifactURL == nil {
		return ""
	}
	to := o.ArtifactURL(r)
	if !ownPath.MatchString(to) {
		return ""
	}
	return to
}

func external(dest string) bool {
	scheme, rest, _ := strings.Cut(dest, ":")
	switch strings.ToLower(scheme) {
	case "http", "https":
		return len(rest) > 2 && strings.HasPrefix(rest, "//")
	case "mailto":
		return rest != ""
	}
	return false
}

var (
	ownPath = regexp.MustCompile(`^/[^/\\\s][^\\\s]*$`)

	// ownFile is a file of this server. Pictures are nothing else: an event stream
	// as a picture would hold one of the browser's few connections.
	ownFile    = regexp.MustCompile(`^/api/v1/files/(tool_results/)?[^/\\\s?#]+(\?[^\\\s#]*)?$`)
	dotSegment = regexp.MustCompile(`(?i)/(\.|%2e){1,2}([/?]|$)`) // which browsers resolve
)

// policy lists all permitted elements and attributes. It is built on first use:
// the language classes alone take 3 ms and 1.5 MB to compile.
var policy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements(
		"p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote",
		"ul", "ol", "li", "em", "strong", "del", "code", "pre",
		"table", "thead", "tbody", "tr", "th", "td",
	)
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|center|right)$`)).OnElements("th", "td")
	p.AllowElements("figure", "figcaption", "div", "span")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[\p{L}\p{N}+#_.\-]{1,40}$`)).OnElements("code")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^code$`)).OnElements("figure")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^table$`)).OnElements("div")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(lang|[cdfhikmnost])$`)).OnElements("span")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre", "div")
	p.AllowAttrs("role").Matching(regexp.MustCompile(`^group$`)).OnElements("pre", "div")
	p.AllowAttrs("aria-label").OnElements("pre", "div")
	p.AllowAttrs("type").Matching(regexp.MustCompile(`^checkbox$`)).OnElements("input")
	p.AllowAttrs("checked", "disabled").Matching(regexp.MustCompile(`^$`)).OnElements("input")

	p.AllowAttrs("href").Matching(regexp.MustCompile(`(?i)^(https?://|mailto:|/[^/\\])`)).OnElements("a")
	p.AllowAttrs("src").Matching(ownFile).OnElements("img")
	p.AllowAttrs("loading").Matching(regexp.MustCompile(`^lazy$`)).OnElements("img")
	p.AllowAttrs("alt").OnElements("img")
	p.AllowAttrs("title").OnElements("a", "img")
	p.RequireParseableURLs(true)
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
})
