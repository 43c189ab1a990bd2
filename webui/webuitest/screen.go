// SPDX-License-Identifier: Apache-2.0

package webuitest

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"slices"
)

// Small writes a picture with at most 256 of its colors: pages have few.
func Small(raw []byte) ([]byte, error) {
	src, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	rgba := image.NewRGBA(src.Bounds())
	draw.Draw(rgba, rgba.Bounds(), src, src.Bounds().Min, draw.Src)
	count := map[[3]uint8]int{}
	for i := 0; i < len(rgba.Pix); i += 4 {
		count[[3]uint8(rgba.Pix[i:])]++
	}
	most := slices.SortedFunc(maps.Keys(count), func(a, b [3]uint8) int { return count[b] - count[a] })
	var palette color.Palette
	taken := map[[3]uint8]bool{}
	for _, apart := range []int{60, 36, 20, 10, 0} { // also those that are rare, when nothing is like them
		for _, c := range most {
			if len(palette) < 256 && !taken[c] && !slices.ContainsFunc(palette, func(p color.Color) bool { return distance(p, c) < apart }) {
				palette, taken[c] = append(palette, color.RGBA{c[0], c[1], c[2], 255}), true
			}
		}
	}
	index := map[[3]uint8]uint8{}
	for _, c := range most {
		index[c] = uint8(palette.Index(color.RGBA{c[0], c[1], c[2], 255}))
	}
	dst := image.NewPaletted(rgba.Bounds(), palette)
	for i := range dst.Pix {
		dst.Pix[i] = index[[3]uint8(rgba.Pix[i*4:])]
	}
	var buf bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&buf, dst); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// distance says how different two colors are, from 0 to 765.
func distance(a color.Color, b [3]uint8) int {
	c := a.(color.RGBA)
	far := func(x, y uint8) int { return max(int(x), int(y)) - min(int(x), int(y)) }
	return far(c.R, b[0]) + far(c.G, b[1]) + far(c.B, b[2])
}
