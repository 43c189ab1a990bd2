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

// A Content reads the original bytes of one version; the caller must close it.
// The bytes of a text written in Artel are its UTF-8.
type Content struct {
	blob.Reader
	Version artel.Version

	// Visible is false if the version is only in the journal.
	Visible bool
}

// Open returns the bytes that ref points to. A ref with a version may name any
// state, so that refs in a conversation never break. A ref without a version
// stands for the newest visible version on the branch that ends in at, or the
// head if no version is visible yet. A ref with a digest stands for any version
// of the owner with these bytes.
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
		// Follow the parents to a visible version.
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

// A textReader reads a text in memory.
type textReader struct{ *strings.Reader }

// Close does nothing: the text is in memory.
func (textReader) Close() error { return nil }

// validInfo reports whether stored media information is plausible.
func validInfo(m artel.MediaInfo) bool {
	switch m.Kind {
	case artel.KindText, artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindDocument, artel.KindArchive, artel.KindOther:
		major, minor, ok := strings.Cut(m.MediaType, "/")
		return ok && major != "" && minor != ""
	}
	return false
}

// repairInfo returns m, or if m is damaged, the information detected from the
// bytes. Bytes detected as text are treated as binary, because their decoding is
// not stored.
func (c *Collection) repairInfo(ctx context.Context, m artel.MediaInfo, d artel.Digest, filename string) artel.MediaInfo {
	if validInfo(m) || d == "" {
		return m
	}
	r, err := c.blobs.Open(ctx, d)
	if err != nil {
		return m // the error is reported when the bytes are opened
	}
	defer r.Close()
	head := make([]byte, 64<<10)
	n, _ := io.ReadFull(r, head) // read errors are reported when the bytes are opened
	info := media.Detect(head[:n], media.Hint{Filename: filename})
	if !info.IsBinary() {
		info = artel.MediaInfo{Kind: artel.KindOther, MediaType: "application/octet-stream"}
	}
	info.Size = r.Size()
	return media.Measure(ctx, info, r)
}
