// SPDX-License-Identifier: Apache-2.0

package model

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A Refusal is the reason for which an API refused a request, as far as its
// message states it. The zero Refusal is an unknown reason.
type Refusal struct {
	Class     RefusalClass `json:"class,omitempty"`
	MediaType string       `json:"media_type,omitempty"` // "image/*", "application/pdf"; "": not stated
	Limit     int64        `json:"limit,omitempty"`      // the stated limit in the unit of Class; 0: none
	Field     string       `json:"field,omitempty"`      // of the request, in its neutral name; "": none
	Once      bool         `json:"once,omitempty"`       // Field is refused beside another field of the request, not by itself
}

// A RefusalClass is a kind of reason.
type RefusalClass string

// The classes.
const (
	RefusedMedia   RefusalClass = "media_type"      // a kind of media in any place
	RefusedInTool  RefusalClass = "tool_media"      // media in a tool result
	RefusedAfter   RefusalClass = "user_after_tool" // a user message after a tool result
	RefusedCount   RefusalClass = "images"          // more images than Limit
	RefusedSide    RefusalClass = "side"            // an image with a side of more than Limit pixels
	RefusedPages   RefusalClass = "pages"           // a document of more than Limit pages
	RefusedItem    RefusalClass = "item_bytes"      // a part of more than Limit bytes, as it was sent
	RefusedRequest RefusalClass = "request_bytes"   // a request of more than Limit bytes
	RefusedPart    RefusalClass = "part"            // an unreadable part: damaged, or of an unnamed kind
	RefusedLabel   RefusalClass = "label"           // media whose declared type is not that of their bytes
	RefusedContext RefusalClass = "context"         // more tokens than the window holds
	RefusedFilter  RefusalClass = "filter"          // content that a filter forbids
	RefusedField   RefusalClass = "field"           // a field that only changes how the model answers, such as temperature
	RefusedThought RefusalClass = "thought"         // missing, changed or foreign reasoning or signature; not about media
)

// ofText reports whether a class is about the text of a request, not its media.
func (c RefusalClass) ofText() bool {
	return c == RefusedContext || c == RefusedFilter || c == RefusedThought
}

// Classify derives a refusal from the status, code and message of an API's error.
// It recognises the messages of common APIs and servers only.
func Classify(status int, code, message string) Refusal {
	text := code + " " + message
	if field := fieldRefused(text); field != "" {
		return Refusal{Class: RefusedField, Field: field, Once: onlyBeside().MatchString(text)}
	}
	for _, r := range refusals() {
		m := r.words.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		out := Refusal{Class: r.class}
		if r.class.ofText() {
			return out
		}
		if out.MediaType = typeIn(m[0], r.about); r.class == RefusedLabel {
			out.MediaType = r.about // the words name the wrong type, too
		}
		out.Limit = limitIn(r.class, m, text)
		return out
	}
	if status == 413 {
		return Refusal{Class: RefusedRequest}
	}
	return Refusal{}
}

// A refusalRule recognises a class in a message.
type refusalRule struct {
	class RefusalClass
	about string // the media type if the message names none
	words *regexp.Regexp
}

// refusals returns the rules; the first match counts. They were collected from
// real errors; the comments name the API.
var refusals = sync.OnceValue(func() []refusalRule {
	var out []refusalRule
	add := func(class RefusalClass, about, words string) {
		out = append(out, refusalRule{class, about, regexp.MustCompile("(?is)" + words)})
	}
	add(RefusedThought, "", `thought[ _]?signature`)                                                                                        // Gemini
	add(RefusedThought, "", "`(?:signature|thinking|redacted_thinking)`.{0,60}(?:`thinking`|`redacted_thinking`|blocks?)")                  // Anthropic
	add(RefusedThought, "", `of type 'reasoning' was provided without|encrypted content .{0,80}could not be (?:verified|decrypted|parsed)`) // OpenAI

	add(RefusedFilter, "", `\b(?:content_filter|content_policy_violation|ResponsibleAIPolicyViolation|PROHIBITED_CONTENT|data_inspection_failed)\b`) // OpenAI, Azure, Gemini, DashScope
	add(RefusedFilter, "", `content management policy|content filtering policy|(?:blocked|rejected|flagged) (?:by|as a result of|due to) .{0,40}(?:safety|content (?:filter|policy|moderation)|moderation)`)

	// Some APIs use "pixels" or "too large" for images as well as for contexts.
	add(RefusedSide, "image/*", `(?:image|pixel|dimension|resolution).{0,80}?(\d{3,5}) ?(?:px|pixels)`)                              // Anthropic
	add(RefusedSide, "image/*", `image.{0,40}(?:dimensions?|resolution|width|height|side).{0,40}(?:exceed|too (?:large|big)|limit)`) // DashScope, Gemini
	add(RefusedPages, "application/pdf", `(?:maximum of|at most|more than|exceeds?.{0,30}?) ?(\d+) (?:pdf )?pages`)                  // Anthropic
	add(RefusedPages, "application/pdf", `too many pages|page (?:count|limit)`)
	add(RefusedCount, "image/*", `at most (\d+) (?:image|multimodal|audio|video)`)                                             // vLLM
	add(RefusedCount, "image/*", `too many (?:images|media)[^>]{0,60}>\s*(\d+)`)                                               // Anthropic
	add(RefusedCount, "image/*", `(?:maximum|limit|up to|more than|allowed).{0,40}?(\d+) (?:images|image parts|input images)`) // OpenAI, Groq
	add(RefusedCount, "image/*", `too many images|number of images|images? (?:count|limit)`)
	add(RefusedItem, "", `exceeds (\d+) ?(?:MB|MiB) maximum`)                                                                                                      // Anthropic
	add(RefusedItem, "", `(?:image|file|audio|video|document|pdf).{0,60}(?:exceeds?|larger than|limit of|maximum(?: size)?(?: of| is)?).{0,30}?(\d+) ?(?:MB|MiB)`) // OpenAI, DashScope
	add(RefusedItem, "", `(?:image|file|audio|video|document|pdf)(?: size)?(?: is)? too (?:large|big)`)
	add(RefusedRequest, "", `payload size exceeds the limit: (\d+) bytes`)                                                    // Gemini
	add(RefusedRequest, "", `request_too_large|(?:request|payload|body)(?: entity)?(?: size)?(?: is)? (?:too large|exceeds)`) // Anthropic, proxies

	add(RefusedContext, "", `context[ _]length|context[ _]window|context[ _]size|maximum context|prompt is too long|`+
		`input is too long|too many (?:input |prompt )?tokens|input token count|reduce the length|maximum prompt length|request[ _]too[ _]large`)

	add(RefusedAfter, "", `unexpected role '?(?:user|system)'? after role '?tool`)             // Mistral
	add(RefusedInTool, "image/*", `image urls are only allowed for messages with role 'user'`) // OpenAI
	add(RefusedInTool, "", `output of tool call should be`)                                    // llama.cpp
	add(RefusedInTool, "", `function_response\.parts. is not supported`)                       // Gemini
	add(RefusedInTool, "", `invalid 'messages' in payload`)                                    // LM Studio
	add(RefusedInTool, "", `(?:tool|function)[ _](?:messages?|results?|content|responses?).{0,60}(?:text only|only (?:support|accept|contain)s? text|must be (?:a )?(?:string|text)|non-string|(?:not|n't) support)`)
	add(RefusedInTool, "", `'tool',? ?'content'.{0,80}valid string`) // servers on pydantic

	add(RefusedLabel, "image/*", `specified using the .{1,60}media type, but`)                                                                                           // Anthropic
	add(RefusedLabel, "image/*", `(?:mime|media|content)[ _-]?type.{0,60}(?:does not|doesn't) match|(?:does not|doesn't) match .{0,30}(?:mime|media|content)[ _-]?type`) // Gemini, proxies
	add(RefusedPart, "image/*", `could not process (?:the )?image|unable to process (?:the )?(?:input )?image|invalid_image|image_parse_error|`+
		`(?:does not|doesn't) represent a valid image|you uploaded an unsupported image|cannot identify image|failed to (?:load|decode|process|read|parse) (?:the )?image|image data.{0,30}(?:invalid|not valid|corrupt)|invalid image(?: data)?\b|truncated image`)
	add(RefusedPart, "application/pdf", `pdf (?:specified )?(?:was|is) (?:not valid|invalid|password|corrupt|encrypted)|could not process (?:the )?(?:pdf|document)|invalid pdf|document has no pages`)
	add(RefusedPart, "", `failed to download multimodal|invalid base64|failed to (?:load|decode|process) (?:the )?(?:audio|video|file)`) // DashScope

	add(RefusedMedia, "", `unknown variant .(?:file|image_url|input_audio|video_url|document)`)                                                             // DeepSeek
	add(RefusedMedia, "", `unsupported content\[\]\.type`)                                                                                                  // llama.cpp
	add(RefusedMedia, "", `unsupported.{0,20}content part type.{0,40}`)                                                                                     // vLLM
	add(RefusedMedia, "", `support (?:image|file|audio|video|pdf) inputs?`)                                                                                 // OpenRouter
	add(RefusedMedia, "", `(?:image|audio|video|file) input is not supported`)                                                                              // llama.cpp
	add(RefusedMedia, "", `unexpected item type in content`)                                                                                                // DashScope
	add(RefusedMedia, "", `input should be 'application/pdf'`)                                                                                              // Anthropic, of other documents
	add(RefusedMedia, "", `media_type.{0,20}input should be 'image/.{0,80}`)                                                                                // Anthropic, of other images
	add(RefusedMedia, "", `(?:unsupported|invalid|unknown) (?:mime|media|image|file|audio|video|content|input)[ _-]?(?:type|format|media[ _-]type).{0,60}`) // Gemini, OpenAI
	add(RefusedMedia, "", `mime ?type.{0,60}(?:not supported|unsupported|invalid)`)                                                                         // Gemini
	add(RefusedMedia, "", `(?:does not|doesn't|not) support (?:image|vision|audio|file|video|pdf|document|multimodal).{0,20}`)
	add(RefusedMedia, "", `unsupported (?:image|file|audio|media)|not a (?:multimodal|vision) model|multimodal`)
	return out
})

var namedType = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(image|audio|video|application|text)/[a-z0-9][a-z0-9.+-]*`)
})

// typeIn returns the media type that a message is about. A list of accepted types
// does not name the refused one.
func typeIn(words, about string) string {
	words = strings.ToLower(words)
	if named := namedType().FindAllString(words, 2); len(named) == 1 && !strings.Contains(words, "should be") {
		return named[0]
	}
	switch {
	case about != "":
		return about
	case strings.Contains(words, "should be 'application/pdf"), strings.Contains(words, "should be 'image/"):
		return "" // any other type
	case strings.Contains(words, "pdf"), strings.Contains(words, "document"):
		return "application/pdf"
	case strings.Contains(words, "image"), strings.Contains(words, "vision"):
		return "image/*"
	case strings.Contains(words, "audio"):
		return "audio/*"
	case strings.Contains(words, "video"):
		return "video/*"
	case strings.Contains(words, "file"):
		return "application/*"
	}
	return ""
}

var bytesOver = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\d+ bytes > (\d+) bytes`)
})

// limitIn reads the limit from the match of a rule; text is the whole message.
func limitIn(class RefusalClass, match []string, text string) int64 {
	if m := bytesOver().FindStringSubmatch(text); m != nil && (class == RefusedItem || class == RefusedRequest) {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return n
	}
	if len(match) < 2 {
		return 0
	}
	n, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil || n > 1<<40 {
		return 0
	}
	if class == RefusedItem {
		n <<= 20
	}
	return n
}
