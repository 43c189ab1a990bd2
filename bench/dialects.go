// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A dialectCase is the request that sends one file to a model in a dialect.
type dialectCase struct {
	dialect model.Dialect
	title   string

	file                func(size int64) io.Reader
	mediaType, filename string
	kind                artel.MediaKind
	most                int64 // bytes that the API takes; 0: all that are measured

	base, path string                   // of the API, and of its answers
	header     map[string]string        // that requests need
	naive      func(encoded string) any // the request, of the base64 of the file
	stream     string                   // the shortest answer that is one
}

// object is one of JSON.
type object = map[string]any

func dialectCases() []dialectCase {
	picture := dialectCase{file: jpeg, mediaType: "image/jpeg", filename: "picture.jpg", kind: artel.KindImage}
	bearer := map[string]string{"Authorization": "Bearer any"}
	chat, responses, messages, gemini := picture, picture, picture, picture

	chat.dialect, chat.title = model.OpenAI, "Chat Completions"
	chat.base, chat.path, chat.header = "/v1", "/chat/completions", bearer
	chat.naive = func(encoded string) any {
		return object{"model": aModel, "stream": true, "messages": []any{object{"role": "user", "content": []any{
			object{"type": "text", "text": question},
			object{"type": "image_url", "image_url": object{"url": "data:image/jpeg;base64," + encoded}},
		}}}}
	}
	chat.stream = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"fake-1","choices":[{"index":0,"delta":{"role":"assistant","content":"A cat."},"finish_reason":null}]}

data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"fake-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`

	responses.dialect, responses.title = model.OpenAIResponses, "Responses"
	responses.base, responses.path, responses.header = "/v1", "/responses", bearer
	responses.naive = func(encoded string) any {
		return object{"model": aModel, "stream": true, "store": false, "input": []any{object{"role": "user", "content": []any{
			object{"type": "input_text", "text": question},
			object{"type": "input_image", "detail": "auto", "image_url": "data:image/jpeg;base64," + encoded},
		}}}}
	}
	responses.stream = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"fake-1","output":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"A cat."}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"A cat.","annotations":[]}]}}

event: response.completed
data: {"type":"response.completed","sequence_number":4,"response":{"id":"resp_1","object":"response","status":"completed","model":"fake-1","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"A cat.","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}

`

	messages.dialect, messages.title = model.Anthropic, "Anthropic"
	messages.file, messages.mediaType, messages.filename, messages.kind = pdf, "application/pdf", "document.pdf", artel.KindDocument
	messages.most = 20e6
	messages.base, messages.path, messages.header = "", "/v1/messages", map[string]string{"X-Api-Key": "any", "Anthropic-Version": "2023-06-01"}
	messages.naive = func(encoded string) any {
		return object{"model": aModel, "stream": true, "max_tokens": 1000, "messages": []any{object{"role": "user", "content": []any{
			object{"type": "text", "text": question},
			object{"type": "document", "source": object{"type": "base64", "media_type": "application/pdf", "data": encoded}},
		}}}}
	}
	messages.stream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"fake-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"A cat."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`

	gemini.dialect, gemini.title = model.Gemini, "Gemini"
	gemini.base, gemini.path, gemini.header = "/v1beta", "/models/"+aModel+":streamGenerateContent?alt=sse", map[string]string{"X-Goog-Api-Key": "any"}
	gemini.naive = func(encoded string) any {
		return object{"contents": []any{object{"role": "user", "parts": []any{
			object{"text": question},
			object{"inlineData": object{"mimeType": "image/jpeg", "data": encoded}},
		}}}}
	}
	gemini.stream = `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"A cat."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"fake-1"}

`
	return []dialectCase{chat, responses, messages, gemini}
}

// dialectCaseOf returns the dialect that the driver requests.
func dialectCaseOf(r *http.Request) (dialectCase, error) {
	name := r.URL.Query().Get("dialect")
	for _, d := range dialectCases() {
		if string(d.dialect) == name {
			return d, nil
		}
	}
	return dialectCase{}, fmt.Errorf("there is no dialect %q", name)
}

// pdf returns size bytes with the header of a PDF.
func pdf(size int64) io.Reader {
	head := "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n"
	return io.MultiReader(strings.NewReader(head), randomBytes(size-int64(len(head)), 1))
}
