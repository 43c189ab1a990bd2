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

// A Candidate is a file that a user may send, before its bytes are known.
type Candidate struct {
	Filename     string
	DeclaredType string // as a browser states it; empty: nothing is claimed
	Size         int64  // bytes of the whole file
	Head         []byte // its first bytes; more than [MaxHead] are not looked at
}

// MaxHead is how many bytes of a [Candidate] are inspected.
const MaxHead = 64 << 10

// Info returns the media type of the file by its first bytes.
func (f Candidate) Info() artel.MediaInfo {
	info := media.Detect(f.Head[:min(len(f.Head), MaxHead)], media.Hint{DeclaredType: f.DeclaredType, Filename: f.Filename})
	info.Size = max(f.Size, int64(len(f.Head)))
	return info
}

// candidateFiles are the sources of a preview: candidates, which are not artifacts
// yet, before the artifacts of the conversation.
type candidateFiles struct {
	pipeline.Sources
	files   inlineFiles
	parts   artel.Parts
	partial map[artel.ArtifactID]bool // artifacts of which only the head is known
}

// stageCandidates makes parts of files, with the ids that they would get.
func (k *Config) stageCandidates(ctx context.Context, tx store.Tx, c artel.ConversationID, files []Candidate) (*candidateFiles, error) {
	out := &candidateFiles{files: inlineFiles{pdf: k.PDF}, partial: map[artel.ArtifactID]bool{}}
	for _, f := range files {
		head := f.Head[:min(len(f.Head), MaxHead)]
		whole := f.Size <= int64(len(head))
		name := strings.ToValidUTF8(f.Filename, "\uFFFD")
		info := media.Detect(head, media.Hint{DeclaredType: f.DeclaredType, Filename: name})
		if info.Size = max(f.Size, int64(len(head))); !whole && !info.IsBinary() {
			head = []byte(strings.ToValidUTF8(string(head), "")) // the last character may be incomplete
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
		if whole { // as a source of renditions
			kept, err := k.Blobs.Put(ctx, bytes.NewReader(head), 0)
			if err != nil {
				return nil, err
			}
			v.Digest = kept.Digest
		}
		out.partial[id] = !whole
		ref := artel.Ref{Conversation: c, Artifact: id}
		out.files.list = append(out.files.list, inlineFile{ref, v, head})
		out.parts = append(out.parts, artel.Media{
			Ref: artel.Ref{Artifact: id, Version: 1}, MediaType: info.MediaType, Kind: info.Kind, Filename: name, Size: info.Size,
			Width: info.Width, Height: info.Height, Pages: info.Pages, Duration: info.Duration,
		})
	}
	return out, nil
}

// isPartial reports whether only the head of an artifact is known.
func (c *candidateFiles) isPartial(ref artel.Ref) bool { return c.partial[ref.Artifact] }

// Overview implements [pipeline.Sources]. It is empty for a conversation that does
// not exist yet.
func (c *candidateFiles) Overview(ctx context.Context, o artel.Owner, id artel.ConversationID, at artel.MessageID, preview int) (artifact.Overview, error) {
	if id == "" {
		return artifact.Overview{}, nil
	}
	return c.Sources.Overview(ctx, o, id, at, preview)
}

// Open implements [pipeline.Sources].
func (c *candidateFiles) Open(ctx context.Context, o artel.Owner, ref artel.Ref, at artel.MessageID) (artifact.Content, error) {
	content, err := c.files.Open(ctx, o, ref, at)
	if errors.Is(err, artel.NotFound) {
		return c.Sources.Open(ctx, o, ref, at)
	}
	return content, err
}

// Derived implements [pipeline.Sources].
func (c *candidateFiles) Derived(ctx context.Context, o artel.Owner, ref artel.Ref, at artel.MessageID) (artifact.Derived, error) {
	if _, err := c.files.find(ref); err == nil {
		return c.files.Derived(ctx, o, ref, at)
	}
	return c.Sources.Derived(ctx, o, ref, at)
}
