// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/httpapi"
)

func sampleFile(t *testing.T, name string) (b []byte, encoded string) {
	t.Helper()
	b, err := os.ReadFile("../testdata/files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b, base64.StdEncoding.EncodeToString(b)
}

func (b *bench) takeResult(c artel.ConversationID, body string) app.ScrubbedResult {
	b.t.Helper()
	out, err := b.client.TakeResult(apptest.Context(b.t), c, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestToolResults(t *testing.T) {
	b := newBench(t, "")
	c, err := b.client.CreateConversation(apptest.Context(t), httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	png, encoded := sampleFile(t, "red.png")
	ref := "artifact:" + string(c.ID) + "/image_1.png@1"
	whole := `{"tool":"shot","content":"data:image/png;base64,` + encoded + `"}`
	for range 2 {
		got := b.takeResult(c.ID, whole)
		digest := artel.NewDigest(sha256.Sum256(png))
		url := "/api/v1/files/tool_results/" + digest.Hex() + ".png"
		want := map[string]any{
			"content_type": "image", "media_type": "image/png", "file_path": "tool_results/" + digest.Hex() + ".png", "url": url,
			"size": float64(len(png)), "digest": string(digest), "saved_to_file": true, "ref": ref, "filename": "image_1.png", "tool": "shot",
		}
		if diff := cmp.Diff(want, got.Metadata); diff != "" || string(got.Content) != `"`+url+`"` {
			t.Fatalf("got %s, %s", got.Content, diff)
		}
		resp := b.do("GET", strings.TrimPrefix(url, httpapi.Base), nil)
		if resp.StatusCode != http.StatusOK || !bytes.Equal(resp.body, png) || resp.Header.Get("Content-Type") != "image/png" {
			t.Fatalf("the file is %s of %d bytes, %v", resp.Status, len(resp.body), resp.Header)
		}
	}
	for name, x := range map[string]struct{ content, want, kind string }{
		"block":       {`[{"type":"image","data":"` + encoded + `","mimeType":"image/png"}]`, `[{"type":"image","data":"` + ref + `","mimeType":"image/png"}]`, "image"},
		"mixed":       {`{"text":"It is a chart.","images":["` + encoded + `"], "n" : 1.50}`, `{"text":"It is a chart.","images":["` + ref + `"],"n":1.50}`, "json"},
		"stringified": {`"[{\"type\":\"image-data\",\"data\":\"` + encoded + `\",\"mediaType\":\"image/png\"}]"`, `"[{\"type\":\"image-data\",\"data\":\"` + ref + `\",\"mediaType\":\"image/png\"}]"`, "image"},
		"number":      {`17`, `17`, "text"},
		"null":        {`null`, `null`, "text"},
		"text":        {`"Plain."`, `"Plain."`, "text"},
		"invalid":     {`"data:image/png;base64,"`, `"[invalid media: it is empty]"`, "text"},
	} {
		got := b.takeResult(c.ID, `{"tool":"t","content":`+x.content+`}`)
		if string(got.Content) != x.want || got.Metadata["content_type"] != x.kind {
			t.Errorf("%s: got %s, %v; want %s, %s", name, got.Content, got.Metadata, x.want, x.kind)
		}
	}
	got := b.takeResult(c.ID, `{"tool":"t","content":["`+strings.Repeat("word ", 30_000)+`"]}`)
	if got.Metadata["saved_to_file"] != true || got.Metadata["content_type"] != "list" || len(got.Content) > 30_000 || !bytes.Contains(got.Content, []byte("read_artifact(id='result_1.json'")) {
		t.Errorf("a long one: %.300s, %v", got.Content, got.Metadata)
	}
	list, err := b.client.Artifacts(apptest.Context(t), c.ID)
	if err != nil || len(list.Items) != 2 || list.Items[0].Source != artel.SourceToolResult {
		t.Errorf("%+v, %v", list.Items, err)
	}
	for body, status := range map[string]int{
		`{"tool":"x"}`: 422, `{"content":1}`: 422, `{"tool":"x","content":1,"more":2}`: 422, `{"tool":5,"content":1}`: 422, `[]`: 400, `{"tool":"x","content":`: 400, ``: 400,
		"{\"tool\":\"x\",\"content\":\"\xff\"}": 400, `{"tool":"x","content":"\ud800"}`: 400,
	} {
		if resp := b.do("POST", "/conversations/"+string(c.ID)+"/tool_results", body); resp.StatusCode != status || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%q: %s %s", body, resp.Status, resp.body)
		}
	}
	if resp := b.do("POST", "/conversations/cnv_00000000000000000000000000/tool_results", whole); resp.StatusCode != 404 {
		t.Errorf("of no conversation: %s", resp.Status)
	}
	if after, err := b.client.Artifacts(apptest.Context(t), c.ID); err != nil || len(after.Items) != len(list.Items) {
		t.Errorf("refused results left artifacts: %+v", after.Items)
	}
}

// largeResult is a result of about size bytes of JSON, whose pictures all
// differ in their end.
func largeResult(encoded string, size int) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.WriteString(w, `{"tool":"large","content":[`)
		chunk := strings.Repeat("QUJD", 1<<18)
		for i := 0; i < size>>20 && err == nil; i++ {
			_, err = io.WriteString(w, `{"type":"image","mimeType":"image/png","data":"`+encoded+chunk+`"},`)
		}
		if err == nil {
			_, err = io.WriteString(w, `"end"]}`)
		}
		w.CloseWithError(err)
	}()
	return r
}

func TestLargeToolResultsAreStreamed(t *testing.T) {
	b := newBench(t, "", func(c *app.Config) { c.Options.Artifacts.MaxBytes = 100 << 20 })
	c, err := b.client.CreateConversation(apptest.Context(t), httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	_, encoded := sampleFile(t, "red.png")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got, err := b.client.TakeResult(apptest.Context(t), c.ID, largeResult(encoded, 40<<20))
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := bytes.Count(got.Content, []byte("image_1.png@1")); n != 40 || len(got.Content) > 10_000 {
		t.Errorf("%d refs in %.200s", n, got.Content)
	}
	// The blobs of this bench are in memory, each while it is put: 40 times
	// 0.8 MB. What streams allocates little beside.
	if n := after.TotalAlloc - before.TotalAlloc; n > 300<<20 {
		t.Errorf("%d MB were allocated", n>>20)
	}
}

func TestToolResultsWithTooMuchText(t *testing.T) {
	b := newBench(t, "", func(c *app.Config) { c.Options.Artifacts.MaxText = 2048 })
	c, err := b.client.CreateConversation(apptest.Context(t), httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.client.TakeResult(apptest.Context(t), c.ID, strings.NewReader(`{"tool":"large","content":"`+strings.Repeat("word ", 500)+`"}`))
	if p, ok := asProblem(err); !ok || p.Status != http.StatusRequestEntityTooLarge || !strings.Contains(err.Error(), "2.0 KB") {
		t.Errorf("got %v, want a refusal that says the limit", err)
	}
}

func TestMessagesLoseTheirMedia(t *testing.T) {
	b := newBench(t, "")
	c, err := b.client.CreateConversation(apptest.Context(t), httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	png, encoded := sampleFile(t, "red.png")
	sent, err := b.client.Send(apptest.Context(t), c.ID, httpapi.NewMessage{Text: "What is data:image/png;base64," + encoded + " about?"})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range b.client.Events(apptest.Context(t), c.ID, 0, time.Minute) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Data), encoded[:40]) {
			t.Errorf("the event %s has it: %.300s", e.Type, e.Data)
		}
		if e.Type == artel.EventRunFinished {
			break
		}
	}
	messages, err := b.client.Messages(apptest.Context(t), c.ID, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	m := messages.Items[0]
	ref := "artifact:" + string(c.ID) + "/image_1.png@1"
	if m.ID != sent.MessageID || len(m.Parts) != 2 || m.Parts[0].(artel.Text).Text != "What is "+ref+" about?" || m.Parts[1].(artel.Media).Ref.String() != ref {
		t.Errorf("the message is %+v", m.Parts)
	}
	if a, err := b.client.Artifact(apptest.Context(t), m.Parts[1].(artel.Media).Ref); err != nil || a.Source != artel.SourceToolResult || a.Size != int64(len(png)) {
		t.Errorf("the artifact is %+v, %v", a, err)
	}
	var conversation artel.Conversation
	if err := json.Unmarshal(b.do("GET", "/conversations/"+string(c.ID), nil).body, &conversation); err != nil || conversation.Title != "What is [image/png, 96 bytes] about?" {
		t.Errorf("the title is %q, %v", conversation.Title, err)
	}
	named, err := b.client.CreateConversation(apptest.Context(t), httpapi.NewConversation{Title: "x " + encoded})
	if err != nil || named.Title != "x [image/png, 96 bytes]" {
		t.Errorf("the title is %q, %v", named.Title, err)
	}
	// A single tool from outside: its arguments are not repeated.
	resp := b.do("POST", "/conversations/"+string(c.ID)+"/tools/create_artifact", map[string]any{"id": "page", "title": "T", "content": "![](data:image/png;base64," + encoded + ")"})
	if resp.StatusCode != 200 || strings.Contains(string(resp.body), encoded[:40]) {
		t.Errorf("%s %.300s", resp.Status, resp.body)
	}
	if a, err := b.client.Artifact(apptest.Context(t), artel.Ref{Conversation: c.ID, Artifact: "page"}); err != nil || a.Content == nil || !strings.Contains(*a.Content, encoded) {
		t.Errorf("the text is not as it was written: %+v, %v", a, err)
	}
}
