// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"html"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model/provider/demo"
)

// characterPicture is a PNG that holds a card with a book and greetings.
func characterPicture(t *testing.T) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 120, 160))
	for y := range 160 {
		for x := range 120 {
			img.Set(x, y, color.RGBA{uint8(x), uint8(y), 180, 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	const card = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Aqua Blue","description":"{{char}} dives.","personality":"Calm.","scenario":"At the reef.","first_mes":"Hello {{user}}.",` +
		`"alternate_greetings":["I am {{char}}.\n\n<b>Deep</b> water."],"creator_notes":"A diver.","tags":["sea"],"character_book":{"entries":[{"keys":["reef"],"content":"The reef is old.","extensions":{},"enabled":true,"insertion_order":1,"name":"Reef"},` +
		`{"keys":["old"],"content":"Very old.","extensions":{"position":4,"depth":2,"probability":100},"enabled":true,"insertion_order":2,"name":"Age"}]}}}`
	data := "chara\x00" + base64.StdEncoding.EncodeToString([]byte(card))
	c := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	c = append(append(c, "tEXt"...), data...)
	c = binary.BigEndian.AppendUint32(c, crc32.ChecksumIEEE(c[4:]))
	const head = 8 + 25 // the signature and IHDR
	return append(append(bytes.Clone(b.Bytes()[:head]), c...), b.Bytes()[head:]...)
}

func TestBookForms(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	bring := func(path, name, content string) reply {
		contentType, body := formOf(t, "file", nil, map[string]string{name: content})
		return s.follow(t, s.ask(t, "POST", path, contentType, body))
	}
	if a := s.open(t, "/books"); a.status != 200 || !strings.Contains(a.body, "There are no world books yet.") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := bring("/books/import", "x.json", "{}"); a.status != 422 || !strings.Contains(a.body, "no character card") {
		t.Errorf("what is none: %d", a.status)
	}
	if contentType, body := formOf(t, "file", map[string]string{"x": "y"}, nil); true {
		if a := s.follow(t, s.ask(t, "POST", "/books/import", contentType, body)); a.status != 422 || !strings.Contains(a.body, "Choose a file first.") {
			t.Errorf("no file: %d", a.status)
		}
	}
	// A card among the files of agents is one too.
	if a := bring("/agents/import", "aqua.png", string(characterPicture(t))); a.status != 200 || !strings.Contains(a.body, `href="/agents/a/Aqua_Blue"`) || !strings.Contains(a.body, `href="/books/b/Aqua%20Blue"`) || !strings.Contains(a.body, "agents have no tags here") {
		t.Fatalf("a card: %d %s", a.status, a.body)
	}
	a := s.open(t, "/agents/a/Aqua_Blue")
	for _, want := range []string{`src="/api/v1/agents/Aqua_Blue/picture"`, "&lt;b&gt;Deep&lt;/b&gt; water.", "Calm.", "Begin with this"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the agent's page lacks %q", want)
		}
	}
	// A conversation begins with a greeting.
	if a := s.post(t, "/agents/a/Aqua_Blue/begin", "greeting", "1"); !strings.HasPrefix(a.path, "/c/") || !strings.Contains(a.body, "I am Aqua Blue.") {
		t.Errorf("begun: %d %s", a.status, a.path)
	}
	if a := s.post(t, "/agents/a/Aqua_Blue/begin", "greeting", "9"); a.status != 422 {
		t.Errorf("an unknown greeting: %d", a.status)
	}
	const at = "/books/b/Aqua%20Blue"
	if a := s.open(t, at+"?text=The+reef."); !strings.Contains(a.body, "by its key") || !strings.Contains(a.body, "by another entry") {
		t.Errorf("tried: %s", a.body)
	}
	entry := func(pairs ...string) []string {
		return append([]string{"id", "0", "name", "Reef", "keys", "reef\r\n/cor+al/i", "secondary", "", "logic", "any", "content", "The reef.", "enabled", "1", "position", "after_prompt", "depth", "0", "role", "system", "order", "7"}, pairs...)
	}
	if a := s.post(t, at, entry("do", "save", "revision", "1", "probability", "50")...); a.status != 200 || !strings.Contains(a.body, "/cor&#43;al/i") {
		t.Errorf("saved: %d %s", a.status, a.body)
	}
	b, err := s.app.Books.Find(apptest.Context(t), "Aqua Blue")
	if err != nil || len(b.Entries[0].Keys) != 2 || *b.Entries[0].Probability != 50 || b.Entries[0].Order != 7 || b.Entries[1].Depth != 2 {
		t.Fatalf("%+v, %v", b, err)
	}
	if a := s.post(t, at, entry("do", "save", "revision", "1")...); a.status != 409 {
		t.Errorf("of before: %d", a.status)
	}
	for _, wrong := range []string{"x", "101"} {
		if a := s.post(t, at, entry("do", "save", "revision", "2", "probability", wrong)...); a.status != 422 || !strings.Contains(a.body, `role="alert"`) {
			t.Errorf("a probability of %s: %d", wrong, a.status)
		}
	}
	s.post(t, at, entry("do", "add", "revision", "2")...)
	s.post(t, at, "do", "remove", "id", "1", "revision", "3")
	s.post(t, at, "do", "use", "agent", "lead_agent")
	if b, err = s.app.Books.Find(apptest.Context(t), "Aqua Blue"); err != nil || len(b.Entries) != 2 || len(b.Agents) != 2 {
		t.Errorf("%+v, %v", b, err)
	}
	s.post(t, at, "do", "drop", "agent", "lead_agent")
	if a := s.open(t, "/books"); !strings.Contains(a.body, "2 entries") || strings.Contains(a.body, `href="/agents/a/lead_agent"`) {
		t.Errorf("the list: %s", a.body)
	}
	// A deleted agent comes back with its picture.
	undo := regexp.MustCompile(`name="keep" value="([^"]+)"`).FindStringSubmatch(s.post(t, "/agents/a/Aqua_Blue/delete").body)
	if undo == nil {
		t.Fatal("nothing to undo")
	}
	s.post(t, "/agents/restore", "keep", html.UnescapeString(undo[1]))
	if a := s.open(t, "/agents/a/Aqua_Blue"); !strings.Contains(a.body, `class="portrait"`) {
		t.Error("the picture is lost")
	}
	if a := s.post(t, at, "do", "delete", "revision", "4"); a.path != "/books" {
		t.Errorf("deleted: %d %s", a.status, a.body)
	}
	if a := s.open(t, at); a.status != 404 {
		t.Errorf("after that: %d", a.status)
	}
}

// The pages can be read and used by everyone, in both languages and looks.
func TestBooks(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	contentType, body := formOf(t, "file", nil, map[string]string{"aqua.png": string(characterPicture(t))})
	imported := s.ask(t, "POST", "/books/import", contentType, body)
	if imported.StatusCode != 200 {
		t.Fatal(imported.Status, imported.body)
	}
	b := openTab(t, 1440, 900)
	axe := newChecker(t, b)
	for name, path := range map[string]string{"books": "/books", "book": "/books/b/Aqua%20Blue?text=The+reef", "character": "/agents/a/Aqua_Blue"} {
		b.Do(chromedp.Navigate(s.URL+path), see("#main"))
		if name == "book" {
			b.Do(click("#entry-0 summary"), see("#entry-0 textarea"))
		}
		for _, width := range []int64{390, 1440} {
			resize(b, width, 900)
			for scheme, rules := range map[string]string{"dark": colorRules, "light": allRules} {
				b.Prefer(scheme, true)
				axe.check("html", rules, name, scheme)
				b.picture(fmt.Sprint(name, "-", width, "-", scheme))
			}
		}
	}
}
