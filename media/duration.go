// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
)

// firstPart is how many bytes of a file are searched for early structures.
const firstPart = 64 << 10

// duration returns seconds, or 0.
func duration(mediaType string, src *io.SectionReader) float64 {
	switch mediaType {
	case "audio/wav":
		return wavDuration(src)
	case "audio/aiff":
		return aiffDuration(src)
	case "audio/basic":
		return auDuration(src)
	case "audio/x-caf":
		return cafDuration(src)
	case "audio/flac":
		return flacDuration(src)
	case "audio/mpeg":
		return mp3Duration(src)
	case "audio/aac":
		return aacDuration(src)
	case "audio/amr", "audio/amr-wb":
		return amrDuration(mediaType, src)
	case "audio/ogg", "video/ogg", "application/ogg":
		return oggDuration(src)
	case "video/mp4", "audio/mp4", "video/quicktime", "video/3gpp", "video/3gpp2", "audio/3gpp", "audio/3gpp2":
		return mp4Duration(src)
	case "video/webm", "audio/webm", "video/x-matroska", "audio/x-matroska":
		h := readMatroska(headOf(src, firstPart))
		return h.duration * float64(h.scale) / 1e9
	case "video/x-ms-asf", "audio/x-ms-wma":
		return asfDuration(headOf(src, firstPart))
	case "video/x-msvideo":
		return aviDuration(headOf(src, 56))
	case "video/x-flv":
		return flvDuration(headOf(src, 4<<10))
	}
	return 0
}

// wavDuration walks the chunks of RIFF to "fmt " and "data".
func wavDuration(src *io.SectionReader) float64 {
	var rate uint32
	var long int64 // the length that 32 bits do not hold
	for at, n := int64(12), 0; n < 64; n++ {
		var h [24]byte
		got, _ := src.ReadAt(h[:], at)
		if got < 8 {
			return 0
		}
		size := int64(binary.LittleEndian.Uint32(h[4:]))
		switch string(h[:4]) {
		case "ds64":
			long = int64(binary.LittleEndian.Uint64(h[16:]))
		case "fmt ":
			rate = binary.LittleEndian.Uint32(h[16:]) // bytes per second
		case "data":
			if rate == 0 {
				return 0
			}
			if size == math.MaxUint32 && long > 0 {
				size = long
			}
			// Recorders that cannot seek leave the length at its maximum.
			return float64(min(size, src.Size()-at-8)) / float64(rate)
		}
		at += 8 + size + size&1
	}
	return 0
}

// aiffDuration reads the chunk that counts the frames.
func aiffDuration(src *io.SectionReader) float64 {
	for at, n := int64(12), 0; n < 64; n++ {
		var h [26]byte
		if got, _ := src.ReadAt(h[:], at); got < 8 {
			return 0
		}
		size := int64(binary.BigEndian.Uint32(h[4:]))
		if string(h[:4]) == "COMM" {
			// The rate is a float of 80 bits: exponent, then a mantissa of 64.
			exponent := int(binary.BigEndian.Uint16(h[16:])&0x7FFF) - 16383 - 63
			rate := math.Ldexp(float64(binary.BigEndian.Uint64(h[18:])), exponent)
			if rate <= 0 {
				return 0
			}
			return float64(binary.BigEndian.Uint32(h[10:])) / rate
		}
		at += 8 + size + size&1
	}
	return 0
}

// auDuration supports linear PCM, floats and the telephone encodings.
func auDuration(src *io.SectionReader) float64 {
	h := headOf(src, 24)
	if len(h) < 24 {
		return 0
	}
	number := func(i int) int64 { return int64(binary.BigEndian.Uint32(h[4*i:])) }
	width := int64(0)
	switch number(3) {
	case 1, 2, 27:
		width = 1
	case 3:
		width = 2
	case 4:
		width = 3
	case 5, 6:
		width = 4
	case 7:
		width = 8
	}
	perSecond := width * number(4) * number(5)
	if perSecond <= 0 || number(1) > src.Size() {
		return 0
	}
	return float64(min(number(2), src.Size()-number(1))) / float64(perSecond)
}

// cafDuration divides the size of the data by the rate of linear PCM; for other
// encodings it reads the number of frames in the packets.
func cafDuration(src *io.SectionReader) float64 {
	var rate, perPacket, frames float64
	for at, n := int64(8), 0; n < 64; n++ {
		var h [44]byte
		if got, _ := src.ReadAt(h[:], at); got < 12 {
			return 0
		}
		size := int64(binary.BigEndian.Uint64(h[4:]))
		switch string(h[:4]) {
		case "desc":
			rate = math.Float64frombits(binary.BigEndian.Uint64(h[12:]))
			perPacket = float64(binary.BigEndian.Uint32(h[28:]))
			frames = float64(binary.BigEndian.Uint32(h[32:]))
		case "pakt":
			if rate > 0 {
				return float64(int64(binary.BigEndian.Uint64(h[20:]))) / rate
			}
		case "data":
			if left := src.Size() - at - 12; size < 0 || size > left {
				size = left
			}
			if rate > 0 && perPacket > 0 {
				return float64(size-4) / perPacket * frames / rate
			}
		}
		if size < 0 || size > src.Size() {
			return 0
		}
		at += 12 + size
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

// mp3Duration uses the frame count of a Xing or Info header, or else the bit rate of
// the first frame for the whole file.
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

// aacDuration extrapolates from the samples of the first frames.
func aacDuration(src *io.SectionReader) float64 {
	rates := [...]int{96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350, 0, 0, 0}
	b := headOf(src, 4*firstPart)
	at, frames, rate := 0, 0, 0
	for at+7 <= len(b) && b[at] == 0xFF && b[at+1]&0xF6 == 0xF0 {
		size := int(b[at+3]&3)<<11 | int(b[at+4])<<3 | int(b[at+5])>>5
		if size < 7 {
			break
		}
		rate = rates[b[at+2]>>2&15]
		frames += int(b[at+6]&3) + 1
		at += size
	}
	if frames == 0 || rate == 0 {
		return 0
	}
	return float64(frames) * 1024 / float64(rate) * float64(src.Size()) / float64(at)
}

// amrDuration counts frames of 20 ms; for a long recording it extrapolates from the
// first frames.
func amrDuration(mediaType string, src *io.SectionReader) float64 {
	sizes, mark := [16]int{13, 14, 16, 18, 20, 21, 27, 32, 6, 0, 0, 0, 0, 0, 0, 1}, len("#!AMR\n")
	if mediaType == "audio/amr-wb" {
		sizes, mark = [16]int{18, 24, 33, 37, 41, 47, 51, 59, 61, 6, 0, 0, 0, 0, 1, 1}, len("#!AMR-WB\n")
	}
	b := headOf(src, 4*firstPart)
	at, frames := mark, 0
	for at < len(b) {
		size := sizes[b[at]>>3&15]
		if size == 0 {
			break
		}
		at += size
		frames++
	}
	if frames == 0 {
		return 0
	}
	return float64(frames) * 0.02 * float64(src.Size()-int64(mark)) / float64(at-mark)
}

// mp4Duration finds moov/mvhd (ISO/IEC 14496-12 §8.2.2).
func mp4Duration(src *io.SectionReader) (seconds float64) {
	left := mostBoxes
	boxes(src, 0, src.Size(), &left, func(kind string, at, end int64) bool {
		if kind != "moov" {
			return true
		}
		boxes(src, at, end, &left, func(kind string, at, _ int64) bool {
			if kind != "mvhd" {
				return true
			}
			var h [32]byte
			if got, _ := src.ReadAt(h[:], at); got < len(h) {
				return false
			}
			scale, length := binary.BigEndian.Uint32(h[12:]), uint64(binary.BigEndian.Uint32(h[16:]))
			if h[0] == 1 { // 64-bit times
				scale, length = binary.BigEndian.Uint32(h[20:]), binary.BigEndian.Uint64(h[24:])
			}
			if scale > 0 {
				seconds = float64(length) / float64(scale)
			}
			return false
		})
		return false
	})
	return seconds
}

// asfDuration reads the file properties (ASF §3.2): the time to play, in units
// of 100 ns, and how much of it only fills buffers, in milliseconds.
func asfDuration(head []byte) float64 {
	const properties = "\xA1\xDC\xAB\x8C\x47\xA9\xCF\x11\x8E\xE4\x00\xC0\x0C\x20\x53\x65"
	i := bytes.Index(head, []byte(properties))
	if i < 0 || len(head) < i+88 {
		return 0
	}
	play, fill := binary.LittleEndian.Uint64(head[i+64:]), binary.LittleEndian.Uint64(head[i+80:])
	return float64(play)/1e7 - float64(fill)/1e3
}

// aviDuration reads the main header, which comes first.
func aviDuration(head []byte) float64 {
	if len(head) < 52 || string(head[24:28]) != "avih" {
		return 0
	}
	return float64(binary.LittleEndian.Uint32(head[32:])) * float64(binary.LittleEndian.Uint32(head[48:])) / 1e6
}

// flvDuration reads the duration in the file's metadata.
func flvDuration(head []byte) float64 {
	const name = "\x00\x08duration\x00"
	i := bytes.Index(head, []byte(name))
	if i < 0 || len(head) < i+len(name)+8 {
		return 0
	}
	return bigFloat(head[i+len(name):][:8])
}

// bigFloat reads a float of four or eight bytes.
func bigFloat(b []byte) float64 {
	switch len(b) {
	case 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	case 8:
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}

// An oggStream is one stream of an Ogg file with its time base.
type oggStream struct {
	serial uint32
	rate   float64 // positions per second
	skip   int64   // positions before the beginning
	shift  uint    // of Theora: the bits below count from the last whole picture
}

func (s oggStream) seconds(position int64) float64 {
	if s.shift > 0 {
		position = position>>s.shift + position&(1<<s.shift-1)
	}
	return float64(position-s.skip) / s.rate
}

// oggDuration reads the first pages of the streams and the positions of the last
// ones.
func oggDuration(src *io.SectionReader) (longest float64) {
	var streams []oggStream
	oggPages(headOf(src, firstPart), func(page, content []byte) {
		if page[5]&2 == 0 || len(streams) == 8 {
			return
		}
		if s, ok := newOggStream(content); ok {
			s.serial = binary.LittleEndian.Uint32(page[14:])
			streams = append(streams, s)
		}
	})
	tail := make([]byte, min(firstPart, src.Size()))
	n, _ := src.ReadAt(tail, src.Size()-int64(len(tail)))
	oggPages(tail[:n], func(page, _ []byte) {
		position := int64(binary.LittleEndian.Uint64(page[6:]))
		for _, s := range streams {
			if s.serial == binary.LittleEndian.Uint32(page[14:]) && position > 0 {
				longest = max(longest, s.seconds(position))
			}
		}
	})
	return longest
}

// oggPages yields every page that begins in b (RFC 3533 §6), with the content that b
// holds.
func oggPages(b []byte, visit func(page, content []byte)) {
	for {
		i := bytes.Index(b, []byte("OggS"))
		if i < 0 || len(b) < i+27 {
			return
		}
		b = b[i:]
		if at := 27 + int(b[26]); at <= len(b) && b[4] == 0 {
			visit(b[:27], b[at:])
		}
		b = b[4:]
	}
}

func newOggStream(b []byte) (s oggStream, ok bool) {
	switch {
	case len(b) >= 16 && string(b[:7]) == "\x01vorbis":
		s.rate = float64(binary.LittleEndian.Uint32(b[12:]))
	case len(b) >= 12 && string(b[:8]) == "OpusHead":
		s.rate, s.skip = 48000, int64(binary.LittleEndian.Uint16(b[10:]))
	case len(b) >= 31 && string(b[:5]) == "\x7FFLAC":
		s.rate = float64(binary.BigEndian.Uint32(b[27:]) >> 12)
	case len(b) >= 40 && string(b[:8]) == "Speex   ":
		s.rate = float64(binary.LittleEndian.Uint32(b[36:]))
	case len(b) >= 42 && string(b[:7]) == "\x80theora":
		s.shift = uint(binary.BigEndian.Uint16(b[40:]) >> 5 & 31)
		if per := binary.BigEndian.Uint32(b[26:]); per > 0 {
			s.rate = float64(binary.BigEndian.Uint32(b[22:])) / float64(per)
		}
	}
	return s, s.rate > 0
}
