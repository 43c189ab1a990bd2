// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Decode reads a request. The base64 of images, files and recordings in messages is
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

// Payloads is the [provider.Rule] of the dialect.
func Payloads(path []string) provider.Encoding {
	if len(path) < 5 || path[0] != "messages" || path[2] != "content" {
		return provider.NoEncoding
	}
	switch strings.Join(path[4:], ".") {
	case "input_audio.data":
		return provider.PlainBase64
	case "image_url.url", "image_url", "file.file_data", "video_url.url":
		return provider.DataURL
	}
	return provider.NoEncoding
}

// Neutral returns r in the form that is neutral of dialect. Its media have blob
// refs, whether or not the sink of [Decode] stored them. References by URL or file
// id become texts. Dropped has the fields that have no neutral form.
func (r *Request) Neutral() *model.Request {
	out := &model.Request{Service: model.Service{Dialect: model.OpenAI, Model: r.Model, Capabilities: model.TextOnly()}}
	if r.MaxCompletionTokens != nil {
		out.MaxOutput = *r.MaxCompletionTokens
	} else if r.MaxTokens != nil {
		out.MaxOutput = *r.MaxTokens
	}
	r.tools(out)
	out.Format = r.format()
	out.Sampling = model.Sampling{
		Temperature: r.Temperature, TopP: r.TopP, TopK: r.TopK, Seed: r.Seed,
		FrequencyPenalty: r.FrequencyPenalty, PresencePenalty: r.PresencePenalty, Stop: r.Stop,
	}
	out.Reasoning = model.Reasoning{Effort: model.Effort(r.ReasoningEffort), Show: true} // in a field of its own
	if x := r.Reasoning; x != nil {
		out.Reasoning = model.Reasoning{Effort: model.Effort(cmp.Or(x.Effort, r.ReasoningEffort)), Budget: x.MaxTokens, Show: !x.Exclude}
	}
	out.Extras = model.Extras{User: r.User, SafetyID: r.SafetyIdentifier, Tier: r.ServiceTier, CacheKey: r.PromptCacheKey, Verbosity: r.Verbosity}
	text := gjson.ParseBytes(r.Extraction().JSON())
	out.Dropped = append(out.Dropped, provider.Unread(text, "", readFields(), map[string]string{"n": "1", "top_logprobs": "0"})...)
	out.Dropped = append(out.Dropped, r.unreadInMessages(text)...)
	ids := newFunctionIDs(r.Messages)
	for i, m := range r.Messages {
		if len(m.Audio) > 0 && string(m.Audio) != "null" {
			out.Dropped = append(out.Dropped, model.Drop{Field: fmt.Sprintf("messages[%d].audio", i), Reason: model.NotTranslated})
		}
		out.Messages = append(out.Messages, r.message(m, ids))
	}
	return out
}

var readFields = sync.OnceValue(func() map[string]bool { return provider.Fields(reflect.TypeFor[Request]()) })

func (r *Request) message(m Message, ids *functionIDs) model.Message {
	parts := r.parts(m.Content)
	switch m.Role {
	case "tool", "function":
		res := artel.ToolResult{CallID: artel.CallID(m.ToolCallID), Content: m.Content.String()}
		if m.Role == "function" {
			res.CallID = ids.result(m.Name)
		}
		_, res.Parts = provider.SplitParts(parts)
		return model.Message{Role: artel.RoleTool, Parts: artel.Parts{res}}
	case "assistant":
		for _, c := range m.ToolCalls {
			parts = append(parts, neutralCall(c))
		}
		if f := m.FunctionCall; f != nil {
			parts = append(parts, artel.ToolCall{ID: ids.call(f.Name), Name: f.Name, Arguments: provider.ReceivedArguments(string(f.Arguments))})
		}
		return model.Message{Role: artel.RoleAssistant, Parts: parts}
	case "system", "developer":
		return model.Message{Role: artel.RoleSystem, Parts: parts}
	}
	return model.Message{Role: artel.RoleUser, Parts: parts}
}

func (r *Request) parts(c Content) artel.Parts {
	if c.Text != nil {
		return artel.Parts{artel.Text{Text: *c.Text}}
	}
	var out artel.Parts
	for _, p := range c.Parts {
		switch {
		case p.ImageURL != nil:
			out = append(out, provider.URLPart(r.Extraction(), "image", artel.KindImage, p.ImageURL.URL, p.ImageURL.Detail))
		case p.VideoURL != nil:
			out = append(out, provider.URLPart(r.Extraction(), "video", artel.KindVideo, p.VideoURL.URL, p.VideoURL.Detail))
		case p.InputAudio != nil:
			out = append(out, provider.AudioPart(r.Extraction(), p.InputAudio.Data, p.InputAudio.Format))
		case p.File != nil:
			m, mediaType, ok := r.Extraction().DataURL(p.File.FileData)
			if !ok {
				out = append(out, artel.Text{Text: "[file " + artel.Shorten(p.File.FileID, 100) + "]"})
				continue
			}
			out = append(out, artel.Media{
				Ref: artel.BlobRef(m.Digest), MediaType: mediaType, Kind: artel.KindDocument, Filename: p.File.Filename, Size: m.Size,
			})
		case p.Type == "text":
			out = append(out, artel.Text{Text: p.Text})
		case p.Type == "refusal":
			out = append(out, artel.Text{Text: p.Refusal})
		case p.Type == "thinking":
			out = append(out, artel.Reasoning{Text: Content{Parts: p.Thinking}.String()})
		}
	}
	return out
}

func (r *Request) format() model.Format {
	f := r.ResponseFormat
	switch {
	case f == nil:
	case f.Type == "json_object":
		return model.Format{JSON: true}
	case f.Type == "json_schema" && f.Schema != nil:
		return model.Format{
			JSON: true, Schema: f.Schema.Schema, Name: f.Schema.Name, Strict: f.Schema.Strict != nil && *f.Schema.Strict,
		}
	}
	return model.Format{}
}
