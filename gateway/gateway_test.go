// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/artelhq/artel"
)

func TestForward(t *testing.T) {
	b := newBench(t)
	b.upstream = says(completion)
	in := `{ "model" : "chat",  "x_unknown":{"a":[1, 2.50]}, "messages":[{"role":"user","content":"<hi> & \u00e9", "cache_control":{"type":"ephemeral"}}], "temperature":0.10 }`
	status, body := b.post("/v1/chat/completions", in, "Authorization", "Bearer anything")
	if status != 200 || body != completion {
		t.Fatalf("%d %s", status, body)
	}
	if want := strings.Replace(in, `"chat"`, `"upstream-model"`, 1); b.last() != want {
		t.Errorf("sent %s\nwant %s", b.last(), want)
	}
	if h := b.headers[0]; h.Get("Authorization") != "Bearer sk-upstream-key" || h.Get("User-Agent") != "artel" {
		t.Errorf("headers %v", h)
	}
	e := b.entry()
	if e.Status != 200 || e.Service != "chat" || e.Model != "chat" || e.Usage.Calls != 1 || e.Usage.OutputTokens == 0 || len(e.Changes) > 0 || e.BytesOut != int64(len(body)) || e.Tries != 1 {
		t.Errorf("entry %+v", e)
	}
	// By the name of the model too.
	if status, _ := b.post("/v1/chat/completions", asks("upstream-model", "")); status != 200 {
		t.Errorf("by the model's name: %d", status)
	}
	status, body = b.post("/v1/chat/completions", asks("nothing", ""))
	if message, code := errorOf(t, body); status != 404 || code != "model_not_found" || !strings.Contains(message, "`nothing`") || !strings.Contains(message, "/v1/models") {
		t.Errorf("%d %s", status, body)
	}
}

func TestStream(t *testing.T) {
	b := newBench(t)
	for _, service := range []string{"chat", "other"} {
		status, body := b.post("/v1/chat/completions", asks(service, `,"stream":true,"stream_options":{"include_usage":true}`))
		if status != 200 || !strings.HasSuffix(body, "data: [DONE]\n\n") || strings.Count(body, "[DONE]") != 1 {
			t.Fatalf("%s: %d %s", service, status, body)
		}
		text, usage := "", 0
		for _, line := range strings.Split(strings.TrimSpace(body), "\n\n") {
			var chunk struct {
				Choices []struct{ Delta struct{ Content string } }
				Usage   *struct {
					Output int `json:"completion_tokens"`
				}
			}
			data := strings.TrimPrefix(line, "data: ")
			if data == "[DONE]" {
				continue
			}
			if err := json.Unmarshal([]byte(data), &chunk); err != nil {
				t.Fatalf("%s: %v in %q", service, err, line)
			}
			for _, c := range chunk.Choices {
				text += c.Delta.Content
			}
			if chunk.Usage != nil {
				usage = chunk.Usage.Output
			}
		}
		if !strings.Contains(text, "1 user: text: hi") || usage == 0 {
			t.Errorf("%s: %q, %d tokens", service, text, usage)
		}
		if e := b.entry(); !e.Stream || e.Status != 200 || e.Usage.OutputTokens != int64(usage) || string(e.Service) != service || e.BytesOut != int64(len(body)) {
			t.Errorf("%s: entry %+v", service, e)
		}
	}
}

func TestTranslate(t *testing.T) {
	b := newBench(t)
	status, body := b.post("/v1/chat/completions", asks("other", `,"max_tokens":77`))
	if status != 200 || !strings.Contains(body, `"model":"other"`) || !strings.Contains(body, "1 user: text: hi") {
		t.Fatalf("%d %s", status, body)
	}
	r := b.asked[0]
	if r.MaxOutput != 77 || r.Service.ID != "other" || len(r.Messages) != 1 {
		t.Errorf("asked %+v", r)
	}
}

// TestPictureInToolResult: the services that take none there get it behind the
// group, and text as strings.
func TestPictureInToolResult(t *testing.T) {
	b := newBench(t)
	png := picture(8, 1)
	withPicture := `[{"type":"text","text":"a chart"},{"type":"image_url","image_url":{"url":"` + dataURL(png) + `"}}]`
	in := toolTurn("chat", withPicture, `"plain"`)
	if status, body := b.post("/v1/chat/completions", in); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	head, _, _ := strings.Cut(strings.Replace(in, `"chat"`, `"upstream-model"`, 1), `{"role":"tool"`)
	want := head + `{"role":"tool","tool_call_id":"call_1","content":"a chart"},{"role":"tool","tool_call_id":"call_2","content":"plain"},` +
		`{"role":"user","content":[{"type":"text","text":"file, from tool call call_1"},{"type":"image_url","image_url":{"url":"` + dataURL(png) + `"}}]}]}`
	if b.last() != want {
		t.Errorf("sent\n%s\nwant\n%s", b.last(), want)
	}
	if !has(b.did(), "carried") {
		t.Errorf("did %v", b.did())
	}
	// A user message that follows takes it in.
	in = strings.TrimSuffix(in, "]}") + `,{"role":"user","content":"so?"}]}`
	b.post("/v1/chat/completions", in)
	if want := strings.TrimSuffix(want, "]}]}") + `,{"type":"text","text":"so?"}]}]}`; b.last() != want {
		t.Errorf("sent\n%s\nwant\n%s", b.last(), want)
	}
	// The other dialect takes it where it stands.
	if status, body := b.post("/v1/chat/completions", toolTurn("other", withPicture)); status != 200 || !strings.Contains(body, "image image/png") {
		t.Errorf("%d %s", status, body)
	}
	res := b.asked[0].Messages[2].Parts[0].(artel.ToolResult)
	if m, ok := res.Parts[0].(artel.Media); !ok || m.Width != 8 || m.Ref.Digest == "" || res.Content != "a chart" {
		t.Errorf("result %+v", res)
	}
	// A model that reads text alone gets a description.
	if status, body := b.post("/v1/chat/completions", toolTurn("text", withPicture)); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if strings.Contains(b.last(), encoded(png)[:40]) || !strings.Contains(b.last(), `"content":"a chart\n\n[cannot read]`) || !has(b.did(), "described") {
		t.Errorf("sent %s\ndid %v", b.last(), b.did())
	}
}
