// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"iter"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/anthropic"
)

// claude serves a fake of Anthropic's API.
func claude(t *testing.T, o fake.Options) bench {
	t.Helper()
	return serving(t, fake.Anthropic(o))
}

// post asks an endpoint with headers, and returns what it says.
func (b bench) post(t *testing.T, path, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out bytes.Buffer
	if _, err := out.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, out.String(), resp.Header
}

func asUser(parts ...artel.Part) model.Message {
	return model.Message{Role: artel.RoleUser, Parts: parts}
}

// A recordingForm is what the product's own client makes of an answer.
type recordingForm struct {
	text, thought string
	parts         artel.Parts // calls, and the state of reasoning
	finish        model.Finish
}

func (b bench) hear(ctx context.Context, blobs blob.Store, r model.Request) (h recordingForm, err error) {
	yes := model.Fact[bool]{Value: true, Source: model.FromDialect}
	r.Service = model.Service{ID: "s", Dialect: model.Anthropic, BaseURL: b.URL, Model: "fake-1", APIKey: "k", Capabilities: model.TextOnly()}
	r.Service.Capabilities.ToolImage, r.Service.Capabilities.ToolFile = yes, yes
	thought := ""
	for d, e := range anthropic.New(anthropic.Options{Client: b.Client(), Blobs: blobs}).Generate(ctx, &r) {
		switch d := d.(type) {
		case model.TextDelta:
			h.text += string(d)
		case model.ReasoningDelta:
			h.thought += string(d)
			thought += string(d)
		case model.ReasoningDone:
			h.parts = append(h.parts, artel.Reasoning{Text: thought, Opaque: d.Opaque, Service: "s"})
			thought = ""
		case model.CallDelta:
			h.parts = append(h.parts, artel.ToolCall(d))
		case model.Finish:
			h.finish = d
		}
		err = e
	}
	return h, err
}

const helloClaude = `{"model":"fake-1","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`

func TestAnthropicAnswers(t *testing.T) {
	t.Parallel()
	b := claude(t, fake.Options{Key: "k", Now: func() time.Time { return time.Unix(7, 0) }})
	version := []string{"X-Api-Key", "k", "Anthropic-Version", "2023-06-01"}
	status, body, h := b.post(t, "/v1/messages", helloClaude, version...)
	want := `{"id":"msg_fake000001","type":"message","role":"assistant","model":"fake-1","content":[{"type":"text","text":"received 1 messages and 0 tools for fake-1\n1 user: text: hello\n"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":2,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2}}`
	if status != 200 || body != want || h.Get("Request-Id") == "" {
		t.Errorf("got %d %s\nwant %s", status, body, want)
	}
	status, body, h = b.post(t, "/v1/messages", strings.Replace(helloClaude, "{", `{"stream":true,`, 1), "Authorization", "Bearer k", "Anthropic-Version", "2023-06-01", "Anthropic-Beta", "some-beta")
	if status != 200 || !strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") || !strings.HasSuffix(body, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n") {
		t.Errorf("got %d %s", status, body)
	}
	if r := b.fake.Requests(); len(r) != 2 || r[1].Path != "/v1/messages" || r[1].Header.Get("Anthropic-Beta") != "some-beta" || r[1].Header.Get("Authorization") != "" || r[0].Header.Get("X-Api-Key") != "" {
		t.Errorf("recorded %+v", r)
	}
	status, body, _ = b.post(t, "/v1/messages/count_tokens", `{"model":"fake-1","messages":[{"role":"user","content":"`+strings.Repeat("word ", 100)+`"}]}`, version...)
	if status != 200 || body != `{"input_tokens":140}` {
		t.Errorf("counted %d %s", status, body)
	}
	s, err := model.Complete(t.Context(), b.Client(), model.Service{ID: "s", Dialect: model.Anthropic, BaseURL: b.URL, Model: "fake-1", APIKey: "k"})
	if c := s.Capabilities; err != nil || !c.Has(artel.CanVision) || !c.Has(artel.CanFile) || c.ContextWindow.Value != 200_000 || c.MaxOutput.Value != 64_000 || c.MaxOutput.Source != model.FromEndpoint {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestAnthropicRefuses(t *testing.T) {
	t.Parallel()
	b := claude(t, fake.Options{Key: "k", Models: []string{"fake-1"}})
	for name, c := range map[string]struct {
		path, body, key, version string
		status                   int
		kind, want               string
	}{
		"no key":        {"/v1/messages", helloClaude, "", "2023-06-01", 401, "authentication_error", "x-api-key header is required"},
		"wrong key":     {"/v1/messages", helloClaude, "secret", "2023-06-01", 401, "authentication_error", "invalid x-api-key"},
		"no version":    {"/v1/messages", helloClaude, "k", "", 400, "invalid_request_error", "anthropic-version: header is required"},
		"no such model": {"/v1/messages", strings.Replace(helloClaude, "fake-1", "fake-2", 1), "k", "2023-06-01", 404, "not_found_error", "model: fake-2"},
		"no such path":  {"/v1/complete", helloClaude, "k", "2023-06-01", 404, "not_found_error", "Not Found"},
		"no JSON":       {"/v1/messages", "x", "k", "2023-06-01", 400, "invalid_request_error", "not valid JSON"},
		"no limit":      {"/v1/messages", `{"model":"fake-1","messages":[]}`, "k", "2023-06-01", 400, "invalid_request_error", "max_tokens: Field required"},
		"counting":      {"/v1/messages/count_tokens", helloClaude, "k", "2023-06-01", 400, "invalid_request_error", "max_tokens: Extra inputs are not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, h := b.post(t, c.path, c.body, "X-Api-Key", c.key, "Anthropic-Version", c.version)
			var e struct {
				Type      string
				Error     anthropic.APIError
				RequestID string `json:"request_id"`
			}
			if err := json.Unmarshal([]byte(body), &e); err != nil || status != c.status || e.Type != "error" || e.Error.Type != c.kind ||
				!strings.Contains(e.Error.Message, c.want) || e.RequestID == "" || h.Get("Request-Id") != e.RequestID || strings.Contains(body, "secret") {
				t.Errorf("got %d %s", status, body)
			}
		})
	}
}

func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The limits that depend on what the pictures are, wherever they stand.
func TestAnthropicLooks(t *testing.T) {
	t.Parallel()
	pdf, err := os.ReadFile("../../testdata/files/report.pdf")
	if err != nil {
		t.Fatal(err)
	}
	block := func(mediaType string, data []byte) string {
		kind := "image"
		if mediaType == "application/pdf" {
			kind = "document"
		}
		return `{"type":"` + kind + `","source":{"type":"base64","media_type":"` + mediaType + `","data":"` + base64.StdEncoding.EncodeToString(data) + `"}}`
	}
	small, large, huge := block("image/png", picture(t, 9, 2000)), block("image/png", picture(t, 2001, 9)), block("image/png", picture(t, 8001, 1))
	many := func(n int) string { return strings.Repeat(small+",", n) }
	for name, c := range map[string]struct{ blocks, want string }{
		"small":            {many(20) + small, ""},
		"large":            {many(19) + large, ""},
		"large among many": {many(20) + large, "messages.0.content.20.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"},
		"huge":             {huge, "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"},
		"another type":     {block("image/jpeg", picture(t, 1, 1)), "messages.0.content.0.image.source.base64: The image was specified using the image/jpeg media type, but the image appears to be a image/png image"},
		"no picture":       {block("image/png", []byte("hello, this is text")), "Could not process image"},
		"a document":       {block("application/pdf", pdf), ""},
		"no document":      {block("application/pdf", picture(t, 1, 1)), "messages.0.content.0.document.source.base64: The PDF specified was not valid."},
	} {
		for kept, blobs := range map[string]blob.Store{"dropped": nil, "kept": blob.NewMemory()} {
			t.Run(name+" "+kept, func(t *testing.T) {
				t.Parallel()
				b := claude(t, fake.Options{Open: true, Blobs: blobs})
				status, body, _ := b.post(t, "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[`+c.blocks+`]}]}`, "Anthropic-Version", "2023-06-01")
				if c.want == "" && status != 200 || c.want != "" && (status != 400 || !strings.Contains(body, c.want)) {
					t.Errorf("got %d %.300s", status, body)
				}
			})
		}
	}
}

func TestAnthropicMisbehaves(t *testing.T) {
	t.Parallel()
	b := claude(t, fake.Options{})
	ask := model.Request{Messages: []model.Message{asUser(artel.Text{Text: "hi"})}}
	for mode, c := range map[fake.Mode]struct {
		kind   artel.Kind
		status int
		want   string
	}{
		fake.RateLimit:   {artel.Unavailable, 429, "rate limit"},
		fake.ServerError: {artel.Unavailable, 500, "Internal server error"},
		fake.Overloaded:  {artel.Unavailable, 529, "Overloaded"},
		fake.BadRequest:  {artel.Invalid, 400, "Bad request."},
		fake.HalfStream:  {artel.Unavailable, 0, "broke off"},
		fake.StreamError: {artel.Unavailable, 529, "Overloaded"},
		fake.Garbage:     {artel.Unavailable, 200, "not valid JSON"},
		fake.WebPage:     {artel.Unavailable, 200, "web page"},
	} {
		t.Run(string(mode), func(t *testing.T) {
			if err := b.fake.Behave(fake.Behavior{Mode: mode, RetryAfter: 3}); err != nil {
				t.Fatal(err)
			}
			h, err := b.hear(t.Context(), nil, ask)
			e, ok := errors.AsType[*model.CallError](err)
			if !ok || artel.KindOf(err) != c.kind || e.Status != c.status || !strings.Contains(err.Error(), c.want) || e.Transient != (c.kind == artel.Unavailable && mode != fake.WebPage) {
				t.Errorf("got %+v", e)
			}
			if (mode == fake.HalfStream || mode == fake.StreamError) != (h.text != "") {
				t.Errorf("it said %q", h.text)
			}
			if mode == fake.RateLimit && e.RetryAfter != 3*time.Second {
				t.Errorf("retry after %v", e.RetryAfter)
			}
		})
	}
	for mode, want := range map[fake.Mode]string{
		fake.Overloaded:  `"type":"overloaded_error"`,
		fake.StreamError: `event: error` + "\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n",
	} {
		if err := b.fake.Behave(fake.Behavior{Mode: mode}); err != nil {
			t.Fatal(err)
		}
		if _, body, _ := b.post(t, "/v1/messages", strings.Replace(helloClaude, "{", `{"stream":true,`, 1), "X-Api-Key", "k", "Anthropic-Version", "2023-06-01"); !strings.Contains(body, want) {
			t.Errorf("%s: %s", mode, body)
		}
	}
	if err := b.fake.Behave(fake.Behavior{Mode: fake.Hang}); err != nil {
		t.Fatal(err)
	}
	before := len(b.fake.Requests())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := b.hear(ctx, nil, ask)
		ended <- err
	}()
	for len(b.fake.Requests()) == before {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; artel.KindOf(err) != artel.Canceled {
		t.Errorf("hang: %v", err)
	}
	if err := fake.OpenAI(fake.Options{}).Behave(fake.Behavior{Oddity: fake.PauseTurn}); err == nil {
		t.Error("another dialect has a mode of this one")
	}
}

// caller is a responder that calls a tool twice at once, and then says what it
// got.
func caller(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	if r.Messages[len(r.Messages)-1].Role == artel.RoleTool {
		return fake.Echo(ctx, r)
	}
	return func(yield func(model.Delta, error) bool) {
		for _, d := range []model.Delta{
			model.TextDelta("I look. "),
			model.CallDelta{ID: "toolu_1", Name: "look", Arguments: json.RawMessage(`{"q":"é"}`)},
			model.CallDelta{ID: "toolu_2", Name: "look"},
			model.Finish{Reason: model.StopTools, Usage: artel.Usage{Calls: 1, InputTokens: 20, CachedTokens: 8, StoredTokens: 2, OutputTokens: 5, ThoughtTokens: 3}},
		} {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// A turn with signed thoughts, calls and results with media, there and back.
func TestAnthropicTurn(t *testing.T) {
	t.Parallel()
	b := claude(t, fake.Options{Responder: caller, Behavior: fake.Behavior{Oddity: fake.Thinking}})
	blobs := blob.NewMemory()
	keep := func(mediaType string, kind artel.MediaKind, data []byte) artel.Media {
		info, err := blobs.Put(t.Context(), bytes.NewReader(data), 0)
		if err != nil {
			t.Fatal(err)
		}
		return artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: mediaType, Kind: kind, Filename: "a", Size: info.Size}
	}
	pdf, err := os.ReadFile("../../testdata/files/report.pdf")
	if err != nil {
		t.Fatal(err)
	}
	r := model.Request{Tools: []model.ToolSpec{{Name: "look"}}, Messages: []model.Message{asUser(artel.Text{Text: "look"})}}
	h, err := b.hear(t.Context(), blobs, r)
	if err != nil {
		t.Fatal(err)
	}
	want := model.Finish{Reason: model.StopTools, Usage: artel.Usage{Calls: 1, InputTokens: 20, CachedTokens: 8, StoredTokens: 2, OutputTokens: 5, ThoughtTokens: 3}}
	if diff := cmp.Diff(want, h.finish); diff != "" || h.thought != "Let me think about that." || h.text != "I look. " || len(h.parts) != 3 {
		t.Fatalf("got %+v\n%s", h, diff)
	}
	image, file := keep("image/png", artel.KindImage, picture(t, 4, 4)), keep("application/pdf", artel.KindDocument, pdf)
	said := append(artel.Parts{h.parts[0], artel.Text{Text: h.text}}, h.parts[1:]...)
	r.Messages = append(
		r.Messages, model.Message{Role: artel.RoleAssistant, Parts: said},
		model.Message{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "toolu_2", Content: "two", Parts: artel.Parts{file}}}},
		model.Message{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "toolu_1", Content: "one", Parts: artel.Parts{image}}}},
	)
	back, err := b.hear(t.Context(), blobs, r)
	if err != nil {
		t.Fatal(err)
	}
	wantText := fmt.Sprintf("received 4 messages and 1 tools for fake-1\n1 user: text: look\n2 assistant: text: I look. \n2 assistant: call toolu_1: look {\"q\":\"é\"}\n2 assistant: call toolu_2: look {}\n"+
		"3 tool: result of toolu_1: one\n3 tool: image image/png, %d bytes, %s\n4 tool: result of toolu_2: two\n4 tool: document application/pdf, %d bytes, %s, a\n", image.Size, image.Ref.Digest, file.Size, file.Ref.Digest)
	if diff := cmp.Diff(wantText, back.text); diff != "" {
		t.Error(diff)
	}
	// The API knows what it has signed, and nothing else. The client goes on
	// without what is not known again.
	for name, change := range map[string]func(*artel.Reasoning){
		"another text":  func(r *artel.Reasoning) { r.Text += "!" },
		"another state": func(r *artel.Reasoning) { r.Opaque = json.RawMessage(`{"type":"thinking","signature":"bm8="}`) },
	} {
		before := len(b.fake.Requests())
		changed := h.parts[0].(artel.Reasoning)
		change(&changed)
		said[0] = changed
		again, err := b.hear(t.Context(), blobs, r)
		if err != nil || again.text != back.text {
			t.Errorf("%s: %q, %v", name, again.text, err)
		}
		asked := b.fake.Requests()[before:]
		if len(asked) != 2 || asked[0].Error != "messages.1.content.0: Invalid `signature` in `thinking` block" ||
			!strings.Contains(string(asked[0].Body), `"thinking"`) || strings.Contains(string(asked[1].Body), `"thinking"`) {
			t.Errorf("%s: asked %+v", name, asked)
		}
	}
}

func TestAnthropicRedactsAndPauses(t *testing.T) {
	t.Parallel()
	b := claude(t, fake.Options{Behavior: fake.Behavior{Oddity: fake.RedactedThinking}})
	r := model.Request{Messages: []model.Message{asUser(artel.Text{Text: "hi"})}}
	h, err := b.hear(t.Context(), nil, r)
	if err != nil || h.thought != "" || len(h.parts) != 1 || !strings.Contains(string(h.parts[0].(artel.Reasoning).Opaque), `"redacted_thinking"`) {
		t.Fatalf("got %+v, %v", h, err)
	}
	r.Messages = append(r.Messages, model.Message{Role: artel.RoleAssistant, Parts: append(h.parts, artel.Text{Text: h.text})}, asUser(artel.Text{Text: "and?"}))
	if _, err := b.hear(t.Context(), nil, r); err != nil {
		t.Error(err)
	}
	if body := string(b.fake.Requests()[1].Body); !strings.Contains(body, `{"type":"redacted_thinking","data":"`) {
		t.Errorf("asked %s", body)
	}
	if err := b.fake.Behave(fake.Behavior{Oddity: fake.PauseTurn, Times: 2}); err != nil {
		t.Fatal(err)
	}
	h, err = b.hear(t.Context(), nil, r)
	if err != nil || h.finish.Reason != model.StopEnd || h.finish.Usage.Calls != 3 || len(b.fake.Requests()) != 5 {
		t.Errorf("paused: got %+v, %v after %d requests", h, err, len(b.fake.Requests()))
	}
	if body := string(b.fake.Requests()[4].Body); strings.Count(body, "received 3") < 1 {
		t.Errorf("it is not gone on with what was said: %s", body)
	}
}

// Pings come among the pieces of an answer too.
func TestAnthropicPings(t *testing.T) {
	t.Parallel()
	b := claude(t, fake.Options{Open: true})
	var messages []string
	for i := range 12 {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":"m%d"}`, i))
	}
	_, body, _ := b.post(t, "/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[`+strings.Join(messages, ",")+`]}`, "Anthropic-Version", "2023-06-01")
	if n := strings.Count(body, "event: ping\n"); n != 3 {
		t.Errorf("%d pings in %s", n, body)
	}
}
