// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/store"
)

// A Candidate is a file that somebody may send: what is known of it before its
// bytes are.
type Candidate struct {
	Filename     string
	DeclaredType string // as a browser states it; empty: nothing is claimed
	Size         int64  // bytes of the whole file
	Head         []byte // its first bytes; more than [MaxHead] are not looked at
}

// MaxHead is how much of a [Candidate] is looked at, in bytes.
const MaxHead = 64 << 10

// Info returns what the file is by its first bytes.
func (f Candidate) Info() artel.MediaInfo {
	info := media.Detect(f.Head[:min(len(f.Head), MaxHead)], media.Hint{DeclaredType: f.DeclaredType, Filename: f.Filename})
	info.Size = max(f.Size, int64(len(f.Head)))
	return info
}

// chosenFiles are files that somebody has chosen for a message, as artifacts
// that there are not yet, before all others.
type chosenFiles struct {
	pipeline.Sources
	files inlineFiles
	parts artel.Parts
	cut   map[artel.ArtifactID]bool // those of which only the head is known
}

// choosing makes parts of files, with the ids that they would get.
func (k *Config) choosing(ctx context.Context, tx store.Tx, c artel.ConversationID, files []Candidate) (*chosenFiles, error) {
	out := &chosenFiles{cut: map[artel.ArtifactID]bool{}}
	for _, f := range files {
		head := f.Head[:min(len(f.Head), MaxHead)]
		whole := f.Size <= int64(len(head))
		name := strings.ToValidUTF8(f.Filename, "\uFFFD")
		info := media.Detect(head, media.Hint{DeclaredType: f.DeclaredType, Filename: name})
		if info.Size = max(f.Size, int64(len(head))); !whole && !info.IsBinary() {
			head = []byte(strings.ToValidUTF8(string(head), "")) // a character may be cut
		}
		info = media.Measure(ctx, info, bytes.NewReader(head))
		id, err := artifact.FreeID(name, func(id artel.ArtifactID) (bool, error) {
			if c == "" || out.files.taken(artel.Ref{Artifact: id}) {
				return out.files.taken(artel.Ref{Artifact: id}), nil
			}
			return tx.Artifacts.Exists(c, id)
		})
		if err != nil {
			return nil, err
		}
		v := artel.Version{Number: 1, Filename: name, MediaInfo: info, InBlob: true}
		if whole { // from where other forms of it are made
			kept, err := k.Blobs.Put(ctx, bytes.NewReader(head), 0)
			if err != nil {
				return nil, err
			}
			v.Digest = kept.Digest
		}
		out.cut[id] = !whole
		ref := artel.Ref{Conversation: c, Artifact: id}
		out.files.list = append(out.files.list, inlineFile{ref, v, head})
		out.parts = append(out.parts, artel.Media{
			Ref: artel.Ref{Artifact: id, Version: 1}, MediaType: info.MediaType, Kind: info.Kind, Filename: name, Size: info.Size,
			Width: info.Width, Height: info.Height, Pages: info.Pages, Duration: info.Duration,
		})
	}
	return out, nil
}

// partly reports whether only the head is known of what ref leads to.
func (c *chosenFiles) partly(ref artel.Ref) bool { return c.cut[ref.Artifact] }

// Overview implements [pipeline.Sources]: a conversation that there is not yet
// has nothing to tell.
func (c *chosenFiles) Overview(ctx context.Context, o artel.Owner, id artel.ConversationID, at artel.MessageID, preview int) (artifact.Overview, error) {
	if id == "" {
		return artifact.Overview{}, nil
	}
	return c.Sources.Overview(ctx, o, id, at, preview)
}

// Open implements [pipeline.Sources].
func (c *chosenFiles) Open(ctx context.Context, o artel.Owner, ref artel.Ref, at artel.MessageID) (artifact.Content, error) {
	content, err := c.files.Open(ctx, o, ref, at)
	if errors.Is(err, artel.NotFound) {
		return c.Sources.Open(ctx, o, ref, at)
	}
	return content, err
}

// Derived implements [pipeline.Sources].
func (c *chosenFiles) Derived(ctx context.Context, o artel.Owner, ref artel.Ref, at artel.MessageID) (artifact.Derived, error) {
	if _, err := c.files.find(ref); err == nil {
		return c.files.Derived(ctx, o, ref, at)
	}
	return c.Sources.Derived(ctx, o, ref, at)
}
