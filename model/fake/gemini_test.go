// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/gemini"
)

// gem is a fake of the Gemini API with a client in front of it.
type gem struct {
	*fake.Server
	client  *gemini.Provider
	url     string
	http    *http.Client
	blobs   *blob.Memory
	service model.Service
}

func serveGemini(t *testing.T, o fake.Options) gem {
	t.Helper()
	g := gem{Server: fake.Gemini(o), blobs: blob.NewMemory()}
	srv := httptest.NewServer(g.Server)
	t.Cleanup(func() {
		srv.Client().CloseIdleConnections()
		srv.CloseClientConnections()
		srv.Close()
	})
	g.url, g.http = srv.URL, srv.Client()
	g.client = gemini.New(gemini.Options{Client: srv.Client(), Blobs: g.blobs})
	yes := model.Fact[bool]{Value: true, Source: model.FromDialect}
	g.service = model.Service{
		ID: "gem", Dialect: model.Gemini, BaseURL: srv.URL, Model: "gemini-3-fake", APIKey: "a-key-of-gemini",
		Capabilities: model.Capabilities{ToolImage: yes, ToolFile: yes},
	}
	return g
}

// ask makes a call and returns the parts of the answer as an agent keeps them.
func (g gem) ask(ctx context.Context, messages ...model.Message) (parts artel.Parts, end model.Finish, err error) {
	r := &model.Request{Service: g.service, Messages: messages, Tools: []model.ToolSpec{{Name: "look", Schema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)}}}
	text, thought := "", ""
	flush := func() {
		if text != "" {
			parts = append(parts, artel.Text{Text: text})
		}
		text = ""
	}
	for d, e := range g.client.Generate(ctx, r) {
		if e != nil {
			flush()
			return parts, end, e
		}
		switch d := d.(type) {
		case model.TextDelta:
			text += string(d)
		case model.ReasoningDelta:
			thought += string(d)
		case model.ReasoningDone:
			flush()
			parts = append(parts, artel.Reasoning{Text: thought, Opaque: d.Opaque, Service: g.service.ID})
			thought = ""
		case model.CallDelta:
			flush()
			parts = append(parts, artel.ToolCall(d))
		case model.Finish:
			flush()
			end = d
		}
	}
	return parts, end, nil
}

func said(role artel.Role, parts ...artel.Part) model.Message {
	return model.Message{Role: role, Parts: parts}
}

func answers(deltas ...model.Delta) fake.Responder {
	return func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			for _, d := range deltas {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

// TestGeminiLoop goes through a turn with parallel calls, whose results bear a
// picture, a document and a recording, and checks what the model got.
func TestGeminiLoop(t *testing.T) {
	t.Parallel()
	var asked []*model.Request
	step := 0
	g := serveGemini(t, fake.Options{Key: "a-key-of-gemini", Models: []string{"gemini-3-fake"}, Responder: func(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		asked = append(asked, r)
		step++
		usage := artel.Usage{Calls: 1, InputTokens: 20, OutputTokens: 9, CachedTokens: 8, ThoughtTokens: 4}
		if step == 1 {
			return answers(
				model.ReasoningDelta("I need "), model.ReasoningDelta("both."), model.TextDelta("Let me look."),
				model.CallDelta{ID: "x", Name: "look", Arguments: json.RawMessage(`{"q":"b","a":1}`)}, model.CallDelta{ID: "y", Name: "look", Arguments: json.RawMessage(`{}`)},
				model.Finish{Reason: model.StopTools, Usage: usage},
			)(ctx, r)
		}
		return answers(model.TextDelta("Done."), model.ReasoningDone{Opaque: json.RawMessage(`{"thoughtSignature":"ZW5k"}`)}, model.Finish{Reason: model.StopEnd, Usage: usage})(ctx, r)
	}})
	keep := func(mediaType string, kind artel.MediaKind, text string) artel.Media {
		info, err := g.blobs.Put(t.Context(), strings.NewReader(text), 0)
		if err != nil {
			t.Fatal(err)
		}
		return artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: mediaType, Kind: kind, Size: info.Size}
	}
	picture, document, sound := keep("image/png", artel.KindImage, "a picture"), keep("application/pdf", artel.KindDocument, "a document"), keep("audio/x-wav", artel.KindAudio, "a recording")
	user := said(artel.RoleUser, artel.Text{Text: "look"}, keep("video/mp4", artel.KindVideo, "a film"))
	first, end, err := g.ask(t.Context(), user)
	if err != nil || end.Reason != model.StopTools || end.Usage != (artel.Usage{Calls: 1, InputTokens: 20, OutputTokens: 9, CachedTokens: 8, ThoughtTokens: 4}) {
		t.Fatal(err, end)
	}
	call, _ := first[2].(artel.ToolCall)
	if len(first) != 4 || call.Service != "gem" || len(call.Opaque) == 0 {
		t.Fatalf("%+v", first)
	}
	history := []model.Message{
		user, said(artel.RoleAssistant, first...),
		said(artel.RoleTool, artel.ToolResult{CallID: "y", Content: "two", Parts: artel.Parts{document, sound}}),
		said(artel.RoleTool, artel.ToolResult{CallID: "x", Content: "one", Parts: artel.Parts{picture}}),
	}
	second, end, err := g.ask(t.Context(), history...)
	if err != nil || end.Reason != model.StopEnd {
		t.Fatal(err, end)
	}
	var got []string
	for _, m := range asked[1].Messages {
		for _, p := range m.Parts {
			line := string(m.Role) + " "
			switch p := p.(type) {
			case artel.Text:
				line += p.Text
			case artel.Media:
				line += p.MediaType
			case artel.Reasoning:
				line += "(" + p.Text + ")"
			case artel.ToolCall:
				line += fmt.Sprintf("%s%s signed=%t", p.ID, p.Arguments, p.Opaque != nil)
			case artel.ToolResult:
				line += string(p.CallID) + "=" + p.Content
				for _, m := range artel.MediaOf(p.Parts) {
					line += " " + m.MediaType
				}
			}
			got = append(got, line)
		}
	}
	want := []string{
		"user look", "user video/mp4", "assistant Let me look.", `assistant x{"q":"b","a":1} signed=true`, "assistant y{} signed=false",
		"tool x=one image/png", "tool y=two application/pdf", "user file, from tool call y", "user audio/wav",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the model got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// The turn is over; the signature of the answer goes back with it.
	if _, _, err = g.ask(t.Context(), append(slices.Clip(history), said(artel.RoleAssistant, second...), said(artel.RoleUser, artel.Text{Text: "thanks"}))...); err != nil {
		t.Fatal(err)
	}
	last := g.Requests()[2]
	if !bytes.Contains(last.Body, []byte(`{"text":"Done.","thoughtSignature":"ZW5k"}`)) {
		t.Errorf("the signature of the answer is lost: %s", last.Body)
	}
	if len(last.Media) != 4 || last.Header.Get("X-Goog-Api-Key") != "" {
		t.Errorf("the record is %+v", last)
	}
}

// TestGeminiWantsSignatures: unsigned and changed calls of Gemini 3 are refused
// in the current turn, and the calls of others go with the documented value.
func TestGeminiWantsSignatures(t *testing.T) {
	t.Parallel()
	g := serveGemini(t, fake.Options{Responder: answers(model.CallDelta{ID: "x", Name: "look", Arguments: json.RawMessage(`{"q":"b"}`)}, model.Finish{Reason: model.StopTools})})
	hello := said(artel.RoleUser, artel.Text{Text: "hi"})
	parts, _, err := g.ask(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	call, _ := parts[0].(artel.ToolCall)
	result := said(artel.RoleTool, artel.ToolResult{CallID: "x", Content: "seen"})
	changed := call
	changed.Arguments = json.RawMessage(`{"q":"other"}`)
	foreign := call
	foreign.Service = "another"
	for name, c := range map[string]struct {
		call artel.ToolCall
		want string
	}{"as it was": {call, ""}, "of another service": {foreign, ""}, "changed": {changed, "Corrupted thought signature."}} {
		_, _, err := g.ask(t.Context(), hello, said(artel.RoleAssistant, c.call), result)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	raw := `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"look","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"look","response":{}}}]}%s]}`
	for name, c := range map[string]struct {
		model, more, want string
	}{
		"unsigned":                  {"gemini-3-fake", "", "400 Function call is missing a thought_signature in functionCall parts."},
		"unsigned in an older turn": {"gemini-3-fake", `,{"role":"user","parts":[{"text":"and?"}]}`, "200"},
		"unsigned, older model":     {"gemini-2.5-fake", "", "200"},
	} {
		status, body := g.post(t, c.model+":generateContent", fmt.Sprintf(raw, c.more))
		if got := fmt.Sprint(status, " ", body); !strings.Contains(strings.ReplaceAll(got, `{"error":{"code":400,"message":"`, ""), c.want) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// post sends a body as any client does.
func (g gem) post(t *testing.T, target, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1beta/models/"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(target, "key=") {
		req.Header.Set("X-Goog-Api-Key", "a-key-of-gemini")
	}
	resp, err := g.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestGeminiForms has the three forms of an answer, and what else it serves.
func TestGeminiForms(t *testing.T) {
	t.Parallel()
	g := serveGemini(t, fake.Options{Key: "a-key-of-gemini", Models: []string{"gemini-2.5-fake"}, Responder: answers(model.TextDelta("a"), model.TextDelta("b"), model.Finish{Reason: model.StopLength, Usage: artel.Usage{InputTokens: 1, OutputTokens: 2}})})
	const hi = `{"contents":[{"parts":[{"text":"hi"}]}]}`
	for target, want := range map[string]string{
		"gemini-2.5-fake:generateContent?key=a-key-of-gemini": `200 {"candidates":[{"content":{"role":"model","parts":[{"text":"ab"}]},"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"totalTokenCount":3},"modelVersion":"gemini-2.5-fake","responseId":"fake0`,
		"gemini-2.5-fake:streamGenerateContent?alt=sse":       "200 data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"a\"}]},\"index\":0}],",
		"gemini-2.5-fake:streamGenerateContent":               "200 [{\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"a\"}]},\"index\":0}],",
		"gemini-2.5-fake:generateContent?key=wrong":           `400 {"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"googleapis.com","metadata":{"service":"generativelanguage.googleapis.com"},"reason":"API_KEY_INVALID"}]}}`,
		"gemini-2.5-fake:generateContent?key=":                `403 {"error":{"code":403,"message":"Method doesn't allow unregistered callers`,
		"other:generateContent":                               `404 {"error":{"code":404,"message":"models/other is not found for API version v1beta`,
		"gemini-2.5-fake:dance":                               `404 {"error":{"code":404,"message":"The requested URL was not found`,
	} {
		status, body := g.post(t, target, hi)
		if got := fmt.Sprint(status, " ", body); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", target, got, want)
		}
	}
	for body, want := range map[string]string{
		`{`: "Invalid JSON payload received. unexpected end of JSON input", ``: "Invalid JSON payload received.", `[]`: "Root element must be a message",
		`{"contents":[{"parts":[{"text":"hi"}]}],"messages":[]}`: `Unknown name \"messages\": Cannot find field.`,
		`{"contents":"hi"}`: `Invalid value at 'contents[0]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content), \"hi\"`,
	} {
		if status, got := g.post(t, "gemini-2.5-fake:generateContent", body); status != http.StatusBadRequest || !strings.Contains(got, want) {
			t.Errorf("%s: got %d %s, want %s", body, status, got, want)
		}
	}
	picture := `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + strings.Repeat("AAAA", 2000) + `"}}]}]}`
	for body, want := range map[string]string{
		hi: `{"totalTokens":10}`, picture: `{"totalTokens":283}`, `{"generateContentRequest":` + picture + `}`: `{"totalTokens":290}`,
		`{}`: "contents is not specified", `{"contents":[],"tools":[]}`: `Unknown name \"tools\"`,
	} {
		if _, got := g.post(t, "gemini-2.5-fake:countTokens", body); !strings.Contains(got, want) {
			t.Errorf("%.80s: counted %s, want %s", body, got, want)
		}
	}
	for path, want := range map[string]string{"/v1beta/models": `"name":"models/gemini-2.5-fake"`, "/v1/models/gemini-2.5-fake": `"inputTokenLimit":1048576`, "/v1beta/models/x": `"NOT_FOUND"`} {
		resp, err := g.http.Get(g.url + path + "?key=a-key-of-gemini")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v %s", path, err, b)
		}
	}
}

// TestGeminiBehaves: the modes and oddities, as the client meets them.
func TestGeminiBehaves(t *testing.T) {
	t.Parallel()
	g := serveGemini(t, fake.Options{Responder: answers(
		model.TextDelta("a long answer"), model.CallDelta{ID: "x", Name: "look", Arguments: json.RawMessage(`{}`)}, model.Finish{Reason: model.StopTools, Usage: artel.Usage{Calls: 1, InputTokens: 3, OutputTokens: 2}},
	)})
	hello := said(artel.RoleUser, artel.Text{Text: "hi"})
	for _, c := range []struct {
		behavior  fake.Behavior
		kind      artel.Kind // "": none
		transient bool
		retry     time.Duration
		want      string // of the error, or the reason
	}{
		{fake.Behavior{}, "", false, 0, "tools"},
		{fake.Behavior{Mode: fake.RateLimit, RetryAfter: 9}, artel.Unavailable, true, 9 * time.Second, "You exceeded your current quota"},
		{fake.Behavior{Mode: fake.RateLimit}, artel.Unavailable, false, 0, "You exceeded your current quota"},
		{fake.Behavior{Mode: fake.ServerError}, artel.Unavailable, true, 0, "An internal error has occurred."},
		{fake.Behavior{Mode: fake.Overloaded}, artel.Unavailable, true, 0, "The model is overloaded."},
		{fake.Behavior{Mode: fake.BadRequest}, artel.Invalid, false, 0, "Bad request."},
		{fake.Behavior{Mode: fake.HalfStream}, artel.Unavailable, true, 0, "the stream broke off"},
		{fake.Behavior{Mode: fake.StreamError}, artel.Unavailable, true, 0, "Overloaded"},
		{fake.Behavior{Mode: fake.Garbage}, artel.Unavailable, true, 0, "the stream has a piece that is no response"},
		{fake.Behavior{Mode: fake.WebPage}, artel.Unavailable, false, 0, "web page"},
		{fake.Behavior{Oddity: fake.BlockedPrompt}, "", false, 0, "refusal"},
		{fake.Behavior{Oddity: fake.NoCandidates}, artel.Unavailable, true, 0, "without a finish reason"},
		{fake.Behavior{Oddity: fake.MalformedCall}, artel.Unavailable, true, 0, "MALFORMED_FUNCTION_CALL: Malformed function call"},
		{fake.Behavior{Oddity: fake.Recitation}, "", false, 0, "refusal"},
		{fake.Behavior{Oddity: fake.NoCallIDs}, "", false, 0, "tools"},
	} {
		if err := g.Behave(c.behavior); err != nil {
			t.Fatal(err)
		}
		parts, end, err := g.ask(t.Context(), hello)
		if c.kind == "" {
			if err != nil || string(end.Reason) != c.want {
				t.Errorf("%+v: %v %+v, want %s", c.behavior, err, end, c.want)
			}
			if c.want == "tools" {
				if call, _ := parts[1].(artel.ToolCall); call.ID == "" || (call.ID == "x") != (c.behavior.Oddity == "") {
					t.Errorf("%+v: the call has the id %q", c.behavior, call.ID)
				}
			}
			continue
		}
		call, _ := errors.AsType[*model.CallError](err)
		if artel.KindOf(err) != c.kind || call == nil || call.Transient != c.transient || call.RetryAfter != c.retry || !strings.Contains(call.Message, c.want) {
			t.Errorf("%+v: got %v %+v, want %s", c.behavior, err, call, c.want)
		}
	}
	if err := g.Behave(fake.Behavior{Oddity: "odd"}); err == nil {
		t.Error("an unknown oddity is taken")
	}
	if err := fake.OpenAI(fake.Options{}).Behave(fake.Behavior{Oddity: fake.NoCallIDs}); err == nil {
		t.Error("another API is as odd as Gemini")
	}
	if err := g.Behave(fake.Behavior{Mode: fake.Hang}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := g.ask(ctx, hello); artel.KindOf(err) != artel.Canceled {
		t.Errorf("a call that was given up: %v", err)
	}
}
