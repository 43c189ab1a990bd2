// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// Artifacts are the use cases of artifacts outside a run. In methods with a
// message "at", it selects the branch; "" is the active one.
type Artifacts struct{ core *core }

// Versions are the use cases of the versions of artifacts and the edits between
// them.
type Versions struct{ core *core }

// An Upload is one incoming file. Body is read once, to its end.
type Upload struct {
	Body         io.Reader
	Filename     string
	DeclaredType string
}

// Stage stores the bytes of an upload, as a stream, and detects their type.
// Nothing is visible before [Artifacts.Add].
func (as *Artifacts) Stage(ctx context.Context, c artel.ConversationID, u Upload) (artifact.Staged, error) {
	if _, err := as.core.branch(ctx, c, ""); err != nil {
		return artifact.Staged{}, err
	}
	return as.core.artifacts.Uploads.Stage(ctx, u.Body, media.Hint{DeclaredType: u.DeclaredType, Filename: u.Filename})
}

// Add makes artifacts of staged uploads, all or none. They are visible on
// every branch until a message sends them.
func (as *Artifacts) Add(ctx context.Context, c artel.ConversationID, staged []artifact.Staged) ([]artel.Artifact, error) {
	return as.core.artifacts.Uploads.Add(ctx, artel.OwnerOf(ctx), c, staged)
}

// List returns the artifacts of a branch with the edits of an active run, by
// id; deleted ones are left out.
func (as *Artifacts) List(ctx context.Context, c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	at, err := as.core.branch(ctx, c, at)
	if err != nil {
		return nil, err
	}
	return as.core.artifacts.List(ctx, artel.OwnerOf(ctx), c, at)
}

// Find returns the current state of an artifact on a branch, and its text if it
// is text.
func (as *Artifacts) Find(ctx context.Context, c artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, *string, error) {
	at, err := as.core.branch(ctx, c, at)
	if err != nil {
		return artel.Artifact{}, nil, err
	}
	a, err := as.core.artifacts.Get(ctx, artel.OwnerOf(ctx), c, id, at)
	if err != nil || a.Binary {
		return a, nil, err
	}
	text, v, err := as.core.artifacts.Text(ctx, artel.OwnerOf(ctx), c, id, 0, at)
	if err != nil {
		return artel.Artifact{}, nil, err
	}
	if v.Number != a.Version {
		// An edit came in between; the text is the newer state.
		live := a.Live
		a = v.Artifact(c, id, a.CreatedAt)
		a.Live = live
	}
	return a, &text, nil
}

// List returns the visible versions of an artifact, oldest first.
func (vs *Versions) List(ctx context.Context, c artel.ConversationID, id artel.ArtifactID) ([]artel.Version, error) {
	if _, err := vs.core.branch(ctx, c, ""); err != nil {
		return nil, err
	}
	return vs.core.artifacts.Versions.List(ctx, artel.OwnerOf(ctx), c, id)
}

// Find returns one visible version, and its text if it is text.
func (vs *Versions) Find(ctx context.Context, c artel.ConversationID, id artel.ArtifactID, number int) (artel.Version, *string, error) {
	v, err := vs.core.artifacts.Versions.Get(ctx, artel.OwnerOf(ctx), c, id, number)
	if err != nil || v.IsBinary() {
		return v, nil, err
	}
	text, v, err := vs.core.artifacts.Text(ctx, artel.OwnerOf(ctx), c, id, number, "")
	return v, &text, err
}

// Open returns the unchanged bytes of an artifact: of a version, or for 0 of the
// head of a branch without the edits of an active run.
func (as *Artifacts) Open(ctx context.Context, c artel.ConversationID, id artel.ArtifactID, number int, at artel.MessageID) (File, error) {
	at, err := as.core.branch(ctx, c, at)
	if err != nil {
		return File{}, err
	}
	content, err := as.core.artifacts.Open(ctx, artel.OwnerOf(ctx), artel.Ref{Conversation: c, Artifact: id, Version: number}, at)
	if err != nil {
		return File{}, err
	}
	if number > 0 && !content.Visible {
		_ = content.Close()
		return File{}, &artel.Error{
			Op: "app.Artifacts.Open", Subject: string(id), Kind: artel.NotFound, Code: artel.CodeArtifactNotFound,
			Err: fmt.Errorf("version %d is not among the visible ones", number),
		}
	}
	return fileOf(ctx, content, string(id), number > 0), nil
}

// OpenLive is Open including the edits of an active run, and by number any edit.
func (as *Artifacts) OpenLive(ctx context.Context, c artel.ConversationID, id artel.ArtifactID, number int, at artel.MessageID) (File, error) {
	at, err := as.core.branch(ctx, c, at)
	if err != nil {
		return File{}, err
	}
	pinned := number > 0
	if !pinned {
		a, err := as.core.artifacts.Get(ctx, artel.OwnerOf(ctx), c, id, at)
		if err != nil {
			return File{}, err
		}
		number = a.Version
	}
	content, err := as.core.artifacts.Open(ctx, artel.OwnerOf(ctx), artel.Ref{Conversation: c, Artifact: id, Version: number}, at)
	if err != nil {
		return File{}, err
	}
	return fileOf(ctx, content, string(id), pinned), nil
}

// Route returns the form in which a model would get an artifact. The result
// opens the bytes when it is encoded, and only if needed; extraction and
// transcription happen at once.
func (as *Artifacts) Route(ctx context.Context, c artel.ConversationID, id artel.ArtifactID, at artel.MessageID, t Target) (*route.Result, error) {
	a, text, err := as.Find(ctx, c, id, at)
	if err != nil {
		return nil, err
	}
	ref, owner := a.MediaPart().Ref, artel.OwnerOf(ctx)
	makers := as.core.makers(ctx, rendition.Source{Digest: a.Digest, MediaInfo: a.MediaInfo})
	makers.Extract = func() (extract.Extracted, error) {
		d, err := as.core.artifacts.Derived(ctx, owner, ref, at)
		return d.Extracted, err
	}
	url := FileURL(ref)
	if t.Inline {
		url = ""
	}
	return as.core.route(route.Source{
		ID: string(a.ID), Filename: a.Filename, Info: a.MediaInfo, CreatedAt: a.CreatedAt, URL: url, ReadAs: string(a.ID), Makers: makers,
		Text: func() (string, error) { return *text, nil },
		Open: func() (io.ReadCloser, error) { return as.core.artifacts.Open(ctx, owner, ref, at) },
	}, t)
}

// makers makes derived forms of stored bytes; they are cached.
func (k *core) makers(ctx context.Context, s rendition.Source) route.Makers {
	owner := artel.OwnerOf(ctx)
	return route.Makers{
		Transcribe: func(pages int) (string, error) {
			s := s
			s.Pages = pages
			words, err := k.renditions.Words(ctx, owner, s)
			return words.Text, err
		},
		Pages: func(first, last int, f picture.Form) ([]route.Converted, error) {
			all, err := k.renditions.Pages().Pictures(ctx, owner, s, first, last, f)
			out := make([]route.Converted, len(all))
			for i, r := range all {
				out[i] = route.Converted{Info: r.MediaInfo, Open: func() (io.ReadCloser, error) { return k.renditions.Open(ctx, r.Digest) }}
			}
			return out, err
		},
		Convert: func(f picture.Form) (route.Converted, error) {
			r, err := k.renditions.Picture(ctx, owner, s, f)
			return route.Converted{Info: r.MediaInfo, Open: func() (io.ReadCloser, error) { return k.renditions.Open(ctx, r.Digest) }}, err
		},
	}
}

// branch checks that c exists and returns the leaf that at selects.
func (k *core) branch(ctx context.Context, c artel.ConversationID, at artel.MessageID) (artel.MessageID, error) {
	err := k.view(ctx, func(tx store.Tx) error {
		conversation, err := tx.Conversations.Get(c)
		if err != nil {
			return err
		}
		if at == "" {
			at = conversation.Leaf
			return nil
		}
		_, err = run.MessageOf(tx, c, at)
		return err
	})
	return at, err
}

// Text returns the text of an artifact: extracted from a document as Markdown,
// or the text itself. Number 0 is the head of a branch with the edits of an
// active run, any other a visible version. The extraction is not stored with the
// artifact.
func (as *Artifacts) Text(ctx context.Context, c artel.ConversationID, id artel.ArtifactID, number int, at artel.MessageID) (artifact.Derived, error) {
	at, err := as.core.branch(ctx, c, at)
	if err != nil {
		return artifact.Derived{}, err
	}
	d, err := as.core.artifacts.Derived(ctx, artel.OwnerOf(ctx), artel.Ref{Conversation: c, Artifact: id, Version: number}, at)
	if err == nil && number > 0 && !d.Visible {
		err = &artel.Error{
			Op: "app.Artifacts.Text", Subject: string(id), Kind: artel.NotFound, Code: artel.CodeArtifactNotFound,
			Err: fmt.Errorf("version %d is not among the visible ones", number),
		}
	}
	if err != nil {
		return artifact.Derived{}, err
	}
	return d, nil
}
