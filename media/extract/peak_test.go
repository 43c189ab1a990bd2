// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"
)

// highest is how far the heap rises while work is done, in bytes, garbage of a
// fifth included.
func highest(work func()) uint64 {
	const every, objects = time.Millisecond, "/memory/classes/heap/objects:bytes"
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	debug.FreeOSMemory()
	at := func() uint64 {
		s := []metrics.Sample{{Name: objects}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	base, top := at(), uint64(0)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.NewTicker(every); ; {
			top = max(top, at())
			select {
			case <-tick.C:
			case <-done:
				tick.Stop()
				return
			}
		}
	})
	work()
	close(done)
	wg.Wait()
	return max(top, base) - base
}

// TestUnfoldingKeepsSmall: files that unfold to megabytes of nothing are read in memory that
// keeps to what they unfold to.
func TestUnfoldingKeepsSmall(t *testing.T) {
	const size = 1 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, c := range map[string]struct {
		b         []byte
		mediaType string
	}{
		"paragraphs":    {wordDocument(t, fill("<w:p/>")), typeDOCX},
		"tables":        {wordDocument(t, fill("<w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>")), typeDOCX},
		"nested tables": {wordDocument(t, fill("<w:tbl><w:tr><w:tc>")), typeDOCX},
		"rows":          {excelFile(t, fill(`<row r="2"><c r="B2" t="s" s="1"><v>0</v></c></row>`)), typeXLSX},
		"HTML":          {[]byte(fill("<b>")), typeHTML},
		"HTML tables":   {[]byte(fill("<table><tr><td>a")), typeHTML},
		"CSV":           {[]byte(fill("a,b\n")), typeCSV},
		"RTF":           {[]byte(`{\rtf1 ` + fill(`{\b a}`)), typeRTF},
		"PDF":           {pdfOf("BT /F 10 Tf "+fill("1 0 Td (a) Tj "), helvetica), typePDF},
	} {
		n := highest(func() { _, _ = read(t.Context(), bytes.NewReader(c.b), int64(len(c.b)), asType(c.mediaType), small) })
		if n > 48*size {
			t.Errorf("%s: the heap rises by %d KB", name, n>>10)
		}
	}
}
