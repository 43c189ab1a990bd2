// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// The API's limits on names and numbers.
const (
	MaxCallID = 64
	maxName   = 64
	MinOutput = 16
)

// EncryptedReasoning requests the state of reasoning, which a service that stores
// nothing needs back.
const EncryptedReasoning = "reasoning.encrypted_content"

// Encode writes r as the body of a streamed call. No blob is read. The error is an
// [*artel.Error] of kind Unsupported for media that the dialect has no item for, or
// Invalid for media without a digest or type.
func Encode(r *model.Request, blobs blob.Store) (*provider.Body, error) {
	r = toolNames().Fitted(r)
	e := encoder{OpenAIEncoder: provider.OpenAIEncoder{Encoder: provider.NewEncoder("responses.Encode", r, blobs)}}
	form := provider.MessageRules{Own: r.Service.ID, UniqueIDs: true, ToolTypes: model.OpenAIResponses.Carries()}
	messages := form.Conform(r.Messages, r.Service.Capabilities)
	if r.Format.JSON && len(r.Format.Schema) == 0 {
		messages = provider.AskForJSON(messages)
	}
	e.Body.WriteString(`{"model":`)
	e.JSON(r.Service.Model)
	messages = e.instructions(messages)
	e.Body.WriteString(`,"input":[`)
	for _, m := range messages {
		e.message(m)
	}
	e.Body.WriteString("]")
	e.settings(r)
	e.Body.WriteString(`,"store":false`)
	if provider.OpenAIReasons(r.Service.Model) {
		e.Field("include", []string{EncryptedReasoning})
	}
	e.Body.WriteString(`,"stream":true}`)
	return e.Body, e.Err
}

type encoder struct {
	provider.OpenAIEncoder

	items int // written so far
}

// instructions writes the leading system messages as instructions, and returns the
// other messages. If there are no others it returns all, because the API requires
// input.
func (e *encoder) instructions(messages []model.Message) []model.Message {
	n := slices.IndexFunc(messages, func(m model.Message) bool { return m.Role != artel.RoleSystem })
	if n <= 0 {
		return messages
	}
	var texts []string
	for _, m := range messages[:n] {
		texts = append(texts, artel.TextOf(m.Parts))
	}
	e.Field("instructions", strings.Join(texts, "\n\n"))
	return messages[n:]
}

// beginItem starts an item.
func (e *encoder) beginItem(head string) {
	if e.items++; e.items > 1 {
		e.Body.WriteString(",")
	}
	e.Body.WriteString(head)
}

func (e *encoder) message(m model.Message) {
	switch m.Role {
	case artel.RoleTool:
		r, _ := m.Parts[0].(artel.ToolResult) // Conform leaves exactly one
		e.beginItem(`{"type":"function_call_output","call_id":`)
		e.JSON(provider.CallID(r.CallID, MaxCallID))
		r.Content = provider.ErrorText(r)
		parts := r.Parts
		if len(parts) > 0 && r.Content != "" {
			parts = append(artel.Parts{artel.Text{Text: r.Content}}, parts...)
		}
		if len(parts) > 0 {
			e.content(`,"output":`, parts)
		} else {
			e.Field("output", r.Content)
		}
	case artel.RoleAssistant:
		e.assistant(m.Parts)
		return
	default:
		e.beginItem(`{"type":"message","role":"` + string(m.Role) + `"`)
		if provider.HasMedia(m.Parts) {
			e.content(`,"content":`, m.Parts)
		} else {
			e.Field("content", artel.TextOf(m.Parts))
		}
	}
	e.Body.WriteString("}")
}

// assistant writes the items of one turn. Reasoning at the end of the turn, as in
// an answer that broke off, is left out because the API refuses it.
func (e *encoder) assistant(parts artel.Parts) {
	last := -1
	for i, p := range parts {
		switch p.(type) {
		case artel.Text, artel.ToolCall:
			last = i
		}
	}
	phase := ""
	for i, p := range parts {
		switch p := p.(type) {
		case artel.Reasoning:
			switch kind, said := stateOf(p.Opaque); {
			case kind == "message":
				phase = said
			case kind == "reasoning" && i < last, slices.Contains(ServiceItems(), kind):
				e.beginItem("")
				_, _ = e.Body.Write(p.Opaque)
			}
		case artel.Text:
			e.beginItem(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":`)
			e.JSON(p.Text)
			e.Body.WriteString("}]")
			if phase != "" {
				e.Field("phase", phase)
				phase = ""
			}
			e.Body.WriteString("}")
		case artel.ToolCall:
			e.beginItem(`{"type":"function_call","call_id":`)
			e.JSON(provider.CallID(p.ID, MaxCallID))
			e.Field("name", p.Name)
			e.Field("arguments", provider.SentArguments(p.Arguments))
			e.Body.WriteString("}")
		}
	}
}

// stateOf reads the opaque state of reasoning: the type of an unchanged item, or
// for "message" the phase of the message that follows. The type is "" for other
// state.
func stateOf(opaque json.RawMessage) (kind, phase string) {
	var head struct {
		Type  string `json:"type"`
		Phase string `json:"phase"`
	}
	if json.Unmarshal(opaque, &head) != nil {
		return "", ""
	}
	return head.Type, head.Phase
}

// content writes parts as a list.
func (e *encoder) content(head string, parts artel.Parts) {
	e.Body.WriteString(head)
	e.List(parts, func(text string) { e.JSON(Part{Type: "input_text", Text: text}) }, e.media)
}

func (e *encoder) media(m artel.Media) {
	mediaType, name, ok := e.Media(m)
	if !ok {
		return
	}
	named := e.Names[m.Ref.Digest]
	detail := string(provider.MustMarshal(cmp.Or(m.Detail, "auto")))
	switch major, _, _ := strings.Cut(mediaType, "/"); {
	case major == "image" && named.By == model.ByFileID:
		e.Body.WriteString(`{"type":"input_image","detail":` + detail + `,"file_id":"` + named.Text + `"}`)
	case major == "image" && named.By == model.ByURL:
		e.Body.WriteString(`{"type":"input_image","detail":` + detail + `,"image_url":"` + named.Text + `"}`)
	case major == "image":
		e.Blob(`{"type":"input_image","detail":`+detail+`,"image_url":"data:`+mediaType+`;base64,`, m, `"}`)
	case fileType(mediaType) && named.By == model.ByFileID:
		e.Body.WriteString(`{"type":"input_file","file_id":"` + named.Text + `"}`)
	case fileType(mediaType) && named.By == model.ByURL: // the API takes no filename beside it
		e.Body.WriteString(`{"type":"input_file","file_url":"` + named.Text + `"}`)
	case fileType(mediaType):
		e.Body.WriteString(`{"type":"input_file","filename":`)
		e.JSON(filename(m.Filename, mediaType))
		e.Blob(`,"file_data":"data:`+mediaType+`;base64,`, m, `"}`)
	default:
		e.Fail(artel.Unsupported, "%s is %s: the Responses API takes images, PDF and office documents only", name, mediaType)
	}
}

// fileType reports whether the API reads files of a media type.
func fileType(mediaType string) bool {
	major, _, _ := strings.Cut(mediaType, "/")
	return major != "audio" && major != "video" && major != "image" && Extensions()[mediaType] != ""
}

// Extensions are the extensions of the files that the API reads, by media type.
func Extensions() map[string]string {
	const office = "application/vnd.openxmlformats-officedocument."
	return map[string]string{
		"application/pdf":    ".pdf",
		"application/msword": ".doc",
		"application/rtf":    ".rtf",
		"text/rtf":           ".rtf",
		"application/vnd.oasis.opendocument.text": ".odt",
		"application/vnd.ms-excel":                ".xls",
		"application/vnd.ms-powerpoint":           ".ppt",
		office + "wordprocessingml.document":      ".docx",
		office + "spreadsheetml.sheet":            ".xlsx",
		office + "presentationml.presentation":    ".pptx",
		"text/plain":                              ".txt",
		"text/markdown":                           ".md",
		"text/csv":                                ".csv",
		"text/html":                               ".html",
		"application/json":                        ".json",
	}
}

// filename returns name with the extension of its type, by which the API recognizes
// the format.
func filename(name, mediaType string) string {
	extension := Extensions()[mediaType]
	switch {
	case name == "":
		return "document" + extension
	case path.Ext(name) == "":
		return name + extension
	}
	return name
}

// settings writes the tools, the format and the sampling.
func (e *encoder) settings(r *model.Request) {
	if len(r.Tools) > 0 {
		e.Body.WriteString(`,"tools":[`)
		provider.EachOf(&e.Encoder, r.Tools, func(_ int, t model.ToolSpec) {
			if len(t.Schema) == 0 {
				t.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
			}
			strict := e.StrictTool(t) // by default the API makes the schema strict
			e.JSON(Tool{Type: "function", Name: t.Name, Description: t.Description, Parameters: t.Schema, Strict: &strict})
		})
		e.Body.WriteString("]")
		e.Choice(r.Choice, Tool{Type: "function", Name: r.Choice.Name})
	}
	text := TextConfig{Verbosity: r.Extras.Verbosity}
	if f := r.Format; len(f.Schema) > 0 {
		text.Format = &Format{Type: "json_schema", Name: provider.SchemaName(f.Name), Schema: f.Schema, Strict: e.StrictFormat(f)}
	} else if f.JSON {
		text.Format = &Format{Type: "json_object"}
	}
	if text != (TextConfig{}) {
		e.Field("text", text)
	}
	if r.MaxOutput > 0 {
		e.Field("max_output_tokens", max(r.MaxOutput, MinOutput))
	}
	e.Sampling(r)
	reasoning := Reasoning{Effort: string(e.Effort(r))}
	if provider.OpenAIReasons(r.Service.Model) {
		reasoning.Summary = r.Reasoning.Summary
	}
	if reasoning != (Reasoning{}) {
		e.Field("reasoning", reasoning)
	}
	e.Extras(r.Extras)
}
