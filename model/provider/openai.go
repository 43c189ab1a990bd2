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
	"slices"
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

// OpenAIErrorOf returns err in the form of OpenAI's APIs: an [*OpenAIError] inside it
// unchanged, and a refusal of a service with its status and message.
func OpenAIErrorOf(err error) *OpenAIError {
	if e, ok := errors.AsType[*OpenAIError](err); ok {
		return e
	}
	e := &OpenAIError{Status: http.StatusInternalServerError, Message: err.Error()}
	if c, ok := errors.AsType[*model.CallError](err); ok && c.Status >= 400 {
		e.Status = c.Status
		if code := OpenAICode(c); code != "" {
			e.Code = &code
		}
	}
	e.Type = OpenAIErrorType(e.Status)
	return e
}

// OpenAICode returns the code by which clients of OpenAI's APIs know the error of a
// service; empty: none. The codes of other dialects, and types in place of a code, are
// none.
func OpenAICode(c *model.CallError) string {
	number, _ := strconv.Atoi(c.Code)
	switch family := c.Dialect == model.OpenAI || c.Dialect == model.OpenAIResponses; {
	case c.Refusal.Class == model.RefusedContext:
		return "context_length_exceeded"
	case family && number == 0 && !strings.HasSuffix(c.Code, "_error"):
		return c.Code
	case c.Status == http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	}
	return ""
}

// OpenAIErrorType returns the type of an error by its HTTP status.
func OpenAIErrorType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
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

// InvalidValue makes the error of a value at a place that is none of the supported ones.
func InvalidValue(at, value string, supported []string) error {
	return BadRequest(at, "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", value, strings.Join(supported, "', '"))
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
func (d *Decoded) DecodeOpenAI(ctx context.Context, r io.Reader, rule Rule, o DecodeOptions, req any) error {
	unparsed := func(err error) error {
		return BadRequest("", "", "We could not parse the JSON body of your request. (%v)", err)
	}
	extraction, err := Extract(ctx, r, rule, o)
	switch {
	case artel.CodeOf(err) == CodeTextTooLarge:
		return RequestTooLarge("", "The request is too large: "+err.Error()+".")
	case artel.CodeOf(err) == CodeTooDeep:
		return unparsed(err)
	case err != nil:
		return err
	}
	if err := json.Unmarshal(extraction.JSON(), req); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return BadRequest(e.Field, "invalid_type", "Invalid type for '%s': got %s instead.", e.Field, e.Value)
		}
		return unparsed(err)
	}
	d.extraction = extraction
	return nil
}

// An OpenAIChoice is the choice of tools in a request: a word (auto, none,
// required), or an object with a type.
type OpenAIChoice struct {
	Word    string // "": an object
	Type    string // function, custom, allowed_tools, or a tool of the service
	Name    string // of function and custom
	Mode    string // of allowed_tools: auto, required
	Allowed []string
}

// Neutral returns the choice, which may be nil, and the tools that remain allowed.
// parallel is the request's permission of parallel calls; nil: they are permitted.
func (c *OpenAIChoice) Neutral(parallel *bool, tools []model.ToolSpec) (model.ToolChoice, []model.ToolSpec) {
	out := model.ToolChoice{OneByOne: parallel != nil && !*parallel}
	switch {
	case c == nil:
	case c.Word == "none":
		out.Mode = model.ChooseNone
	case c.Word == "required":
		out.Mode = model.ChooseAny
	case c.Type == "function", c.Type == "custom":
		out.Mode, out.Name = model.ChooseNamed, c.Name
	case c.Type == "allowed_tools":
		if c.Mode == "required" {
			out.Mode = model.ChooseAny
		}
		tools = slices.DeleteFunc(tools, func(t model.ToolSpec) bool { return !slices.Contains(c.Allowed, t.Name) })
	}
	return out, tools
}

// List writes parts as a list, each with the function of its type. Empty texts are
// left out.
func (e *Encoder) List(parts artel.Parts, text func(string), media func(artel.Media)) {
	e.Body.WriteString("[")
	first := true
	for _, p := range parts {
		t, isText := p.(artel.Text)
		if isText && t.Text == "" {
			continue
		}
		if !first {
			e.Body.WriteString(",")
		}
		first = false
		if isText {
			text(t.Text)
		} else if m, ok := p.(artel.Media); ok {
			media(m)
		}
	}
	e.Body.WriteString("]")
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

// URLPart returns the media in the data URL s of a request, or a text that names the
// address s of what.
// detail says how closely a model is to look at a picture.
func URLPart(x *Extraction, what string, kind artel.MediaKind, s, detail string) artel.Part {
	m, mediaType, ok := x.DataURL(s)
	if !ok {
		return artel.Text{Text: "[" + what + " at " + artel.Shorten(s, 500) + "]"}
	}
	if detail == "auto" {
		detail = ""
	}
	return artel.Media{Ref: artel.BlobRef(m.Digest), MediaType: mediaType, Kind: kind, Size: m.Size, Detail: detail}
}

// AudioPart returns the recording in the base64 s of a request; its format is "wav"
// or "mp3".
func AudioPart(x *Extraction, s, format string) artel.Part {
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
