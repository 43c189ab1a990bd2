// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// An OpenAIError is a refusal in the form of OpenAI's APIs. Its Error is the
// message.
type OpenAIError struct {
	Status  int     `json:"-"` // HTTP
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Error returns the message.
func (e *OpenAIError) Error() string { return e.Message }

// MarshalBody returns the body of the HTTP answer.
func (e *OpenAIError) MarshalBody() []byte {
	b, err := json.Marshal(map[string]*OpenAIError{"error": e})
	if err != nil { // of strings alone
		return []byte(`{"error":{"message":"` + http.StatusText(e.Status) + `"}}`)
	}
	return b
}

// BadRequest makes an "invalid_request_error" of status 400. An empty param or code
// becomes null.
func BadRequest(param, code, format string, args ...any) *OpenAIError {
	e := &OpenAIError{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: "invalid_request_error"}
	if param != "" {
		e.Param = &param
	}
	if code != "" {
		e.Code = &code
	}
	return e
}

// OpenAIUpload returns the form fields of an upload to OpenAI's Files API: purpose
// ("user_data", or "vision" for pictures) and expiry.
func OpenAIUpload(purpose string) [][2]string {
	return [][2]string{
		{"purpose", purpose},
		{"expires_after[anchor]", "created_at"},
		{"expires_after[seconds]", strconv.Itoa(int(UploadLifetime.Seconds()))},
	}
}

// DecodeOpenAI reads the JSON of a request into req, and its payloads by rule. The
// error is an [*OpenAIError] if the request is wrong, or that of r or of the sink.
func DecodeOpenAI(ctx context.Context, r io.Reader, rule Rule, o DecodeOptions, req any) (*Extraction, error) {
	unparsed := func(err error) error {
		return BadRequest("", "", "We could not parse the JSON body of your request. (%v)", err)
	}
	extraction, err := Extract(ctx, r, rule, o)
	switch {
	case artel.CodeOf(err) == CodeTextTooLarge:
		return nil, RequestTooLarge("", "The request is too large: "+err.Error()+".")
	case artel.CodeOf(err) == CodeTooDeep:
		return nil, unparsed(err)
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(extraction.JSON(), req); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, BadRequest(e.Field, "invalid_type", "Invalid type for '%s': got %s instead.", e.Field, e.Value)
		}
		return nil, unparsed(err)
	}
	return extraction, nil
}

// RequestTooLarge makes the error of status 413.
func RequestTooLarge(at, message string) *OpenAIError {
	e := BadRequest(at, "request_too_large", "%s", message)
	e.Status = http.StatusRequestEntityTooLarge
	return e
}

var notInNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-zA-Z0-9_-]+`) })

// SchemaName returns name in the form that OpenAI's APIs require of the name of a
// schema.
func SchemaName(name string) string {
	name = notInNames().ReplaceAllString(name, "_")
	if name == "" {
		return "answer"
	}
	return name[:min(len(name), 64)]
}

// URLPart returns the media in the data URL s, or a text that names the address s
// of what.
func (x *Extraction) URLPart(what string, kind artel.MediaKind, s string) artel.Part {
	m, mediaType, ok := x.DataURL(s)
	if !ok {
		return artel.Text{Text: "[" + what + " at " + artel.Shorten(s, 500) + "]"}
	}
	return artel.Media{Ref: artel.BlobRef(m.Digest), MediaType: mediaType, Kind: kind, Size: m.Size}
}

// AudioPart returns the recording in the base64 s; its format is "wav" or "mp3".
func (x *Extraction) AudioPart(s, format string) artel.Part {
	m := x.Base64(s)
	mediaType := "audio/wav"
	if format == "mp3" {
		mediaType = "audio/mpeg"
	}
	return artel.Media{Ref: artel.BlobRef(m.Digest), MediaType: mediaType, Kind: artel.KindAudio, Size: m.Size}
}

// AskForJSON returns messages with the word JSON in them: OpenAI's APIs refuse to
// promise a JSON object unless the conversation mentions it.
func AskForJSON(messages []model.Message) []model.Message {
	for _, m := range messages {
		for _, p := range m.Parts {
			text := ""
			switch p := p.(type) {
			case artel.Text:
				text = p.Text
			case artel.ToolResult:
				text = p.Content
			}
			if strings.Contains(strings.ToLower(text), "json") {
				return messages
			}
		}
	}
	ask := model.Message{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "Answer with a JSON object."}}}
	return append([]model.Message{ask}, messages...)
}
