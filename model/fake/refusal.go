// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"fmt"
	"image"
	_ "image/gif" // decoders of the inspected formats
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A Refusal is a refusal of something that the real API accepts, with the message
// of a real server.
type Refusal string

// The refusals. Those that inspect pictures require [Options.Blobs].
const (
	NoImages        Refusal = "no_images"          // DeepSeek: 400
	NoProjector     Refusal = "no_projector"       // images, by llama.cpp without one: 500
	NoFiles         Refusal = "no_files"           // vLLM: 400
	NoListsInTools  Refusal = "no_lists_in_tools"  // LM Studio: 400 for parts of a tool message other than text
	NoUserAfterTool Refusal = "no_user_after_tool" // Mistral: 400
	OneImage        Refusal = "one_image"          // vLLM: 400 for more than one image
	SmallImages     Refusal = "small_images"       // Anthropic: 400 for sides of more than 2,000 pixels
	SmallRequests   Refusal = "small_requests"     // a proxy: 413 for more than 1 MB of media
	WholeImages     Refusal = "whole_images"       // 400 without a reason for images that cannot be decoded
	TextOutputs     Refusal = "text_outputs"       // media in tool results, by llama.cpp's Responses: 400
)

// Refusals returns all refusals.
func Refusals() []Refusal {
	return []Refusal{NoImages, NoProjector, NoFiles, NoListsInTools, NoUserAfterTool, OneImage, SmallImages, SmallRequests, WholeImages, TextOutputs}
}

// ToolMedia is the treatment of media in the results of tools.
type ToolMedia string

// The treatments.
const (
	ToolMediaRefused ToolMedia = ""      // as the real API: OpenAI's Chat Completions refuses them, others pass them on
	ToolMediaSeen    ToolMedia = "seen"  // the model sees them
	ToolMediaLost    ToolMedia = "blind" // accepted, but not passed on: newer models of OpenAI, templates of vLLM
	ToolMediaFlat    ToolMedia = "flat"  // the model gets their base64 as billed text: some gateways
	ToolMediaSplit   ToolMedia = "split" // each part becomes a message without a call: Ollama
)

const (
	smallSide    = 2000
	smallRequest = 1 << 20
)

// refuses returns the refusal of a valid request; nil: it is accepted.
func (s *Server) refuses(ctx context.Context, b Behavior, r *model.Request) *problem {
	media := allMedia(r)
	images := slices.DeleteFunc(slices.Clone(media), func(m artel.Media) bool { return m.Kind != artel.KindImage })
	fail := func(status int, format string, args ...any) *problem {
		return s.dialect.problem(failure{status: status}, fmt.Sprintf(format, args...))
	}
	for _, x := range b.Refuses {
		switch x {
		case NoImages:
			if len(images) > 0 {
				return fail(http.StatusBadRequest, "Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text` at line 1 column 80")
			}
		case NoProjector:
			if len(images) > 0 {
				return fail(http.StatusInternalServerError, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj")
			}
		case NoFiles:
			if len(media) > len(images) {
				return fail(http.StatusBadRequest, "Unsupported chat content part type: 'file'")
			}
		case NoListsInTools:
			if inTools(r) {
				return fail(http.StatusBadRequest, "Invalid 'messages' in payload")
			}
		case TextOutputs:
			if inTools(r) {
				return fail(http.StatusBadRequest, "Output of tool call should be 'Input text'")
			}
		case NoUserAfterTool:
			for i, m := range r.Messages[1:] {
				if m.Role == artel.RoleUser && r.Messages[i].Role == artel.RoleTool {
					const message = "Unexpected role 'user' after role 'tool'"
					body := `{"object":"error","message":"` + message + `","type":"invalid_request_message_order","param":null,"code":"3230"}`
					return &problem{status: http.StatusBadRequest, message: message, body: []byte(body)}
				}
			}
		case OneImage:
			if len(images) > 1 {
				return fail(http.StatusBadRequest, "At most 1 image(s) may be provided in one prompt.")
			}
		case SmallImages:
			for _, m := range images {
				if conf, ok := s.measure(ctx, m); ok && max(conf.Width, conf.Height) > smallSide {
					return fail(http.StatusBadRequest, "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: %d pixels", smallSide)
				}
			}
		case SmallRequests:
			total := int64(0)
			for _, m := range media {
				total += m.Size
			}
			if total > smallRequest {
				return fail(http.StatusRequestEntityTooLarge, "Payload Too Large")
			}
		case WholeImages:
			for _, m := range images {
				if !s.decodes(ctx, m) {
					return fail(http.StatusBadRequest, "Bad request.")
				}
			}
		}
	}
	return nil
}

func allMedia(r *model.Request) []artel.Media {
	var out []artel.Media
	for _, m := range r.Messages {
		out = append(out, artel.MediaOf(m.Parts)...)
	}
	return out
}

func inTools(r *model.Request) bool {
	return slices.ContainsFunc(r.Messages, func(m model.Message) bool {
		return slices.ContainsFunc(artel.ResultsOf(m.Parts), func(r artel.ToolResult) bool { return len(r.Parts) > 0 })
	})
}

// withoutMedia returns r without media: in tool results, or everywhere.
func withoutMedia(r *model.Request, everywhere bool) *model.Request {
	out := *r
	out.Messages = slices.Clone(r.Messages)
	for i, m := range out.Messages {
		parts := slices.Clone(m.Parts)
		for j, p := range parts {
			if result, ok := p.(artel.ToolResult); ok {
				result.Parts = nil
				parts[j] = result
			}
		}
		out.Messages[i].Parts = slices.DeleteFunc(parts, func(p artel.Part) bool {
			_, ok := p.(artel.Media)
			return ok && everywhere
		})
	}
	return &out
}

func (s *Server) measure(ctx context.Context, m artel.Media) (conf image.Config, ok bool) {
	if s.options.Blobs == nil {
		return conf, false
	}
	r, err := s.options.Blobs.Open(ctx, m.Ref.Digest)
	if err != nil {
		return conf, false
	}
	defer r.Close()
	conf, _, err = image.DecodeConfig(r)
	return conf, err == nil
}

// decodes reports whether an image can be decoded; very large ones are not tried.
func (s *Server) decodes(ctx context.Context, m artel.Media) bool {
	conf, ok := s.measure(ctx, m)
	if !ok || conf.Width*conf.Height > 50e6 {
		return ok || s.options.Blobs == nil
	}
	r, err := s.options.Blobs.Open(ctx, m.Ref.Digest)
	if err != nil {
		return true
	}
	defer r.Close()
	_, _, err = image.Decode(r)
	return err == nil
}
