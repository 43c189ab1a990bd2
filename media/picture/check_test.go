// SPDX-License-Identifier: Apache-2.0

package picture_test

import (
	"bytes"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/picture"
)

// TestCheck: pictures are whole with anything after their end, and damaged without it.
func TestCheck(t *testing.T) {
	t.Parallel()
	img := image.NewGray(image.Rect(0, 0, 200, 150))
	for i := range img.Pix {
		img.Pix[i] = byte(i * i)
	}
	whole := map[string][]byte{"webp": append([]byte("RIFF\x1e\x00\x00\x00WEBPVP8L\x11\x00\x00\x00\x2f"), make([]byte, 17)...)}
	for name, encode := range map[string]func(*bytes.Buffer) error{
		"png":  func(b *bytes.Buffer) error { return png.Encode(b, img) },
		"jpeg": func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) },
		"gif":  func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		whole[name] = b.Bytes()
	}
	check := func(b []byte) error { return picture.Check(t.Context(), bytes.NewReader(b), int64(len(b))) }
	for name, b := range whole {
		if err := check(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, n := range []int{1, 100, 70_000, 200_000} {
			if err := check(append(bytes.Clone(b), make([]byte, n)...)); err != nil {
				t.Errorf("%s with %d bytes after it: %v", name, n, err)
			}
		}
		if err := check(b[:11]); !errors.Is(err, artel.Invalid) && !errors.Is(err, artel.Unsupported) {
			t.Errorf("the head of %s: %v", name, err)
		}
		if name == "gif" {
			continue // viewers show what is there
		}
		for _, n := range []int{2, len(b) / 3} {
			if err := check(b[:len(b)-n]); !errors.Is(err, artel.Invalid) {
				t.Errorf("%s without its last %d bytes: %v", name, n, err)
			}
		}
	}
}
