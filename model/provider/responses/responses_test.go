// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/responses"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/providertest"
	"github.com/artelhq/artel/model/provider/responses"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func answer() responses.Answer {
	return responses.Answer{ID: "resp_1", Model: "kit-1", Created: time.Unix(1, 0)}
}

const thought = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I think."}],"encrypted_content":"gAAAAAB=="}`

func TestProvider(t *testing.T) { providertest.Run(t, dialect(t)) }

func TestAnyHistory(t *testing.T) {
	t.Parallel()
	providertest.Histories(t, dialect(t))
}

func dialect(t *testing.T) providertest.Dialect {
	return providertest.Dialect{
		Name: model.OpenAIResponses,
		New: func(client *http.Client, blobs blob.Store) model.Provider {
			return responses.New(responses.Options{Client: client, Blobs: blobs})
		},
		Stream: func(w io.Writer, deltas iter.Seq2[model.Delta, error]) error { return answer().Stream(w, nil, deltas) },
		Failure: func(status int, message string) []byte {
			return (&responses.APIError{Status: status, Message: message, Type: "some_error"}).MarshalBody()
		},
		Validate: rules.ValidateJSON,
		Native: providertest.Native{
			Decode: func(body []byte) (*model.Request, error) {
				r, err := responses.Decode(t.Context(), bytes.NewReader(body), provider.DecodeOptions{})
				if err != nil {
					return nil, err
				}
				return r.Neutral(), nil
			},
			ToolTypes:    []string{"image/png", "image/jpeg", "application/pdf"},
			ThoughtState: json.RawMessage(thought),
		},
	}
}

// told asks a server that sends body, and returns its answer on one line.
func told(t *testing.T, mediaType, body string) string {
	t.Helper()
	return providertest.Answer(t, dialect(t), mediaType, body)
}

// events makes a stream of the events' JSON, named by their types.
func events(list ...string) string {
	var b strings.Builder
	for _, e := range list {
		var head struct{ Type string }
		_ = json.Unmarshal([]byte(e), &head)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", head.Type, e)
	}
	return b.String()
}

// TestAnswers has what servers really send, right and wrong.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const (
		hi       = `{"type":"response.output_text.delta","output_index":0,"delta":"hi"}`
		complete = `{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":5,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"output_tokens_details":{"reasoning_tokens":2}}}}`
		end      = `{"type":"response.completed","response":{"status":"completed"}}`
		item     = `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hi"}]}`
		call     = `{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{\"x\":1}"}`
		call2    = `{"type":"function_call","id":"fc_2","call_id":"b","name":"g","arguments":"{}"}`
		done     = `{"type":"response.output_item.done","output_index":`
	)
	for name, c := range map[string]struct{ mediaType, body, want string }{
		"usage":                       {"text/event-stream", events(hi, complete), `"hi" end 9/5 cached=4 stored=3 thought=2`},
		"at once":                     {"application/json", `{"object":"response","status":"completed","output":[` + item + `,` + call + `]}`, `"hi" a:f{"x":1} tools 0/0`},
		"said once":                   {"text/event-stream", events(hi, done+`0,"item":`+item+`}`, `{"type":"response.completed","response":{"output":[`+item+`]}}`), `"hi" end 0/0`},
		"said at the end alone":       {"text/event-stream", events(`{"type":"response.completed","response":{"output":[` + item + `,` + call + `]}}`), `"hi" a:f{"x":1} tools 0/0`},
		"no events for calls":         {"text/event-stream", events(hi, `{"type":"response.completed","response":{"output":[`+item+`,`+call+`]}}`), `"hi" a:f{"x":1} tools 0/0`},
		"no output index":             {"text/event-stream", events(`{"type":"response.output_text.delta","item_id":"msg_1","delta":"hi"}`, `{"type":"response.output_item.done","item":`+item+`}`, `{"type":"response.output_item.done","item":`+call+`}`, `{"type":"response.output_item.done","item":`+call2+`}`, `{"type":"response.completed","response":{"output":[`+item+`,`+call+`,`+call2+`]}}`), `"hi" a:f{"x":1} b:g{} tools 0/0`},
		"arguments in pieces alone":   {"text/event-stream", events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f"}}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\""}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":":1}"}`, done+`0,"item":{"type":"function_call"}}`, end), `a:f{"x":1} tools 0/0`},
		"arguments that are JSON":     {"application/json", `{"object":"response","output":[{"type":"function_call","call_id":"a","name":"f","arguments":{"x":1}}]}`, `a:f{"x":1} tools 0/0`},
		"custom tool":                 {"application/json", `{"object":"response","output":[{"type":"custom_tool_call","call_id":"a","name":"f","input":"some text"}]}`, `a:f{"input":"some text"} tools 0/0`},
		"reasoning":                   {"text/event-stream", events(`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}`, `{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"one"}`, `{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}`, `{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"two"}`, done+`0,"item":`+thought+`}`, `{"type":"response.output_text.delta","output_index":1,"delta":"hi"}`, end), "(one) (\n\n) (two) <" + thought + `> "hi" end 0/0`},
		"reasoning twice":             {"text/event-stream", events(`{"type":"response.reasoning_text.delta","output_index":0,"delta":"whole"}`, `{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"short"}`, done+`0,"item":{"type":"reasoning","id":"x","summary":[]}}`, end), "(whole) <> end 0/0"},
		"reasoning that nobody keeps": {"application/json", `{"object":"response","output":[{"type":"reasoning","id":"rs_1","summary":[]},` + item + `]}`, `"hi" end 0/0`},
		"reasoning told in full":      {"application/json", `{"object":"response","output":[{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},` + item + `]}`, `(hm) <{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}> "hi" end 0/0`},
		"phase":                       {"text/event-stream", events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","phase":"commentary"}}`, hi, done+`0,"item":{"type":"message","id":"m","phase":"commentary","content":[{"type":"output_text","text":"hi"}]}}`, end), `<{"phase":"commentary","type":"message"}> "hi" end 0/0`},
		"what the service did":        {"application/json", `{"object":"response","output":[{"type":"web_search_call","id":"ws_1","status":"completed"},` + item + `]}`, `<{"type":"web_search_call","id":"ws_1","status":"completed"}> "hi" end 0/0`},
		"refusal":                     {"text/event-stream", events(`{"type":"response.refusal.delta","output_index":0,"delta":"no"}`, end), `"no" refusal 0/0`},
		"refusal at once":             {"application/json", `{"object":"response","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}`, `"no" refusal 0/0`},
		"filtered":                    {"text/event-stream", events(hi, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`), `"hi" refusal 0/0`},
		"cut in a call":               {"text/event-stream", events(hi, done+`1,"item":{"type":"function_call","status":"incomplete","call_id":"a","name":"f","arguments":"{\"x"}}`, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`), `"hi" length 0/0`},
		"[DONE] at the end":           {"text/event-stream", events(hi, end) + "data: [DONE]\n\n", `"hi" end 0/0`},
		"[DONE] without an end":       {"text/event-stream", events(hi) + "data: [DONE]\n\n", `"hi" !unavailable transient=true the stream broke off`},
		"error event":                 {"text/event-stream", events(hi, `{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null}`), `"hi" !unavailable transient=true slow down`},
		"error event with an object":  {"text/event-stream", events(hi, `{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"too long"}}`), `"hi" !too_large transient=false too long`},
		"failed":                      {"text/event-stream", events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oops"}}}`), `!unavailable transient=true oops`},
		"failed at once":              {"application/json", `{"object":"response","status":"failed","error":{"code":"server_error","message":"oops"}}`, `!unavailable transient=true oops`},
		"failed without a word":       {"text/event-stream", events(`{"type":"response.failed","response":{"status":"failed","error":null}}`), `!unavailable transient=true the service ended the answer with an error`},
		"cancelled":                   {"application/json", `{"object":"response","status":"cancelled","output":[]}`, `!unavailable transient=true the service ended the answer with the status cancelled`},
		"nothing":                     {"text/event-stream", events(end), `!unavailable transient=true the service sent an empty answer`},
		"another API":                 {"application/json", `{"object":"chat.completion","choices":[]}`, `!unavailable transient=true the answer is no response`},
		"a call without a name":       {"application/json", `{"object":"response","output":[{"type":"function_call","call_id":"a"}]}`, `!unavailable transient=true the service sent a tool call without a name`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := told(t, c.mediaType, c.body); got != c.want {
				t.Errorf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
}

// FuzzAnswers reads answers of any kind: deltas, then one end or one error, and
// calls with valid arguments.
func FuzzAnswers(f *testing.F) {
	f.Add(events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f"}}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`, `{"type":"response.completed","response":{"output":[]}}`))
	f.Add(`{"object":"response","output":[{"type":"reasoning","summary":[{"text":"x"}]}],"choices":[{"message":{"content":"hi"}}]}`)
	f.Fuzz(func(t *testing.T, body string) { providertest.CheckAnswer(t, dialect(t), model.OpenRouterAPI, body) })
}
