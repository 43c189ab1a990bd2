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

// A Keeper extracts media from texts, stores them as artifacts of the
// conversation, and replaces them by refs. It is for one text or call, and for
// one goroutine.
type Keeper struct {
	env  *Env
	kept []artel.Artifact // in order of appearance, without duplicates
}

// NewKeeper returns a Keeper that makes artifacts in the workspace of e.
// Without a workspace or a store, it describes media instead.
func NewKeeper(e *Env) *Keeper { return &Keeper{env: e} }

// Keep is a [scrub.Sink].
func (k *Keeper) Keep(ctx context.Context, r io.Reader, h scrub.Hint) (string, error) {
	if k.env.Artifacts == nil || k.env.Workspace == nil {
		return scrub.Describe(ctx, r, h)
	}
	staged, err := k.env.Artifacts.Uploads.Stage(ctx, r, HintOf(h))
	if err != nil {
		return "", err
	}
	a, err := k.Add(ctx, staged)
	return a.MediaPart().Ref.String(), err
}

// Add makes an artifact of staged bytes.
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

// Text replaces the media in a text by refs.
func (k *Keeper) Text(ctx context.Context, text string) (string, error) {
	return scrub.Text(ctx, text, k.Keep)
}

// HintOf converts the facts that the text around media gives about them into a
// hint for detecting their type.
func HintOf(h scrub.Hint) media.Hint {
	declared := h.MediaType
	if strings.HasSuffix(declared, "/*") {
		declared = ""
	}
	return media.Hint{DeclaredType: declared, Filename: h.Filename}
}

// parts returns the stored media as parts of a result. Texts are left out,
// because the model can read them.
func (k *Keeper) parts() artel.Parts {
	var parts artel.Parts
	for _, a := range k.kept {
		if a.Binary {
			parts = append(parts, a.MediaPart())
		}
	}
	return parts
}

// finishResult makes the result of a tool storable: media become artifacts, a
// text that is too long becomes one with a preview, and the metadata describe
// the result.
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

// Finish adds the media of k and the metadata to a result whose texts have
// passed through k, and offloads a text that is too long.
func (k *Keeper) Finish(ctx context.Context, r Result) (Result, error) {
	r.Parts = append(r.Parts, k.parts()...)
	if len(k.kept) > 0 {
		r.Metadata = withMedia(r, k.kept)
	}
	if k.env.Shown.Exceeded(r.Content) {
		return k.env.offload(ctx, r)
	}
	r.Metadata = withContentType(r)
	return r, nil
}
