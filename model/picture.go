// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/picture"
)

// PictureForm says what a picture has to be so that a service with these
// capabilities takes it.
func (c Capabilities) PictureForm() picture.Form {
	return picture.Form{
		Side: c.MaxSide.Value, Bytes: c.MaxItemBytes.Value,
		Types: slices.DeleteFunc([]string{picture.PNG, picture.JPEG}, func(t string) bool { return !c.Admits(t) }),
	}
}

// Fits reports whether a picture keeps to the limits in bytes and pixels. What
// is not known of it counts as kept to.
func (c Capabilities) Fits(m artel.MediaInfo) bool {
	return within(m.Size, c.MaxItemBytes.Value) && within(max(m.Width, m.Height), c.MaxSide.Value)
}

func within[N int | int64](n, limit N) bool { return limit <= 0 || n <= limit }
