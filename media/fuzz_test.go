// SPDX-License-Identifier: Apache-2.0

package media_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// A meter counts what is read of it.
type meter struct {
	r     io.ReaderAt
	calls int
	bytes int64
}

func (m *meter) ReadAt(p []byte, off int64) (int, error) {
	m.calls++
	m.bytes += int64(len(p))
	return m.r.ReadAt(p, off)
}

// measured are the types that Measure reads.
func measured(tb testing.TB) []string {
	types := map[string]bool{}
	for _, f := range corpus(tb).Files {
		if f.Width > 0 || f.Pages > 0 || f.Seconds > 0 {
			types[f.Type] = true
		}
	}
	return slices.Sorted(func(yield func(string) bool) {
		for t := range types {
			if !yield(t) {
				return
			}
		}
	})
}

// costly measures b as if it were of a type, and says what is wrong with the
// answer or its price.
func costly(ctx context.Context, b []byte, mediaType string) (fault string, got artel.MediaInfo) {
	info := artel.MediaInfo{MediaType: mediaType, Kind: media.KindOf(mediaType), Size: int64(len(b))}
	m := &meter{r: bytes.NewReader(b)}
	got = media.Measure(ctx, info, m)
	switch {
	case got.Width < 0 || got.Height < 0 || got.Width > 1<<30 || got.Height > 1<<30 || (got.Width == 0) != (got.Height == 0):
		fault = "a size that nothing has"
	case got.Pages < 0 || got.Duration < 0 || math.IsNaN(got.Duration) || math.IsInf(got.Duration, 0):
		fault = "a length that nothing has"
	case m.bytes > 66<<20 || m.calls > 100_000:
		fault = "it reads too much"
	}
	got.Width, got.Height, got.Pages, got.Duration = 0, 0, 0, 0
	if got != info {
		fault = "something else changed"
	}
	return fault, got
}

// allocated is how many bytes work allocates.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Whatever bytes claim to be, measuring them is survived and costs little.
func FuzzMeasure(f *testing.F) {
	types := measured(f)
	for _, c := range corpus(f).Files {
		if i := slices.Index(types, c.Type); i >= 0 {
			f.Add(sample(f, c.File), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		mediaType := types[int(kind)%len(types)]
		n := allocated(func() {
			if fault, got := costly(t.Context(), b, mediaType); fault != "" {
				t.Errorf("%s: %s: %+v", mediaType, fault, got)
			}
		})
		if n > 16<<20+32*uint64(len(b)) {
			t.Errorf("%s: %d bytes were allocated for %d", mediaType, n, len(b))
		}
	})
}

// Any bytes decode from any charset to valid UTF-8 of a bounded size, and the
// same however they come.
func FuzzDecodeText(f *testing.F) {
	for _, c := range corpus(f).Files {
		if c.Kind == artel.KindText {
			f.Add(sample(f, c.File), c.Charset)
		}
	}
	f.Add([]byte("\x1b$B\x00\x1b(J~"), "hz-gb-2312")
	f.Fuzz(func(t *testing.T, b []byte, charset string) {
		var text string
		var err error
		n := allocated(func() { text, err = media.DecodeText(bytes.NewReader(b), charset) })
		if n > 1<<20+32*uint64(len(b)) {
			t.Errorf("%s: %d bytes were allocated for %d", charset, n, len(b))
		}
		if err != nil {
			if artel.KindOf(err) != artel.Unsupported {
				t.Error(err)
			}
			return
		}
		if !utf8.ValidString(text) || len(text) > 4*len(b)+16 {
			t.Errorf("%d bytes of %s became %d", len(b), charset, len(text))
		}
		slowly, err := media.DecodeText(iotest.OneByteReader(bytes.NewReader(b)), charset)
		if err != nil || slowly != text {
			t.Errorf("%s: byte by byte it is %q, not %q: %v", charset, slowly, text, err)
		}
	})
}

// Hostile files cost neither memory nor time in proportion to what they claim.
func TestHostileFilesAreCheap(t *testing.T) {
	box := func(kind string, size uint32, body string) string {
		return string(binary.BigEndian.AppendUint32(nil, size)) + kind + body
	}
	le := func(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
	hostile := map[string]string{
		"a TIFF with a table of 4 GB":           "II*\x00\x08\x00\x00\x00\xff\xff" + strings.Repeat("\x00\x01\x05\x00\xff\xff\xff\xff\x08\x00\x00\x00", 2000),
		"a TIFF whose tables follow each other": "II*\x00\x08\x00\x00\x00\x00\x00\x08\x00\x00\x00",
		"boxes without content":                 strings.Repeat(box("free", 8, ""), 200_000),
		"boxes in boxes":                        strings.Repeat(box("moov", 0, ""), 200_000),
		"a meta box of 4 GB":                    box("meta", 1, "\x00\x00\x00\x00\xff\xff\xff\xff"),
		"properties without end":                box("meta", 0, "\x00\x00\x00\x00"+box("iprp", 0, box("ipco", 0, strings.Repeat(box("ispe", 8, ""), 200_000)))),
		"RIFF chunks without content":           "RIFF\xff\xff\xff\xffWAVE" + strings.Repeat("junk\x00\x00\x00\x00", 200_000),
		"an AIFF rate beyond all":               "FORM\x00\x00\x00\x00AIFFCOMM\x00\x00\x00\x12\x00\x01\xff\xff\xff\xff\x00\x10\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"EBML in EBML":                          strings.Repeat("\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff", 20_000),
		"EBML elements without content":         "\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff" + strings.Repeat("\xec\x80", 200_000),
		"Ogg pages without content":             strings.Repeat("OggS\x00\x02"+strings.Repeat("\x00", 20)+"\x00", 20_000),
		"an icon of 65,535 entries":             "\x00\x00\x01\x00\xff\xff" + strings.Repeat("\x00", 1<<20),
		"a PNG with a header of 4 GB":           "\x89PNG\r\n\x1a\n\xff\xff\xff\xffIHDR",
		"a PNG of 4 billion pixels a side":      "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\xff\xff\xff\xff\xff\xff\xff\xff\x08\x02\x00\x00\x00\x00\x00\x00\x00",
		"JPEG segments without content":         "\xff\xd8" + strings.Repeat("\xff\xe0\x00\x02", 200_000),
		"GIF of many blocks":                    "GIF89a\x01\x00\x01\x00\x00\x00\x00" + strings.Repeat("!\xfe\x01a", 200_000),
		"a WebP of 4 GB":                        "RIFF\xff\xff\xff\xffWEBPVP8X\xff\xff\xff\xff",
		"an MP3 of headers":                     strings.Repeat("\xff\xfb\x10\x00", 200_000),
		"AAC frames without content":            strings.Repeat("\xff\xf1\x50\x00\x00\xe0\x00", 100_000),
		"an ID3 tag of 256 MB":                  "ID3\x04\x00\x00\x7f\x7f\x7f\x7f",
		"a compound file whose folder is far":   "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00", 22) + "\x09\x00" + strings.Repeat("\x00", 16) + le(0xFFFFFFFE) + strings.Repeat("\xff", 600),
		"a PDF of page trees":                   "%PDF-1.7\n1 0 obj\n" + strings.Repeat("/Type/Pages ", 100_000),
	}
	types := measured(t)
	for name, content := range hostile {
		b := []byte(content)
		got := allocated(func() {
			media.Detect(b, media.Hint{})
			for _, mediaType := range types {
				if fault, got := costly(t.Context(), b, mediaType); fault != "" {
					t.Errorf("%s as %s: %s: %+v", name, mediaType, fault, got)
				}
			}
		})
		if got > 64<<20 {
			t.Errorf("%s: %d bytes were allocated", name, got)
		}
	}
}
