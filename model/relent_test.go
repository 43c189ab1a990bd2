// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

func part(n byte, mediaType string) artel.Media {
	m := artel.Media{Ref: artel.BlobRef(artel.NewDigest([32]byte{n})), MediaType: mediaType, Kind: artel.KindImage, Size: 3 << 20, Width: 3000, Height: 200}
	if mediaType == "application/pdf" {
		m.Kind, m.Width, m.Height, m.Pages = artel.KindDocument, 0, 0, 300
	}
	return m
}

// asked is a conversation: two pictures of people, and one of a tool.
func asked(c model.Capabilities) *model.Request {
	s := service("a")
	s.Capabilities = c
	return &model.Request{Service: s, Messages: []model.Message{
		{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "one"}, part(1, "image/png"), part(4, "application/pdf")}},
		{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "c", Name: "f"}}},
		{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "c", Parts: artel.Parts{part(2, "image/jpeg")}}}},
		{Role: artel.RoleUser, Parts: artel.Parts{part(3, "image/png")}},
	}}
}

func refusal(status int, words string) error {
	return fmt.Errorf("call: %w", &model.CallError{Status: status, Message: words, Refusal: model.Classify(status, "", words)})
}

func TestRelent(t *testing.T) {
	t.Parallel()
	inTools := model.Capabilities{ToolImage: model.Fact[bool]{Value: true, Source: model.FromProbe}}
	bridged := model.Capabilities{UserAfterTool: model.Fact[bool]{Source: model.FromProbe}}
	digest := func(n byte) artel.Digest { return artel.NewDigest([32]byte{n}) }
	for name, tt := range map[string]struct {
		to       model.Capabilities
		err      error
		marks    []model.Mark
		suspects []artel.Digest
	}{
		"pictures in tools":             {inTools, refusal(400, "Image URLs are only allowed for messages with role 'user'"), []model.Mark{{Place: model.InTool, MediaType: "image/*"}}, nil},
		"words without a place, tools":  {inTools, refusal(400, "Unexpected item type in content"), []model.Mark{{Place: model.InTool, MediaType: "image/*"}}, nil},
		"words without a place":         {model.TextOnly(), refusal(400, "Unexpected item type in content"), []model.Mark{{Place: model.InUser, MediaType: "image/*"}, {Place: model.InUser, MediaType: "application/pdf"}}, nil},
		"pictures":                      {model.TextOnly(), refusal(404, "No endpoints found that support image input"), []model.Mark{{Place: model.InUser, MediaType: "image/*"}}, nil},
		"one type":                      {model.TextOnly(), refusal(400, "Unsupported MIME type: image/jpeg"), []model.Mark{{Place: model.InUser, MediaType: "image/jpeg"}}, nil},
		"files":                         {model.TextOnly(), refusal(400, "Unsupported chat content part type: 'file'"), []model.Mark{{Place: model.InUser, MediaType: "application/pdf"}}, nil},
		"a type that was not sent":      {model.TextOnly(), refusal(400, "audio input is not supported"), nil, nil},
		"a thought's signature":         {inTools, refusal(400, "Function call is missing a thought_signature in functionCall parts."), nil, nil},
		"the order":                     {model.TextOnly(), refusal(400, "Unexpected role 'user' after role 'tool'"), []model.Mark{{Place: model.AfterTool}}, nil},
		"the order, though it is right": {bridged, refusal(400, "Unexpected role 'user' after role 'tool'"), nil, []artel.Digest{digest(3)}},
		"a number that is named":        {model.TextOnly(), refusal(400, "At most 2 image(s) may be provided in one prompt."), []model.Mark{{Limit: model.RefusedCount, Value: 2}}, nil},
		"a number that is not":          {model.TextOnly(), refusal(400, "too many images"), []model.Mark{{Limit: model.RefusedCount, Value: 1}}, nil},
		"a side":                        {model.TextOnly(), refusal(400, "image dimensions exceed max allowed size: 2000 pixels"), []model.Mark{{Limit: model.RefusedSide, Value: 2000}}, nil},
		"a side without a number":       {model.TextOnly(), refusal(400, "image width exceeds what is allowed"), []model.Mark{{Limit: model.RefusedSide, Value: 1500}}, nil},
		"pages":                         {model.TextOnly(), refusal(400, "A maximum of 100 PDF pages may be provided."), []model.Mark{{Limit: model.RefusedPages, Value: 100}}, nil},
		"bytes, counted as base64":      {model.TextOnly(), refusal(400, "image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"), []model.Mark{{Limit: model.RefusedItem, Value: 5242880 / 4 * 3}}, nil},
		"the whole":                     {model.TextOnly(), refusal(413, ""), []model.Mark{{Limit: model.RefusedRequest, Value: 8 << 20}}, nil},
		"a bad picture":                 {model.TextOnly(), refusal(400, "Could not process image"), nil, []artel.Digest{digest(3)}},
		"a bad PDF":                     {model.TextOnly(), refusal(400, "The PDF specified was not valid."), nil, []artel.Digest{digest(4)}},
		"no words":                      {model.TextOnly(), refusal(400, "Bad request"), nil, []artel.Digest{digest(3)}},
		"no words, 422":                 {model.TextOnly(), refusal(422, "no"), nil, []artel.Digest{digest(3)}},
		"context":                       {model.TextOnly(), refusal(400, "maximum context length is 8"), nil, nil},
		"a key":                         {model.TextOnly(), refusal(401, "no"), nil, nil},
		"a fault":                       {model.TextOnly(), refusal(500, "oops"), nil, nil},
		"nobody called":                 {model.TextOnly(), errors.New("no network"), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := asked(tt.to)
			marks, suspects := model.Diagnose(r, tt.err)
			if diff := cmp.Diff(tt.marks, marks, cmpopts.IgnoreFields(model.Mark{}, "Endpoint", "Model", "Dialect", "Source", "Evidence", "Seen")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.suspects, suspects); diff != "" {
				t.Error(diff)
			}
			for _, m := range marks {
				if m.Endpoint != r.Service.BaseURL || m.Model != r.Service.Model || m.Source != model.FromLearned {
					t.Errorf("%+v", m)
				}
			}
			r.Messages = r.Messages[1:2]
			if marks, suspects := model.Diagnose(r, tt.err); len(marks) > 0 && marks[0].Place != model.AfterTool || len(suspects) > 0 {
				t.Errorf("without media: %+v %v", marks, suspects)
			}
		})
	}
}

// TestLowered: what was refused in this call is not sent again, whoever says
// that it should work.
func TestLowered(t *testing.T) {
	t.Parallel()
	s := seeing(model.FromOperator)
	s.Capabilities.ToolImage = model.Fact[bool]{Value: true, Source: model.FromOperator}
	low := s.Lowered([]model.Mark{{Place: model.InTool, MediaType: "image/*", Source: model.FromLearned}, {Place: model.InUser, MediaType: "image/bmp", Source: model.FromLearned}})
	if low.Capabilities.ToolTakes("image/png") || low.Capabilities.Admits("image/bmp") || !low.Capabilities.Takes(artel.CanVision, "image/png") {
		t.Errorf("%+v", low.Capabilities)
	}
	if !s.Capabilities.ToolTakes("image/png") || s.Capabilities.Refuses.Value != nil {
		t.Errorf("the service itself was changed: %+v", s.Capabilities)
	}
}
