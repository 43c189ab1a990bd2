// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/store"
)

// titles are what the list shows, in its order.
func (b *tab) titles() []string {
	b.T.Helper()
	return eval[[]string](b, `[...document.querySelectorAll("#conversations .conversation bdi")].map((title) => title.innerText)`)
}

// noonClock returns noon of today and a clock that stands there.
func noonClock() (noon time.Time, clock func() time.Time) {
	now := time.Now()
	noon = time.Date(now.Year(), now.Month(), now.Day(), 12, 0, 0, 0, now.Location())
	return noon, func() time.Time { return noon }
}

// The list says when, and finds by title and by what was written.
func TestListAndSearch(t *testing.T) {
	t.Parallel()
	noon, clock := noonClock()
	s := newSiteOf(t, setup{now: clock})
	s.seed(t, "Made just now", noon, "hello", "hi")
	s.seed(t, "Made yesterday", noon.AddDate(0, 0, -1), "about a lighthouse", "It stands on a <b>rock</b> in the north sea.")
	s.seed(t, "Made this week", noon.AddDate(0, 0, -4), "x", "y")
	s.seed(t, "Made this month", noon.AddDate(0, 0, -20), "x", "y")
	s.seed(t, "Made long ago", noon.AddDate(0, 0, -400), "x", "y")
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#conversations"))
	groups := eval[[]string](b, `[...document.querySelectorAll("#conversations :is(h2, bdi)")].map((e) => e.innerText)`)
	want := []string{"Today", "Made just now", "Yesterday", "Made yesterday", "Last 7 days", "Made this week", "Last 30 days", "Made this month", "Earlier", "Made long ago"}
	if !slices.Equal(groups, want) {
		t.Errorf("the list shows %q, want %q", groups, want)
	}
	b.Says("#conversations li:last-of-type time", "")
	if got := b.Text("#conversations ul:last-of-type time"); !strings.HasPrefix(got, fmt.Sprint(noon.AddDate(0, 0, -400).Year())) {
		t.Errorf("the date of an old conversation is %q", got)
	}

	search := func(words string, wants ...string) {
		t.Helper()
		b.Do(fill("#search", words))
		b.Wait(fmt.Sprintf("%q to find %q", words, wants), func() bool { return slices.Equal(b.titles(), wants) })
	}
	search("JUST", "Made just now")
	if got := b.Text(".excerpt"); got != "" {
		t.Errorf("a hit in the title has the excerpt %q", got)
	}
	search("rock sea", "Made yesterday")
	b.Says(".excerpt", "<b>rock</b> in the north sea")
	b.picture("search")
	search("nothing like this")
	b.Says("#conversations", "No results")
	search("made long", "Made long ago")
	b.Do(click("#conversations .conversation a"), see("#messages"))
	b.Says("#heading", "Made long ago")
	b.Do(press("k", chromedp.ModifierCtrl))
	b.Until(`document.activeElement.id === "search"`)
	search("lighthouse", "Made yesterday")
	b.Do(chromedp.Evaluate[chromedp.Void](`document.activeElement.value = ""; document.activeElement.dispatchEvent(new Event("input", { bubbles: true }))`))
	b.Until(`document.querySelectorAll("#conversations .conversation").length === 5 && document.querySelector("#conversations [aria-current]")?.innerText.includes("Made long ago")`)
}

// Conversations that only have artifacts, as uploads and MCP hosts make them, are
// listed and found; those with nothing in them are not.
func TestListWithoutMessages(t *testing.T) {
	t.Parallel()
	noon, clock := noonClock()
	s := newSiteOf(t, setup{now: clock})
	s.seed(t, "Talk", noon, "hello", "hi")
	s.seed(t, "Nothing in it", noon.Add(-time.Minute))
	files := s.seed(t, "report.csv", noon.Add(-2*time.Minute))
	text := "a,b\n1,2\n"
	err := s.store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
		v := artel.Version{Update: artel.UpdateCreate, Provenance: artel.SourceUserUpload, CreatedAt: noon, MediaInfo: artel.MediaInfo{MediaType: "text/csv", Kind: artel.KindText, Size: int64(len(text))}}
		var err error
		if v.Number, err = tx.Journal.Append(files, "report.csv", v, &text); err != nil {
			return err
		}
		return tx.Journal.Fold(files, "report.csv", v, &text)
	})
	if err != nil {
		t.Fatal(err)
	}
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#conversations"))
	if got := b.titles(); !slices.Equal(got, []string{"Talk", "report.csv"}) {
		t.Errorf("the list shows %q", got)
	}
	b.Do(fill("#search", "report"))
	b.Wait("the search to find it", func() bool { return slices.Equal(b.titles(), []string{"report.csv"}) })
	b.Do(click("#conversations .conversation a"), see("#messages"))
	b.Says("#heading", "report.csv")
}

// A title is changed in its place: Enter keeps it, Escape does not. What is
// being typed stays when the list comes anew.
func TestRename(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	one := s.seed(t, "First", time.Now().Add(-time.Hour), "a", "b")
	two := s.seed(t, "Second", time.Now().Add(-2*time.Hour), "a", "b")
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(one)), see("#messages"))
	pencil := func(id string) {
		t.Helper()
		b.Do(click("#c-"+id+` a[href$="/title"]`), see("#c-"+id+" input"))
		b.Until(`document.activeElement.name === "title" && getSelection().toString() === document.activeElement.value`)
	}
	pencil(string(one))
	b.Do(fill("#c-"+string(one)+" input", "Better <i>name</i>"), press("\r"))
	b.Until(`document.querySelector("#heading").innerText === "Better <i>name</i>" && document.querySelector("#c-` + string(one) + ` a").innerText.includes("Better <i>name</i>")`)
	b.Until(`document.activeElement.closest("#c-` + string(one) + `") !== null`)
	pencil(string(two))
	b.Do(fill("#c-"+string(two)+" input", "never"))
	s.seed(t, "Third", time.Now().Add(-3*time.Hour), "a", "b")
	b.Script(`document.getElementById("search").dispatchEvent(new Event("search"))`) // as an answer that is late
	b.Until(`document.querySelectorAll("#conversations .conversation").length === 3`)
	b.Do(press(" kept"))
	if got := eval[string](b, `document.activeElement.value`); got != "never kept" {
		t.Errorf("after the list has come anew what is typed reads %q", got)
	}
	b.Do(press(kb.Escape))
	b.Until(`document.querySelector("#c-` + string(two) + ` a")?.innerText.includes("Second")`)
	b.Until(`document.activeElement.closest("#c-` + string(two) + `") !== null`)
	b.Do(chromedp.Reload(), see("#messages"))
	if got := b.titles(); !slices.Equal(got, []string{"Better <i>name</i>", "Second", "Third"}) {
		t.Errorf("loaded anew the titles are %q", got)
	}
	b.Says("#heading", "Better <i>name</i>")
	if got := get(b, chromedp.Title()); !strings.Contains(got, "Better <i>name</i>") {
		t.Errorf("the window is called %q", got)
	}
}

// What was deleted can be taken back: another conversation, and the one that
// is shown.
func TestDeleteAndUndo(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	one := string(s.seed(t, "First", time.Now().Add(-time.Hour), "a", "b"))
	two := string(s.seed(t, "Second", time.Now().Add(-2*time.Hour), "a", "b"))
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL+"/c/"+one), see("#messages"))
	bin := func(id string) string { return "#c-" + id + ` form[action$="/delete"] button` }
	b.Do(click(bin(two)), see(".toast"))
	b.Until(`!document.getElementById("c-` + two + `")`)
	b.Says(".toast", "deleted", "Undo")
	b.picture("deleted")
	b.Do(click(".toast form button"))
	b.Until(`document.getElementById("c-` + two + `") !== null && !document.querySelector(".toast")`)
	if got := b.titles(); !slices.Equal(got, []string{"First", "Second"}) {
		t.Errorf("after the undo the list is %q", got)
	}
	b.Says("#heading", "First")

	b.Do(click(bin(one)))
	b.Until(`location.pathname === "/" && document.querySelector(".toast") !== null && !document.getElementById("c-` + one + `")`)
	b.Do(click(".toast form button"))
	b.Until(`location.pathname === "/c/` + one + `" && document.querySelectorAll("#messages .message").length === 2`)

	b.Do(click("#delete-conversation button")) // of the header: the same, without the sidebar
	b.Until(`location.pathname === "/" && document.querySelector(".toast") !== null && !document.getElementById("c-` + one + `")`)
	b.Do(click(".toast form button"))
	b.Until(`location.pathname === "/c/` + one + `" && document.querySelectorAll("#messages .message").length === 2`)

	b.Do(click(bin(two)), see(".toast"), click(".toast [data-dismiss]"))
	b.Until(`!document.querySelector(".toast")`)
	b.Do(chromedp.Reload(), see("#messages"))
	if got := b.titles(); !slices.Equal(got, []string{"First"}) {
		t.Errorf("what was deleted is shown: %q", got)
	}
}

// A conversation at work cannot be deleted, and the page says what to do.
func TestDeleteWhileWorking(t *testing.T) {
	t.Parallel()
	s := newSite(t, script(t, "-- turn 1 --\nThis takes a while.\n@hang\n"))
	b := openTab(t, 1280, 800)
	b.Forgive("status of 409")
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("go")
	b.Do(click(`.conversation form[action$="/delete"] button`), see(".toast[role=alert]"))
	b.Says(".toast", "stop it first")
	b.Until(`document.querySelectorAll(".conversation").length === 1`)
}

// Scrolling down the list loads the rest of it, each once and in order.
func TestLongList(t *testing.T) {
	t.Parallel()
	const conversations = 120
	noon, clock := noonClock()
	s := newSiteOf(t, setup{now: clock})
	for i := range conversations {
		s.seed(t, fmt.Sprintf("Conversation %d", i), noon.Add(-time.Duration(i)*12*time.Hour), "a", "b")
	}
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#conversations"))
	if n := len(b.titles()); n >= conversations {
		t.Fatalf("all %d are loaded at once", n)
	}
	for round := 0; len(b.titles()) < conversations; round++ {
		if round > 5 {
			t.Fatalf("after %d rounds there are %d", round, len(b.titles()))
		}
		before := len(b.titles())
		b.Script(`document.querySelector(".sidebar .scroll").scrollTop = 1e6`)
		b.Until(fmt.Sprintf(`document.querySelectorAll("#conversations .conversation").length > %d`, before))
	}
	for i, title := range b.titles() {
		if want := fmt.Sprintf("Conversation %d", i); title != want {
			t.Fatalf("at %d stands %q", i, title)
		}
	}
	groups := eval[[]string](b, `[...document.querySelectorAll("#conversations h2")].map((e) => e.innerText)`)
	if !slices.Equal(groups, []string{"Today", "Yesterday", "Last 7 days", "Last 30 days", "Earlier"}) {
		t.Errorf("the groups are %q", groups)
	}
	if eval[bool](b, `document.getElementById("more-conversations") !== null`) {
		t.Error("the list offers more than there is")
	}
	b.Do(fill("#search", "Conversation 1"))
	b.Until(`document.querySelectorAll("#conversations .conversation").length === 39`)
}
