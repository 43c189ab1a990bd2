// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"
	"io"
	"slices"
	"strings"

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
	extraction, err := provider.DecodeOpenAI(ctx, r, Payloads, o, req)
	if err != nil {
		return nil, err
	}
	req.extraction = extraction
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

// Extraction returns the JSON of the request and its payloads, both empty if it was
// not decoded.
func (r *Request) Extraction() *provider.Extraction {
	if r.extraction == nil {
		return &provider.Extraction{}
	}
	return r.extraction
}

// Neutral returns r in the form that is neutral of dialect. Its media have blob
// refs, whether or not the sink of [Decode] stored them. References by URL or file
// id become texts.
func (r *Request) Neutral() *model.Request {
	out := &model.Request{Service: model.Service{Dialect: model.OpenAI, Model: r.Model, Capabilities: model.TextOnly()}}
	if r.MaxCompletionTokens != nil {
		out.MaxOutput = *r.MaxCompletionTokens
	} else if r.MaxTokens != nil {
		out.MaxOutput = *r.MaxTokens
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, model.ToolSpec{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
	}
	out.Choice, out.Tools = r.choice(out.Tools)
	out.Format = r.format()
	out.Sampling = model.Sampling{Temperature: r.Temperature, TopP: r.TopP, Stop: r.Stop}
	for _, m := range r.Messages {
		out.Messages = append(out.Messages, r.message(m))
	}
	return out
}

func (r *Request) message(m Message) model.Message {
	parts := r.parts(m.Content)
	switch m.Role {
	case "tool":
		res := artel.ToolResult{CallID: artel.CallID(m.ToolCallID), Content: m.Content.String()}
		for _, p := range parts {
			if media, ok := p.(artel.Media); ok {
				res.Parts = append(res.Parts, media)
			}
		}
		return model.Message{Role: artel.RoleTool, Parts: artel.Parts{res}}
	case "assistant":
		for _, c := range m.ToolCalls {
			parts = append(parts, artel.ToolCall{
				ID: artel.CallID(c.ID), Name: c.Function.Name, Arguments: provider.ReceivedArguments(string(c.Function.Arguments)), Opaque: c.ExtraContent,
			})
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
			out = append(out, r.Extraction().URLPart("image", artel.KindImage, p.ImageURL.URL))
		case p.VideoURL != nil:
			out = append(out, r.Extraction().URLPart("video", artel.KindVideo, p.VideoURL.URL))
		case p.InputAudio != nil:
			out = append(out, r.Extraction().AudioPart(p.InputAudio.Data, p.InputAudio.Format))
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
		}
	}
	return out
}

// choice returns the choice of tools, and the tools that remain allowed.
func (r *Request) choice(tools []model.ToolSpec) (model.ToolChoice, []model.ToolSpec) {
	var out model.ToolChoice
	out.OneByOne = r.ParallelToolCalls != nil && !*r.ParallelToolCalls
	c := r.ToolChoice
	if c == nil {
		return out, tools
	}
	switch {
	case c.Word == "none":
		out.Mode = model.ChooseNone
	case c.Word == "required":
		out.Mode = model.ChooseAny
	case c.Type == "function":
		out.Mode, out.Name = model.ChooseNamed, c.Name
	case c.Type == "allowed_tools":
		if c.Mode == "required" {
			out.Mode = model.ChooseAny
		}
		tools = slices.DeleteFunc(tools, func(t model.ToolSpec) bool { return !slices.Contains(c.Allowed, t.Name) })
	}
	return out, tools
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
