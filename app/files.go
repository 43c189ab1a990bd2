// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/tool"
)

// Files are the use cases of bytes by ref.
type Files struct{ *core }

// A File is some bytes and what a face needs to serve them. The caller closes
// Content.
type File struct {
	Content   artifact.Content
	Info      artel.MediaInfo
	Digest    artel.Digest
	Filename  string
	Modified  time.Time
	Immutable bool // the ref that led here can never mean other bytes
}

// Open returns what a ref points to: the long form of an artifact, or a blob
// that is a version of the owner's. Anything else is not found.
func (fs *Files) Open(ctx context.Context, ref string) (File, error) {
	r, err := artel.ParseRef(ref)
	if err != nil {
		return File{}, err
	}
	var at artel.MessageID
	if !r.IsBlob() {
		if r.Conversation == "" {
			return File{}, &artel.Error{
				Op: "app.Files.Open", Subject: r.String(), Kind: artel.NotFound, Code: artel.CodeArtifactNotFound,
				Err: artel.Errorf(artel.NotFound, "", "", "outside a conversation a ref names it: artifact:{conversation}/{id}"),
			}
		}
		if at, err = fs.branch(ctx, r.Conversation, ""); err != nil {
			return File{}, err
		}
	}
	content, err := fs.artifacts.Open(ctx, ownerOf(ctx), r, at)
	if err != nil {
		return File{}, err
	}
	return fileOf(content, string(r.Artifact), r.Immutable()), nil
}

// FileURL is the path under which a face serves what ref points to.
func FileURL(ref artel.Ref) string { return tool.FileURL(ref) }

func fileOf(c artifact.Content, id string, immutable bool) File {
	v := c.Version
	name := v.Filename
	if name == "" {
		name = id
	}
	return File{Content: c, Info: v.MediaInfo, Digest: v.Digest, Filename: name, Modified: v.CreatedAt, Immutable: immutable}
}
