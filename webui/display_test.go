// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/pipeline"
)

// The rules of the reader are at work on what is shown: on the page, on the
// messages that are loaded later, and on those that come live.
func TestDisplayRules(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	_, err := s.app.Profiles.Set(apptest.Context(t), pipeline.Profile{Rules: json.RawMessage(
		`{"rules":[{"find":"zebra","replace":"tiger","stages":["display"]},{"find":"tiger","replace":"old $&","depth":{"min":40}}]}`)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, 60)
	for i := range texts {
		texts[i] = "a zebra"
	}
	long := "/c/" + string(s.seed(t, "long", time.Now(), texts...))
	page := s.ask(t, "GET", long, "", nil).body
	if strings.Count(page, "a tiger") != 40 {
		t.Errorf("the page shows %d of the new text", strings.Count(page, "a tiger"))
	}
	original := regexp.MustCompile(`<details id="m-\w+-o" class="original">.*?<pre [^>]*>a zebra</pre></details>`)
	if n, all := len(original.FindAllString(page, -1)), strings.Count(page, "a zebra"); n != 40 || all != n {
		t.Errorf("of %d places that show what was said, %d are behind what is shown", all, n)
	}
	link := strings.ReplaceAll(regexp.MustCompile(`/older\?before=[^"]+`).FindString(page), "&amp;", "&")
	if rest := s.ask(t, "GET", long+link, "", nil).body; strings.Count(rest, "a old tiger") != 20 {
		t.Errorf("later %d of the texts are shown as older than 40 messages", strings.Count(rest, "a old tiger"))
	}

	id := s.send(t, "one zebra", nil)
	last, err := s.app.Events.Last(apptest.Context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	if live := strings.Join(s.fragments(t, id, 0, last), "\n"); !strings.Contains(live, "one tiger") || !strings.Contains(live, ">one zebra</pre>") {
		t.Error("what comes live is not changed, or has no original")
	}
}
