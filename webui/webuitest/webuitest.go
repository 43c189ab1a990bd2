// SPDX-License-Identifier: Apache-2.0

// Package webuitest looks at the page in a real browser, for the tests of every
// package that serves it: [Browsers] start Chromium, and a [Tab] of theirs does what
// people do, waits for what they wait for, and tells what the page shows them. A
// page that complains fails the test.
package webuitest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Browsers lets tests share one Chromium, each in a profile of its own. It
// starts when the first tab is opened.
type Browsers struct {
	slots chan struct{}

	shell, whole browser
}

// A browser is a process that starts when it is needed.
type browser struct {
	mu   sync.Mutex
	ctx  context.Context // of the process; nil: it does not run
	stop context.CancelFunc
}

// NewBrowsers allows n tests at once to have tabs: on a small machine more than
// two starve each other.
func NewBrowsers(n int) *Browsers { return &Browsers{slots: make(chan struct{}, n)} }

// Quit ends Chromium. No test may have a tab any more.
func (s *Browsers) Quit() {
	s.shell.quit()
	s.whole.quit()
}

func (b *browser) quit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx == nil {
		return
	}
	_ = chromedp.Cancel(b.ctx) // its complaints at the end are no test's fault
	b.stop()
	b.ctx = nil
}

// Chromium by its names, and before them the part of it that has no window: the same
// engine in half the time.
var (
	wholes = []string{"chromium", "chromium-browser", "google-chrome"}
	shells = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}
)

// run starts the first program that is installed if none runs. The tests need one:
// scripts/setup installs it.
func (b *browser) run(names []string) (context.Context, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx != nil {
		return b.ctx, nil
	}
	var path string
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, errors.New("the browser tests need Chromium; make test installs it or says how")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-quic", true),
		chromedp.Flag("lang", "en-US"), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1440, 900),
		chromedp.WSURLReadTimeout(5*time.Minute), chromedp.DisableGPU,
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return nil, err
	}
	b.ctx, b.stop = ctx, stop
	return ctx, nil
}

// A Tab is a browser's tab that counts what the page complains of. Its methods
// Fail the test that opened it.
type Tab struct {
	T   testing.TB
	Ctx context.Context // of the tab, until its time is over

	listening sync.WaitGroup
	mu        sync.Mutex
	problems  []string
	expected  []string
}

// Open opens a tab of a new profile for at most limit, with a window of so many
// pixels. It fails the test at the end when anything was written to the console:
// errors of scripts, answers that failed, violations of the policy.
func (s *Browsers) Open(t testing.TB, limit time.Duration, width, height int64) *Tab {
	t.Helper()
	return s.open(t, func() (context.Context, error) { return s.shell.run(shells) }, limit, width, height, chromedp.WithNewBrowserContext())
}

// OpenLasting is Open in the profile that a whole Chromium started with. Only there does
// it connect to servers in advance.
func (s *Browsers) OpenLasting(t testing.TB, limit time.Duration, width, height int64) *Tab {
	t.Helper()
	return s.open(t, func() (context.Context, error) { return s.whole.run(wholes) }, limit, width, height)
}

func (s *Browsers) open(t testing.TB, run func() (context.Context, error), limit time.Duration, width, height int64, profile ...chromedp.ContextOption) *Tab {
	t.Helper()
	s.slots <- struct{}{}
	t.Cleanup(func() { <-s.slots })
	chromium, err := run()
	if err != nil {
		t.Fatal(err)
	}
	ctx, closeTab := chromedp.NewContext(chromium, profile...)
	if err := chromedp.Do(ctx); err != nil {
		closeTab()
		t.Fatal(err)
	}
	limited, stop := context.WithTimeout(ctx, limit)
	// A test may be quicker with the focus than the browser with autofocus.
	b := &Tab{T: t, Ctx: limited, expected: []string{"Autofocus processing was blocked"}}
	t.Cleanup(func() {
		stop()
		_ = chromedp.Cancel(ctx)
		closeTab()
		b.listening.Wait()
		for _, p := range b.Complaints() {
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
	b.Do(
		Command(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
		chromedp.EmulateViewport(width, height),
	)
	return b
}

func (b *Tab) complain(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, s)
}

// Beside opens the page of this tab once more in a tab of the same profile, of
// which nothing is counted. The caller closes it.
func (b *Tab) Beside() (*Tab, context.CancelFunc) {
	b.T.Helper()
	ctx, closeTab := chromedp.NewContext(b.Ctx)
	second := &Tab{T: b.T, Ctx: ctx}
	second.Do(chromedp.Navigate(Eval[string](b, "location.href")))
	return second, closeTab
}

// Complaints are those that the test has not provoked.
func (b *Tab) Complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.problems), func(p string) bool {
		return slices.ContainsFunc(b.expected, func(part string) bool { return strings.Contains(p, part) })
	})
}

// Forgive drops what the page has complained of, which the test provoked. With
// parts of texts, only complaints that hold one of them are dropped, also
// those that come later.
func (b *Tab) Forgive(parts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(parts) == 0 {
		b.problems = nil
	}
	b.expected = append(b.expected, parts...)
}

// Do takes steps of a visit, one after the other.
func (b *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	if err := chromedp.Do(b.Ctx, actions...); err != nil {
		b.Fail(err)
	}
}

// Get runs an action that returns something.
func Get[T any](b *Tab, a chromedp.Action[T]) T {
	b.T.Helper()
	v, err := chromedp.Run(b.Ctx, a)
	if err != nil {
		b.Fail(err)
	}
	return v
}

// Eval runs JavaScript and returns its value, awaited.
func Eval[T any](b *Tab, expression string) T {
	b.T.Helper()
	return Get(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Fail ends the test with what the page shows.
func (b *Tab) Fail(err error) {
	b.T.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(b.Ctx), time.Minute)
	defer stop()
	shown, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.querySelector("main")?.innerText ?? document.body.innerText)`))
	b.T.Fatalf("%v\ncomplaints: %q\nthe page: %.1200s", err, b.Complaints(), shown)
}

// Until waits for a JavaScript expression to be true, on this page or on one
// that it leads to, once that page is loaded.
func (b *Tab) Until(expression string) {
	b.T.Helper()
	b.UntilLoading(`document.readyState === "complete" && Boolean(` + expression + ")")
}

// UntilLoading is [Tab.Until] on a page that may still be loading.
func (b *Tab) UntilLoading(expression string) {
	b.T.Helper()
	var last error // the page may be about to be another; it matters only in the end
	defer func() {
		if last != nil && b.T.Failed() {
			b.T.Logf("%s: %v", expression, last)
		}
	}()
	b.Wait(expression, func() (well bool) {
		well, last = chromedp.Run(b.Ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		return last == nil && well
	})
}

// Wait waits for what the page or the server comes to.
func (b *Tab) Wait(what string, well func() bool) {
	b.T.Helper()
	pause := 10 * time.Millisecond // each look costs the page a few
	for end := time.Now().Add(3 * time.Minute); !well(); pause = min(pause*3/2, 50*time.Millisecond) {
		time.Sleep(pause)
		if b.Ctx.Err() != nil || time.Now().After(end) {
			b.Fail(fmt.Errorf("waited in vain for %s", what))
		}
	}
}

// Script runs JavaScript for its effect.
func (b *Tab) Script(expression string) {
	b.T.Helper()
	Get(b, chromedp.Evaluate[chromedp.Void](expression))
}

// Text is what an element shows; "": there is none.
func (b *Tab) Text(selector string) string {
	b.T.Helper()
	return Eval[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// Says checks that the element shows every one of the texts.
func (b *Tab) Says(selector string, wants ...string) {
	b.T.Helper()
	got := b.Text(selector)
	for _, want := range wants {
		if !strings.Contains(got, want) {
			b.T.Errorf("%s does not say %q:\n%s", selector, want, got)
		}
	}
}

// Shown returns what a page shows, one element or text to a line: the thread,
// the plan, the artifacts, the state of the run. A page that was live shows the
// same as one that is loaded anew; which cards are open is the reader's.
func (b *Tab) Shown() []string {
	b.T.Helper()
	return Eval[[]string](b, `(() => {
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

// Prefer sets what the system of the reader says: the scheme "light" or "dark",
// and whether things are to keep still.
func (b *Tab) Prefer(scheme string, still bool) {
	b.T.Helper()
	motion := "no-preference"
	if still {
		motion = "reduce"
	}
	b.Do(Command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
	}}))
}

// Command is a command of the browser's protocol as a step.
func Command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}
