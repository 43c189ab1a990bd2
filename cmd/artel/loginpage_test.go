// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/webui/webuitest"
)

// TestLoginInBrowser: a person sets a server up, in a browser, and logs in again: at
// first with a wrong password.
func TestLoginInBrowser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "artel.yaml"), []byte("auth: {mode: required}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serving(t, dir, bareEnvironment(dir))
	setup := p.url // what it prints first
	home, _, _ := strings.Cut(setup, "/setup?")
	browsers := webuitest.NewBrowsers(2)
	t.Cleanup(browsers.Quit)
	b := browsers.Open(t, patience, 1280, 800)
	submit := func(fields map[string]string) {
		t.Helper()
		for name, value := range fields {
			b.Script(fmt.Sprintf(`document.querySelector('form.login [name="%s"]').value = %q`, name, value))
		}
		b.Do(chromedp.Click(chromedp.CSS("form.login button")))
	}
	open := func(url string) {
		t.Helper()
		b.Do(chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("form.login")))
	}

	open(setup)
	submit(map[string]string{"name": "Ann", "email": "ann@example.org", "password": "correct horse"})
	b.Until(`location.pathname === "/" && document.getElementById("composer")`)

	b = browsers.Open(t, patience, 1280, 800) // of a new profile
	open(home + "/settings")
	b.Forgive("401 (Unauthorized)")
	submit(map[string]string{"email": "ann@example.org", "password": "wrong horse"})
	b.Until(`document.querySelector("form.login [role=alert]") && document.querySelector("[name=email]").value === "ann@example.org"`)
	submit(map[string]string{"password": "correct horse"})
	b.Until(`location.pathname === "/settings" && document.getElementById("models")`)
}
