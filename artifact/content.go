// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
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

// sound reports whether what a row says of its bytes can be.
func validInfo(m artel.MediaInfo) bool {
	switch m.Kind {
	case artel.KindText, artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindDocument, artel.KindArchive, artel.KindOther:
		major, minor, ok := strings.Cut(m.MediaType, "/")
		return ok && major != "" && minor != ""
	}
	return false
}

// mended returns what is known of the bytes of a version: m, or where the row
// that says so is damaged, what they themselves say. Text that was kept as
// bytes stays bytes: nobody has its decoding.
func (c *Collection) repairInfo(ctx context.Context, m artel.MediaInfo, d artel.Digest, filename string) artel.MediaInfo {
	if validInfo(m) || d == "" {
		return m
	}
	r, err := c.blobs.Open(ctx, d)
	if err != nil {
		return m // whoever wants the bytes is told
	}
	defer r.Close()
	head := make([]byte, 64<<10)
	n, _ := io.ReadFull(r, head) // what cannot be read is told by whoever wants the bytes
	info := media.Detect(head[:n], media.Hint{Filename: filename})
	if !info.IsBinary() {
		info = artel.MediaInfo{Kind: artel.KindOther, MediaType: "application/octet-stream"}
	}
	info.Size = r.Size()
	return media.Measure(ctx, info, r)
}
