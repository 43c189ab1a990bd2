// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
)

// Check reports damage of the picture in size bytes of r that APIs refuse: a header
// that cannot be read, or an end that is missing. It decodes no pixels, and reads the
// headers of chunks, or the last bytes. Errors are those of [Look].
func Check(ctx context.Context, r io.ReaderAt, size int64) error {
	info, err := Look(ctx, r, size)
	if err != nil {
		return err
	}
	src := &source{ctx: ctx, r: r}
	var whole bool
	switch info.MediaType {
	case PNG:
		whole, err = endsPNG(src, size)
	case JPEG:
		whole, err = endsJPEG(src, size)
	case "image/webp":
		var h [8]byte
		_, err = src.ReadAt(h[:], 0)
		whole = int64(binary.LittleEndian.Uint32(h[4:])) <= size-8
	default:
		return nil
	}
	if err == nil && !whole {
		err = errShort
	}
	if err != nil {
		return failed(ctx, src.cause(err))
	}
	return nil
}

// endsPNG reports whether the chunks up to IEND are within size bytes.
func endsPNG(r io.ReaderAt, size int64) (bool, error) {
	for at := int64(8); ; {
		var h [8]byte
		if _, err := r.ReadAt(h[:], at); err != nil {
			if errors.Is(err, io.EOF) {
				return false, nil
			}
			return false, err
		}
		at += 12 + int64(binary.BigEndian.Uint32(h[:]))
		if at > size {
			return false, nil
		}
		if string(h[4:]) == "IEND" {
			return true, nil
		}
	}
}

// jpegTail is how much of a JPEG is read at once, from its end.
const jpegTail = 64 << 10

// endsJPEG reports whether the marker of the end is somewhere in the file. Cameras
// write data after it.
func endsJPEG(r io.ReaderAt, size int64) (bool, error) {
	b := make([]byte, min(jpegTail, size))
	for end := size; end > 1; end -= int64(len(b)) - 1 { // the marker may be across two reads
		part := b[:min(int64(len(b)), end)]
		if _, err := r.ReadAt(part, end-int64(len(part))); err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if bytes.Contains(part, []byte{0xff, 0xd9}) {
			return true, nil
		}
	}
	return false, nil
}
