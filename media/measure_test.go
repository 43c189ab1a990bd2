// SPDX-License-Identifier: Apache-2.0

package media_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/artelhq/artel/media"
)

// Nothing is measured after the end of a context, and a file that was cut
// anywhere is survived.
func TestMeasureEnds(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, f := range corpus(t).Files {
		b := sample(t, f.File)
		info := media.Detect(b, media.Hint{})
		if got := media.Measure(canceled, info, bytes.NewReader(b)); got != info {
			t.Errorf("%s was measured after the end of its context: %+v", f.File, got)
		}
		for n := 0; n < len(b); n += 1 + len(b)/20 {
			cut := media.Detect(b[:n], media.Hint{DeclaredType: info.MediaType})
			media.Measure(t.Context(), cut, bytes.NewReader(b[:n]))
		}
	}
}

func TestPDFPages(t *testing.T) {
	const head = "%PDF-1.7\n1 0 obj\n"
	tests := []struct {
		name, body string
		want       int
	}{
		{"count after", "<</Type /Pages /Kids [<</A /B>>] /Resources <</Count 9>> /Count 12 >>", 12},
		{"count before", "<< /Count\n7 /Resources <</X 1>> /Type/Pages >>", 7},
		{"nested trees", "<</Type/Pages/Count 5>> <</Type/Pages/Count 2>>", 5},
		{"a reference", "<</Type/Pages/Count 5 0 R>>", 0},
		{"nonsense", "<</Type/Pages/Count 99999999999999999999>>", 0},
		{"too many", "<</Type/Pages/Count 1000001>>", 0},
		{"not a tree", "<</Names/Pages/Count 3>>", 0},
		{"far in", strings.Repeat("filler ", 400_000) + "<</Type/Pages/Count 4>>", 4},
		{"deep", strings.Repeat("<</Type/Pages ", 200_000), 0},
		{"bomb", strings.Repeat("/ObjStm stream\n\x78\x9c", 10_000), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := []byte(head + tt.body)
			info := media.Detect(b, media.Hint{})
			if info.MediaType != "application/pdf" {
				t.Fatalf("%+v", info)
			}
			if got := media.Measure(t.Context(), info, bytes.NewReader(b)); got.Pages != tt.want {
				t.Errorf("got %d pages, want %d", got.Pages, tt.want)
			}
		})
	}
}

func BenchmarkDetect(b *testing.B) {
	ascii := bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog; it does so again.\n"), 2000)
	chinese := bytes.Repeat(sample(b, "zh_utf8.txt"), 500)
	gb := bytes.Repeat(sample(b, "zh_gb18030.txt"), 500)
	png := append(sample(b, "red.png"), make([]byte, 100<<10)...)
	for _, bm := range []struct {
		name string
		data []byte
		hint media.Hint
	}{
		{"png", png, media.Hint{}},
		{"png-declared", png, media.Hint{DeclaredType: "image/png", Filename: "a.png"}},
		{"jpeg", sample(b, "photo.jpg"), media.Hint{}},
		{"pdf", sample(b, "report.pdf"), media.Hint{}},
		{"mp3", sample(b, "tone.mp3"), media.Hint{}},
		{"utf8-ascii-4k", ascii[:4<<10], media.Hint{}},
		{"utf8-ascii-64k", ascii[:64<<10], media.Hint{}},
		{"utf8-ascii-64k-named", ascii[:64<<10], media.Hint{Filename: "a.txt"}},
		{"utf8-chinese-4k", chinese[:4<<10-1], media.Hint{Filename: "a.txt"}},
		{"utf8-chinese-64k", chinese[:227*288], media.Hint{Filename: "a.txt"}},
		{"gb18030-4k", gb[:152*26], media.Hint{}},
		{"gb18030-64k", gb[:152*430], media.Hint{}},
	} {
		b.Run(fmt.Sprintf("%s/%d", bm.name, len(bm.data)), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bm.data)))
			for b.Loop() {
				media.Detect(bm.data, bm.hint)
			}
		})
	}
}
