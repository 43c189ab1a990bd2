// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// TestDetailOfPictures: how closely a model looks at a picture passes between the
// dialects of OpenAI, and is dropped with a note for others.
func TestDetailOfPictures(t *testing.T) {
	b := newBench(t)
	b.respond(fake.Echo)
	url := quoted(dataURL(picture(20, 1)))
	chat := func(service string) string {
		return `{"model":"` + service + `","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":` + url + `,"detail":"low"}}]}]}`
	}
	b.post("/v1/chat/completions", chat("responses"))
	if got := gjson.Get(b.last(), "input.0.content.1.detail").Str; got != "low" {
		t.Errorf("the detail is %q in %s", got, b.last())
	}
	b.post("/v1/responses", `{"model":"chat","input":[{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":`+url+`,"detail":"high"}]}]}`)
	if got := gjson.Get(b.last(), "messages.0.content.1.image_url.detail").Str; got != "high" {
		t.Errorf("the detail is %q in %s", got, b.last())
	}
	b.post("/v1/chat/completions", chat("messages"))
	if changes := b.entry().Changes; len(changes) == 0 || changes[len(changes)-1].Did != gateway.DidDrop || changes[len(changes)-1].Field != "detail" {
		t.Errorf("the log has %+v", changes)
	}
}

// TestFailedResults: a model of OpenAI's dialects reads that a call failed, though
// their results cannot be marked.
func TestFailedResults(t *testing.T) {
	b := newBench(t)
	b.respond(fake.Echo)
	for content, want := range map[string]string{`""`: "Error: the tool failed and returned no text.", `"no such file"`: "Error: no such file", `"error: no such file"`: "error: no such file"} {
		for service, path := range map[string]string{"chat": "messages.2.content", "responses": "input.2.output"} {
			b.post("/v1/messages", `{"model":"`+service+`","max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"x"},`+
				`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":`+content+`}]}]}`)
			if got := gjson.Get(b.last(), path).Str; got != want {
				t.Errorf("%s, %s: %q in %s", service, content, got, b.last())
			}
		}
	}
}

// TestLongCallIDs: the signature of a call is found under the short id that a client
// of Chat Completions gets for a long one.
func TestLongCallIDs(t *testing.T) {
	b := newBench(t)
	id := "call_" + strings.Repeat("0123456789", 5)
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"` + id + `","name":"look","args":{}},"thoughtSignature":"c2lnbmF0dXJl"}]},"finishReason":"STOP"}]}` + "\n\n"))
	})
	_, body := b.post("/v1/chat/completions", asks("gemini", `,"tools":[{"type":"function","function":{"name":"look"}}]`))
	call := gjson.Get(body, "choices.0.message.tool_calls.0")
	if got := call.Get("id").Str; len(got) > 40 || got == "" {
		t.Fatalf("the id is %q", got)
	}
	b.post("/v1/chat/completions", `{"model":"gemini","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[`+call.Raw+`]},{"role":"tool","tool_call_id":`+call.Get("id").Raw+`,"content":"y"}]}`)
	if !strings.Contains(b.last(), `"thoughtSignature":"c2lnbmF0dXJl"`) {
		t.Errorf("it got %s", b.last())
	}
}

// TestSignaturesOfEqualIDs: calls of two conversations have the same id; each gets its
// own signature back.
func TestSignaturesOfEqualIDs(t *testing.T) {
	b := newBench(t)
	city := ""
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"call_1","name":"look","args":{"unit":"C","city":"` + city + `"}},"thoughtSignature":"` + encoded([]byte(city)) + `"}]},"finishReason":"STOP"}]}` + "\n\n"))
	})
	calls := map[string]string{}
	for _, city = range []string{"Bonn", "Ulm"} {
		_, body := b.post("/v1/chat/completions", asks("gemini", `,"tools":[{"type":"function","function":{"name":"look"}}]`))
		calls[city] = gjson.Get(body, "choices.0.message.tool_calls").Raw
	}
	for city, call := range calls {
		call = strings.Replace(call, `{\"unit\":\"C\",\"city\":\"`+city+`\"}`, `{ \"city\": \"`+city+`\", \"unit\": \"C\" }`, 1) // as some clients write it
		b.post("/v1/chat/completions", `{"model":"gemini","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":`+call+`},{"role":"tool","tool_call_id":"call_1","content":"y"}]}`)
		if want := `"thoughtSignature":"` + encoded([]byte(city)) + `"`; !strings.Contains(b.last(), want) || !strings.Contains(b.last(), `{"city":"`+city+`","unit":"C"}`) && !strings.Contains(b.last(), `{ "city": "`+city) {
			t.Errorf("%s: it got %s", city, b.last())
		}
	}
}

// TestSignaturesStayWithTheirKey: the state of a call of one key's conversation never
// reaches that of another key.
func TestSignaturesStayWithTheirKey(t *testing.T) {
	b := newBench(t, setup{options: backend.Options{Keys: []backend.Key{{Name: "one", Secret: "1"}, {Name: "two", Secret: "2"}}}})
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"call_1","name":"look","args":{}},"thoughtSignature":"c2lnbmF0dXJl"}]},"finishReason":"STOP"}]}` + "\n\n"))
	})
	const turn = `{"model":"gemini","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"y"}]}`
	const native = `{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"look","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":"y"}}}]}]}`
	b.post("/v1/chat/completions", asks("gemini", `,"tools":[{"type":"function","function":{"name":"look"}}]`), "Authorization", "Bearer 1")
	b.post("/v1beta/models/gemini:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"x"}]}]}`, "Authorization", "Bearer 1")
	for key, mine := range map[string]bool{"1": true, "2": false} {
		b.post("/v1/chat/completions", turn, "Authorization", "Bearer "+key)
		if strings.Contains(b.last(), "c2lnbmF0dXJl") != mine {
			t.Errorf("key %s: it got %s", key, b.last())
		}
		b.post("/v1beta/models/gemini:streamGenerateContent?alt=sse", native, "Authorization", "Bearer "+key)
		if strings.Contains(b.last(), "c2lnbmF0dXJl") != mine {
			t.Errorf("key %s, forwarded: it got %s", key, b.last())
		}
	}
}

// TestReasoningComesBack: the signed reasoning before a call reaches its service again if
// the client's dialect has no place for it, or the client did not ask for it; a client
// that returns it has it once.
func TestReasoningComesBack(t *testing.T) {
	const (
		responses = `data: {"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}` + "\n\n" +
			`data: {"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2VjcmV0"}}` + "\n\n" +
			`data: {"type":"response.output_item.done","sequence_number":2,"output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":"{}","status":"completed"}}` + "\n\n" +
			`data: {"type":"response.completed","sequence_number":3,"response":{"id":"r","object":"response","created_at":1,"status":"completed","model":"m","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}` + "\n\n"
		messages = `data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n" +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so"}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2VjcmV0"}}` + "\n\n" +
			`data: {"type":"content_block_stop","index":0}` + "\n\n" +
			`data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call_1","name":"look","input":{}}}` + "\n\n" +
			`data: {"type":"content_block_stop","index":1}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":1}}` + "\n\n" +
			`data: {"type":"message_stop"}` + "\n\n"
	)
	for service, answer := range map[string]string{"responses": responses, "messages": messages} {
		for _, in := range speeches() {
			if in.service == service {
				continue
			}
			b := newBench(t)
			b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
			if status, body := b.post(in.path(service, false), in.body(service, false, speechContent{text: "x"}), in.header...); status != 200 || !strings.Contains(body, "call_1") {
				t.Fatalf("%s to %s: %d %s", in.name, service, status, body)
			}
			turn := in.body(service, false, speechContent{text: "x", tool: "result", picture: encoded(picture(8, 1))})
			b.post(in.path(service, false), turn, in.header...)
			reasoned := strings.Index(b.last(), "c2VjcmV0")
			called := strings.LastIndex(b.last(), `"call_1"`)
			if in.name == model.OpenAIResponses {
				if reasoned >= 0 {
					t.Errorf("%s to %s: a client that returns reasoning did not, and %s has it", in.name, service, b.last())
				}
				continue
			}
			if reasoned < 0 || reasoned > called || strings.Count(b.last(), "c2VjcmV0") != 1 {
				t.Errorf("%s to %s: it got %s", in.name, service, b.last())
			}
			b.post(in.path("gemini", false), strings.Replace(turn, quoted(service), `"gemini"`, 1), in.header...)
			if strings.Contains(b.last(), "c2VjcmV0") {
				t.Errorf("%s: another service got %s", in.name, b.last())
			}
		}
	}
}

// TestSecondFunctionCall: an answer in the deprecated form of Chat Completions has one
// call; the log has the others.
func TestSecondFunctionCall(t *testing.T) {
	b := newBench(t)
	b.answer = func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			_ = yield(model.CallDelta{ID: "call_1", Name: "look", Arguments: json.RawMessage(`{"n":1}`)}, nil) &&
				yield(model.CallDelta{ID: "call_2", Name: "look", Arguments: json.RawMessage(`{"n":2}`)}, nil) &&
				yield(model.Finish{Reason: model.StopTools}, nil)
		}
	}
	for _, stream := range []string{"", `,"stream":true`} {
		status, body := b.post("/v1/chat/completions", asks("other", `,"functions":[{"name":"look"}]`+stream))
		if status != 200 || !strings.Contains(body, `{\"n\":1}`) || strings.Contains(body, `{\"n\":2}`) {
			t.Errorf("%d %s", status, body)
		}
		want := gateway.Change{Did: gateway.DidDrop, Reason: "too_many", Field: "function_call", Call: "call_2", Service: "other"}
		if changes := b.entry().Changes; len(changes) == 0 || changes[len(changes)-1] != want {
			t.Errorf("the log has %+v", changes)
		}
		b.post("/v1/chat/completions", asks("other", `,"tools":[{"type":"function","function":{"name":"look"}}]`+stream))
		if changes := b.entry().Changes; len(changes) > 0 {
			t.Errorf("with tools, the log has %+v", changes)
		}
	}
}

// TestManyUnknownFields: of very many fields the log names the first ones.
func TestManyUnknownFields(t *testing.T) {
	b := newBench(t)
	b.respond(fake.Echo)
	var more strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&more, `,"a%d":1`, i)
	}
	if status, got := b.post("/v1/chat/completions", asks("messages", more.String())); status != 200 {
		t.Fatalf("%d %s", status, got)
	}
	if n := len(b.entry().Changes); n != 51 {
		t.Errorf("the log has %d changes", n)
	}
}
