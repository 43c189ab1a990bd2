// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/media/mediatest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// A haystack is searched for any run of 24 bytes of some binary files: as it
// is, and as base64 of either alphabet, at any of the three alignments, with
// slashes escaped or not. Runs that say nothing, such as zeros or names in
// ASCII, do not count.
type haystack struct {
	files  map[string][]byte
	names  []string
	raw    map[[rawBlock]byte]spot
	base64 map[[base64Block]byte]spot
	texts  []string             // base64 of the files, three of each
	begins [1 << 24 / 64]uint64 // hashes of the first four bytes of all blocks, to tell most places quickly
}

// begin hashes the first bytes of a block.
func begin(b []byte) uint32 { return binary.LittleEndian.Uint32(b) * 2654435761 >> 8 }

func (h *haystack) note(b []byte) { h.begins[begin(b)/64] |= 1 << (begin(b) % 64) }

func (h *haystack) may(b []byte) bool { return h.begins[begin(b)/64]>>(begin(b)%64)&1 != 0 }

type spot struct{ of, at int }

// Any run of 24 bytes holds a block of 12 that begins at a multiple of 12 of
// its file, and their 32 letters of base64 one of 16.
const (
	rawRun      = 24
	rawBlock    = 12
	base64Run   = 32
	base64Block = 16
)

func newHaystack(files map[string][]byte) *haystack {
	h := &haystack{files: files, names: slices.Sorted(maps.Keys(files)), raw: map[[rawBlock]byte]spot{}, base64: map[[base64Block]byte]spot{}}
	for i, name := range h.names {
		data := files[name]
		for at := 0; at+rawBlock <= len(data); at += rawBlock {
			if even(data[at : at+rawBlock]) {
				continue
			}
			h.raw[[rawBlock]byte(data[at:])] = spot{i, at}
			h.note(data[at:])
		}
		for alignment := range 3 {
			text := []byte(base64.RawStdEncoding.EncodeToString(data[min(alignment, len(data)):]))
			h.texts = append(h.texts, string(text))
			for at := 0; at+base64Block <= len(text); at += base64Block {
				if even(text[at : at+base64Block]) {
					continue
				}
				h.base64[[base64Block]byte(text[at:])] = spot{3*i + alignment, at}
				h.note(text[at:])
			}
		}
	}
	return h
}

// even reports bytes that are all the same. They tell no file from another, and
// a database is full of them.
func even(block []byte) bool { return bytes.Count(block, block[:1]) == len(block) }

// search says what of the files is in hay.
func (h *haystack) search(hay []byte) (found []string) {
	for i := 0; i+rawBlock <= len(hay); i++ {
		if !h.may(hay[i:]) {
			continue
		}
		if s, ok := h.raw[[rawBlock]byte(hay[i:])]; ok {
			if run := common(hay, h.files[h.names[s.of]], i, s.at); len(run) >= rawRun && telling(run) {
				found = append(found, fmt.Sprintf("%s: %.60q", h.names[s.of], run))
				i += rawBlock
			}
		}
	}
	text := bytes.ReplaceAll(hay, []byte(`\`), nil)
	for i, c := range text {
		switch c {
		case '-':
			text[i] = '+'
		case '_':
			text[i] = '/'
		}
	}
	for i := 0; i+base64Block <= len(text); i++ {
		if !h.may(text[i:]) {
			continue
		}
		if s, ok := h.base64[[base64Block]byte(text[i:])]; ok {
			run := common(text, []byte(h.texts[s.of]), i, s.at)
			if len(run) < base64Run {
				continue
			}
			if decoded, err := base64.RawStdEncoding.DecodeString(string(run[:len(run)/4*4])); err == nil && varied(decoded) {
				found = append(found, fmt.Sprintf("%s in base64: %.60q", h.names[s.of/3], run))
				i += base64Block
			}
		}
	}
	return found
}

// common is the run around i and j that a and b share.
func common(a, b []byte, i, j int) []byte {
	start, end := 0, 0
	for start < i && start < j && a[i-start-1] == b[j-start-1] {
		start++
	}
	for i+end < len(a) && j+end < len(b) && a[i+end] == b[j+end] {
		end++
	}
	return a[i-start : i+end]
}

// telling reports bytes that are no text and not the same over and over.
func telling(run []byte) bool {
	odd := 0
	for _, c := range run {
		if c >= 0x7f || c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0 {
			odd++
		}
	}
	return odd >= len(run)/6 && varied(run)
}

func varied(run []byte) bool {
	seen := map[byte]bool{}
	for _, c := range run {
		seen[c] = true
	}
	return len(seen) >= 8
}

// shapes are the blocks in which tools return media.
var shapes = []string{
	`"data:MIME;base64,DATA"`,
	`[{"type":"image_url","image_url":{"url":"data:MIME;base64,DATA"}}]`,
	`[{"type":"tool_result","content":[{"type":"document","source":{"type":"base64","media_type":"MIME","data":"DATA"}}]}]`,
	`{"source":{"data":"DATA","media_type":"MIME","type":"base64"},"type":"image"}`,
	`{"content":[{"type":"resource","resource":{"uri":"file:///x","mimeType":"MIME","blob":"DATA"}}],"isError":false}`,
	`{"parts":[{"inlineData":{"data":"DATA","mimeType":"MIME"}},{"text":"words"}]}`,
	`"[{\"type\":\"file-data\",\"data\":\"DATA\",\"mediaType\":\"MIME\"}]"`,
	`{"type":"file","file":{"file_data":"data:MIME;base64,DATA","filename":"f"}}`,
	`{"deep":[[{"a":"{\"b\":\"{\\\"type\\\":\\\"media\\\",\\\"data\\\":\\\"DATA\\\",\\\"mediaType\\\":\\\"MIME\\\"}\"}"}]]}`,
	`"# Report\n\n![x](data:MIME;base64,DATA)\n\nand <a href=\"data:MIME;base64,DATA\">it</a>."`,
}

// babbler is a model that answers with base64: first with calls whose
// arguments have it, then in its words. The seventh time it fails with it.
func babbler(picture string) fake.Responder {
	var asked atomic.Int64
	return func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			n := asked.Add(1)
			if n > 6 {
				yield(nil, artel.Errorf(artel.Invalid, "", "", "this is no picture: data:image/jpeg;base64,%s", picture[:400]))
				return
			}
			if n%2 == 1 {
				pattern, _ := json.Marshal(map[string]string{"pattern": picture})
				page, _ := json.Marshal(map[string]string{"id": "page", "title": "data:image/jpeg;base64," + picture, "content": "nothing but words"})
				for _, d := range []model.Delta{
					model.TextDelta("I look for it: data:image/jpeg;base64,"), model.TextDelta(picture[:777]), model.TextDelta(picture[777:]), model.TextDelta(" now.\n"),
					model.CallDelta{ID: "call_a", Name: "grep_artifacts", Arguments: pattern},
					model.CallDelta{ID: "call_b", Name: "create_artifact", Arguments: page},
					model.Finish{Reason: model.StopTools},
				} {
					if !yield(d, nil) {
						return
					}
				}
				return
			}
			for piece := range slices.Chunk([]byte("So it is "+picture+"\nand {\"type\":\"image\",\"data\":\""+picture+"\",\"mimeType\":\"image/jpeg\"}."), 50) {
				if !yield(model.TextDelta(piece), nil) {
					return
				}
			}
			yield(model.Finish{Reason: model.StopEnd}, nil)
		}
	}
}

// A recorder keeps what a stream of events said, byte for byte.
type recorder struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

// hear records the events of a conversation until stop is called.
func (r *recorder) hear(t *testing.T, url string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(r, resp.Body) // it ends when it is stopped
		_ = resp.Body.Close()
	}()
	return func() { cancel(); <-done }
}

// TestNoBytesInText plays a whole life over HTTP with every binary file of the
// corpus, and then looks for them in all that is not the blob store.
func TestNoBytesInText(t *testing.T) {
	t.Parallel()
	corpus, err := mediatest.Read(filepath.Join("..", "..", "testdata", "files"))
	if err != nil {
		t.Fatal(err)
	}
	files, types := map[string][]byte{}, map[string]string{}
	for _, f := range corpus.Files {
		data, err := os.ReadFile(samplePath(f.File))
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind != artel.KindText && len(data) > 0 && len(data) <= 128<<10 {
			files[f.File], types[f.File] = data, f.Type
		}
	}
	if len(files) < 100 {
		t.Fatalf("only %d binary files", len(files))
	}
	picture := base64.StdEncoding.EncodeToString(files["photo.jpg"])
	upstream := httptest.NewServer(fake.OpenAI(fake.Options{Open: true, Responder: babbler(picture)}))
	t.Cleanup(upstream.Close)

	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"artel.yaml": "log: {level: debug}\n"})
	p := serving(t, dir, with(bareEnvironment(dir), "OPENAI_BASE_URL="+upstream.URL+"/v1", "OPENAI_API_KEY=sk-x"))
	client := httpapi.NewClient(p.url, nil)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	c, err := client.CreateConversation(ctx, httpapi.NewConversation{Title: "data:image/jpeg;base64," + picture[:200]})
	if err != nil {
		t.Fatal(err)
	}
	var heard recorder
	quiet := heard.hear(t, p.url+"/api/v1/conversations/"+string(c.ID)+"/events")

	replies := &bytes.Buffer{}
	for i, name := range slices.Sorted(maps.Keys(files)) {
		body := strings.NewReplacer("MIME", types[name], "DATA", base64.StdEncoding.EncodeToString(files[name])).Replace(shapes[i%len(shapes)])
		got, err := client.TakeResult(ctx, c.ID, strings.NewReader(`{"tool":"any","content":`+body+`}`))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.Contains(string(got.Content), "[invalid media") || got.Metadata["content_type"] == nil {
			t.Errorf("%s (%s): %.200s", name, types[name], got.Content)
		}
		if err := json.NewEncoder(replies).Encode(got); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			if _, err := client.Upload(ctx, c.ID, name, types[name], bytes.NewReader(files[name]), int64(len(files[name]))); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	for i, name := range []string{"red.png", "brief.pdf", "tone.wav", "anim.gif"} {
		text := "See data:" + types[name] + ";base64," + base64.StdEncoding.EncodeToString(files[name]) + " here, and " + base64.URLEncoding.EncodeToString(files[name])
		sent, err := client.Send(ctx, c.ID, httpapi.NewMessage{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		want := artel.RunDone
		if i == 3 {
			want = artel.RunFailed
		}
		if state := waitForEnd(ctx, t, client, c.ID, sent.RunID); state != want {
			t.Errorf("the run about %s is %s", name, state)
		}
	}
	for _, path := range []string{"/messages?limit=500", "/artifacts", "/events?format=json&after=0", ""} {
		replies.WriteString(body(t, p.url+"/api/v1/conversations/"+string(c.ID)+path))
	}
	replies.WriteString(body(t, p.url+"/c/"+string(c.ID)))
	text := "other words, of a person"
	page, err := client.Artifact(ctx, artel.Ref{Conversation: c.ID, Artifact: "page"})
	if err != nil {
		t.Fatal(err)
	}
	page.Ref.Version = page.Version
	if _, err := client.Save(ctx, page.Ref, httpapi.SavedArtifact{Content: &text}); err != nil {
		t.Error(err)
	}
	replies.Write(exportSays(ctx, t, client, c.ID))
	quiet()

	h := newHaystack(files)
	look := func(where string, hay []byte) {
		t.Helper()
		if len(hay) == 0 {
			t.Errorf("%s is empty", where)
		}
		if found := h.search(hay); len(found) > 0 {
			t.Errorf("%s has %d runs, first %s", where, len(found), found[0])
		}
	}
	look("the answers", replies.Bytes())
	look("the event stream", heard.b.Bytes())
	lookAtFiles := func(where string, but ...string) {
		t.Helper()
		err := filepath.WalkDir(filepath.Join(dir, "data"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if d != nil && (d.Name() == "blobs" || d.Name() == "pdfium") { // pdfium: the compiled reader, without content
					return fs.SkipDir
				}
				return err
			}
			if slices.Contains(but, filepath.Ext(d.Name())) {
				return nil
			}
			b, err := os.ReadFile(path)
			if len(b) > 0 {
				look(where+" "+d.Name(), b)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	lookAtFiles("while it runs,", ".db", ".db-shm") // the database as it is in the end, and its index of numbers never
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	lookAtFiles("after it ran,")
	look("the log", []byte("the log: "+p.errs.String()))

	// The search finds what is planted, wherever it begins.
	png := files["photo.jpg"]
	for name, planted := range map[string]string{
		"bytes": string(png[101:125]), "aligned": base64.StdEncoding.EncodeToString(png[99:123]), "by one": base64.StdEncoding.EncodeToString(png[100:127]), "by two": base64.URLEncoding.EncodeToString(png[101:131]),
		"escaped": strings.ReplaceAll(base64.StdEncoding.EncodeToString(png[300:600]), "/", `\/`),
	} {
		if len(h.search([]byte("some words before "+planted+" and after"))) == 0 {
			t.Errorf("what was planted as %s is not found", name)
		}
	}
}

// exportSays is what an export says of a conversation, beside the files in it.
func exportSays(ctx context.Context, t *testing.T, client *httpapi.Client, id artel.ConversationID) []byte {
	t.Helper()
	d, err := client.ExportConversation(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b, err := io.ReadAll(d)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := z.Open("conversation.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err = io.ReadAll(f); err != nil || len(b) < 10_000 {
		t.Errorf("the export says %d bytes, %v", len(b), err)
	}
	return b
}
