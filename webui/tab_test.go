// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/provider/demo"
)

// A chromium is a browser that tests use one after the other, each in a
// profile of its own.
type chromium struct {
	ctx  context.Context // nil: it does not run
	stop context.CancelFunc
}

// browsers holds all that there are: on a small machine more than two at once
// starve each other.
var browsers = make(chan *chromium, 2)

func TestMain(m *testing.M) {
	for range cap(browsers) {
		browsers <- &chromium{}
	}
	code := m.Run()
	for range cap(browsers) {
		(<-browsers).quit()
	}
	os.Exit(code)
}

// run starts Chromium if it does not run. The tests need it: scripts/setup
// installs it.
func (c *chromium) run() error {
	if c.ctx != nil {
		return nil
	}
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return errors.New("the browser tests need Chromium; make test installs it or says how")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-quic", true),
		chromedp.Flag("lang", "en-US"), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1440, 900),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return err
	}
	c.ctx, c.stop = ctx, stop
	return nil
}

func (c *chromium) quit() {
	if c.ctx == nil {
		return
	}
	_ = chromedp.Cancel(c.ctx) // what it complains of at its end is no test's fault
	c.stop()
	c.ctx = nil
}

// A tab is a browser's tab that counts what the page complains of.
type tab struct {
	t   *testing.T
	ctx context.Context

	listening sync.WaitGroup
	mu        sync.Mutex
	problems  []string
	expected  []string
}

// openTab opens a tab of a new profile. It fails the test at the end when
// anything was written to the console: errors of scripts, answers that failed,
// violations of the policy.
func openTab(t *testing.T, width, height int64, more ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	c := <-browsers
	t.Cleanup(func() { browsers <- c })
	if err := c.run(); err != nil {
		t.Fatal(err)
	}
	ctx, closeTab := chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext())
	if err := chromedp.Do(ctx); err != nil {
		closeTab()
		c.quit()
		t.Fatal(err)
	}
	limited, stop := context.WithTimeout(ctx, 2*time.Minute)
	// A test may be quicker with the focus than the browser with autofocus.
	b := &tab{t: t, ctx: limited, expected: []string{"Autofocus processing was blocked"}}
	t.Cleanup(func() {
		stop()
		_ = chromedp.Cancel(ctx)
		closeTab()
		b.listening.Wait()
		for _, p := range b.complaints() {
			t.Errorf("the page complains: %s", p)
		}
	})
	said := chromedp.Console(limited)
	b.listening.Go(func() {
		for message, err := range said {
			if err != nil {
				return // the tab is closed
			}
			b.complain(message.String())
		}
	})
	b.do(
		command(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
		chromedp.EmulateViewport(width, height),
	)
	b.do(more...)
	return b
}

func (b *tab) complain(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, s)
}

// complaints are those that the test has not provoked.
func (b *tab) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.problems), func(p string) bool {
		return slices.ContainsFunc(b.expected, func(part string) bool { return strings.Contains(p, part) })
	})
}

// forgive drops what the page has complained of, which the test provoked. With
// parts of texts, only complaints that hold one of them are dropped, also
// those that come later.
func (b *tab) forgive(parts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(parts) == 0 {
		b.problems = nil
	}
	b.expected = append(b.expected, parts...)
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.fail(err)
	}
}

// get runs an action that returns something.
func get[T any](b *tab, a chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, a)
	if err != nil {
		b.fail(err)
	}
	return v
}

// eval runs JavaScript and returns its value, awaited.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	return get(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

func (b *tab) fail(err error) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(b.ctx), 2*time.Second)
	defer stop()
	shown, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.querySelector("main")?.innerText ?? document.body.innerText)`))
	b.t.Fatalf("%v\ncomplaints: %q\nthe page: %.1200s", err, b.complaints(), shown)
}

// until waits for a JavaScript expression to be true, on this page or on one
// that it leads to.
func (b *tab) until(expression string) {
	b.t.Helper()
	var last error // the page may be about to be another; it matters only in the end
	defer func() {
		if last != nil && b.t.Failed() {
			b.t.Logf("%s: %v", expression, last)
		}
	}()
	b.wait(expression, func() (well bool) {
		well, last = chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		return last == nil && well
	})
}

// wait waits for what the page or the server comes to.
func (b *tab) wait(what string, well func() bool) {
	b.t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(time.Minute); !well(); <-again.C {
		if b.ctx.Err() != nil || time.Now().After(end) {
			b.fail(fmt.Errorf("waited in vain for %s", what))
		}
	}
}

// script runs JavaScript for its effect.
func (b *tab) script(expression string) {
	b.t.Helper()
	get(b, chromedp.Evaluate[chromedp.Void](expression))
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// says checks that the element shows every one of the texts.
func (b *tab) says(selector string, wants ...string) {
	b.t.Helper()
	got := b.text(selector)
	for _, want := range wants {
		if !strings.Contains(got, want) {
			b.t.Errorf("%s does not say %q:\n%s", selector, want, got)
		}
	}
}

// send writes a message, sends it with Enter, and waits until it is in the
// thread.
func (b *tab) send(text string) {
	b.t.Helper()
	before := eval[int](b, `document.querySelectorAll(".message.user").length`)
	b.do(write(text), enter())
	b.until(fmt.Sprintf(`document.querySelectorAll(".message.user").length > %d`, before))
}

// rest waits until no run is at work and an answer or a notice is the last
// thing in the thread.
func (b *tab) rest() {
	b.t.Helper()
	b.until(`!document.querySelector("#status.active, .writing") && document.querySelector("#messages > :last-child:not(.user)") !== null`)
}

// shown returns what a page shows, one element or text to a line: the thread,
// the plan, the artifacts, the state of the run. A page that was live shows the
// same as one that is loaded anew; which cards are open is the reader's.
func (b *tab) shown() []string {
	b.t.Helper()
	return eval[[]string](b, `(() => {
		const lines = [];
		const walk = (node, depth) => {
			if (node instanceof Text) {
				if (node.data.trim()) lines.push(" ".repeat(depth) + node.data.trim().replace(/\s+/g, " "));
				return;
			}
			if (!(node instanceof Element)) return;
			const attributes = [...node.attributes].filter((a) => a.name !== "open" && !(a.name === "class" && !a.value) && !a.name.startsWith("data-htmx"));
			lines.push(" ".repeat(depth) + "<" + node.localName + attributes.map((a) => " " + a.name + "=" + a.value).sort().join("") + ">");
			for (const child of node.childNodes) walk(child, depth + 1);
		};
		for (const id of ["messages", "plan", "artifacts", "artifact-count", "status"]) walk(document.getElementById(id), 0);
		return lines;
	})()`)
}

// sameAnew loads the page anew and checks that it shows the same.
func (b *tab) sameAnew() {
	b.t.Helper()
	live := b.shown()
	b.do(chromedp.Reload(), see("#messages"))
	if diff := cmp.Diff(live, b.shown()); diff != "" {
		b.t.Errorf("loaded anew the page differs (- live, + loaded):\n%s", diff)
	}
}

// picture saves the window, where pictures are wanted.
func (b *tab) picture(name string) {
	b.t.Helper()
	if screens == "" {
		return
	}
	png := get(b, chromedp.CaptureScreenshot())
	if err := os.WriteFile(filepath.Join(screens, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// The steps of a visit, by CSS selector.

func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)
}

func see(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.WaitVisible(chromedp.CSS(selector))
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
		command(input.InsertText, input.InsertTextParams{Text: text}),
	)
}

func choose(files ...string) chromedp.Action[chromedp.Void] {
	return chromedp.SetUploadFiles(chromedp.CSS("#file"), files)
}

// press presses keys with Ctrl, Alt or Shift held.
func press(keys string, held ...chromedp.Modifier) chromedp.Action[chromedp.Void] {
	return chromedp.KeyEvent(keys, chromedp.KeyModifiers(held...))
}

// onEveryPage runs JavaScript on each page that is opened afterwards, before
// its own.
func onEveryPage(code string) chromedp.Action[chromedp.Void] {
	return command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: code})
}

// enter presses Enter as a keyboard does: one event that types the line too,
// unless the page takes it.
func enter() chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13, Text: "\r"}),
		command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13}),
	)
}

// command is a command of the browser's protocol as a step.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// atEnd is a JavaScript expression: the thread is scrolled to its end.
const atEnd = `((s) => s.scrollHeight - s.scrollTop - s.clientHeight < 2)(document.getElementById("scroller"))`

// median returns the middle of some measurements.
func median[T stdcmp.Ordered](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// The bench notices what a page complains of, and forgives what it is told to.
func TestTabNoticesComplaints(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	b := openTab(t, 800, 600)
	b.do(chromedp.Navigate(s.URL), see("#composer"))
	if got := b.complaints(); len(got) > 0 {
		t.Fatalf("the start page complains: %q", got)
	}
	provoked := map[string]string{
		"said aloud":              `console.error("said aloud")`,
		"never caught":            `setTimeout(() => { throw new Error("never caught"); })`,
		"status of 404":           `fetch("/nowhere")`,
		"Content Security Policy": `document.head.append(Object.assign(document.createElement("style"), { textContent: "p { color: red }" }))`,
	}
	for _, code := range provoked {
		b.script(code)
	}
	for part := range provoked {
		b.wait(part, func() bool {
			return slices.ContainsFunc(b.complaints(), func(p string) bool { return strings.Contains(p, part) })
		})
		b.forgive(part)
	}
}
