// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/webui/webuitest"
)

// What was typed and chosen before the scripts had come is taken up by them.
func TestEarly(t *testing.T) {
	t.Parallel()
	var come atomic.Value // a channel that is closed when the scripts may come
	s := newSiteOf(t, setup{
		demo: script(t, "-- turn 1 --\nok\n"), services: []model.Service{textOnly, sharp},
		wrap: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, ".js") {
					<-come.Load().(chan struct{})
				}
				next.ServeHTTP(w, r)
			})
		},
	})
	s.seed(t, "Tides", time.Now(), "a", "b")
	s.seed(t, "Charts", time.Now(), "a", "b")
	b := openTab(t, 1280, 800, webuitest.Command(network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true}))
	visit := func(path string) { // and ask for the scripts
		come.Store(make(chan struct{}))
		b.Script(`location.assign("` + s.URL + path + `")`)
		b.UntilLoading(`location.pathname === "` + path + `" && document.readyState === "interactive"`)
	}
	// In one go, since the field with autofocus may take the focus away, and as
	// soon as there is a style, before which nothing takes it.
	typed := func(id, text string) {
		b.UntilLoading(`((field) => { field.focus(); document.execCommand("insertText", false, "` + text + `"); return field.value === "` + text + `"; })(document.getElementById("` + id + `"))`)
	}
	arrive := func() { close(come.Load().(chan struct{})) }
	come.Store(make(chan struct{}))
	arrive()
	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#models"))
	b.Script(`localStorage.setItem("artel.draft /c", "Dear all, "); localStorage.setItem("artel.model", "plain")`)

	visit("/")
	typed("search", "tide")
	typed("text", "good morning")
	b.Script(`document.querySelector("#picker input[value=sharp]").click()`)
	b.Do(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{sample(t, "photo.jpg")}))
	arrive()
	b.Until(`document.querySelector("#chosen .file") !== null && document.querySelectorAll("#conversations .conversation").length === 1`)
	b.Says("#conversations", "Tides")
	b.Says("#chosen", "photo.jpg")
	b.Says("#model", "Sharp")
	if got := eval[[]string](b, `[document.getElementById("text").value, localStorage.getItem("artel.draft /c"), localStorage.getItem("artel.model")]`); !slices.Equal(got, []string{"Dear all, good morning", "Dear all, good morning", "sharp"}) {
		t.Errorf("the draft, what is kept of it, and the model are %q", got)
	}
	b.Do(click(".send"), see("#messages .message.assistant"))
	b.Says("#messages .message.user", "Dear all, good morning", "photo.jpg")

	visit("/agents/new")
	typed("agent-name", "lead_agent")
	arrive()
	b.Until(`document.getElementById("fault-name").innerText.includes("There is an agent of this name")`)
	b.Do(fill("#agent-name", "pilot"))
	b.Until(`document.getElementById("fault-name").innerText === ""`)
}
