// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/picture"
)

// Files are the use cases of bytes by ref.
type Files struct {
	core       *core
	signer     signer
	publicBase string
}

// FileOptions are how files leave by other ways than the API itself, how long
// they stay, and when texts become files.
type FileOptions struct {
	// Key signs addresses. With it, addresses for every file can be made. nil: a
	// key of this process, so that no address outlives it.
	Key []byte

	// PublicBase is the address of a CDN, or another way in, that takes what it has not from
	// [tool.ToolResultsURL] of this server; "": there is none. See [Files.Elsewhere].
	PublicBase string

	// Retention is how long the results of tools stay that nothing refers to;
	// 0: DefaultRetention, negative: for ever.
	Retention time.Duration

	// Alone returns an error if another database may refer to the bytes; then none
	// are removed. nil: no other does.
	Alone func() error

	// Shown is how much of a tool's result events and models are shown; the
	// whole of a longer one is kept as an artifact.
	Shown tool.Shown

	// Held knows which bytes model services hold; nil: none do.
	Held Held
}

// Held knows which bytes model services hold, and has them deleted there.
type Held interface {
	// Drop says that bytes were deleted here. It does not wait for anybody.
	Drop(digests ...artel.Digest)
	// Digests are those of all bytes that services hold.
	Digests() []artel.Digest
}

// nobody holds anything.
type noHeld struct{}

// Drop implements [Held].
func (noHeld) Drop(...artel.Digest) {}

// Digests implements [Held].
func (noHeld) Digests() []artel.Digest { return nil }

// A File is some bytes and what a face needs to serve them. The caller closes
// Content.
type File struct {
	Content   artifact.Content
	Info      artel.MediaInfo
	Digest    artel.Digest
	Filename  string
	Modified  time.Time
	Immutable bool // the ref that led here can never mean other bytes

	owner artel.Owner

	// Signed is how long the signature that opened it still holds; 0: none
	// did.
	Signed time.Duration
}

// Open returns what a ref points to: the long form of an artifact, or a blob
// that is a version of the owner's, or was left by a request of theirs to the
// gateway. Anything else is not found. What a ref is
// made of is only ever compared with ids and digests, and never part of a path.
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
		if at, err = fs.core.branch(ctx, r.Conversation, ""); err != nil {
			return File{}, err
		}
	}
	content, err := fs.core.open(ctx, r, at)
	if err != nil {
		return File{}, err
	}
	return fileOf(ctx, content, string(r.Artifact), r.Immutable()), nil
}

// OpenNamed is Open for a name under [tool.ToolResultsURL]: the hexadecimal digits
// of a digest and an extension, which says nothing and may be any.
func (fs *Files) OpenNamed(ctx context.Context, name string) (File, error) {
	d, err := namedDigest(name)
	if err != nil {
		return File{}, err
	}
	return fs.Open(ctx, artel.BlobRef(d).String())
}

// namedDigest reads a name that [tool.FileName] could have made.
func namedDigest(name string) (artel.Digest, error) {
	digits, ext, dotted := strings.Cut(name, ".")
	d, err := artel.ParseDigest("sha256-" + digits)
	if err != nil || dotted && (ext == "" || len(ext) > 16 || strings.Trim(ext, "abcdefghijklmnopqrstuvwxyz0123456789") != "") {
		return "", &artel.Error{
			Op: "app.Files.OpenNamed", Subject: artel.Shorten(strings.ToValidUTF8(name, "\uFFFD"), 120), Kind: artel.NotFound, Code: artel.CodeArtifactNotFound,
			Err: artel.Errorf(artel.NotFound, "", "", "want the 64 hexadecimal digits of a SHA-256 and an extension"),
		}
	}
	return d, nil
}

// FileURL is the path under which a face serves what ref points to. The same
// ref always has the same one, byte for byte, so that what a model is shown
// does not change from call to call.
func FileURL(ref artel.Ref) string { return tool.FileURL(ref) }

// FilesURL is what every [FileURL] begins with.
const FilesURL = tool.FilesURL

// ContentType says how a page shows bytes; see [tool.ContentType].
func ContentType(m artel.MediaInfo) string { return tool.ContentType(m) }

// Extension is the usual one of a media type, with its dot; "": it has none.
func Extension(mediaType string) string { return media.Extension(mediaType) }

// Reducible reports whether smaller pictures are made of those of a type; see
// [Files.Thumbnail].
func Reducible(mediaType string) bool { return picture.Supports(mediaType) }

// MaxPixels is how many pixels a picture may have of which smaller ones are made.
const MaxPixels = picture.MaxPixels

func fileOf(ctx context.Context, c artifact.Content, id string, immutable bool) File {
	v := c.Version
	name := v.Filename
	if name == "" {
		name = id
	}
	return File{Content: c, Info: v.MediaInfo, Digest: v.Digest, Filename: name, Modified: v.CreatedAt, Immutable: immutable, owner: artel.OwnerOf(ctx)}
}
