// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"html"
	"io"
	"net/http"
	"regexp"
	"testing"
)

// A Snippet names lines on the page of the gateway that point a client at it.
type Snippet struct {
	Name  string // of the program or SDK
	Where string // the language, or the file that the lines belong to; may be empty
}

var onPage = regexp.MustCompile(`(?s)<summary>.*?<b>([^<]+)</b>(?:<span class="hint">([^<]*)</span>)?.*?<code translate="no">(.*?)</code>`)

// Snippets reads the lines for SDKs and programs from the page of a server.
func Snippets(t testing.TB, url string) map[Snippet]string {
	t.Helper()
	return snippetsIn(t, url, "sdk")
}

// Hosts reads the lines for MCP hosts.
func Hosts(t testing.TB, url string) map[Snippet]string {
	t.Helper()
	return snippetsIn(t, url, "mcp")
}

func snippetsIn(t testing.TB, url, section string) map[Snippet]string {
	t.Helper()
	resp, err := http.Get(url + "/gateway")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, page, found := bytes.Cut(page, []byte(`id="`+section+`"`))
	page, _, ends := bytes.Cut(page, []byte("</section>"))
	if !found || !ends {
		t.Fatalf("the page has no snippets in %s", section)
	}
	out := map[Snippet]string{}
	for _, m := range onPage.FindAllSubmatch(page, -1) {
		out[Snippet{Name: html.UnescapeString(string(m[1])), Where: html.UnescapeString(string(m[2]))}] = html.UnescapeString(string(m[3]))
	}
	return out
}
