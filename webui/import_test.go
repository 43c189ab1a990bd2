// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/webui/webuitest"
)

// zipped is a conversation of another site, which used a model that is only
// there, as a ZIP on the disk.
func zipped(t *testing.T) string {
	t.Helper()
	s := newSiteOf(t, setup{services: []model.Service{textOnly}, model: speech(func(_ context.Context, _ *model.Request, say func(model.Delta) bool) {
		say(model.TextDelta("I have read the notes."))
	})})
	c, err := s.app.Conversations.Create(apptest.Context(t), app.NewConversation{Title: "Brought along", Service: textOnly.ID})
	if err != nil {
		t.Fatal(err)
	}
	staged, err := s.app.Artifacts.Stage(apptest.Context(t), c.ID, app.Upload{Body: strings.NewReader("# Notes of elsewhere\n"), Filename: "notes.md"})
	if err == nil {
		_, err = s.app.Runs.Send(apptest.Context(t), c.ID, run.Input{Text: "Read this.", Uploads: []artifact.Staged{staged}})
	}
	if err != nil {
		t.Fatal(err)
	}
	waitFinal(t, s, c.ID)
	e, err := s.app.Conversations.Export(apptest.Context(t), c.ID, "")
	var zip bytes.Buffer
	if err == nil {
		err = e.Write(apptest.Context(t), &zip)
	}
	path := filepath.Join(t.TempDir(), "brought.zip")
	if err == nil {
		err = os.WriteFile(path, zip.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A conversation leaves as a ZIP by a button, and comes in by button or drop;
// the page says what came along and what did not, and what is no such ZIP.
func TestImportAndExport(t *testing.T) {
	t.Parallel()
	zip := zipped(t)
	raw, err := os.ReadFile(zip)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, demo.Options{})
	b := openTab(t, 1280, 800)
	b.Forgive("422") // the refusal has that status
	b.Do(chromedp.Navigate(s.URL), click(`.sidebar a[href="/import"]`), see("#landing"))
	b.Says("#import", "Included", "Not included")
	pick := func(name string) chromedp.Action[chromedp.Void] {
		return chromedp.SetUploadFiles(chromedp.CSS("#zip"), []string{name})
	}
	b.Do(pick(sample(t, "archive.zip")), see("#import-error"))
	if b.Text("#import-error") == "" || !eval[bool](b, `document.activeElement.id === "zip"`) {
		t.Error("a refused ZIP is not explained, or the focus is lost")
	}
	if n := len(s.all(t)); n > 0 {
		t.Errorf("%d conversations came of a refused ZIP", n)
	}

	b.Do(pick(zip), see("#messages .message.user"))
	b.Says("#messages", "Read this.", "I have read the notes.", "notes.md")
	b.Says("#toasts", "Imported. Messages: 2 · artifacts: 1 · versions: 1", "Not available here: plain")
	b.picture("imported")
	b.Do(chromedp.Reload(), see("#messages .message.user"))
	if got := b.Text("#toasts"); got != "" {
		t.Errorf("told twice: %q", got)
	}
	b.Do(click("#panel-toggle"), click("#panel-toggle"), see("#artifacts a"))
	b.Says("#heading", "Brought along")

	// The way out again, and in by dropping.
	dir := t.TempDir()
	b.Do(webuitest.Command(browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir, BrowserContextID: chromedp.FromContext(b.Ctx).BrowserContextID}))
	b.Do(click(`main > header a[href$="/export"]`))
	b.Wait("the ZIP", func() bool {
		again, err := os.ReadFile(filepath.Join(dir, "Brought along.zip"))
		return err == nil && bytes.HasPrefix(again, []byte("PK")) && len(again) > len(raw)/2
	})
	b.Do(chromedp.Navigate(s.URL+"/import"), see("#landing"))
	b.Script(`(async () => {
		const zip = await (await fetch("/api/v1/conversations/` + string(s.all(t)[0].ID) + `/export")).blob();
		const data = new DataTransfer();
		data.items.add(new File([zip], "again.zip", { type: "application/zip" }));
		const over = (type) => document.body.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
		over("dragenter"); over("dragover"); over("drop");
	})()`)
	b.Do(see("#messages .message.user"))
	b.Says("#toasts", "Messages: 2")
	if n := len(s.all(t)); n != 2 {
		t.Errorf("there are %d conversations", n)
	}
}

// Without script the form does the same.
func TestImportForm(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(zipped(t))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, demo.Options{})
	for name, c := range map[string]struct {
		files  map[string]string
		status int
		says   string
	}{
		"nothing": {nil, 422, "Choose a ZIP first."},
		"no ZIP":  {map[string]string{"x.zip": "rubbish"}, 422, "import-error"},
	} {
		contentType, body := formOf(t, "zip", nil, c.files)
		if a := s.ask(t, "POST", "/import", contentType, body); a.StatusCode != c.status || !strings.Contains(a.body, c.says) {
			t.Errorf("%s: status %d, want %d and %q", name, a.StatusCode, c.status, c.says)
		}
	}
	contentType, body := formOf(t, "zip", nil, map[string]string{"x.zip": string(raw)})
	a := s.ask(t, "POST", "/import", contentType, body)
	if a.StatusCode != http.StatusSeeOther || len(a.Cookies()) != 1 {
		t.Fatalf("status %d with %d cookies: %s", a.StatusCode, len(a.Cookies()), a.body)
	}
	at, told := a.Header.Get("Location"), a.Cookies()[0]
	a = s.ask(t, "GET", at, "", nil, "Cookie", told.Name+"="+told.Value, "Accept-Language", "zh")
	if !strings.Contains(a.body, "已导入") || a.Cookies()[0].MaxAge >= 0 {
		t.Error("what came of it is not told, or stays")
	}
	for _, other := range []string{"rubbish", "e30"} {
		if a := s.ask(t, "GET", at, "", nil, "Cookie", told.Name+"="+other); a.StatusCode != 200 || strings.Contains(a.body, "toast-imported") {
			t.Errorf("the cookie %q is told", other)
		}
	}
}
