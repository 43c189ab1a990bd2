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
	presign    bool
}

// FileOptions configure URLs of files, retention, and the size from which text
// becomes a file.
type FileOptions struct {
	// Key signs URLs. nil: a key of this process, so URLs end with it.
	Key []byte

	// PublicBase is the URL of a CDN or proxy in front of [tool.ToolResultsURL] of
	// this server; "": none. See [Files.Elsewhere].
	PublicBase string

	// Presign reads pictures, sound, films and PDFs from presigned URLs, where the
	// store of blobs makes them and PublicBase is empty.
	Presign bool

	// Retention is how long unreferenced tool results are kept; 0: DefaultRetention,
	// negative: no expiry.
	Retention time.Duration

	// Alone returns an error if another database may refer to the bytes; nothing is
	// deleted then. nil: no other database does.
	Alone func() error

	// Shown is the length of a tool result shown in events and to models; a longer
	// one is stored as an artifact.
	Shown tool.Shown

	// ServiceFiles tracks the bytes uploaded to model services; nil: none are.
	ServiceFiles ServiceFiles
}

// ServiceFiles tracks the bytes uploaded to model services and deletes them there.
type ServiceFiles interface {
	// Drop deletes the uploads of bytes that were deleted here, in the background.
	Drop(digests ...artel.Digest)
	// Digests returns the digests of all uploads.
	Digests() []artel.Digest
}

// noServiceFiles is a ServiceFiles without uploads.
type noServiceFiles struct{}

// Drop implements [ServiceFiles].
func (noServiceFiles) Drop(...artel.Digest) {}

// Digests implements [ServiceFiles].
func (noServiceFiles) Digests() []artel.Digest { return nil }

// A File is the content of a ref with the facts needed to serve it. The caller
// closes Content.
type File struct {
	Content   artifact.Content
	Info      artel.MediaInfo
	Digest    artel.Digest
	Filename  string
	Modified  time.Time
	Immutable bool // the ref always means these bytes

	owner artel.Owner

	// Signed is the remaining validity of the signature used; 0: none was used.
	Signed time.Duration
}

// Open returns the content of a ref: the long form of an artifact, or a blob
// that is a version of the owner or belongs to one of the owner's gateway
// requests. Anything else is of kind NotFound. Parts of a ref are only compared
// with ids and digests, never used in a path.
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

// OpenNamed is Open for a name below [tool.ToolResultsURL]: the hexadecimal
// digits of a digest and an arbitrary extension.
func (fs *Files) OpenNamed(ctx context.Context, name string) (File, error) {
	d, err := namedDigest(name)
	if err != nil {
		return File{}, err
	}
	return fs.Open(ctx, artel.BlobRef(d).String())
}

// namedDigest parses a name made by [tool.FileName].
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

// FileURL is the path under which the API serves a ref. It is the same for every
// call, so that model requests do not change between calls.
func FileURL(ref artel.Ref) string { return tool.FileURL(ref) }

// FilesURL is the prefix of every [FileURL].
const FilesURL = tool.FilesURL

// ContentType returns the type with which a page shows bytes; see
// [tool.ContentType].
func ContentType(m artel.MediaInfo) string { return tool.ContentType(m) }

// Extension is the usual extension of a media type, with its dot, or "".
func Extension(mediaType string) string { return media.Extension(mediaType) }

// Reducible reports whether thumbnails are made of pictures of a type; see
// [Files.Thumbnail].
func Reducible(mediaType string) bool { return picture.Supports(mediaType) }

// HasThumbnail reports whether [Files.Thumbnail] can make a small picture of files of a
// type: pictures, and PDFs if their pages can be drawn.
func (fs *Files) HasThumbnail(mediaType string) bool {
	return Reducible(mediaType) || fs.core.renditions.Pages().Of(mediaType)
}

// MaxPixels is the maximum number of pixels of a picture to make thumbnails of.
const MaxPixels = picture.MaxPixels

func fileOf(ctx context.Context, c artifact.Content, id string, immutable bool) File {
	v := c.Version
	name := v.Filename
	if name == "" && id != "" {
		name = media.Filename(id, v.MediaType)
	}
	return File{Content: c, Info: v.MediaInfo, Digest: v.Digest, Filename: name, Modified: v.CreatedAt, Immutable: immutable, owner: artel.OwnerOf(ctx)}
}
