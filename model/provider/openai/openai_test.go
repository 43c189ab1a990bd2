// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/openai"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProvider(t *testing.T) { providertest.Run(t, dialect()) }

// TestAnyHistory keeps what came from any service, and its order.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	d := dialect()
	d.Native.Decode = func(body []byte) (*model.Request, error) {
		r, err := openai.Decode(t.Context(), bytes.NewReader(body), provider.DecodeOptions{})
		if err != nil {
			return nil, err
		}
		return r.Neutral(), nil
	}
	providertest.Histories(t, d)
}

func dialect() providertest.Dialect {
	return providertest.Dialect{
		Name: model.OpenAI,
		New: func(client *http.Client, blobs blob.Store) model.Provider {
			return openai.New(openai.Options{Client: client, Blobs: blobs})
		},
		Stream: func(w io.Writer, deltas iter.Seq2[model.Delta, error]) error {
			return openai.Answer{ID: "chatcmpl-1", Model: "kit-1", Created: time.Unix(1, 0), IncludeUsage: true}.Stream(w, nil, deltas)
		},
		Failure: func(status int, message string) []byte {
			return (&openai.APIError{Status: status, Message: message, Type: "some_error"}).MarshalBody()
		},
		Validate: rules.ValidateJSON,
	}
}

// told asks a server that sends body, and returns its answer on one line.
func told(t *testing.T, mediaType, body string) string {
	t.Helper()
	return providertest.Answer(t, dialect(), mediaType, body)
}

// stream makes events of the choices' JSON.
func stream(choices ...string) string {
	var b strings.Builder
	for _, c := range choices {
		fmt.Fprintf(&b, "data: {\"choices\":[%s]}\n\n", c)
	}
	return b.String()
}

const done = "data: [DONE]\n\n"

// TestAnswers has what servers really send, right and wrong.
func TestAnswers(t *testing.T) {
	t.Parallel()
	stop := `{"delta":{},"finish_reason":"stop"}`
	for name, c := range map[string]struct{ mediaType, body, want string }{
		"answers at once where a stream was asked for": {"application/json", `{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, `"hi" end 3/1`},
		"says JSON and streams":                        {"application/json", stream(`{"delta":{"content":"hi"}}`, stop) + done, `"hi" end 0/0`},
		"says nothing and streams after comments":      {"text/plain", ": OPENROUTER PROCESSING\n\n" + stream(`{"delta":{"content":"hi"}}`, stop) + done, `"hi" end 0/0`},
		"parallel fragments interleaved": {"text/event-stream", stream(
			`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":"{\"x\""}}]}}`,
			`{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}`,
			`{"delta":{"tool_calls":[{"index":1,"function":{"arguments":":1}"}}]}}`,
			`{"delta":{},"finish_reason":"tool_calls"}`,
		) + done, `a:f{} b:g{"x":1} tools 0/0`},
		"all calls with index 0": {"text/event-stream", stream(
			`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}`,
			`{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}}`, stop,
		) + done, `a:f{} b:g{} tools 0/0`},
		"calls without an index": {"text/event-stream", stream(
			`{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}`,
			`{"delta":{"tool_calls":[{"id":"b","function":{"name":"g","arguments":{"x":1}}}]}}`, stop,
		) + done, `a:f{} b:g{"x":1} tools 0/0`},
		"a new id to every fragment": {"text/event-stream", stream(
			`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}}`,
			`{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"arguments":"}"}}]}}`, stop,
		) + done, `a:f{} tools 0/0`},
		"arguments that are no JSON": {"text/event-stream", stream(`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{x"}}]}}`, stop) + done, `a:f"{x" tools 0/0`},
		"no arguments":               {"text/event-stream", stream(`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}}`, stop) + done, `a:f{} tools 0/0`},
		"a call cut off":             {"text/event-stream", stream(`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x"}}]}}`, `{"delta":{},"finish_reason":"length"}`) + done, `length 0/0`},
		"a call without a name":      {"text/event-stream", stream(`{"delta":{"tool_calls":[{"index":0,"id":"a"}]}}`, stop) + done, `!unavailable transient=true the service sent a tool call without a name`},
		"reasoning, by two names":    {"text/event-stream", stream(`{"delta":{"reasoning_content":"a","reasoning":"a"}}`, `{"delta":{"reasoning":"b"}}`, `{"delta":{"content":"c"}}`, stop) + done, `(a) (b) "c" end 0/0`},
		"content as parts":           {"text/event-stream", stream(`{"delta":{"content":[{"type":"text","text":"hi"}]}}`, stop) + done, `"hi" end 0/0`},
		"refusal":                    {"text/event-stream", stream(`{"delta":{"refusal":"no"}}`, stop) + done, `"no" refusal 0/0`},
		"filtered without a word":    {"text/event-stream", stream(`{"delta":{},"finish_reason":"content_filter"}`) + done, `refusal 0/0`},
		"out of tokens at once":      {"text/event-stream", stream(`{"delta":{},"finish_reason":"length"}`) + done, `length 0/0`},
		"usage after the end":        {"text/event-stream", stream(`{"delta":{"content":"x"}}`, stop) + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}` + "\n\n" + done, `"x" end 5/2`},
		"other choices are left out": {"text/event-stream", stream(`{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}`, stop) + done, `"yes" end 0/0`},
		"an error field of null":     {"text/event-stream", `data: {"error":null,"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n\n" + done, `"x" end 0/0`},
		"an error in the stream":     {"text/event-stream", stream(`{"delta":{"content":"x"}}`) + `data: {"error":{"message":"overloaded","code":503}}` + "\n\n", `"x" !unavailable transient=true overloaded`},
		"a named error event":        {"text/event-stream", "event: error\ndata: {\"message\":\"bad\",\"type\":\"invalid_request_error\"}\n\n", `!invalid transient=false bad`},
		"an error in 200 JSON":       {"application/json", `{"error":{"message":"maximum context length is 8"}}`, `!too_large transient=false maximum context length is 8`},
		"ended by an error":          {"text/event-stream", stream(`{"delta":{"content":"x"},"finish_reason":"error"}`) + done, `"x" !unavailable transient=true the service ended the answer with an error`},
		"no [DONE]":                  {"text/event-stream", stream(`{"delta":{"content":"x"}}`, stop), `"x" end 0/0`},
		"neither reason nor [DONE]":  {"text/event-stream", stream(`{"delta":{"content":"x"}}`), `"x" !unavailable transient=true the stream broke off`},
		"no finish reason":           {"text/event-stream", stream(`{"delta":{"content":"x"}}`) + done, `"x" !unavailable transient=true the stream broke off: it ended without a finish reason`},
		"an empty answer":            {"text/event-stream", stream(stop) + done, `!unavailable transient=true the service sent an empty answer`},
		"nothing but text":           {"text/plain", "It works!", `!unavailable transient=true the answer is neither JSON nor an event stream`},
		"JSON without a message":     {"application/json", `{"choices":[]}`, `!unavailable transient=true the answer has no message`},
		"a list":                     {"application/json", `[1]`, `!unavailable transient=true the answer is not valid JSON: json: cannot unmarshal array into Go value of type openai.Response`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(t, c.mediaType, c.body); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(stream(`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}`, `{"delta":{},"finish_reason":"stop"}`) + done)
	f.Add(`{"choices":[{"message":{"content":[{"type":"text","text":"x"}]}}]}`)
	f.Add(stream(`{"delta":{"content":"x","reasoning_details":[{"type":"reasoning.text","text":"x","index":0}]},"finish_reason":"stop"}`) + done)
	f.Fuzz(func(t *testing.T, body string) { providertest.CheckAnswer(t, dialect(), model.OpenRouterAPI, body) })
}

// encoded returns the body of r, which the API accepts.
func encoded(t *testing.T, r *model.Request, blobs blob.Store) string {
	t.Helper()
	out := providertest.Encoded(t, openai.Encode, r, blobs)
	if err := rules.ValidateJSON([]byte(out)); err != nil {
		t.Errorf("the API refuses %s: %v", out, err)
	}
	return out
}

func TestEncode(t *testing.T) {
	t.Parallel()
	store := blob.NewMemory()
	media := func(mediaType, name string) artel.Media {
		info, err := store.Put(context.Background(), strings.NewReader("abc"), 0)
		if err != nil {
			t.Fatal(err)
		}
		return artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: mediaType, Filename: name, Size: 3}
	}
	long := artel.CallID(strings.Repeat("x", 100))
	r := &model.Request{
		Service: model.Service{ID: "s", Model: "m<1>", BaseURL: "https://api.openai.com/v1"},
		Messages: []model.Message{
			{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "s"}}},
			{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "one"}, artel.Text{Text: "two"}}},
			{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: long, Name: "f", Arguments: json.RawMessage(`"{oops"`)}}},
			{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: long, Content: "r"}}},
			{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "x"}, media("application/pdf", "a\"b.pdf")}},
		},
		MaxOutput: 5,
	}
	want := `{"model":"m<1>","messages":[{"role":"system","content":"s"},{"role":"user","content":"one\n\ntwo"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_ID","type":"function","function":{"name":"f","arguments":"{\"invalid_arguments\":\"{oops\"}"}}]},` +
		`{"role":"tool","tool_call_id":"call_ID","content":"r"},` +
		`{"role":"user","content":[{"type":"text","text":"x"},{"type":"file","file":{"filename":"a\"b.pdf","file_data":"data:application/pdf;base64,YWJj"}}]}],` +
		`"max_completion_tokens":5,"stream":true,"stream_options":{"include_usage":true}}`
	got := encoded(t, r, store)
	_, id, _ := strings.Cut(got, `"id":"call_`)
	got = strings.ReplaceAll(got, id[:24], "ID")
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for mediaType, want := range map[string]string{
		"audio/x-wav": `{"type":"input_audio","input_audio":{"data":"YWJj","format":"wav"}}`,
		"audio/mpeg":  `{"type":"input_audio","input_audio":{"data":"YWJj","format":"mp3"}}`,
		"image/webp":  `{"type":"image_url","image_url":{"url":"data:image/webp;base64,YWJj"}}`,
	} {
		r.Messages = []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{media(mediaType, "n")}}}
		if got := encoded(t, r, store); !strings.Contains(got, want) {
			t.Errorf("%s: got %s", mediaType, got)
		}
	}
	for mediaType, want := range map[string]artel.Kind{
		"video/mp4": artel.Unsupported, "audio/ogg": artel.Unsupported, "application/zip": artel.Unsupported,
		`image/png";"x`: artel.Invalid, "": artel.Invalid, "image": artel.Invalid, "image/png\"}": artel.Invalid,
	} {
		r.Messages = []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{media(mediaType, "n")}}}
		if _, err := openai.Encode(r, store); artel.KindOf(err) != want {
			t.Errorf("%q: got %v, want %s", mediaType, err, want)
		}
	}
}

// TestToolMediaStays sends media in tool results where the service takes them.
func TestToolMediaStays(t *testing.T) {
	t.Parallel()
	store := blob.NewMemory()
	info, err := store.Put(t.Context(), strings.NewReader("abc"), 0)
	if err != nil {
		t.Fatal(err)
	}
	s := model.Service{ID: "s", Model: "m"}
	s.Capabilities.ToolImage = model.Fact[bool]{Value: true, Source: model.FromProbe}
	got := providertest.Encoded(t, openai.Encode, &model.Request{Service: s, Messages: []model.Message{
		{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "a", Name: "f"}}},
		{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "a", Content: "r", Parts: artel.Parts{
			artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: "image/png", Size: 3},
		}}}},
	}}, store)
	want := `{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"r"},{"type":"image_url","image_url":{"url":"data:image/png;base64,YWJj"}}]}`
	if !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}

// TestCallsWithoutEnd: a stream that begins call after call is broken off.
func TestCallsWithoutEnd(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,\"id\":\"c%d\",\"function\":{\"name\":\"x\"}}]}}]}\n\n", i, i)
	}
	if got := told(t, "text/event-stream", b.String()); !strings.Contains(got, "more than 1000 tool calls") {
		t.Errorf("got %.200s", got)
	}
	const odd = `{"choices":[{"message":{"content":"Here."},"finish_reason":"stop"}],"usage":{"prompt_tokens":-3,"completion_tokens":1e99}}`
	if got := told(t, "application/json", odd); !strings.HasPrefix(got, `"Here." end `) {
		t.Errorf("with odd usage: got %.200s", got)
	}
}
