// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/export"
)

// inspect reads a page as a browser does and says what runs in it, is fetched
// by it or leads to this server.
func inspect(source string) error {
	doc, err := html.Parse(strings.NewReader(source))
	if err != nil {
		return err
	}
	var policy, style string
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		attrs := map[string]string{}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcset" {
				return fmt.Errorf("attribute %s on %s", a.Key, n.Data)
			}
			attrs[a.Key] = a.Val
		}
		switch n.Data {
		case "script", "iframe", "object", "embed", "form", "link", "base", "svg", "video", "audio":
			return fmt.Errorf("element %s", n.Data)
		case "style":
			if style != "" {
				return fmt.Errorf("two styles")
			}
			style = n.FirstChild.Data
		case "meta":
			if attrs["http-equiv"] == "Content-Security-Policy" {
				policy = attrs["content"]
			} else if attrs["http-equiv"] != "" {
				return fmt.Errorf("meta %s", attrs["http-equiv"])
			}
		case "img":
			if !strings.HasPrefix(attrs["src"], "data:image/") {
				return fmt.Errorf("picture from %q", artel.Shorten(attrs["src"], 60))
			}
		case "a":
			to, leads := attrs["href"]
			if !leads {
				continue // the sanitizer took an address that is none
			}
			scheme, _, ok := strings.Cut(to, ":")
			if ok && !slices.Contains([]string{"http", "https", "mailto"}, scheme) || strings.HasPrefix(to, "/") || to == "" {
				return fmt.Errorf("link to %q", to)
			}
		}
	}
	sum := sha256.Sum256([]byte(style))
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") || strings.Contains(policy, "script") || strings.Contains(policy, "unsafe") {
		return fmt.Errorf("the policy is %q", policy)
	}
	if strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		return fmt.Errorf("the style fetches something")
	}
	return nil
}

// TestInspect holds the inspection to pages that are wrong.
func TestInspect(t *testing.T) {
	good := page(t, rich(t))
	if err := inspect(good); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"<script>x</script>", "<p onclick=x>", "<p style=x>", "<img src=https://a.example/x.png>", "<a href=javascript:x>", "<a href=/api/x>", "<a href>",
		"<style>x</style>", "<meta http-equiv=refresh content=1>", "<iframe></iframe>",
	} {
		if inspect(good+bad) == nil {
			t.Errorf("%s passes", bad)
		}
	}
	for _, change := range [][2]string{{"default-src 'none'", "default-src *"}, {"color-scheme", "colour-scheme"}} {
		if inspect(strings.Replace(good, change[0], change[1], 1)) == nil {
			t.Errorf("%s passes", change[1])
		}
	}
}

func TestHTML(t *testing.T) {
	got := page(t, rich(t))
	for _, want := range []string{
		"<html lang=\"ja\">", "<title>季度报告 Quarterly report</title>", `<meta name="author" content="lead">`, `content="2026-03-01T12:00:00Z"`,
		"<h1>季度报告 Quarterly report</h1>", `<a href="https://artel.example/plan" `, `alt="A red square">`, "text after not here elsewhere", `<span class="f">main</span>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Count(got, "<h1") != 1 {
		t.Error("the title is there twice")
	}
	red := picture(t, "png", 2000, 300)
	if !strings.Contains(got, `<img src="data:image/png;base64,`+base64.StdEncoding.EncodeToString(red)+`"`) {
		t.Error("the picture is not in the page")
	}
}

func TestHTMLOfText(t *testing.T) {
	open := pictures(t).open
	tests := []struct {
		name string
		d    export.Document
		want string
	}{
		{"title", export.Document{Title: "<T>", Text: "x"}, "<h1>&lt;T&gt;</h1>\n<p>x</p>\n"},
		{"plain", export.Document{Text: "<b>\n", MediaType: "text/plain"}, "<pre class=\"plain\">&lt;b&gt;\n</pre>\n"},
		{"link without a place", export.Document{Text: "[a *b*](artifact:x) [c](artifact:y@2)", Link: func(r artel.Ref) string { return map[int]string{2: "../a b.md"}[r.Version] }}, `<p>a <em>b</em> <a href="../a%20b.md" rel="nofollow noreferrer">c</a></p>` + "\n"},
		{"nobody links", export.Document{Text: "[a](artifact:x)"}, "<p>a</p>\n"},
		{"places that are none", export.Document{Text: "[a](artifact:x) <artifact:x>", Link: func(artel.Ref) string { return "javascript:x" }}, "<p>a artifact:x</p>\n"},
		{"this server", export.Document{Text: "![a](/api/v1/x) ![b](/api/v1/files/ref-00) ![c](/api/v1/files/ref-" + hexOf("artifact:red.gif") + ")", Open: open}, "<p>a b c</p>\n"},
		{"missing", export.Document{Text: "![a&b](artifact:gone)", Open: open}, "<p>a&amp;b</p>\n"},
		{"svg", export.Document{Text: `![a](artifact:x.svg "t&")`, Open: open}, `<p><img src="data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=" alt="a" title="t&amp;"></p>` + "\n"},
		{"text is no picture", export.Document{Text: "![a](artifact:note.txt)", Open: open}, "<p>a</p>\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := page(t, tt.d)
			if err := inspect(got); err != nil {
				t.Error(err)
			}
			_, got, _ = strings.Cut(got, "<main>\n")
			got, _, _ = strings.Cut(got, "</main>")
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	if got := page(t, export.Document{Text: "package x\n", Filename: "x.go", MediaType: "text/x-go"}); !strings.Contains(got, `<span class="k">package</span>`) {
		t.Error("code has no colors")
	}
}

func hexOf(s string) string { return fmt.Sprintf("%x", s) }

func TestHTMLProperty(t *testing.T) {
	open := pictures(t).open
	rapid.Check(t, func(rt *rapid.T) {
		d := export.Document{Title: rapid.String().Draw(rt, "title"), Text: anyText(rt), Open: open, Link: func(r artel.Ref) string { return "files/" + string(r.Artifact) }}
		if err := inspect(page(t, d)); err != nil {
			rt.Fatalf("%q: %v", d.Text, err)
		}
	})
}

func FuzzHTML(f *testing.F) {
	f.Add(rich(f).Text, "text/markdown")
	f.Add(strings.Join(fragments, ""), "")
	f.Add("<svg onload=x>", "image/svg+xml")
	f.Add("[a](https://e|ample.com/)", "")
	open := pictures(f).open
	f.Fuzz(func(t *testing.T, text, mediaType string) {
		d := export.Document{Title: text, Text: text, MediaType: mediaType, Author: text, Language: mediaType, Open: open, Link: func(artel.Ref) string { return text }}
		if err := inspect(page(t, d)); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkHTML(b *testing.B) {
	d := rich(b)
	d.Text = strings.Repeat(d.Text, 100<<10/len(d.Text))
	red := picture(b, "png", 20, 30)
	d.Open = func(context.Context, artel.Ref) (artifact.Content, error) { return content(red, "image/png", 1), nil }
	b.SetBytes(int64(len(d.Text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := export.HTML(b.Context(), io.Discard, d); err != nil {
			b.Fatal(err)
		}
	}
}
