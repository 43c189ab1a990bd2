// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/artelhq/artel"
	wire "github.com/artelhq/artel/model/provider/anthropic"
)

// bytes checks the payload of a block, and records its info.
func (v *validator) bytes(at, block, mediaType, data string) *wire.APIError {
	types := []string{"application/pdf"}
	if block == "image" {
		types = wire.ImageTypes()
	}
	if !slices.Contains(types, mediaType) {
		if block == "image" {
			return wire.Bad(join(at, "media_type"), "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'")
		}
		return wire.Bad(join(at, "media_type"), "Input should be 'application/pdf'")
	}
	m := v.request.Extraction().Base64(data)
	switch {
	case m.Bad:
		return wire.Bad(join(at, "data"), "Invalid base64 data")
	case m.Size == 0:
		return wire.Bad(join(at, "data"), "%s cannot be empty", block)
	}
	var info artel.MediaInfo
	if v.options.Look != nil {
		info, _ = v.options.Look(m.Digest)
	}
	if block != "image" {
		v.pages += max(info.Pages, 1)
		if info.MediaType != "" && info.MediaType != mediaType {
			return wire.Bad(at, "The PDF specified was not valid.")
		}
		return nil
	}
	switch encoded := (m.Size + 2) / 3 * 4; {
	case encoded > maxImageData:
		return wire.Bad(at, "image exceeds 10 MB maximum: %d bytes > %d bytes", encoded, maxImageData)
	case info.MediaType != "" && info.Kind == artel.KindImage && info.MediaType != mediaType:
		return wire.Bad(at, "The image was specified using the %s media type, but the image appears to be a %s image", mediaType, info.MediaType)
	case info.MediaType != "" && info.Kind != artel.KindImage:
		return wire.Bad("", "Could not process image")
	}
	v.images = append(v.images, pictured{join(at, "data"), info})
	return v.tooMany()
}

// oneMore counts an image by URL or file id.
func (v *validator) oneMore(string) *wire.APIError {
	v.others++
	return v.tooMany()
}

func (v *validator) tooMany() *wire.APIError {
	if n := len(v.images) + v.others; n > v.options.Images {
		return wire.Bad("", "messages: too many images and documents: %d + 0 > %d", n, v.options.Images)
	}
	return nil
}

// media checks the limits of all media together.
func (v *validator) media(map[string]json.RawMessage) *wire.APIError {
	side, what := maxSide, ""
	if len(v.images)+v.others > manyImages {
		side, what = maxSideOfMany, " for many-image requests"
	}
	for _, p := range v.images {
		if max(p.info.Width, p.info.Height) > side {
			return wire.Bad(p.at, "At least one of the image dimensions exceed max allowed size%s: %d pixels", what, side)
		}
	}
	if v.pages > v.options.Pages {
		return wire.Bad("", "A maximum of %d PDF pages may be provided.", v.options.Pages)
	}
	return nil
}
