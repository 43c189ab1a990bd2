// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/artelhq/artel"
)

// bytes checks the payload of a block, and notes what it is.
func (v *validator) bytes(at, block, mediaType, data string) *APIError {
	types := []string{"application/pdf"}
	if block == "image" {
		types = imageTypes()
	}
	if !slices.Contains(types, mediaType) {
		if block == "image" {
			return Bad(join(at, "media_type"), "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'")
		}
		return Bad(join(at, "media_type"), "Input should be 'application/pdf'")
	}
	m := v.request.Extraction().Base64(data)
	switch {
	case m.Bad:
		return Bad(join(at, "data"), "Invalid base64 data")
	case m.Size == 0:
		return Bad(join(at, "data"), "%s cannot be empty", block)
	}
	var info artel.MediaInfo
	if v.rules.Look != nil {
		info, _ = v.rules.Look(m.Digest)
	}
	if block != "image" {
		v.pages += max(info.Pages, 1)
		if info.MediaType != "" && info.MediaType != mediaType {
			return Bad(at, "The PDF specified was not valid.")
		}
		return nil
	}
	switch encoded := (m.Size + 2) / 3 * 4; {
	case encoded > maxImageData:
		return Bad(at, "image exceeds 10 MB maximum: %d bytes > %d bytes", encoded, maxImageData)
	case info.MediaType != "" && info.Kind == artel.KindImage && info.MediaType != mediaType:
		return Bad(at, "The image was specified using the %s media type, but the image appears to be a %s image", mediaType, info.MediaType)
	case info.MediaType != "" && info.Kind != artel.KindImage:
		return Bad("", "Could not process image")
	}
	v.images = append(v.images, pictured{join(at, "data"), info})
	return v.tooMany()
}

// oneMore counts an image that is elsewhere.
func (v *validator) oneMore(string) *APIError {
	v.others++
	return v.tooMany()
}

func (v *validator) tooMany() *APIError {
	if n := len(v.images) + v.others; n > v.rules.Images {
		return Bad("", "messages: too many images and documents: %d + 0 > %d", n, v.rules.Images)
	}
	return nil
}

// media checks the limits that hold for all that is in a request together.
func (v *validator) media(map[string]json.RawMessage) *APIError {
	side, what := maxSide, ""
	if len(v.images)+v.others > manyImages {
		side, what = maxSideOfMany, " for many-image requests"
	}
	for _, p := range v.images {
		if max(p.info.Width, p.info.Height) > side {
			return Bad(p.at, "At least one of the image dimensions exceed max allowed size%s: %d pixels", what, side)
		}
	}
	if v.pages > v.rules.Pages {
		return Bad("", "A maximum of %d PDF pages may be provided.", v.rules.Pages)
	}
	return nil
}
