// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// counted are answers in the dialects of the services, with a text and its usage.
var counted = map[string]struct {
	whole, stream string
	want          artel.Usage
}{
	"chat": {
		`{"id":"a","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"TEXT"},"finish_reason":"stop"}],"usage":USAGE}`,
		"data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"TEXT\"},\"finish_reason\":\"stop\"}],\"usage\":null}\n\ndata: {\"id\":\"a\",\"choices\":[],\"usage\":USAGE}\n\ndata: [DONE]\n\n",
		artel.Usage{Calls: 1, InputTokens: 100, OutputTokens: 20, CachedTokens: 80, StoredTokens: 10, ThoughtTokens: 15},
	},
	"messages": {
		`{"type":"message","role":"assistant","usage":USAGE,"content":[{"type":"text","text":"TEXT"}],"stop_reason":"end_turn"}`,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":USAGE}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"TEXT\"}}\n\n" +
			"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":20,\"output_tokens_details\":{\"thinking_tokens\":15}}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		artel.Usage{Calls: 1, InputTokens: 100, OutputTokens: 20, CachedTokens: 80, StoredTokens: 10, ThoughtTokens: 15},
	},
	"responses": {
		`{"id":"r","object":"response","status":"completed","output":[{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"TEXT"}]}],"usage":USAGE}`,
		"event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\",\"status\":\"in_progress\"}}\n\n" +
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"TEXT\"}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{\"id\":\"r\",\"status\":\"completed\",\"usage\":USAGE,\"output\":[{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"TEXT\"}]}]}}\n\n",
		artel.Usage{Calls: 1, InputTokens: 100, OutputTokens: 20, CachedTokens: 80, StoredTokens: 10, ThoughtTokens: 15},
	},
	"gemini": {
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"TEXT"}]},"finishReason":"STOP"}],"usageMetadata":USAGE}`,
		"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"TEXT\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":USAGE}\r\n\r\n",
		artel.Usage{Calls: 1, InputTokens: 100, OutputTokens: 20, CachedTokens: 80, ThoughtTokens: 15},
	},
}

// usages are token counts in the words of the dialects.
var usages = map[string][]string{
	"chat": {
		`{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":80,"cache_write_tokens":10},"completion_tokens_details":{"reasoning_tokens":15}}`,
		`{"prompt_tokens":100,"completion_tokens":20,"prompt_cache_hit_tokens":80,"prompt_tokens_details":{"cache_write_tokens":10},"completion_tokens_details":{"reasoning_tokens":15}}`,
	},
	"messages":  {`{"input_tokens":10,"cache_read_input_tokens":80,"cache_creation_input_tokens":10,"output_tokens":20,"output_tokens_details":{"thinking_tokens":15}}`},
	"responses": {`{"input_tokens":100,"output_tokens":20,"input_tokens_details":{"cached_tokens":80,"cache_write_tokens":10},"output_tokens_details":{"reasoning_tokens":15}}`},
	"gemini":    {`{"promptTokenCount":90,"toolUsePromptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":15,"cachedContentTokenCount":80}`},
}

// TestUsageIsCountedAlike: the log has the same token counts for forwarded and
// translated requests, streamed or not, and for answers of any size.
func TestUsageIsCountedAlike(t *testing.T) {
	b := newBench(t)
	for service, c := range counted {
		for _, usage := range usages[service] {
			for size, text := range map[string]string{"small": "said", "large": strings.Repeat(`\"usage\":{\"prompt_tokens\":7}, `, 40_000)} {
				fill := strings.NewReplacer("TEXT", text, "USAGE", usage)
				for _, stream := range []bool{true, false} {
					b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						body, _ := io.ReadAll(r.Body)
						switch streams := gjson.GetBytes(body, "stream").Bool() || strings.Contains(r.URL.Path, ":stream"); {
						case streams && service == "chat" && !gjson.GetBytes(body, "stream_options.include_usage").Bool():
							play(w, r, 0, strings.NewReplacer("TEXT", text, `,"usage":null`, "", "data: {\"id\":\"a\",\"choices\":[],\"usage\":USAGE}\n\n", "").Replace(c.stream))
						case streams:
							play(w, r, 0, fill.Replace(c.stream))
						default:
							says(fill.Replace(c.whole)).ServeHTTP(w, r)
						}
					})
					for _, client := range []string{"chat", "messages", "responses", "gemini"} {
						path, body := request(client, service, stream)
						status, got := b.post(path, body)
						if e := b.entry(); status != 200 || e.Error != "" || e.Usage != c.want {
							t.Errorf("%s to %s, %s, stream %v: %d, usage %+v, error %q", client, service, size, stream, status, e.Usage, e.Error)
						}
						if client == "chat" && service == "chat" && stream && (strings.Contains(got, "prompt_tokens\":100") || !strings.HasSuffix(got, "data: [DONE]\n\n")) {
							t.Errorf("the client reads a usage that it did not ask for: %.200s", got[max(0, len(got)-200):])
						}
					}
				}
			}
		}
	}
}

// TestAsksForUsage: a streamed request of Chat Completions asks for its usage, and
// nothing else in it changes.
func TestAsksForUsage(t *testing.T) {
	b := newBench(t)
	for sent, want := range map[string]string{
		`,"stream":true}`: `,"stream":true,"stream_options":{"include_usage":true}}`,
		`,"stream":true,"stream_options":{"include_obfuscation":false} } `:  `,"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false} } `,
		`,"stream":true,"stream_options":{ }}`:                              `,"stream":true,"stream_options":{"include_usage":true }}`,
		`,"stream":true,"stream_options":{"include_usage" : false, "x":1}}`: `,"stream":true,"stream_options":{"include_usage" : true, "x":1}}`,
		`,"stream":true,"stream_options":{"include_usage":true}}`:           `,"stream":true,"stream_options":{"include_usage":true}}`,
		`,"stream":true,"stream_options":null,"n":1}`:                       `,"stream":true,"stream_options":{"include_usage":true},"n":1}`,
		`,"stream":false}`: `,"stream":false}`,
	} {
		const head = `{ "model":"NAME","messages":[{"role":"user","content":"hi"}]`
		if status, got := b.post("/v1/chat/completions", strings.Replace(head, "NAME", "chat", 1)+sent); status != 200 {
			t.Fatalf("%d %s", status, got)
		}
		if got := b.last(); got != strings.Replace(head, "NAME", "upstream-model", 1)+want {
			t.Errorf("sent %s\ngot  %s", sent, got)
		}
	}
}

// TestRefusesToCount: a service that refuses stream_options is asked again without
// them, and later requests omit them.
func TestRefusesToCount(t *testing.T) {
	b := newBench(t)
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "stream_options") {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"detail":"extra field: stream_options"}`)
			return
		}
		play(w, r, 0, native["chat"]...)
	})
	for _, calls := range []int{2, 3} {
		path, body := request("chat", "chat", true)
		if status, got := b.post(path, body); status != 200 || got != strings.Join(native["chat"], "") || b.calls() != calls {
			t.Errorf("%d calls, %d %s", b.calls(), status, got)
		}
	}
}

// TestWrongStreamOptions: a client whose own request is wrong changes nothing for
// others, whose tokens are counted as before.
func TestWrongStreamOptions(t *testing.T) {
	b := newBench(t)
	b.upstream = fake.OpenAI(fake.Options{Open: true})
	if status, got := b.post("/v1/chat/completions", `{"model":"chat","stream":true,"messages":[{"role":"stream_options","content":"x"}]}`); status != 400 {
		t.Fatalf("%d %s", status, got)
	}
	path, body := request("chat", "chat", true)
	if status, got := b.post(path, body); status != 200 || b.entry().Usage.InputTokens == 0 {
		t.Errorf("%d %s: %+v", status, got, b.entry().Usage)
	}
}

// TestWholeAnswersAreAskedForAgain: a client that wants its answer whole has seen
// nothing of one that broke off.
func TestWholeAnswersAreAskedForAgain(t *testing.T) {
	breaksOff := &artel.Error{Op: "test", Kind: artel.Unavailable, Err: &model.CallError{Service: "other", Message: "it broke off", Transient: true}}
	for _, c := range []struct {
		breaks int // attempts that break off
		by     artel.ServiceID
		said   string
	}{{2, "other", "half whole"}, {3, "text", "user: text: hi"}} {
		for _, dialect := range []string{"chat", "messages", "responses", "gemini", "a stream"} {
			b := newBench(t, setup{services: func(s []model.Service) []model.Service {
				s[1].Fallbacks = []artel.ServiceID{"text"}
				return s
			}})
			calls := 0
			b.answer = func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
				return func(yield func(model.Delta, error) bool) {
					calls++
					if !yield(model.TextDelta("half "), nil) {
						return
					}
					if calls <= c.breaks {
						yield(nil, breaksOff)
						return
					}
					_ = yield(model.TextDelta("whole"), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
				}
			}
			path, body := request(dialect, "other", dialect == "a stream")
			status, got := b.post(path, body)
			if dialect == "a stream" {
				if calls != 1 || !strings.Contains(got, "it broke off") {
					t.Errorf("streamed: %d calls, %s", calls, got)
				}
				continue
			}
			if status != 200 || calls != 3 || !strings.Contains(got, c.said) || strings.Contains(got, "half half") || b.entry().Service != c.by {
				t.Errorf("%s, %d times: %d calls, %d %s", dialect, c.breaks, calls, status, got)
			}
		}
	}
}
