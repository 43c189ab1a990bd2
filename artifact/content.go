// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
)

// A Content is the bytes of one version as they came; the caller closes it.
// Of a text that was written here, they are its UTF-8.
type Content struct {
	blob.Reader
	Version artel.Version

	// Visible is false where only the journal has the version.
	Visible bool
}

// Open returns the bytes that ref points to: those of the artifact's version,
// where ref names none those of its newest visible version on the branch that
// ends in at (the head, where none is visible yet), or those with the digest,
// if a version of the owner has them. A pinned version may be any that ever
// was, so that what a conversation holds on to never goes.
func (c *Collection) Open(ctx context.Context, owner artel.Owner, ref artel.Ref, at artel.MessageID) (Content, error) {
	var content Content
	var text string
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		place, visible, err := locate(tx, ref, at)
		if err != nil {
			return err
		}
		content = Content{Version: place.Version, Visible: visible}
		if place.InBlob {
			return nil
		}
		text, err = textOf(tx, place.Conversation, place.Artifact, place.Version)
		return err
	})
	if err != nil {
		return Content{}, failed("artifact.Open", ref.String(), err)
	}
	if !content.Version.InBlob {
		content.Reader = textReader{strings.NewReader(text)}
		return content, nil
	}
	v := &content.Version
	v.MediaInfo = c.repairInfo(ctx, v.MediaInfo, v.Digest, v.Filename)
	content.Reader, err = c.blobs.Open(ctx, v.Digest)
	if err != nil {
		return Content{}, failed("artifact.Open", ref.String(), err)
	}
	return content, nil
}

// locate finds the version that ref points to.
func locate(tx store.Tx, ref artel.Ref, at artel.MessageID) (p store.Place, visible bool, err error) {
	switch {
	case ref.IsBlob():
		p, err = tx.Versions.Find(ref.Digest)
		if errors.Is(err, artel.NotFound) {
			err = missing("no artifact has these bytes")
		}
		return p, true, err
	case ref.Conversation == "" || ref.Artifact == "":
		return p, false, missing("the ref has to name its conversation and artifact")
	}
	p = store.Place{Conversation: ref.Conversation, Artifact: ref.Artifact}
	n := ref.Version
	if n == 0 {
		a, err := head(tx, ref.Conversation, ref.Artifact, at)
		if err != nil {
			return p, false, err
		}
		n = a.Version
	}
	s, err := version(tx, ref.Conversation, ref.Artifact, n)
	if err != nil {
		return p, false, err
	}
	if ref.Version == 0 {
		// Down the branch to what is visible.
		for b := s; !b.visible && b.Parent > 0; {
			if b, err = version(tx, ref.Conversation, ref.Artifact, b.Parent); err != nil {
				return p, false, err
			}
			if b.visible {
				s = b
			}
		}
	}
	p.Version = s.Version
	return p, s.visible, nil
}

// A textReader is a text as content.
type textReader struct{ *strings.Reader }

// Close does nothing: the text is in memory.
func (textReader) Close() error { return nil }
