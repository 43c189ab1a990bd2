// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A cited answer is one as a service gives it, with citations in it.
type cited struct {
	stream, whole string // bodies
	history       string // of a request to the same service: the answer as it goes back
	mark          string // that is in the citations alone
}

// citedAnswers are answers that say "It is so.", by dialect.
func citedAnswers() map[model.Dialect]cited {
	events := func(all ...string) string { return "data: " + strings.Join(all, "\n\ndata: ") + "\n\n" }
	named := func(all ...string) string {
		var b strings.Builder
		for _, e := range all {
			kind := strings.SplitN(e, `"`, 5)[3]
			b.WriteString("event: " + kind + "\ndata: " + e + "\n\n")
		}
		return b.String()
	}
	const (
		link     = `{"type":"url_citation","url_citation":{"start_index":0,"end_index":9,"title":"Cited","url":"https://cited.example/"}}`
		flat     = `{"type":"url_citation","start_index":0,"end_index":9,"title":"Cited","url":"https://cited.example/"}`
		place    = `{"type":"char_location","cited_text":"cited","document_index":0,"document_title":"Cited","start_char_index":0,"end_char_index":5}`
		ground   = `"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://cited.example/","title":"Cited"}}]}`
		response = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It is so.","annotations":[` + flat + `]}]}],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}`
	)
	return map[model.Dialect]cited{
		model.OpenAI: {
			stream: events(
				`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"It is so."},"finish_reason":null}]}`,
				`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"annotations":[`+link+`]},"finish_reason":"stop"}]}`, "[DONE]"),
			whole:   `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"It is so.","annotations":[` + link + `]},"finish_reason":"stop"}]}`,
			history: `{"model":"chat","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"It is so.","annotations":[` + link + `]},{"role":"user","content":"y"}]}`,
			mark:    "cited.example",
		},
		model.OpenAIResponses: {
			stream: named(
				`{"type":"response.output_item.added","sequence_number":0,"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}}`,
				`{"type":"response.output_text.delta","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"It is so."}`,
				`{"type":"response.output_text.annotation.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"annotation_index":0,"annotation":`+flat+`}`,
				`{"type":"response.completed","sequence_number":3,"response":`+response+`}`),
			whole:   response,
			history: `{"model":"responses","input":[{"role":"user","content":"x"},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It is so.","annotations":[` + flat + `]}]},{"role":"user","content":"y"}]}`,
			mark:    "cited.example",
		},
		model.Anthropic: {
			stream: named(
				`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":3,"output_tokens":0}}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":[]}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":`+place+`}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It is so."}}`,
				`{"type":"content_block_stop","index":0}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`),
			whole:   `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"It is so.","citations":[` + place + `]}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`,
			history: `{"model":"messages","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"It is so.","citations":[` + place + `]}]},{"role":"user","content":"y"}]}`,
			mark:    "char_location",
		},
		model.Gemini: {
			stream:  events(`{"candidates":[{"content":{"role":"model","parts":[{"text":"It is so."}]}}]}`, `{"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"STOP",`+ground+`}]}`),
			whole:   `{"candidates":[{"content":{"role":"model","parts":[{"text":"It is so."}]},"finishReason":"STOP",` + ground + `}]}`,
			history: `{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"It is so."}]},{"role":"user","parts":[{"text":"y"}]}]}`,
			mark:    "cited.example",
		},
	}
}

// TestCitations: citations reach a client that speaks the dialect of the service,
// and go back with its history, byte for byte. For a client of another dialect
// they are dropped, and every word is there.
func TestCitations(t *testing.T) {
	t.Parallel()
	answers := citedAnswers()
	for _, out := range speeches() {
		t.Run(string(out.name), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			c := answers[out.name]
			b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, kind := c.whole, "application/json"
				if strings.Contains(r.URL.Path, ":stream") || strings.Contains(b.last(), `"stream":true`) {
					body, kind = c.stream, "text/event-stream"
				}
				w.Header().Set("Content-Type", kind)
				_, _ = io.WriteString(w, body)
			})
			for _, in := range speeches() {
				for stream, sent := range map[bool]string{true: c.stream, false: c.whole} {
					status, body := b.post(in.path(out.service, stream), in.body(out.service, stream, speechContent{text: "hello"}), in.header...)
					switch {
					case status != 200 || !strings.Contains(body, "It is so."):
						t.Errorf("from %s, stream %v: %d %s", in.name, stream, status, body)
					case in.name == out.name && body != sent:
						t.Errorf("from %s, stream %v: it got\n%s\nand the service said\n%s", in.name, stream, body, sent)
					case in.name != out.name && strings.Contains(body, c.mark):
						t.Errorf("from %s, stream %v: the citations are there; say so in docs/dialects.md: %s", in.name, stream, body)
					}
				}
			}
			want := c.history
			if out.name != model.Gemini { // whose model is in the address
				service, _ := b.registry.Lookup(artel.ServiceID(out.service))
				want = strings.Replace(want, `"`+out.service+`"`, `"`+service.Model+`"`, 1)
			}
			if status, body := b.post(out.path(out.service, false), c.history, out.header...); status != 200 || b.last() != want {
				t.Errorf("%d %s: sent\n%s\nwant\n%s", status, body, b.last(), want)
			}
			// To a service of another dialect go the words.
			to := "messages"
			if out.name == model.Anthropic {
				to = "chat"
			}
			b.upstream = http.HandlerFunc(apis)
			path := out.path(to, false)
			if status, body := b.post(path, strings.Replace(c.history, `"`+out.service+`"`, `"`+to+`"`, 1), out.header...); status != 200 || !strings.Contains(b.last(), "It is so.") || strings.Contains(b.last(), c.mark) {
				t.Errorf("%d %s: sent %s", status, body, b.last())
			}
		})
	}
}
