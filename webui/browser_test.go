// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/provider/demo"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
	"github.com/artelhq/artel/webui"
)

// screens is where the tests leave pictures of the page; "": nowhere.
var screens = os.Getenv("ARTEL_SCREENS")

// A site is a whole server with the page and the API, as artel serve wires it.
type site struct {
	*httptest.Server
	app   *app.App
	store store.Store
}

func newSite(t *testing.T, o demo.Options) *site {
	t.Helper()
	db, err := sqlite.Open(t.Context(), ":memory:", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	blobs := blob.NewMemory()
	a, err := app.New(app.Config{
		Store: db, Blobs: blobs, Bell: event.NewBell(), Services: model.NewRegistry(nil, ""),
		Providers: map[model.Dialect]model.Provider{model.Demo: demo.New(blobs, o)},
		Options:   app.Options{SpoolDir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(httpapi.Base+"/", httpapi.New(a, httpapi.Options{}))
	mux.Handle("/", webui.New(a, webui.Options{Version: "test"}))
	s := &site{httptest.NewServer(httpapi.Guard(mux)), a, db}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer stop()
		if err := a.Close(ctx); err != nil {
			t.Error(err)
		}
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// A tab is a browser's tab that counts what the page complains of.
type tab struct {
	t   *testing.T
	ctx context.Context

	listening sync.WaitGroup
	mu        sync.Mutex
	problems  []string
}

// browsers bounds how many run at once: on a small machine more of them starve
// each other.
var browsers = make(chan struct{}, 2)

// openTab starts Chromium. The tests need it: scripts/setup installs it.
func openTab(t *testing.T, width, height int64, more ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("the browser tests need Chromium; make test installs it or says how")
	}
	browsers <- struct{}{}
	t.Cleanup(func() { <-browsers })
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-quic", true),
		chromedp.Flag("lang", "en-US"), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-background-networking", true),
		chromedp.WindowSize(int(width), int(height)), chromedp.UserDataDir(t.TempDir()),
	)
	ctx, stopBrowser := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, stopTab := chromedp.NewContext(ctx)
	ctx, stop := context.WithTimeout(ctx, 90*time.Second)
	b := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		stop()
		stopTab()
		stopBrowser()
		b.listening.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, p := range b.problems {
			t.Errorf("the page complains: %s", p)
		}
	})
	said := chromedp.Console(ctx)
	b.listening.Go(func() {
		for message, err := range said {
			if err != nil {
				return // the tab is closed
			}
			b.complain(message.String())
		}
	})
	b.do(chromedp.EmulateViewport(width, height))
	b.do(more...)
	return b
}

func (b *tab) complain(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, s)
}

// forgive drops what the page has complained of, which the test provoked.
func (b *tab) forgive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = nil
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

func (b *tab) fail(err error) {
	b.t.Helper()
	page, _ := chromedp.Run(b.ctx, chromedp.InnerHTML(chromedp.CSS("body")))
	b.t.Fatalf("%v\nthe page:\n%.4000s", err, page)
}

// until waits for a JavaScript expression to be true.
func (b *tab) until(expression string) {
	b.t.Helper()
	get(b, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(30*time.Second)))
}

// script runs JavaScript for its effect.
func (b *tab) script(expression string) {
	b.t.Helper()
	get(b, chromedp.Evaluate[chromedp.Void](expression))
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return get(b, chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector)))
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
	return chromedp.Click(chromedp.CSS(selector))
}

func see(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.WaitVisible(chromedp.CSS(selector))
}

func write(text string) chromedp.Action[chromedp.Void] {
	return chromedp.SetValue(chromedp.CSS("#text"), text)
}

func choose(files ...string) chromedp.Action[chromedp.Void] {
	return chromedp.SetUploadFiles(chromedp.CSS("#file"), files)
}

// command is a command of the browser's protocol as a step.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func sample(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "testdata", "files", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// A newcomer opens the page, sends a picture, a PDF and a text, watches the
// plan fill, and opens the report.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{Delay: 5 * time.Millisecond})
	b := openTab(t, 1440, 900)
	b.do(chromedp.Navigate(s.URL), see("#composer"))
	b.picture("home")
	if got := b.text("main"); !strings.Contains(got, "the demo answers") {
		t.Errorf("the start page does not say that the demo answers: %q", got)
	}
	b.do(
		write("What is in these files?"),
		choose(sample(t, "photo.jpg"), sample(t, "report.pdf"), sample(t, "notes.md")),
	)
	b.do(choose(sample(t, "tone.mp3"))) // choosing again adds
	b.picture("files")
	b.do(click(`#files button[aria-label="Remove tone.mp3"]`))
	if got := b.text("#files"); strings.Contains(got, "tone.mp3") {
		t.Errorf("a removed file is still shown: %q", got)
	}
	if got := b.text("#files"); !strings.Contains(got, "photo.jpg") || !strings.Contains(got, "notes.md") {
		t.Errorf("the chosen files are not shown: %q", got)
	}
	b.do(click("#composer button[type=submit]"), see("#messages"))
	b.until(`document.querySelector("#status").hidden && document.querySelectorAll(".call.done").length >= 5`)
	b.until(`document.querySelector(".plan progress")?.value === document.querySelector(".plan progress")?.max`)
	b.picture("conversation")

	shown := b.text("#messages")
	for _, want := range []string{"What is in these files?", "photo.jpg", "Demo model", "create_artifact", "report.pdf"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the thread does not show %q:\n%s", want, shown)
		}
	}
	if got := b.text("#artifacts"); !strings.Contains(got, "Task plan") || !strings.Contains(got, "Report") {
		t.Errorf("the panel shows %q", got)
	}
	live := shown
	b.do(chromedp.Reload(), see("#messages .call"))
	if got := b.text("#messages"); got != live {
		t.Errorf("loaded anew the thread differs from the live one:\n--- live\n%s\n--- loaded\n%s", live, got)
	}

	b.script(`[...document.querySelectorAll("#messages .body a")].find(a => a.href.endsWith("/a/report")).click()`)
	b.do(see("main.artifact"))
	b.picture("report")
	report := b.text("main.artifact")
	for _, want := range []string{"JPEG", "PDF", "2 pages"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report does not say %q:\n%s", want, report)
		}
	}
	b.script(`[...document.querySelectorAll(".panel a")][0].click()`)
	b.do(see(`.panel [aria-current="page"]`))
	b.do(click(`main.artifact header a`), see("#messages"))
	b.script(`[...document.querySelectorAll("#artifacts li a")].find(a => a.innerText.includes("photo")).click()`)
	b.do(see("main.artifact img.sheet"))
	b.until(`document.querySelector("img.sheet").naturalWidth > 0`)
	b.picture("picture")
}

// Keyboard alone: Enter sends, Shift+Enter does not.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	b := openTab(t, 1280, 800)
	b.do(chromedp.Navigate(s.URL), see("#composer"))
	b.do(chromedp.KeyEvent("first"), chromedp.KeyEvent("\r", chromedp.KeyModifiers(chromedp.ModifierShift)), chromedp.KeyEvent("second"))
	draft := get(b, chromedp.Value(chromedp.CSS("#text")))
	if draft != "first\nsecond" {
		t.Errorf("the draft is %q: the field has no focus, or Shift+Enter made no line", draft)
	}
	b.do(chromedp.KeyEvent("\r"), see("#messages .message.user"))
	b.until(`document.querySelector("#status").hidden && document.querySelector(".message.assistant .body") !== null`)
}

// Text is on the page while the rest of it is still being written.
func TestStreaming(t *testing.T) {
	t.Parallel()
	scenario, err := demo.ParseScenario([]byte("-- turn 1 --\n**Half** of it\n@delay 3s\nand the rest.\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, demo.Options{Scenario: scenario})
	b := openTab(t, 1280, 800)
	b.do(chromedp.Navigate(s.URL), see("#composer"), write("go"), click("#composer button[type=submit]"), see("#messages"))
	b.until(`document.querySelector(".writing strong")?.innerText === "Half" && !document.querySelector("#messages").innerText.includes("rest")`)
	b.picture("writing")
	b.until(`document.querySelector("#status").hidden && document.querySelector(".writing") === null && document.querySelector("#messages").innerText.includes("and the rest.")`)
}

// The Stop button ends a run that waits, and the page says so.
func TestStop(t *testing.T) {
	t.Parallel()
	scenario, err := demo.ParseScenario([]byte("-- turn 1 --\nThis takes a while.\n@hang\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, demo.Options{Scenario: scenario})
	b := openTab(t, 1280, 800)
	b.do(chromedp.Navigate(s.URL), see("#composer"), write("go"),
		click("#composer button[type=submit]"), see("#status button"))
	b.until(`document.querySelector("#messages").innerText.includes("takes a while")`)
	b.do(click("#status button"))
	b.until(`document.querySelector("#status").hidden && document.querySelector("p.error[role=alert][id^=e-]") !== null`)
	if got := b.text("#messages"); !strings.Contains(got, "cancelled") || !strings.Contains(got, "takes a while") {
		t.Errorf("after stopping the page shows %q", got)
	}
}

// What models and people write never runs and never leaves its place.
func TestHostileText(t *testing.T) {
	t.Parallel()
	hostile := "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\n\n" +
		"[click](javascript:document.title='owned') ![x](http://127.0.0.1:9/x.png) <style>body{display:none}</style>\n"
	scenario, err := demo.ParseScenario([]byte("-- turn 1 --\n" + hostile))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, demo.Options{Scenario: scenario})
	b := openTab(t, 1280, 800)
	b.do(chromedp.Navigate(s.URL), see("#composer"),
		write(hostile), click("#composer button[type=submit]"), see("#messages .message.assistant"))
	b.until(`document.querySelector("#status").hidden`)
	title := get(b, chromedp.Title())
	elements := get(b, chromedp.Evaluate[int](
		`document.querySelectorAll("#messages script, #messages style, #messages [onerror], #messages a[href^='javascript'], #messages img").length`))
	if title == "owned" || elements > 0 {
		t.Errorf("title %q, %d hostile elements", title, elements)
	}
}

// A refusal keeps what was written and says why.
func TestRefusal(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	b := openTab(t, 1280, 800)
	b.do(chromedp.Navigate(s.URL), see("#composer"), click("#composer button[type=submit]"))
	b.until(`!document.querySelector("#composer-error").hidden`)
	if got := b.text("#composer-error"); !strings.Contains(got, "attach a file") {
		t.Errorf("the refusal says %q", got)
	}
	list, _, err := s.app.Conversations.List(t.Context(), app.Page{})
	if err != nil || len(list) > 0 {
		t.Errorf("a refused first message left %d conversations (%v)", len(list), err)
	}
	b.forgive() // the browser notes the status 422
	s.CloseClientConnections()
	s.Listener.Close()
	b.do(write("kept"), click("#composer button[type=submit]"))
	b.until(`document.querySelector("#composer-error").innerText.includes("cannot be reached")`)
	draft := get(b, chromedp.Value(chromedp.CSS("#text")))
	if draft != "kept" {
		t.Errorf("the draft is %q after the server was lost", draft)
	}
	b.forgive()
}

// Chinese, dark and narrow: nothing is cut off and nothing is untranslated.
func TestOtherReaders(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	b := openTab(t, 390, 844,
		command(emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: "Mozilla/5.0 test", AcceptLanguage: "zh-CN"}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}),
	)
	b.do(chromedp.Navigate(s.URL), see("#composer"))
	b.picture("home-zh-dark-narrow")
	if got := b.text("main"); !strings.Contains(got, "尚未连接模型") || strings.Contains(got, "page.") {
		t.Errorf("in Chinese the start page says %q", got)
	}
	b.do(write("请看看这些文件"),
		choose(sample(t, "red.png"), sample(t, "zh_utf8.txt")),
		click("#composer button[type=submit]"), see("#messages .call"))
	b.until(`document.querySelector("#status").hidden && document.querySelector(".plan progress") !== null`)
	b.picture("conversation-zh-dark-narrow")
	if get(b, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > document.documentElement.clientWidth`)) {
		t.Error("the narrow page scrolls sideways")
	}
}

// Forms and links work where no script runs.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	b := openTab(t, 1280, 800, command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.do(chromedp.Navigate(s.URL), see("#composer"), write("hello without script"))
	b.do(click("#composer button[type=submit]"), see("#messages .message.user"))
	list, _, err := s.app.Conversations.List(t.Context(), app.Page{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d conversations (%v)", len(list), err)
	}
	waitFinal(t, s, list[0].ID)
	b.do(chromedp.Reload(), see("#messages .message.assistant"))
}

func waitFinal(t *testing.T, s *site, c artel.ConversationID) {
	t.Helper()
	for e, err := range s.app.Events.Follow(t.Context(), c, 0, time.Minute) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == artel.EventRunFinished {
			return
		}
	}
	t.Fatal("the run never finished")
}
