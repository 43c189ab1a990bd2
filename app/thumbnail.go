// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model/rendition"
)

// thumbnailSteps are the widths that thumbnails have, in pixels: few, so that
// they are made once for all who ask for about the same.
func thumbnailSteps() []int { return []int{64, 128, 256, 512, MaxThumbnail} }

// MaxThumbnail is the widest thumbnail in pixels.
const MaxThumbnail = 1024

const (
	// highest is how many times higher than wide a thumbnail may be asked to be.
	highest = 4
	// fine is the most bytes of a picture that is its own thumbnail.
	fine = 64 << 10
)

// Thumbnail returns a small picture of a file: a PNG or JPEG of a step at least
// as wide as asked for, without what else was in the file. It is made once, of a
// PDF from its first page. A
// picture that is small itself is returned as it is, and so is SVG, which has
// no size of its own. It takes over file, closes it where it is not returned,
// and keeps what was known of it. What is no picture, or none that can be
// decoded, is of kind Unsupported, and one of too many pixels TooLarge.
func (fs *Files) Thumbnail(ctx context.Context, file File, width int) (File, error) {
	m := file.Info
	step, _ := slices.BinarySearch(thumbnailSteps(), width)
	if width < 1 || width > MaxThumbnail {
		_ = file.Content.Close()
		return File{}, artel.Errorf(artel.Invalid, "app.Files.Thumbnail", "width", "is %d, want 1 to %d pixels", width, MaxThumbnail)
	}
	side := sideOf(m, thumbnailSteps()[step])
	if m.MediaType == "image/svg+xml" || isShown(m.MediaType) && m.Width > 0 && max(m.Width, m.Height) <= side && m.Size <= fine {
		return file, nil
	}
	defer file.Content.Close()
	source := rendition.Source{Digest: file.Digest, MediaInfo: m}
	var r rendition.Rendition
	var err error
	switch {
	case fs.core.renditions.Pages().Of(m.MediaType): // pages are higher than wide
		r, err = fs.core.renditions.Pages().Picture(ctx, file.owner, source, 1, picture.Form{Side: side * 3 / 2})
	case picture.Supports(m.MediaType):
		r, err = fs.core.renditions.Picture(ctx, file.owner, source, picture.Form{Side: side})
	default:
		return File{}, artel.Errorf(artel.Unsupported, "app.Files.Thumbnail", file.Filename,
			"no small picture can be made of %s; ask without width for the file, and for the words of a document at …/artifacts/{id}/text", m.MediaType)
	}
	if artel.KindOf(err) == artel.Invalid { // the file is damaged, not the request
		err = artel.Errorf(artel.Unsupported, "app.Files.Thumbnail", file.Filename, "%w", err)
	}
	if err != nil {
		return File{}, err
	}
	return fs.rendered(ctx, file, r)
}

// sideOf is the longer side of a picture that is to be so wide.
func sideOf(m artel.MediaInfo, width int) int {
	if m.Height <= m.Width || m.Width == 0 {
		return width
	}
	return min(highest*width, (width*m.Height+m.Width-1)/m.Width)
}

// isShown reports whether every browser shows pictures of a type.
func isShown(mediaType string) bool {
	return slices.Contains([]string{picture.PNG, picture.JPEG, "image/gif", "image/webp"}, mediaType)
}

// Fitted returns a picture as a PNG or JPEG of a form, or as it is if every client
// shows its type and it is within the form. It takes over file like
// [Files.Thumbnail], with the same errors.
func Fitted(ctx context.Context, fs *Files, file File, f picture.Form) (File, error) {
	m := file.Info
	if isShown(m.MediaType) && m.Width > 0 && (f.Side == 0 || max(m.Width, m.Height) <= f.Side) && (f.Bytes == 0 || m.Size <= f.Bytes) {
		return file, nil
	}
	defer file.Content.Close()
	if !picture.Supports(m.MediaType) {
		return File{}, artel.Errorf(artel.Unsupported, "app.Fitted", file.Filename, "%s is no picture that can be converted", m.MediaType)
	}
	r, err := fs.core.renditions.Picture(ctx, file.owner, rendition.Source{Digest: file.Digest, MediaInfo: m}, f)
	if artel.KindOf(err) == artel.Invalid { // the file is damaged, not the request
		err = artel.Errorf(artel.Unsupported, "app.Fitted", file.Filename, "%w", err)
	}
	if err != nil {
		return File{}, err
	}
	return fs.rendered(ctx, file, r)
}

// rendered returns file with the bytes of a rendition.
func (fs *Files) rendered(ctx context.Context, file File, r rendition.Rendition) (File, error) {
	b, err := fs.core.renditions.Open(ctx, r.Digest)
	if err != nil {
		return File{}, err
	}
	file.Content = artifact.Content{Reader: b, Version: file.Content.Version, Visible: file.Content.Visible}
	file.Info, file.Digest = r.MediaInfo, r.Digest
	file.Filename = strings.TrimSuffix(file.Filename, path.Ext(file.Filename)) + media.Extension(r.MediaType)
	return file, nil
}
