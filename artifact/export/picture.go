// SPDX-License-Identifier: Apache-2.0

package export

import (
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // read by image.DecodeConfig
	_ "image/jpeg" // read by image.DecodeConfig
	_ "image/png"  // read by image.DecodeConfig
	"io"

	"github.com/yuin/goldmark/ast"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
)

// Limits of the pictures in one file. Pictures beyond them are replaced by their
// alternative text.
const (
	maxPictures     = 500       // different ones
	maxPicture      = 32 << 20  // bytes of one
	maxPictureBytes = 256 << 20 // bytes of all, each counted once
	maxShownBytes   = 512 << 20 // bytes of all, as often as they are shown in HTML
)

// A picture is an artifact shown in the text. Its bytes are not in memory.
type picture struct {
	ref       artel.Ref // pinned, so that it cannot change between two looks
	mediaType string
	size      int64 // bytes
	width     int   // pixels; of those that Word takes
	height    int
	format    string // "png", "jpeg", "gif"
	number    int    // in a DOCX, from 1; 0: not used yet
}

// wordFormats reports whether Word supports a picture, judged by its bytes.
func wordFormats(c artifact.Content, p *picture) bool {
	cfg, format, err := image.DecodeConfig(io.LimitReader(c, maxPicture))
	if err != nil || cfg.Width < 1 || cfg.Height < 1 {
		return false
	}
	switch format {
	case "png", "jpeg", "gif":
		p.width, p.height, p.format = cfg.Width, cfg.Height, format
		return true
	}
	return false // registered by another package of the program
}

// browserFormats reports whether all browsers support a picture. An SVG in an img
// element runs no scripts and fetches nothing.
func browserFormats(_ artifact.Content, p *picture) bool {
	switch p.mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "image/svg+xml":
		return true
	}
	return false
}

// findPictures looks at all pictures of the text that are artifacts, and
// returns those that can be shown by their destinations in the text.
func findPictures(ctx context.Context, d Document, doc ast.Node, takes func(artifact.Content, *picture) bool) (map[string]*picture, error) {
	found := map[string]*picture{}
	if doc == nil || d.Open == nil {
		return found, nil
	}
	var sum int64
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		img, ok := n.(*ast.Image)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		to := string(img.Destination)
		ref, isRef := parseRef(to)
		if _, seen := found[to]; seen || !isRef || len(found) == maxPictures {
			return ast.WalkContinue, nil
		}
		p, err := inspect(ctx, d, ref, takes)
		if err != nil {
			return ast.WalkStop, err
		}
		if p != nil {
			sum += p.size
			if sum > maxPictureBytes {
				p = nil
			}
		}
		found[to] = p
		return ast.WalkContinue, nil
	})
	return found, err
}

// inspect returns the picture of ref, or nil.
func inspect(ctx context.Context, d Document, ref artel.Ref, takes func(artifact.Content, *picture) bool) (*picture, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := d.Open(ctx, ref)
	if errors.Is(err, artel.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	p := &picture{ref: ref, mediaType: c.Version.MediaType, size: c.Size()}
	if !ref.IsBlob() {
		p.ref.Version = c.Version.Number
	}
	if p.size == 0 || p.size > maxPicture || !takes(c, p) {
		return nil, nil
	}
	return p, nil
}

// copy writes the bytes of the picture.
func (p *picture) copy(ctx context.Context, d Document, w io.Writer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := d.Open(ctx, p.ref)
	if err != nil {
		return err
	}
	defer c.Close()
	n, err := io.Copy(w, io.LimitReader(c, p.size+1))
	if err == nil && n != p.size {
		err = artel.Errorf(artel.Internal, "", p.ref.String(), "has %d bytes and had %d a moment ago", n, p.size)
	}
	return err
}

// target is the part of a DOCX that holds the picture, seen from its document.
func (p *picture) target() string { return fmt.Sprintf("media/image%d.%s", p.number, p.format) }

// relation is the id of the relation to it.
func (p *picture) relation() string { return fmt.Sprintf("rImage%d", p.number) }
