// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// maxCallID is the longest id of a tool call that the API takes.
const maxCallID = 40

// Encode writes r as the body of a streamed call. No blob is read. The error
// is an [*artel.Error] of kind Unsupported for media that the dialect has no
// place for, or Invalid for media without a digest or type.
func Encode(r *model.Request, blobs blob.Store) (*provider.Body, error) {
	f := provider.Failures{Op: "openai.Encode", Service: r.Service}
	e := encoder{body: provider.NewBody(blobs), failures: f, held: r.Held}
	e.body.WriteString(`{"model":`)
	e.json(r.Service.Model)
	e.body.WriteString(`,"messages":[`)
	e.quirks = r.Service.Quirks()
	form := provider.MessageRules{UniqueIDs: true}
	if e.quirks.Reasoning != model.ReplayNothing {
		form.Own = r.Service.ID
	}
	messages := form.Conform(r.Messages, places(e.quirks, r.Service.Capabilities))
	if r.Format.JSON && len(r.Format.Schema) == 0 {
		messages = provider.AskForJSON(messages)
	}
	for i, m := range messages {
		if i > 0 {
			e.body.WriteString(",")
		}
		e.message(m)
	}
	e.body.WriteString("]")
	if len(r.Tools) > 0 {
		tools := make([]Tool, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = Tool{Type: "function", Function: Function{Name: t.Name, Description: t.Description, Parameters: t.Schema}}
		}
		e.body.WriteString(`,"tools":`)
		e.json(tools)
	}
	e.settings(r)
	if r.MaxOutput > 0 {
		e.field(e.quirks.OutputLimit, r.MaxOutput)
	}
	e.body.WriteString(`,"stream":true`)
	if !e.quirks.NoUsage {
		e.body.WriteString(`,"stream_options":{"include_usage":true}`)
	}
	e.body.WriteString("}")
	return e.body, e.err
}

type encoder struct {
	body     *provider.Body
	failures provider.Failures
	quirks   model.Quirks
	held     map[artel.Digest]model.Name
	err      error // the first
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// json writes v without escaping HTML, so that the text stays short and the
// same for every cache.
func (e *encoder) json(v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		e.fail(e.failures.Refuse(artel.Invalid, "the request cannot be written as JSON: %w", err))
		return
	}
	_, _ = e.body.Write(bytes.TrimRight(b.Bytes(), "\n"))
}

func (e *encoder) message(m model.Message) {
	e.body.WriteString(`{"role":`)
	e.json(string(m.Role))
	switch m.Role {
	case artel.RoleTool:
		r, _ := m.Parts[0].(artel.ToolResult) // Place leaves exactly one
		e.body.WriteString(`,"tool_call_id":`)
		e.json(e.callID(r.CallID))
		parts := r.Parts
		if len(parts) > 0 {
			parts = append(artel.Parts{artel.Text{Text: r.Content}}, parts...)
			e.content(parts)
		} else {
			e.body.WriteString(`,"content":`)
			e.json(r.Content)
		}
	case artel.RoleAssistant:
		e.assistant(m.Parts)
	default:
		e.content(m.Parts)
	}
	e.body.WriteString("}")
}

func (e *encoder) assistant(parts artel.Parts) {
	var calls []ToolCall
	for _, c := range artel.CallsOf(parts) {
		call := ToolCall{
			ID: e.callID(c.ID), Type: "function",
			Function: CalledByName{Name: c.Name, Arguments: Arguments(provider.SentArguments(c.Arguments))},
		}
		if c.Service == e.failures.Service.ID && json.Valid(c.Opaque) {
			call.ExtraContent = c.Opaque
		}
		calls = append(calls, call)
	}
	text := artel.TextOf(parts)
	e.body.WriteString(`,"content":`)
	if text == "" && len(calls) > 0 {
		e.body.WriteString("null")
	} else {
		e.json(text)
	}
	if len(calls) > 0 {
		e.field("tool_calls", calls)
	}
	e.reasoning(parts, len(calls) > 0)
}

// content writes text alone as a string, which every server takes, and media
// as a list of parts.
func (e *encoder) content(parts artel.Parts) {
	e.body.WriteString(`,"content":`)
	if !provider.HasMedia(parts) {
		e.json(artel.TextOf(parts))
		return
	}
	e.body.WriteString("[")
	first := true
	for _, p := range parts {
		t, isText := p.(artel.Text)
		if isText && t.Text == "" {
			continue
		}
		if !first {
			e.body.WriteString(",")
		}
		first = false
		if isText {
			e.json(Part{Type: "text", Text: t.Text})
		} else if m, ok := p.(artel.Media); ok {
			e.media(m)
		}
	}
	e.body.WriteString("]")
}

func (e *encoder) media(m artel.Media) {
	name := provider.Label(m)
	if m.Ref.Digest == "" || m.Size < 0 {
		e.fail(e.failures.Refuse(artel.Invalid, "%s has no blob behind it", name))
		return
	}
	mediaType, _, err := mime.ParseMediaType(m.MediaType)
	major, minor, ok := strings.Cut(mediaType, "/")
	if err != nil || !ok || major == "" || minor == "" {
		e.fail(e.failures.Refuse(artel.Invalid, "%s has no usable media type: %q", name, artel.Shorten(m.MediaType, 80)))
		return
	}
	held := e.held[m.Ref.Digest]
	switch form := e.formOf(mediaType); {
	case form == "image" && held.By == model.ByMediaID: // which stands beside it
		e.body.WriteString(`{"type":"image_url","image_url":null`)
	case form == "image" && held.By == model.ByURL:
		e.body.WriteString(`{"type":"image_url","image_url":{"url":"` + held.Text + `"}`)
	case form == "image":
		e.body.WriteString(`{"type":"image_url","image_url":{"url":"data:` + mediaType + `;base64,`)
		e.body.WriteBlob(m.Ref.Digest, m.Size)
		e.body.WriteString(`"}`)
	case form == "video":
		e.body.WriteString(`{"type":"video_url","video_url":{"url":"data:` + mediaType + `;base64,`)
		e.body.WriteBlob(m.Ref.Digest, m.Size)
		e.body.WriteString(`"}`)
	case form == "file" && held.By == model.ByFileID: // no name beside it
		e.body.WriteString(`{"type":"file","file":{"file_id":"` + held.Text + `"}`)
	case form == "file":
		filename := m.Filename
		if filename == "" {
			filename = "document.pdf"
		}
		e.body.WriteString(`{"type":"file","file":{"filename":`)
		e.json(filename)
		e.body.WriteString(`,"file_data":"data:application/pdf;base64,`)
		e.body.WriteBlob(m.Ref.Digest, m.Size)
		e.body.WriteString(`"}`)
	case form == "":
		e.fail(e.failures.Refuse(artel.Unsupported,
			"%s is %s: Chat Completions takes images, PDF, WAV and MP3 only", name, mediaType))
		return
	default: // a format of sound
		head := ""
		if e.quirks.AudioAsURL {
			head = "data:;base64,"
		}
		e.body.WriteString(`{"type":"input_audio","input_audio":{"data":"` + head)
		e.body.WriteBlob(m.Ref.Digest, m.Size)
		e.body.WriteString(`","format":"` + form + `"}`)
	}
	if e.quirks.MediaIDs {
		e.field("uuid", string(m.Ref.Digest))
	}
	e.body.WriteString("}")
}
