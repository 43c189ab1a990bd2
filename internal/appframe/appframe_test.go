// SPDX-License-Identifier: Apache-2.0

package appframe_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/artelhq/artel/internal/appframe"
)

// TestDocument: nothing of a page is markup of the document around it, and the script there
// reads the page as it is. What the document does in a browser is tested by package webui.
func TestDocument(t *testing.T) {
	for _, page := range []string{"", "<p>well", "</script><script>alert(1)</script><!--", "\u2028&lt;\xff\x00\"'\\", strings.Repeat("<", 1<<16)} {
		b, err := appframe.Document(page, `"><b>`)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?s)^<!doctype html>\n<html><head><meta charset="utf-8"></head><body><script type="application/json" id="app-source" data-refused="&#34;&gt;&lt;b&gt;">(.*?)</script><script>`).FindSubmatch(b)
		if m == nil {
			t.Fatalf("got %.300s", b)
		}
		var held string
		if err := json.Unmarshal(m[1], &held); err != nil || held != strings.ToValidUTF8(page, "\uFFFD") || strings.ContainsAny(string(m[1]), "<>&") {
			t.Errorf("%.100q: %v, got %.100q", page, err, held)
		}
		if n := strings.Count(string(b), "</script>"); n != 2 {
			t.Errorf("%.100q: %d scripts end", page, n)
		}
	}
	h := http.Header{}
	appframe.SetHeader(h)
	if p := h.Get("Content-Security-Policy"); !strings.HasPrefix(p, "sandbox allow-scripts; default-src 'none'; ") || strings.Contains(p, "allow-same-origin") || strings.Contains(p, "http") {
		t.Errorf("the policy is %s", p)
	}
}
