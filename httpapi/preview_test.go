// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/xml"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/net/html"
)

// TestPreviewsConnectNowhere wants no element in a page that is shown in place
// that makes a browser connect to another server, in whichever way it is
// written. The file itself stays as it is.
func TestPreviewsConnectNowhere(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	const to = "http://secret.evil.example"
	wide := func(s string) string {
		var out []byte
		for _, u := range utf16.Encode([]rune("\ufeff" + s)) {
			out = append(out, byte(u), byte(u>>8))
		}
		return string(out)
	}
	page := `<!DOCTYPE html><html><head><title>T</title>%</head><body><p style="color:red">Shown</p></body></html>`
	in := func(s string) string { return strings.Replace(page, "%", s, 1) }
	for name, text := range map[string]string{
		"plain.html":    in(`<link rel="preconnect" href="` + to + `">`),
		"upper.html":    in("<LiNk\nrel=dns-prefetch href=" + to + ">"),
		"slash.html":    in("<link/rel=preconnect/href=" + to + ">"),
		"noscript.html": in("<noscript><link rel=preconnect href=" + to + "></noscript>"),
		"comment.html":  in("<!--><link rel=preconnect href=" + to + "><!-- -->"),
		"style.html":    in("<svg><style><!--</style><link rel=preconnect href=" + to + "></svg>"),
		"frame.html":    in(`<iframe srcdoc="&lt;link rel=preconnect href=` + to + `&gt;"></iframe>`),
		"object.html":   in(`<object data="` + to + `"></object><embed src="` + to + `">`),
		"shadow.html":   in("<div><template shadowrootmode=open><link rel=preconnect href=" + to + "></template></div>"),
		"wide.html":     wide(in("<link rel=preconnect href=" + to + ">")),
		"body.svg":      `<svg xmlns="http://www.w3.org/2000/svg" xmlns:h="http://www.w3.org/1999/xhtml"><h:link rel="preconnect" href="` + to + `"/><text>Shown</text></svg>`,
		"default.xhtml": `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><link rel="preconnect" href="` + to + `"></link></head><body>Shown</body></html>`,
		"ä.xhtml":       `<?xml version="1.0"?><ä:html xmlns:ä="http://www.w3.org/1999/xhtml"><ä:link rel="preconnect" href="` + to + `"/><ä:p>Shown</ä:p></ä:html>`,
		"entity.xhtml":  `<?xml version="1.0"?><!DOCTYPE html [<!ENTITY e "&#60;link rel='preconnect' href='` + to + `'/>">]><html xmlns="http://www.w3.org/1999/xhtml"><body>Shown &e;</body></html>`,
	} {
		m := b.upload(c, url.PathEscape(name), "", text)
		plain := b.do("GET", fileAt(m["ref"]), nil)
		if string(plain.body) != text {
			t.Errorf("%s: the file is changed: %q", name, plain.body)
		}
		for _, at := range []string{fileAt(m["ref"]), "/conversations/" + c + "/artifacts/" + url.PathEscape(m["id"].(string)) + "/raw"} {
			a := b.do("GET", at+"?preview=true", nil)
			got := string(a.body)
			if a.StatusCode != 200 || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "inline") || !strings.Contains(a.Header.Get("Content-Type"), "charset=utf-8") || !strings.Contains(got, "Shown") ||
				a.Header.Get("X-DNS-Prefetch-Control") != "off" || a.Header.Get("ETag") == plain.Header.Get("ETag") {
				t.Errorf("%s: got %d %v %.80q", name, a.StatusCode, a.Header, got)
			}
			bad := []string{"link", "iframe", "frame", "object", "embed"}
			doc, err := html.ParseWithOptions(strings.NewReader(got), html.ParseOptionEnableScripting(false))
			if err != nil {
				t.Fatal(err)
			}
			for n := range doc.Descendants() {
				if n.Type == html.ElementNode && slices.Contains(bad, n.Data[strings.IndexByte(n.Data, ':')+1:]) {
					t.Errorf("%s: <%s> is in the page: %s", name, n.Data, got)
				}
			}
			if strings.HasSuffix(name, "html") && !strings.HasSuffix(name, "xhtml") {
				continue
			}
			d := xml.NewDecoder(strings.NewReader(got))
			for {
				token, err := d.Token()
				if err != nil {
					if err != io.EOF && name != "entity.xhtml" {
						t.Errorf("%s: no XML any more: %v", name, err)
					}
					break
				}
				if e, ok := token.(xml.StartElement); ok && slices.Contains(bad, e.Name.Local) {
					t.Errorf("%s: <%s> is in the page: %s", name, e.Name.Local, got)
				}
				if e, ok := token.(xml.Directive); ok && strings.HasPrefix(strings.TrimSpace(string(e)), "DOCTYPE") && strings.Contains(string(e), "<!ENTITY") {
					t.Errorf("%s: the entity is declared: %s", name, got)
				}
			}
		}
	}
}
