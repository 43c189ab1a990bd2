// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/picture"
)

// PictureForm says what a picture has to be so that a service with these
// capabilities takes it.
func (c Capabilities) PictureForm() picture.Form {
	return picture.Form{
		Side: c.MaxSide.Value, Bytes: c.ItemLimit(),
		Types: slices.DeleteFunc([]string{picture.PNG, picture.JPEG}, func(t string) bool { return !c.Admits(t) }),
	}
}

// Fits reports whether a picture keeps to the limits in bytes and pixels. What
// is not known of it counts as kept to.
func (c Capabilities) Fits(m artel.MediaInfo) bool {
	return within(m.Size, c.ItemLimit()) && within(max(m.Width, m.Height), c.MaxSide.Value)
}

// ForImages returns c as it holds for each image of a request that has so many.
func (c Capabilities) ForImages(images int) Capabilities {
	many, side, now := c.Many.Value, c.MaxSideOfMany.Value, c.MaxSide.Value
	if many > 0 && images > many && side > 0 && (now <= 0 || now > side) {
		c.MaxSide = c.MaxSideOfMany
	}
	return c
}

func within[N int | int64](n, limit N) bool { return limit <= 0 || n <= limit }

// ItemLimit is the most bytes that one media part may have, before it is
// encoded: by the limit on items, and so that it fits into a request with some
// text beside it. 0: not limited.
func (c Capabilities) ItemLimit() int64 {
	limit := c.MaxItemBytes.Value
	if r := c.MaxRequestBytes.Value; r > 0 {
		if fits := max(1, r/10*9/4*3); limit <= 0 || fits < limit {
			return fits
		}
	}
	return limit
}
