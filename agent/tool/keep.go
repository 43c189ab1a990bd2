// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/scrub"
)

// A Keeper takes the media out of texts, makes artifacts of them in the
// conversation, and puts their refs where they stood. It belongs to one text
// or call, and to one goroutine.
type Keeper struct {
	env  *Env
	kept []artel.Artifact // in the order in which they were met, each once
}

// NewKeeper returns a Keeper that makes artifacts in the workspace of e. Where
// there is none, or nothing to keep bytes in, it describes them.
func NewKeeper(e *Env) *Keeper { return &Keeper{env: e} }

// Keep is a [scrub.Keep].
func (k *Keeper) Keep(ctx context.Context, r io.Reader, h scrub.Hint) (string, error) {
	if k.env.Artifacts == nil || k.env.Workspace == nil {
		return scrub.Describe(ctx, r, h)
	}
	staged, err := k.env.Artifacts.Stage(ctx, r, HintOf(h))
	if err != nil {
		return "", err
	}
	a, err := k.Add(ctx, staged)
	return a.MediaPart().Ref.String(), err
}

// Add makes an artifact of bytes that were taken in already.
func (k *Keeper) Add(ctx context.Context, s artifact.Staged) (artel.Artifact, error) {
	a, err := k.env.Workspace.Store(ctx, s)
	if err != nil {
		return a, err
	}
	if !slices.ContainsFunc(k.kept, func(b artel.Artifact) bool { return b.ID == a.ID }) {
		k.kept = append(k.kept, a)
	}
	return a, nil
}

// Text takes the media out of a text.
func (k *Keeper) Text(ctx context.Context, text string) (string, error) {
	return scrub.Text(ctx, text, k.Keep)
}

// HintOf is what the text around a hit says about its bytes, for who detects
// what they are.
func HintOf(h scrub.Hint) media.Hint {
	declared := h.MediaType
	if strings.HasSuffix(declared, "/*") {
		declared = ""
	}
	return media.Hint{DeclaredType: declared, Filename: h.Filename}
}

// parts are what was kept as parts that travel with a result. A text needs
// none: whoever wants it reads it.
func (k *Keeper) parts() artel.Parts {
	var parts artel.Parts
	for _, a := range k.kept {
		if a.Binary {
			parts = append(parts, a.MediaPart())
		}
	}
	return parts
}

// settle makes what a tool returned fit to be told: media become artifacts,
// what is too long becomes one with a preview, and the metadata say what the
// result is.
func (e *Env) finishResult(ctx context.Context, t Tool, r Result) (Result, error) {
	if t.ShowsContent {
		r.Metadata = withContentType(r)
		return r, nil
	}
	k := NewKeeper(e)
	text, err := k.Text(ctx, r.Content)
	if err != nil {
		return r, artel.Errorf(artel.KindOf(err), "tool.Call", t.Name, "%w", err)
	}
	for i, p := range r.Parts {
		if part, ok := p.(artel.Text); ok {
			if part.Text, err = k.Text(ctx, part.Text); err != nil {
				return r, artel.Errorf(artel.KindOf(err), "tool.Call", t.Name, "%w", err)
			}
			r.Parts[i] = part
		}
	}
	r.Content = text
	return k.Finish(ctx, r)
}

// Finish gives a result, whose texts have been taken through k, its media as
// parts and its metadata, and keeps what is too long to be shown.
func (k *Keeper) Finish(ctx context.Context, r Result) (Result, error) {
	r.Parts = append(r.Parts, k.parts()...)
	if len(k.kept) > 0 {
		r.Metadata = withMedia(r, k.kept)
	}
	if k.env.Shown.exceeded(r.Content) {
		return k.env.offload(ctx, r)
	}
	r.Metadata = withContentType(r)
	return r, nil
}
