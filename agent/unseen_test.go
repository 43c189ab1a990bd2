// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
)

// pictures are sources of one picture.
type pictures struct {
	blobs blob.Store
	info  artel.MediaInfo
}

// Overview implements [pipeline.Sources].
func (pictures) Overview(context.Context, artel.Owner, artel.ConversationID, artel.MessageID, int) (artifact.Overview, error) {
	return artifact.Overview{}, nil
}

// Open implements [pipeline.Sources].
func (p pictures) Open(ctx context.Context, _ artel.Owner, ref artel.Ref, _ artel.MessageID) (artifact.Content, error) {
	r, err := p.blobs.Open(ctx, ref.Digest)
	return artifact.Content{Reader: r, Version: artel.Version{Digest: ref.Digest, MediaInfo: p.info, InBlob: true}, Visible: true}, err
}

// Derived implements [pipeline.Sources].
func (pictures) Derived(context.Context, artel.Owner, artel.Ref, artel.MessageID) (artifact.Derived, error) {
	return artifact.Derived{}, artel.Errorf(artel.Unsupported, "test", "", "a picture has no text")
}

// TestUnseenPicturesAreLearned: a run learns from the bill of an answer that its service
// has not shown the model the picture in a tool's result.
func TestUnseenPicturesAreLearned(t *testing.T) {
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, 1200, 1200))); err != nil {
		t.Fatal(err)
	}
	blobs := blob.NewMemory()
	stored, err := blobs.Put(t.Context(), bytes.NewReader(data.Bytes()), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	info := artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage, DetectedBy: artel.FromSignature, Size: stored.Size, Width: 1200, Height: 1200}
	for billed, want := range map[int64]int{60: 1, 2000: 0} {
		b := newBench(t, []turn{{say("done"), model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: billed, OutputTokens: 1}}}})
		s := &b.in.Service
		s.BaseURL = "http://scripted"
		s.Capabilities.Input = model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText, artel.CanVision}, Source: model.FromCatalog}
		s.Capabilities.ToolImage = model.Fact[bool]{Value: true, Source: model.FromDialect}
		b.in.Context.Sources = pictures{blobs, info}
		ask := b.in.History[0]
		add := func(role artel.Role, p artel.Part) {
			m := ask
			m.ID, m.Role, m.Parts = artel.NewMessageID(ask.CreatedAt), role, artel.Parts{p}
			b.in.History = append(b.in.History, m)
		}
		add(artel.RoleAssistant, artel.ToolCall{ID: "c1", Name: "echo", Arguments: []byte(`{"text":"a"}`)})
		add(artel.RoleTool, artel.ToolResult{CallID: "c1", Parts: artel.Parts{
			artel.Media{Ref: artel.BlobRef(stored.Digest), MediaType: "image/png", Kind: artel.KindImage, Size: stored.Size, Width: 1200, Height: 1200},
		}})
		var marks []model.Mark
		b.host.learn = func(m []model.Mark) { marks = append(marks, m...) }
		for _, err := range b.engine.Run(t.Context(), b.in) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(marks) != want || want > 0 && (marks[0].Place != model.InTool || marks[0].OK || marks[0].Evidence == "") {
			t.Errorf("billed %d: learned %+v", billed, marks)
		}
	}
}
