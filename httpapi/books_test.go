// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	imagepng "image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/pipeline/lore"
)

const harbour = `{"name":"Harbour","entries":[{"id":"1","name":"Pilot","keys":["pilot"],"content":"Pilots know {{user}}."},{"id":"2","keys":["/fo+g/i"],"secondary_keys":["night"],"content":"Fog horn."}]}`

// cardWith is a picture that holds a card.
func cardWith(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := imagepng.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 60))); err != nil {
		t.Fatal(err)
	}
	data := "chara\x00" + base64.StdEncoding.EncodeToString([]byte(text))
	c := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	c = append(append(c, "tEXt"...), data...)
	c = binary.BigEndian.AppendUint32(c, crc32.ChecksumIEEE(c[4:]))
	const head = 8 + 25 // the signature and IHDR
	return append(append(bytes.Clone(b.Bytes()[:head]), c...), b.Bytes()[head:]...)
}

func TestBooks(t *testing.T) {
	b := newBench(t, "")
	a := b.do("PUT", "/books/Harbour", harbour)
	b.object(a, 200)
	if a.Header.Get("ETag") != `"1"` {
		t.Errorf("ETag %s", a.Header.Get("ETag"))
	}
	b.problem(b.do("PUT", "/books/Harbour", harbour, header{"If-Match": `"7"`}), 412, "stale")
	b.problem(b.do("PUT", "/books/Other", harbour), 422, "invalid")
	b.problem(b.do("PUT", "/books/Harbour", `{"name":"Harbour","entries":[{"id":"1","content":"x","logic":"xor"}]}`), 422, "invalid")
	b.problem(b.do("GET", "/books/none", nil), 404, "not_found")
	if a := b.do("PUT", "/books/Harbour/agents/lead_agent", nil); a.StatusCode != http.StatusNoContent {
		t.Fatalf("used: %s %s", a.Status, a.body)
	}
	b.problem(b.do("PUT", "/books/none/agents/lead_agent", nil), 404, "not_found")
	b.problem(b.do("PUT", "/books/Harbour/agents/nobody", nil), 404, "not_found")
	list := fmt.Sprint(b.object(b.do("GET", "/books", nil), 200))
	if !strings.Contains(list, "entries:2") || !strings.Contains(list, "lead_agent") {
		t.Errorf("list: %s", list)
	}
	if got := fmt.Sprint(b.object(b.do("GET", "/books/Harbour", nil), 200)); !strings.Contains(got, "Fog horn.") {
		t.Errorf("read: %s", got)
	}

	// The preview shows what fires and why, and the request is what is sent then.
	c := b.conversation()
	preview := b.object(b.do("POST", "/conversations/"+c+"/preview", `{"text":"Where is the pilot?"}`), 200)
	text := fmt.Sprint(preview)
	for _, want := range []string{"Pilots know", "an entry of a world book is sent", "key:pilot", "reason:key"} {
		if !strings.Contains(text, want) {
			t.Errorf("the preview lacks %q: %.3000s", want, text)
		}
	}

	tried := b.object(b.do("POST", "/books/try", `{"name":"Harbour","messages":[{"text":"Foog. The pilot?"}],"user":"Ann"}`), 200)
	if got := fmt.Sprint(tried); !strings.Contains(got, "reason:secondary_keys") || !strings.Contains(got, "messages_back:0") {
		t.Errorf("tried: %s", got)
	}
	b.problem(b.do("POST", "/books/try", `{"messages":[{"text":"x"}]}`), 422, "invalid")

	if a := b.do("DELETE", "/books/Harbour/agents/lead_agent", nil); a.StatusCode != http.StatusNoContent {
		t.Errorf("dropped: %s", a.Status)
	}
	preview = b.object(b.do("POST", "/conversations/"+c+"/preview", `{"text":"Where is the pilot?"}`), 200)
	if strings.Contains(fmt.Sprint(preview), "Pilots know") {
		t.Error("the book is used after it was dropped")
	}
	if err := b.client.DeleteBook(apptest.Context(t), "Harbour"); err != nil {
		t.Error(err)
	}
	b.problem(b.do("DELETE", "/books/Harbour", nil), 404, "not_found")
}

// A card becomes an agent with its greetings, book and picture.
func TestCharacters(t *testing.T) {
	b := newBench(t, "")
	const card = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Aqua Blue","description":"{{char}} dives with {{user}}. {{random:Deep,Deep}}.","personality":"","scenario":"","first_mes":"Hello {{user}}.",` +
		`"alternate_greetings":["I am {{char}}."],"mes_example":"","extensions":{},"character_book":{"extensions":{},"entries":[{"keys":["reef"],"content":"The reef of {{char}}.","extensions":{},"enabled":true,"insertion_order":1}]},"unknown":1}}`
	b.object(b.do("PUT", "/me/profile", `{"name":"Ann"}`), 200)
	raw := cardWith(t, card)
	done, err := b.client.ImportFile(apptest.Context(t), "aqua.png", "", false, bytes.NewReader(raw))
	if err != nil || done.Kind != "character" || done.Agent != "Aqua_Blue" || done.Book != "Aqua Blue" || !done.Picture || len(done.Losses) != 1 {
		t.Fatalf("imported: %+v, %v", done, err)
	}
	a := b.do("GET", "/agents/Aqua_Blue/picture", nil)
	if a.StatusCode != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "image/") || len(a.body) < 50 {
		t.Errorf("the picture: %s %s", a.Status, a.Header.Get("Content-Type"))
	}
	b.problem(b.do("GET", "/agents/lead_agent/picture", nil), 404, "not_found")
	again, err := b.client.ImportFile(apptest.Context(t), "aqua.png", "", false, bytes.NewReader(raw))
	if err != nil || again.Agent != "Aqua_Blue_2" || again.Book != "Aqua Blue (2)" {
		t.Errorf("again: %+v, %v", again, err)
	}
	again, err = b.client.ImportFile(apptest.Context(t), "aqua.png", "", true, bytes.NewReader(raw))
	if err != nil || again.Agent != "Aqua_Blue" || again.Book != "Aqua Blue" {
		t.Errorf("replaced: %+v, %v", again, err)
	}

	// A conversation begins with a greeting.
	b.problem(b.do("POST", "/conversations", `{"agent":"Aqua_Blue","greeting":2}`), 422, "invalid")
	c := b.object(b.do("POST", "/conversations", `{"agent":"Aqua_Blue","greeting":1}`), 201)
	id, _ := c["id"].(string)
	messages := fmt.Sprint(b.object(b.do("GET", "/conversations/"+id+"/branch", nil), 200))
	if !strings.Contains(messages, "I am Aqua Blue.") || !strings.Contains(messages, "assistant") {
		t.Errorf("messages: %s", messages)
	}
	preview := fmt.Sprint(b.object(b.do("POST", "/conversations/"+id+"/preview", `{"text":"To the reef!"}`), 200))
	for _, want := range []string{"Aqua Blue dives with Ann. Deep.", "The reef of Aqua Blue.", "I am Aqua Blue."} {
		if !strings.Contains(preview, want) {
			t.Errorf("the preview lacks %q: %.2000s", want, preview)
		}
	}
	if run := b.ended(id, `{"text":"To the reef!"}`); run["state"] != "done" {
		t.Errorf("the run: %v", run)
	}
	// The picture goes with the agent.
	if err := b.client.DeleteAgent(apptest.Context(t), "Aqua_Blue"); err != nil {
		t.Error(err)
	}
	b.problem(b.do("GET", "/agents/Aqua_Blue/picture", nil), 404, "not_found")
}

// Books, presets and scripts are told apart by their content.
func TestImportedFiles(t *testing.T) {
	b := newBench(t, "")
	send := func(name, into, text string) httpapi.ImportedFile {
		t.Helper()
		done, err := b.client.ImportFile(apptest.Context(t), name, "", false, strings.NewReader(text))
		if into != "" {
			done, err = b.client.ImportFile(apptest.Context(t), name, "pilot", false, strings.NewReader(text))
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return done
	}
	if _, err := b.client.CreateAgent(apptest.Context(t), httpapi.AgentFields{Name: "pilot", Prompt: "You are a pilot."}); err != nil {
		t.Fatal(err)
	}
	if got := send("World.json", "", `{"entries":{"0":{"uid":0,"key":["a"],"content":"b","vectorized":true}}}`); got.Kind != "book" || got.Book != "World" || len(got.Losses) != 1 {
		t.Errorf("a book: %+v", got)
	}
	if got := send("s.json", "pilot", `{"temp":0.7,"top_p":0.9,"rep_pen":1.2}`); got.Kind != "preset" || got.Agent != "pilot" || len(got.Losses) != 1 {
		t.Errorf("sampling: %+v", got)
	}
	a, err := b.client.Agent(apptest.Context(t), "pilot")
	if err != nil || a.Prompt != "You are a pilot." || a.Sampling.Temperature == nil || *a.Sampling.Temperature != 0.7 {
		t.Errorf("the agent: %+v, %v", a, err)
	}
	if got := send("r.json", "", `[{"scriptName":"s","findRegex":"a","placement":[1],"promptOnly":true}]`); got.Kind != "rules" || got.Rules == nil {
		t.Errorf("scripts: %+v", got)
	}
	b.problem(b.do("POST", "/import", "hello"), 422, "invalid")
	if book, err := b.client.Book(apptest.Context(t), "World"); err != nil || len(book.Entries) != 1 || book.Entries[0].Position != lore.Position("") {
		t.Errorf("the book: %+v, %v", book, err)
	}
}
