// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/artelhq/artel/model"
)

// TestClassify: what real APIs and servers write.
func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from    string
		status  int
		message string
		want    model.Refusal
	}{
		{"OpenAI", 400, "Invalid 'messages[3]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL.", model.Refusal{Class: model.RefusedInTool, MediaType: "image/*"}},
		{"OpenAI", 400, "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].", model.Refusal{Class: model.RefusedPart, MediaType: "image/*"}},
		{"OpenAI", 400, "Invalid file data: Expected a base64-encoded data URL with an application/pdf MIME type (e.g. 'data:application/pdf;base64,...'), but got unsupported MIME type 'text/csv'.", model.Refusal{Class: model.RefusedMedia, MediaType: "text/csv"}},
		{"OpenAI", 400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.", model.Refusal{Class: model.RefusedContext}},
		{"LM Studio", 400, "Invalid 'messages' in payload", model.Refusal{Class: model.RefusedInTool}},
		{"Mistral", 400, "Unexpected role 'user' after role 'tool'", model.Refusal{Class: model.RefusedAfter}},
		{"llama.cpp", 400, "Output of tool call should be 'Input text'", model.Refusal{Class: model.RefusedInTool}},
		{"llama.cpp", 500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", model.Refusal{Class: model.RefusedMedia, MediaType: "image/*"}},
		{"llama.cpp", 400, "unsupported content[].type", model.Refusal{Class: model.RefusedMedia}},
		{"Gemini", 400, "`function_response.parts` is not supported for this model", model.Refusal{Class: model.RefusedInTool}},
		{"Gemini", 400, "Unsupported MIME type: image/bmp", model.Refusal{Class: model.RefusedMedia, MediaType: "image/bmp"}},
		{"Gemini", 400, "Request payload size exceeds the limit: 20971520 bytes.", model.Refusal{Class: model.RefusedRequest, Limit: 20971520}},
		{"Gemini", 400, "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting", model.Refusal{Class: model.RefusedPart, MediaType: "image/*"}},
		{"Gemini", 400, "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:show_image` , position 2. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", model.Refusal{Class: model.RefusedThought}},
		{"Gemini", 400, "Corrupted thought signature.", model.Refusal{Class: model.RefusedThought}},
		{"Anthropic", 400, "messages.1.content.0: Invalid `signature` in `thinking` block", model.Refusal{Class: model.RefusedThought}},
		{"Anthropic", 400, "messages.1.content.14: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.", model.Refusal{Class: model.RefusedThought}},
		{"Anthropic", 400, "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", model.Refusal{Class: model.RefusedThought}},
		{"OpenAI", 400, "Item 'rs_68' of type 'reasoning' was provided without its required following item.", model.Refusal{Class: model.RefusedThought}},
		{"OpenAI", 400, "The encrypted content gAAA... could not be verified. Reason: Encrypted content could not be decrypted or parsed.", model.Refusal{Class: model.RefusedThought}},
		{"DashScope", 400, "Unexpected item type in content.", model.Refusal{Class: model.RefusedMedia}},
		{"DashScope", 400, "Failed to download multimodal content", model.Refusal{Class: model.RefusedPart}},
		{"DeepSeek", 400, "Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text`", model.Refusal{Class: model.RefusedMedia, MediaType: "image/*"}},
		{"DeepSeek", 400, "messages[0]: unknown variant `file`, expected `text` at line 1", model.Refusal{Class: model.RefusedMedia, MediaType: "application/*"}},
		{"vLLM", 400, "Unsupported chat content part type: 'file'", model.Refusal{Class: model.RefusedMedia, MediaType: "application/*"}},
		{"vLLM", 400, "At most 1 image(s) may be provided in one prompt.", model.Refusal{Class: model.RefusedCount, MediaType: "image/*", Limit: 1}},
		{"OpenRouter", 404, "No endpoints found that support image input", model.Refusal{Class: model.RefusedMedia, MediaType: "image/*"}},
		{"Anthropic", 400, "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels", model.Refusal{Class: model.RefusedSide, MediaType: "image/*", Limit: 2000}},
		{"Anthropic", 400, "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels", model.Refusal{Class: model.RefusedSide, MediaType: "image/*", Limit: 8000}},
		{"Anthropic", 400, "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes", model.Refusal{Class: model.RefusedItem, MediaType: "", Limit: 5 << 20}},
		{"Anthropic", 400, "messages: too many images and documents: 101 + 0 > 100", model.Refusal{Class: model.RefusedCount, MediaType: "image/*", Limit: 100}},
		{"Anthropic", 400, "messages.0.content.0.pdf.source.base64.data: A maximum of 100 PDF pages may be provided.", model.Refusal{Class: model.RefusedPages, MediaType: "application/pdf", Limit: 100}},
		{"Anthropic", 400, "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", model.Refusal{Class: model.RefusedMedia}},
		{"Anthropic", 400, "messages.0.content.0.document.source.base64.media_type: Input should be 'application/pdf'", model.Refusal{Class: model.RefusedMedia}},
		{"Anthropic", 400, "Could not process image", model.Refusal{Class: model.RefusedPart, MediaType: "image/*"}},
		{"Anthropic", 400, "The PDF specified was not valid.", model.Refusal{Class: model.RefusedPart, MediaType: "application/pdf"}},
		{"Anthropic", 413, "request_too_large Request exceeds the maximum size", model.Refusal{Class: model.RefusedRequest}},
		{"a proxy", 413, "", model.Refusal{Class: model.RefusedRequest}},
		{"Groq", 400, "'messages.1' : for 'role:tool' the following must be satisfied[('messages.1.content' : value must be a string)]", model.Refusal{}},
		{"anybody", 400, "Bad request", model.Refusal{}},
		{"anybody", 401, "invalid key", model.Refusal{}},
		{"anybody", 400, "Invalid 'max_tokens': integer above maximum value", model.Refusal{}},
	} {
		if got := model.Classify(tt.status, "", tt.message); got != tt.want {
			t.Errorf("%s: %q\n got %+v\nwant %+v", tt.from, tt.message, got, tt.want)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(400, "", "image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes")
	f.Add(400, "x", "at most 99999999999999999999 images")
	f.Fuzz(func(t *testing.T, status int, code, message string) {
		got := model.Classify(status, code, message)
		if got.Limit < 0 || got.Class == "" && got != (model.Refusal{}) {
			t.Fatalf("%+v", got)
		}
	})
}
