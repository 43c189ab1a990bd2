// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"strings"
	"testing"

	"github.com/artelhq/artel/provider/demo"
)

// TestSubagentThreads: the thread of a subagent stands under the call that it
// is of, open while it works and closed afterwards, and a reload shows the same
// as the stream has built.
func TestSubagentThreads(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "Please delegate this.", nil)
	page := s.ask(t, "GET", "/c/"+string(id), "", nil).body
	if n := strings.Count(page, `class="call subagent done"`); n != 2 {
		t.Fatalf("%d threads on the page:\n%s", n, page)
	}
	whole := elements(t, page)
	last, err := s.app.Events.Last(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	opened, closed := map[string]bool{}, map[string]string{}
	for _, f := range s.fragments(t, id, 0, last) {
		for name, html := range elements(t, strings.ReplaceAll(strings.ReplaceAll(f, "\ndata: ", "\n"), "\ndata:\n", "\n")) {
			if !strings.HasPrefix(name, "w-") || strings.HasSuffix(name, "-b") || strings.Contains(html, "data-gone") {
				continue
			}
			if strings.Contains(html, `class="call subagent running"`) {
				opened[name] = strings.Contains(html, ` open=""`)
			} else {
				closed[name] = html
			}
		}
	}
	if len(opened) != 2 || len(closed) != 2 {
		t.Fatalf("opened %v, closed %d", opened, len(closed))
	}
	for name, html := range closed {
		if !opened[name] || strings.Contains(html, ` open=""`) {
			t.Errorf("%s is open at another time than while it works", name)
		}
		if html != whole[name] {
			t.Errorf("%s of the stream differs from the page's:\n%s\n%s", name, html, whole[name])
		}
		into, _, _ := strings.Cut(strings.SplitN(html, `data-into="#`, 2)[1], `"`)
		if parent := whole[into]; !strings.Contains(parent, name) || !strings.Contains(parent, "call_subagent") {
			t.Errorf("%s does not stand under its call, in %s", name, into)
		}
		if n := strings.Count(html, "<article "); n != 3 {
			t.Errorf("%s has %d messages, want what it was asked and two answers", name, n)
		}
	}
	if strings.Count(page, "<article ") != len(differentMessages(page)) {
		t.Error("a message stands on the page twice")
	}
}

// differentMessages are the different messages of a page.
func differentMessages(page string) map[string]bool {
	out := map[string]bool{}
	for _, part := range strings.Split(page, `<article id="`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		out[name] = true
	}
	return out
}
