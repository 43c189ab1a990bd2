// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/store"
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
	if in.Client != nil {
		client, err := k.stageClient(ctx, in.Client, f)
		in.Client = client
		return in, f, err
	}
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

// attach resolves attachments to artifacts that are visible on the branch, or
// were visible to the message that this one replaces. For make see
// [execution.attachedBefore].
func (x *execution) attach(tx store.Tx, c artel.ConversationID, at artel.MessageID, in Input, make bool) ([]artel.Artifact, error) {
	var found []artel.Artifact
	var unread []func(store.Tx) error // of all attachments, so that the update runs again once
	for _, s := range in.Attachments {
		ref, err := artel.ParseRef(s)
		if err == nil && (ref.IsBlob() || ref.Conversation != "" && ref.Conversation != c) {
			err = artel.Errorf(artel.Invalid, "run.Runs.Send", artel.Shorten(s, 120), "an attachment is an artifact of this conversation")
		}
		if err != nil {
			return nil, err
		}
		a, err := tx.Artifacts.Head(c, ref.Artifact, at)
		if err == nil && a.Deleted {
			err = artel.NotFound
		}
		if err == nil && ref.Version > 0 && ref.Version != a.Version {
			a, err = x.pinned(tx, a, ref.Version, at)
		}
		if in.replaces != "" && errors.Is(err, artel.NotFound) {
			a, err = x.attachedBefore(tx, c, ref, in.replaces, make)
		}
		if e, ok := errors.AsType[*unreadError](err); ok {
			unread = append(unread, e.read)
			continue
		}
		if err != nil {
			if errors.Is(err, artel.NotFound) && ref.Version == 0 {
				err = &artel.Error{
					Op: "run.Runs.Send", Subject: artel.Shorten(s, 120), Kind: artel.NotFound, Code: artel.CodeArtifactNotFound,
					Err: errors.New("there is no such artifact on this branch"),
				}
			}
			return nil, err
		}
		found = append(found, a)
	}
	if len(unread) > 0 {
		return nil, &unreadError{func(tx store.Tx) error {
			for _, read := range unread {
				if err := read(tx); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	return found, nil
}

// pinned returns a at a version that is on the branch.
func (x *execution) pinned(tx store.Tx, a artel.Artifact, number int, at artel.MessageID) (artel.Artifact, error) {
	v, err := tx.Versions.Get(a.Conversation, a.ID, number)
	on := err == nil && v.Message == ""
	if err == nil && !on {
		on, err = x.branches.has(tx, a.Conversation, at, v.Message)
	}
	if err != nil && !errors.Is(err, artel.NotFound) {
		return a, err
	}
	if on && v.Update != artel.UpdateDelete {
		return v.Artifact(a.Conversation, a.ID, a.CreatedAt), nil
	}
	a.Ref.Version = number
	return a, &artel.Error{
		Op: "run.Runs.Send", Subject: a.Ref.String(), Kind: artel.NotFound, Code: artel.CodeArtifactNotFound,
		Err: errors.New("there is no such version on this branch"),
	}
}
