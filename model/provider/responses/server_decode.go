// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Decode reads a request. The base64 of images, files and recordings in items is
// decoded meanwhile; see [provider.Extract].
//
// The error is an [*APIError] if the request is wrong, otherwise that of r or of
// the sink. Decode does not check the rules of the API.
func Decode(ctx context.Context, r io.Reader, o provider.DecodeOptions) (*Request, error) {
	req := &Request{}
	if err := req.DecodeOpenAI(ctx, r, Payloads, o, req); err != nil {
		return nil, err
	}
	return req, nil
}

// Encrypted reports whether the request asks for the state of the reasoning.
func (r *Request) Encrypted() bool { return slices.Contains(r.Include, EncryptedReasoning) }

// Payloads is the [provider.Rule] of the dialect.
func Payloads(path []string) provider.Encoding {
	if len(path) < 3 || path[0] != "input" {
		return provider.NoEncoding
	}
	switch rest := strings.Join(path[2:], "."); rest {
	case "content..image_url", "output..image_url", "output.image_url":
		return provider.DataURL
	case "content..file_data", "output..file_data":
		return provider.AnyBase64
	case "content..input_audio.data", "output..input_audio.data", "result":
		return provider.PlainBase64
	}
	return provider.NoEncoding
}

// Neutral returns r in the form that is neutral of dialect. Its media have blob
// refs, whether or not the sink of [Decode] stored them. References by URL or file
// id become texts. One turn of the assistant becomes one message. Items that only
// the service understands become reasoning without text whose Opaque is the item, and
// are in Dropped.
//
// All tools that the client runs become functions: those of namespaces under the
// names NAMESPACE__NAME, custom tools with their text as the only argument, and those
// that the API defines (local_shell, shell, apply_patch, tool_search). [Answer]
// writes their calls as the items that the client expects. Tools of the service are
// in Dropped.
func (r *Request) Neutral() *model.Request {
	out := &model.Request{Service: model.Service{Dialect: model.OpenAIResponses, Model: r.Model, Capabilities: model.TextOnly()}}
	if r.MaxOutputTokens != nil {
		out.MaxOutput = *r.MaxOutputTokens
	}
	box := r.toolbox()
	out.Choice, out.Tools = box.choice(r)
	out.Dropped = append(out.Dropped, box.dropped...)
	r.format(out)
	out.Sampling = model.Sampling{Temperature: r.Temperature, TopP: r.TopP}
	if x := r.Reasoning; x != nil {
		summary := cmp.Or(x.Summary, x.GenerateSummary)
		out.Reasoning = model.Reasoning{Effort: model.Effort(x.Effort), Summary: summary, Show: summary != ""}
	}
	out.Extras = model.Extras{User: r.User, SafetyID: r.SafetyIdentifier, Tier: r.ServiceTier, CacheKey: r.PromptCacheKey}
	if r.Text != nil {
		out.Extras.Verbosity = r.Text.Verbosity
	}
	text := gjson.ParseBytes(r.Extraction().JSON())
	out.Dropped = append(out.Dropped, r.unreadInItems(text)...)
	out.Dropped = append(out.Dropped, provider.Unread(text, "", readFields(), map[string]string{"truncation": `"disabled"`, "top_logprobs": "0"})...)
	if r.Instructions != nil && *r.Instructions != "" {
		out.Messages = append(out.Messages, model.Message{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: *r.Instructions}}})
	}
	if r.Input.Text != nil {
		out.Messages = append(out.Messages, model.Message{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: *r.Input.Text}}})
	}
	turn := false // the last message is the assistant's and can be extended
	for i := range r.Input.Items {
		item := &r.Input.Items[i]
		if item.Kind() == "additional_tools" {
			continue // its tools are among those of the request
		}
		m := r.item(item, box)
		if slices.Contains(ServiceItems(), item.Kind()) && opaque(m) {
			if d := (model.Drop{Field: "input." + item.Kind(), Reason: model.NotTranslated}); !slices.Contains(out.Dropped, d) {
				out.Dropped = append(out.Dropped, d)
			}
		}
		if m.Role == artel.RoleAssistant && turn {
			last := &out.Messages[len(out.Messages)-1]
			last.Parts = append(last.Parts, m.Parts...)
			continue
		}
		turn = m.Role == artel.RoleAssistant
		out.Messages = append(out.Messages, m)
	}
	return out
}

// opaque reports whether a message has nothing but an item that only the service
// understands.
func opaque(m model.Message) bool {
	_, ok := m.Parts[0].(artel.Reasoning)
	return ok && len(m.Parts) == 1
}

// readFields are the fields that are read, or change nothing about an answer.
var readFields = sync.OnceValue(func() map[string]bool {
	out := provider.Fields(reflect.TypeFor[Request]())
	out["client_metadata"], out["stream_options"] = true, true
	return out
})

func (r *Request) format(out *model.Request) {
	if r.Text == nil || r.Text.Format == nil {
		return
	}
	switch f := r.Text.Format; f.Type {
	case "json_object":
		out.Format.JSON = true
	case "json_schema":
		out.Format = model.Format{JSON: true, Schema: f.Schema, Name: f.Name, Strict: f.Strict != nil && *f.Strict}
	}
}

// item returns the message of an item, or the part of a message.
func (r *Request) item(i *Item, tools *toolbox) model.Message {
	assistant := func(p artel.Part) model.Message {
		return model.Message{Role: artel.RoleAssistant, Parts: artel.Parts{p}}
	}
	kind := i.Kind()
	switch kind {
	case "message":
		m := model.Message{Role: artel.RoleUser, Parts: r.parts(i.Content)}
		switch i.Role {
		case "assistant":
			m.Role = artel.RoleAssistant
			if i.Phase != "" {
				head, _ := json.Marshal(map[string]string{"type": "message", "phase": i.Phase}) // strings
				m.Parts = append(artel.Parts{artel.Reasoning{Opaque: head}}, m.Parts...)
			}
		case "system", "developer":
			m.Role = artel.RoleSystem
		}
		return m
	case "reasoning":
		return assistant(reasoningOf(i))
	case "function_call":
		return assistant(artel.ToolCall{ID: artel.CallID(i.CallID), Name: tools.flat("", i.Namespace, i.Name), Arguments: provider.ReceivedArguments(i.arguments())})
	case "custom_tool_call":
		input := ""
		if i.Input != nil {
			input = *i.Input
		}
		return assistant(artel.ToolCall{ID: artel.CallID(i.CallID), Name: tools.flat("", i.Namespace, i.Name), Arguments: provider.CustomArguments(input)})
	case "image_generation_call":
		if i.Result != "" {
			m := r.Extraction().Base64(i.Result)
			return assistant(artel.Media{Ref: artel.BlobRef(m.Digest), MediaType: "image/png", Kind: artel.KindImage, Size: m.Size})
		}
	}
	if of, ok := strings.CutSuffix(kind, "_output"); ok && (i.CallID != "" || kind == "local_shell_call_output") {
		res := r.output(of, i)
		if i.CallID == "" {
			res.CallID = r.localShellCall(i.ID)
		}
		if kind == "tool_search_output" {
			res.Content = tools.found(i)
		}
		return model.Message{Role: artel.RoleTool, Parts: artel.Parts{res}}
	}
	if name, ok := strings.CutSuffix(kind, "_call"); ok && i.CallID != "" {
		batch := i.Actions
		if len(batch) > 0 {
			batch = provider.MustMarshal(map[string]json.RawMessage{"actions": batch})
		}
		for _, arguments := range []json.RawMessage{i.Action, batch, i.Operation, i.Arguments} {
			if len(arguments) > 0 {
				return assistant(artel.ToolCall{ID: artel.CallID(i.CallID), Name: tools.flat(name, "", ""), Arguments: arguments})
			}
		}
	}
	return assistant(artel.Reasoning{Opaque: i.Raw})
}

// localShellCall returns the id of the call of the local shell to which a result
// belongs that names the item of the call, as the API reference has it, or the call.
func (r *Request) localShellCall(id string) artel.CallID {
	for n := range r.Input.Items {
		if i := &r.Input.Items[n]; i.Kind() == "local_shell_call" && i.ID == id {
			return artel.CallID(i.CallID)
		}
	}
	return artel.CallID(id)
}

// output returns the result of a call of a type.
func (r *Request) output(of string, i *Item) artel.ToolResult {
	res := artel.ToolResult{CallID: artel.CallID(i.CallID)}
	switch of {
	case "function_call", "custom_tool_call", "computer_call":
		if i.Output == nil {
			return res
		}
		texts, media := provider.SplitParts(r.parts(&i.Output.Content))
		res.Parts = media
		res.Content = strings.Join(texts, "\n")
		return res
	}
	var fields struct {
		Output json.RawMessage `json:"output"`
	}
	if json.Unmarshal(i.Raw, &fields) == nil && json.Unmarshal(fields.Output, &res.Content) != nil {
		res.Content = string(fields.Output)
	}
	return res
}

func (r *Request) parts(c *Content) artel.Parts {
	if c == nil {
		return nil
	}
	if c.Text != nil {
		return artel.Parts{artel.Text{Text: *c.Text}}
	}
	var out artel.Parts
	for _, p := range c.Parts {
		switch {
		case p.ImageURL != "":
			out = append(out, provider.URLPart(r.Extraction(), "image", artel.KindImage, p.ImageURL, p.Detail))
		case p.FileData != "":
			out = append(out, r.file(p))
		case p.InputAudio != nil:
			out = append(out, provider.AudioPart(r.Extraction(), p.InputAudio.Data, p.InputAudio.Format))
		case p.FileID != "":
			out = append(out, artel.Text{Text: "[file " + artel.Shorten(p.FileID, 100) + "]"})
		case p.FileURL != "":
			out = append(out, artel.Text{Text: "[file at " + artel.Shorten(p.FileURL, 500) + "]"})
		case p.Type == "refusal":
			out = append(out, artel.Text{Text: p.Refusal})
		default:
			out = append(out, artel.Text{Text: p.Text})
		}
	}
	return out
}

// file returns the media of an input_file with data.
func (r *Request) file(p Part) artel.Media {
	m, mediaType, ok := r.Extraction().DataURL(p.FileData)
	if !ok {
		m, mediaType = r.Extraction().Base64(p.FileData), TypeByName(p.Filename)
	}
	kind := artel.KindDocument
	switch major, _, _ := strings.Cut(mediaType, "/"); major {
	case "image":
		kind = artel.KindImage
	case "audio":
		kind = artel.KindAudio
	case "video":
		kind = artel.KindVideo
	}
	return artel.Media{Ref: artel.BlobRef(m.Digest), MediaType: mediaType, Kind: kind, Filename: p.Filename, Size: m.Size}
}

// TypeByName guesses the media type of a file by its extension.
func TypeByName(filename string) string {
	extension := strings.ToLower(path.Ext(filename))
	for mediaType, e := range Extensions() {
		if e == extension && mediaType != "text/rtf" {
			return mediaType
		}
	}
	return "application/octet-stream"
}

// reasoningOf returns the reasoning of an item.
func reasoningOf(i *Item) artel.Reasoning {
	var texts []string
	for _, s := range i.Summary {
		texts = append(texts, s.Text)
	}
	out := artel.Reasoning{Text: strings.Join(texts, "\n\n"), Opaque: i.Raw}
	if out.Text == "" {
		out.Text = i.Content.String()
	}
	if i.Encrypted != nil {
		if state, ok := unwrap(*i.Encrypted); ok {
			out.Opaque, out.Service = state.Opaque, state.Service
		}
	}
	return out
}
