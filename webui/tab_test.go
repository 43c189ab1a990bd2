// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/webui/webuitest"
)

// browsers are those of all tests of the page.
var browsers = webuitest.NewBrowsers(2)

func TestMain(m *testing.M) {
	code := m.Run()
	browsers.Quit()
	os.Exit(code)
}

// A tab is a browser's tab that knows this page.
type tab struct{ *webuitest.Tab }

// openTab opens a tab of a new profile, and does something there.
func openTab(t testing.TB, width, height int64, more ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	b := &tab{browsers.Open(t, 15*time.Minute, width, height)}
	b.Do(more...)
	return b
}

// get runs an action that returns something.
func get[T any](b *tab, a chromedp.Action[T]) T {
	b.T.Helper()
	return webuitest.Get(b.Tab, a)
}

// eval runs JavaScript and returns its value, awaited.
func eval[T any](b *tab, expression string) T {
	b.T.Helper()
	return webuitest.Eval[T](b.Tab, expression)
}

// send writes a message, sends it with Enter, and waits until it is in the
// thread.
func (b *tab) send(text string) {
	b.T.Helper()
	before := eval[int](b, `document.querySelectorAll(".message.user").length`)
	b.Do(write(text), press("\r"))
	b.Until(fmt.Sprintf(`document.querySelectorAll(".message.user").length > %d`, before))
}

// rest waits until no run is at work and an answer or a notice is the last
// thing in the thread.
func (b *tab) rest() {
	b.T.Helper()
	b.Until(atRest)
}

const atRest = `!document.querySelector("#status.active, .writing") && document.querySelector("#messages > :last-child:not(.user)") !== null`

// sameAnew checks that the live page comes to show what the page shows that is
// loaded anew, and goes on with the latter.
func (b *tab) sameAnew() {
	b.T.Helper()
	anew, closeTab := b.Beside()
	var live, loaded []string
	defer func() {
		closeTab()
		if b.T.Failed() {
			b.T.Logf("loaded anew the page differs (- live, + loaded):\n%s", cmp.Diff(live, loaded))
		}
	}()
	b.Wait("the page to show what one shows that is loaded anew", func() bool {
		anew.Do(chromedp.Reload(), see("#messages"))
		live, loaded = b.Shown(), anew.Shown()
		return slices.Equal(live, loaded)
	})
	b.Do(chromedp.Reload(), see("#messages"))
}

// picture saves the window, where pictures are wanted.
func (b *tab) picture(name string) {
	b.T.Helper()
	if screens == "" {
		return
	}
	png := get(b, chromedp.CaptureScreenshot())
	if err := os.WriteFile(filepath.Join(screens, name+".png"), png, 0o644); err != nil {
		b.T.Fatal(err)
	}
}

// The steps of a visit, by CSS selector.

func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(see(selector), chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

func see(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.WaitVisible(chromedp.CSS(selector)), awake())
}

// awake waits for the scripts of the page: what a visitor does before they have
// come is done without them.
func awake() chromedp.Action[chromedp.Void] {
	loaded := chromedp.Evaluate[bool](`document.readyState === "complete"`)
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for {
			// There may be no page for a moment, between one and the next.
			if is, err := loaded(ctx, t); err == nil && is || ctx.Err() != nil {
				return ctx.Err()
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// write puts text into the composer as typing does, in the place of what was
// there.
func write(text string) chromedp.Action[chromedp.Void] {
	return fill("#text", text)
}

// fill puts text into a field as typing does, in the place of what was there.
func fill(selector, text string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		see(selector), chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{ const field = document.querySelector(%q); field.focus(); field.select(); }`, selector)),
		webuitest.Command(input.InsertText, input.InsertTextParams{Text: text}),
	)
}

func choose(files ...string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(awake(), chromedp.SetUploadFiles(chromedp.CSS("#file"), files))
}

// press presses keys with Ctrl, Alt or Shift held. Enter at their end is one
// event, which types the line too unless the page takes it: as a keyboard does,
// and not into what the page moves the focus to meanwhile.
func press(keys string, held ...chromedp.Modifier) chromedp.Action[chromedp.Void] {
	steps := []chromedp.Action[chromedp.Void]{awake()}
	text, enters := strings.CutSuffix(keys, "\r")
	if text != "" {
		steps = append(steps, chromedp.KeyEvent(text, chromedp.KeyModifiers(held...)))
	}
	if enters {
		down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13}
		for _, m := range held {
			down.Modifiers |= int64(m)
		}
		up := down
		down.Text, up.Type = "\r", input.DispatchKeyEventTypeKeyUp
		steps = append(steps, webuitest.Command(input.DispatchKeyEvent, down), webuitest.Command(input.DispatchKeyEvent, up))
	}
	return chromedp.Steps(steps...)
}

// onEveryPage runs JavaScript on each page that is opened afterwards, before
// its own.
func onEveryPage(code string) chromedp.Action[chromedp.Void] {
	return webuitest.Command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: code})
}

// atEnd is a JavaScript expression: the thread is scrolled to its end.
const atEnd = `((s) => s.scrollHeight - s.scrollTop - s.clientHeight < 2)(document.getElementById("scroller"))`

// The bench notices what a page complains of, and forgives what it is told to.
func TestTabNoticesComplaints(t *testing.T) {
	t.Parallel()
	_, b := openSite(t, setup{demo: demo.Options{}}, 800, 600)
	if got := b.Complaints(); len(got) > 0 {
		t.Fatalf("the start page complains: %q", got)
	}
	provoked := map[string]string{
		"said aloud":              `console.error("said aloud")`,
		"never caught":            `setTimeout(() => { throw new Error("never caught"); })`,
		"status of 404":           `fetch("/nowhere")`,
		"Content Security Policy": `document.head.append(Object.assign(document.createElement("style"), { textContent: "p { color: red }" }))`,
	}
	for _, code := range provoked {
		b.Script(code)
	}
	for part := range provoked {
		b.Wait(part, func() bool {
			return slices.ContainsFunc(b.Complaints(), func(p string) bool { return strings.Contains(p, part) })
		})
		b.Forgive(part)
	}
}
