// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/artelhq/artel"
)

// measureBudget bounds what Measure reads, so that damaged or hostile bytes
// cost a bounded amount of work.
const measureBudget = 64 << 20

// Measure fills in width and height of images (as stored, before any turn that
// EXIF asks for), pages of PDF, and the duration of WAV, FLAC, MP3 and MP4,
// reading as little of r as does. What cannot be measured stays zero. It never
// fails, decodes no pixel, and stops when ctx ends. r holds info.Size bytes.
func Measure(ctx context.Context, info artel.MediaInfo, r io.ReaderAt) (measured artel.MediaInfo) {
	measured = info
	defer func() {
		// The decoders read what anybody may have sent. None is known to
		// panic, and none may take the server down.
		if recover() != nil {
			measured = info
		}
	}()
	src := io.NewSectionReader(&boundedReader{ctx, r, measureBudget}, 0, info.Size)
	switch info.Kind {
	case artel.KindImage:
		measured.Width, measured.Height = imageSize(info.MediaType, src)
	case artel.KindDocument:
		if info.MediaType == "application/pdf" {
			measured.Pages = pdfPages(src)
		}
	case artel.KindAudio, artel.KindVideo:
		if d := duration(info.MediaType, src); d > 0 && !math.IsInf(d, 0) {
			measured.Duration = math.Round(d*1000) / 1000
		}
	}
	return measured
}

// A boundedReader stops at the end of its context or budget. It lives for one
// call.
type boundedReader struct {
	ctx  context.Context
	r    io.ReaderAt
	left int64
}

func (b *boundedReader) ReadAt(p []byte, off int64) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return b.r.ReadAt(p, off)
}

func imageSize(mediaType string, src *io.SectionReader) (width, height int) {
	var decode func(io.Reader) (image.Config, error)
	switch mediaType {
	case "image/png":
		decode = png.DecodeConfig
	case "image/jpeg":
		decode = jpeg.DecodeConfig
	case "image/gif":
		decode = gif.DecodeConfig
	case "image/webp":
		decode = webp.DecodeConfig
	case "image/bmp":
		decode = bmp.DecodeConfig
	case "image/tiff":
		decode = tiff.DecodeConfig
	default:
		return 0, 0
	}
	c, err := decode(src)
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return 0, 0
	}
	return c.Width, c.Height
}

// duration returns seconds, or 0.
func duration(mediaType string, src *io.SectionReader) float64 {
	switch mediaType {
	case "audio/wav":
		return wavDuration(src)
	case "audio/flac":
		return flacDuration(src)
	case "audio/mpeg":
		return mp3Duration(src)
	case "video/mp4", "audio/mp4", "video/quicktime", "video/3gpp", "video/3gpp2":
		return mp4Duration(src, 0, src.Size(), 0)
	}
	return 0
}

// wavDuration walks the chunks of RIFF to "fmt " and "data".
func wavDuration(src *io.SectionReader) float64 {
	var rate uint32
	for at, n := int64(12), 0; n < 64; n++ {
		var h [24]byte
		got, _ := src.ReadAt(h[:], at)
		if got < 8 {
			return 0
		}
		size := int64(binary.LittleEndian.Uint32(h[4:]))
		switch string(h[:4]) {
		case "fmt ":
			rate = binary.LittleEndian.Uint32(h[16:]) // bytes per second
		case "data":
			if rate == 0 {
				return 0
			}
			// Recorders that cannot seek leave the length at its maximum.
			return float64(min(size, src.Size()-at-8)) / float64(rate)
		}
		at += 8 + size + size&1
	}
	return 0
}

// flacDuration reads STREAMINFO, which comes first (RFC 9639 §8.2).
func flacDuration(src *io.SectionReader) float64 {
	var h [26]byte
	if _, err := src.ReadAt(h[:], 0); err != nil || h[4]&0x7F != 0 {
		return 0
	}
	v := binary.BigEndian.Uint64(h[18:]) // 20 bits rate, 3 channels, 5 depth, 36 samples
	rate := v >> 44
	if rate == 0 {
		return 0
	}
	return float64(v&(1<<36-1)) / float64(rate)
}

// mp3Duration trusts the frame count of a Xing or Info header, else takes the
// first frame's bit rate for that of the whole file.
func mp3Duration(src *io.SectionReader) float64 {
	var h [10]byte
	if _, err := src.ReadAt(h[:], 0); err != nil {
		return 0
	}
	at := int64(0)
	if string(h[:3]) == "ID3" { // its size has seven bits per byte
		at = 10 + (int64(h[6]&0x7F)<<21 | int64(h[7]&0x7F)<<14 | int64(h[8]&0x7F)<<7 | int64(h[9]&0x7F))
	}
	var frame [256]byte
	got, _ := src.ReadAt(frame[:], at)
	if got < 64 || frame[0] != 0xFF || frame[1]&0xE6 != 0xE2 { // sync and layer III
		return 0
	}
	version := frame[1] >> 3 & 3 // 3: MPEG 1, 2: MPEG 2, 0: MPEG 2.5
	kbits := [...]int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0}
	rates := [...]int{44100, 48000, 32000, 0}
	samples, divisor := 1152.0, 1
	if version != 3 {
		kbits = [...]int{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0}
		samples, divisor = 576, 2
		if version == 0 {
			divisor = 4
		}
	}
	kbit, rate := kbits[frame[2]>>4], rates[frame[2]>>2&3]/divisor
	if kbit == 0 || rate == 0 || version == 1 {
		return 0
	}
	for _, tag := range [...]string{"Xing", "Info"} {
		i := bytes.Index(frame[:48], []byte(tag))
		if i >= 0 && frame[i+7]&1 != 0 {
			return float64(binary.BigEndian.Uint32(frame[i+8:])) * samples / float64(rate)
		}
	}
	return float64(src.Size()-at) * 8 / float64(kbit*1000)
}

// mp4Duration finds moov/mvhd (ISO/IEC 14496-12 §8.2.2).
func mp4Duration(src *io.SectionReader, at, end int64, depth int) float64 {
	for n := 0; n < 256 && at+8 <= end; n++ {
		var h [40]byte
		got, _ := src.ReadAt(h[:], at)
		if got < 16 {
			return 0
		}
		size, body := int64(binary.BigEndian.Uint32(h[:])), int64(8)
		switch size {
		case 0:
			size = end - at
		case 1:
			size, body = int64(binary.BigEndian.Uint64(h[8:])), 16
		}
		if size < body || size > end-at {
			return 0
		}
		switch kind := string(h[4:8]); {
		case kind == "moov" && depth == 0:
			return mp4Duration(src, at+body, at+size, 1)
		case kind == "mvhd" && depth == 1 && got == len(h):
			scale, length := binary.BigEndian.Uint32(h[20:]), uint64(binary.BigEndian.Uint32(h[24:]))
			if h[8] == 1 { // 64-bit times
				scale, length = binary.BigEndian.Uint32(h[28:]), binary.BigEndian.Uint64(h[32:])
			}
			if scale == 0 {
				return 0
			}
			return float64(length) / float64(scale)
		}
		at += size
	}
	return 0
}
