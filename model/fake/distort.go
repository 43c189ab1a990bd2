// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"encoding/base64"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// tokensPerCharacter is the measured cost of a character of base64 that a model
// reads as text.
const tokensPerCharacter = 0.71

// maxFlat limits the base64 of one piece of media that the model sees, in bytes.
// All of it is counted.
const maxFlat = 1 << 20

// distort returns the request as the model sees it, and the cost of its media as
// text, in tokens.
func (s *Server) distort(ctx context.Context, b Behavior, r *model.Request) (*model.Request, int64) {
	switch {
	case b.DropsMedia:
		return withoutMedia(r, true), 0
	case b.ToolMedia == ToolMediaLost:
		return withoutMedia(r, false), 0
	case b.ToolMedia == ToolMediaSplit:
		return split(r), 0
	case b.ToolMedia == ToolMediaFlat:
		return s.flatten(ctx, r)
	}
	return r, 0
}

// split returns r with a tool message for each part of a result, without the ids of
// the calls.
func split(r *model.Request) *model.Request {
	out := *r
	out.Messages = nil
	for _, m := range r.Messages {
		results := model.Message{Role: m.Role}
		for _, p := range m.Parts {
			result, ok := p.(artel.ToolResult)
			if !ok || len(result.Parts) == 0 {
				results.Parts = append(results.Parts, p)
				continue
			}
			if result.Content != "" {
				out.Messages = append(out.Messages, model.Message{Role: m.Role, Parts: artel.Parts{artel.ToolResult{Content: result.Content}}})
			}
			for _, part := range result.Parts {
				out.Messages = append(out.Messages, model.Message{Role: m.Role, Parts: artel.Parts{artel.ToolResult{Parts: artel.Parts{part}}}})
			}
		}
		if len(results.Parts) > 0 || len(m.Parts) == 0 {
			out.Messages = append(out.Messages, results)
		}
	}
	return &out
}

// flatten returns r with the media of tool results as base64 in their texts.
func (s *Server) flatten(ctx context.Context, r *model.Request) (*model.Request, int64) {
	out := *r
	out.Messages = slices.Clone(r.Messages)
	characters := int64(0)
	for i, m := range out.Messages {
		parts := slices.Clone(m.Parts)
		for j, p := range parts {
			result, ok := p.(artel.ToolResult)
			if !ok || len(result.Parts) == 0 {
				continue
			}
			for _, media := range artel.MediaOf(result.Parts) {
				characters += (media.Size + 2) / 3 * 4
				result.Content = strings.TrimSpace(result.Content + "\n" + s.asText(ctx, media))
			}
			result.Parts = nil
			parts[j] = result
		}
		out.Messages[i].Parts = parts
	}
	return &out, int64(float64(characters) * tokensPerCharacter)
}

// asText returns the base64 of media, if its bytes were stored.
func (s *Server) asText(ctx context.Context, m artel.Media) string {
	head := "data:" + m.MediaType + ";base64,"
	if s.options.Blobs == nil {
		return head
	}
	r, err := s.options.Blobs.Open(ctx, m.Ref.Digest)
	if err != nil {
		return head
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxFlat))
	if err != nil {
		return head
	}
	return head + base64.StdEncoding.EncodeToString(data)
}

// charge adds tokens to the usage of an answer.
func charge(deltas iter.Seq2[model.Delta, error], tokens int64) iter.Seq2[model.Delta, error] {
	if tokens == 0 {
		return deltas
	}
	return func(yield func(model.Delta, error) bool) {
		for d, err := range deltas {
			if f, ok := d.(model.Finish); ok {
				f.Usage.InputTokens += tokens
				d = f
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
