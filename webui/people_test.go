// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"os"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// everything is a script whose first answer shows each element of a thread,
// and whose second one never ends.
const everything = `
-- message 1 --
What is in these files?
-- turn 1 --
@think The person wants to know what is in the files. First a plan, then one look at each of them.
I look at each file and write a report.
@call create_artifact {"id": "task_plan", "title": "Task plan", "content": "# Plan\n\n- [x] Look at the files\n- [x] Write the table\n- [ ] Write the report\n"}
@call create_artifact {"id": "report", "title": "Report", "content": "# Report\n\nA paragraph with **weight** and a [link](https://example.org).\n\n- one\n- two\n\n` + "```go\\nfunc main() {\\n\\tprintln(1) // say it\\n}\\n```" + `\n\n| name | size |\n|---|---:|\n| photo.jpg | 12 |\n"}
@call create_artifact {"id": "board.html", "title": "Board", "media_type": "text/html", "content": "<!doctype html><title>Board</title><h1>Board</h1>"}
-- turn 2 --
@call update_artifact {"id": "report", "old_str": "- two", "new_str": "- two\n- three"}
@call read_artifact {"id": "nowhere"}
@call list_artifacts {}
-- turn 3 --
Here is what I found:

## Files

- [x] a picture
- [ ] a table

> Somebody said so.

` + "```python\nfor name in names:\n    print(name)  # one after the other\n```" + `

| name | kind | size |
|---|---|---:|
| photo.jpg | picture | 12 |

The whole of it is in the [report](artifact:report).
-- message 2 --
And now?
-- turn 1 --
@think I think about it.
This answer is
@hang
`

// files are those that its first message brings: one of each kind.
var files = []string{"photo.jpg", "report.pdf", "notes.md", "table.csv", "data.json", "doc.svg", "tone.mp3", "clip.mp4", "archive.zip", "code.go.txt"}

// scripted returns a site whose model plays a scenario.
func scripted(t *testing.T, scenario string) *site {
	t.Helper()
	return newSite(t, script(t, scenario))
}

// furnished returns a site with a conversation in which there is everything.
func furnished(t *testing.T) (*site, artel.ConversationID) {
	t.Helper()
	s := scripted(t, everything)
	content := map[string]string{}
	for _, name := range files {
		b, err := os.ReadFile(sample(t, name))
		if err != nil {
			t.Fatal(err)
		}
		content[name] = string(b)
	}
	return s, s.send(t, "What is in these files?", content)
}

// troubled is a service that cannot be called.
var troubled = model.Service{
	ID: "office", Name: "Office", Dialect: model.OpenAI, BaseURL: "http://127.0.0.1:9/v1", Model: "office-1",
	Problem: "the variable OFFICE_KEY is not set", Origin: "models.json",
}

// resize gives the window another size.
func resize(b *tab, width, height int64) {
	b.T.Helper()
	b.Do(chromedp.EmulateViewport(width, height))
}

// protocol runs a command of the browser's protocol and returns its result.
func protocol[P, R any](b *tab, c cdp.Command[P, R], params P) R {
	b.T.Helper()
	return get(b, chromedp.Action[R](func(ctx context.Context, t *chromedp.Target) (R, error) {
		return cdp.Call(ctx, t, c, params)
	}))
}
