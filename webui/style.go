// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/http"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/render"
)

// style shows every element of the design language with the page's templates
// and stylesheet, for developers of views.
func (ui *handler) style(w http.ResponseWriter, r *http.Request) {
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = "Style"
	v := view{handler: ui, locale: locale(r)}
	card := func(id, state string, result string) Call {
		c := v.call(artel.CallID(id), "create_artifact", []byte(`{"id":"report","title":"Report","content":"# Report"}`))
		c.State = state
		if result != "" {
			v.finish(&c, "", 0, artel.ToolResult{Content: result, IsError: state == stateFailed, Millis: 85})
		}
		return c
	}
	ui.show(w, r, http.StatusOK, "style.html", struct {
		frame
		Roles    []string
		Icons    []string
		Messages []Message
		Notice   Notice
		Values   []Value
		Plan     *Plan
	}{
		f,
		[]string{"paper", "raised", "sunken", "hover", "ink", "quiet", "line", "edge", "accent", "accent-soft", "good", "good-soft", "warn", "warn-soft", "bad", "bad-soft"},
		ui.assets.icons(),
		[]Message{
			{ID: "msg_style_1", Role: artel.RoleUser, At: time.Now(), UserText: render.Text("What a person says."), Files: []File{{Name: "workbench.png", Icon: "image", About: "PNG image · 12.0 KB"}}},
			{
				ID: "msg_style_2", Role: artel.RoleAssistant, At: time.Now(), Reasoning: "What the model thought.",
				Body:  v.blocks("m-msg_style_2-b", styleText),
				Calls: []Call{card("style-1", stateRunning, ""), card("style-2", stateDone, `{"ok":true,"version":2}`), card("style-3", stateFailed, "2 places match; give more of the line: lines 4, 19")},
			},
		},
		Notice{ID: "run_style", Text: "the model's service cannot be reached", Hint: phrase.PageAfterUnavailable},
		[]Value{v.text(`{"name":"artel","sizes":[1,2,3],"deep":{"yes":true}}`, "json", "", ""), v.text("name,size\nphoto.jpg,12\nnotes.md,3\n", "table", "", ""), v.text("@@ -1,2 +1,2 @@\n-old line\n+new line\n same\n", "diff", "", "")},
		v.plan("# Plan\n\n- [x] Look at the files\n- [ ] Write the report\n", 2, true),
	})
}

const styleText = "## Prose\n\nA paragraph with **weight**, *stress*, `code` and a [link](https://example.org).\n\n- one\n- two\n\n> quoted\n\n```go\nfunc main() {\n\tfmt.Println(\"hello\") // say it\n}\n```\n\n| name | size |\n|---|---:|\n| photo.jpg | 12 |\n"
