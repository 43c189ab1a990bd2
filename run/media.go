// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"io"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media/scrub"
)

// Media in the text of a message is stored as it is read; artifacts are made of
// it only when the whole text is accepted. Until then the text holds blob refs.

// StagedMedia is the media of one text. Its zero value is not usable; see
// [NewStagedMedia].
type StagedMedia struct {
	artifacts *artifact.Collection
	staged    []artifact.Staged // in the order in which they were met, each once
}

// NewStagedMedia returns the media of a text that is not read yet.
func NewStagedMedia(c *artifact.Collection) *StagedMedia { return &StagedMedia{artifacts: c} }

// Staged returns the media so far, each once, in the order of the text.
func (f *StagedMedia) Staged() []artifact.Staged { return f.staged }

// Keep is a [scrub.Sink].
func (f *StagedMedia) Keep(ctx context.Context, r io.Reader, h scrub.Hint) (string, error) {
	s, err := f.artifacts.Uploads.Stage(ctx, r, tool.HintOf(h))
	if err != nil {
		return "", err
	}
	known := false
	for _, before := range f.staged {
		known = known || before.Digest == s.Digest
	}
	if !known {
		f.staged = append(f.staged, s)
	}
	return artel.BlobRef(s.Digest).String(), nil
}

// Replacer replaces the blob refs of the staged media by the refs of the
// artifacts that were made of them, in the same order.
func (f *StagedMedia) Replacer(kept []artel.Artifact) *strings.Replacer {
	pairs := make([]string, 0, 2*len(kept))
	for i, a := range kept {
		pairs = append(pairs, artel.BlobRef(f.staged[i].Digest).String(), a.MediaPart().Ref.String())
	}
	return strings.NewReplacer(pairs...)
}

// scrubbed replaces the media in a message's text by refs, and returns them.
func (k *Config) scrubbed(ctx context.Context, in Input) (Input, *StagedMedia, error) {
	f := NewStagedMedia(k.Artifacts)
	text, err := scrub.Text(ctx, in.Text, f.Keep)
	if err != nil {
		return in, nil, err
	}
	if len(f.staged) > 0 || text != in.Text {
		in.title = titleOf(scrub.Line(in.Text))
	}
	in.Text = text
	return in, f, nil
}
