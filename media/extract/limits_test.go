// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/artelhq/artel"
)

// hostile are small documents that unpack to much.
func hostile(tb testing.TB) map[string]document {
	const size = 12 << 20
	// unpacked makes an archive whose part name is size bytes of fill between two tags.
	unpacked := func(mediaType, name, before, fill, after string, parts ...string) document {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		put := func(name string, r io.Reader) {
			w, err := z.Create(name)
			if err == nil {
				_, err = io.Copy(w, r)
			}
			if err != nil {
				tb.Fatal(err)
			}
		}
		for i := 0; i < len(parts); i += 2 {
			put(parts[i], strings.NewReader(parts[i+1]))
		}
		piece := strings.Repeat(fill, 1<<20/len(fill))
		r := []io.Reader{strings.NewReader(before)}
		for range size / len(piece) {
			r = append(r, strings.NewReader(piece))
		}
		put(name, io.MultiReader(append(r, strings.NewReader(after))...))
		if err := z.Close(); err != nil {
			tb.Fatal(err)
		}
		return document{b.Bytes(), mediaType}
	}
	word := func(before, fill, after string) document {
		return unpacked(typeDOCX, "word/document.xml", "<w:document"+wordNS+"><w:body>"+before, fill, after+"</w:body></w:document>")
	}
	rels := `<Relationship Id="f" Type="http://x/relationships/footnotes" Target="footnotes.xml"/></Relationships>`
	slide := []string{
		"ppt/presentation.xml", `<p><sldId r:id="a" xmlns:r="relationships"/></p>`,
		"ppt/_rels/presentation.xml.rels", relsNS + `<Relationship Id="a" Target="s.xml"/></Relationships>`,
	}
	book := []string{
		"META-INF/container.xml", `<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>`,
		"b.opf", `<package><manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>`,
	}
	workbook := func(name, before, fill, after string) document {
		parts := []string{
			"xl/workbook.xml", `<workbook xmlns:r="relationships"><sheets><sheet name="One" r:id="a"/></sheets></workbook>`,
			"xl/_rels/workbook.xml.rels", relsNS + `<Relationship Id="a" Type="t/worksheet" Target="sheet.xml"/><Relationship Id="s" Type="t/sharedStrings" Target="strings.xml"/><Relationship Id="f" Type="t/styles" Target="styles.xml"/></Relationships>`,
		}
		if name != "xl/sheet.xml" {
			parts = append(parts, "xl/sheet.xml", `<worksheet><sheetData><row><c t="s"><v>0</v></c></row></sheetData></worksheet>`)
		}
		return unpacked(typeXLSX, name, before, fill, after, parts...)
	}
	office := `<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="t" xmlns:table="t"><office:body><office:text>`
	return map[string]document{
		"one text of a DOCX":       word("<w:p><w:r><w:t>", "abc *_[ ", "</w:t></w:r></w:p>"),
		"one word of a DOCX":       word("<w:p><w:r><w:t>", "字", "</w:t></w:r></w:p>"),
		"texts of a DOCX":          word("<w:p>", "<w:r><w:t>a *b* c</w:t></w:r>", "</w:p>"),
		"elements of a DOCX":       word("<w:p>", "<w:a/>", "</w:p>"),
		"attributes of a DOCX":     word("<w:p", ` a="b"`, "/>"),
		"one attribute of a DOCX":  word(`<w:p a="`, "0123456789abcdef", `"/>`),
		"one comment of a DOCX":    word("<!--", "0123456789abcdef", "-->"),
		"cells of a DOCX":          word("<w:tbl>", `<w:tr><w:tc><w:tcPr><w:gridSpan w:val="64"/></w:tcPr></w:tc></w:tr>`, "</w:tbl>"),
		"long cells of a DOCX":     word("<w:tbl>", `<w:tr><w:tc><w:p><w:r><w:t>`+strings.Repeat("*", 1000)+`</w:t></w:r></w:p></w:tc></w:tr>`, "</w:tbl>"),
		"footnotes of a DOCX":      unpacked(typeDOCX, "word/footnotes.xml", "<w:footnotes"+wordNS+">", `<w:footnote w:id="1"/>`, "</w:footnotes>", "word/document.xml", "<w:document"+wordNS+"><w:body/></w:document>", "word/_rels/document.xml.rels", relsNS+rels),
		"one text of an ODT":       unpacked(typeODT, "content.xml", office+"<text:p>", "abc *_[ ", "</text:p></office:text></office:body></office:document-content>"),
		"blanks of an ODT":         unpacked(typeODT, "content.xml", office+"<text:p>", `<text:s text:c="1000"/>`, "</text:p></office:text></office:body></office:document-content>"),
		"one text of a slide":      unpacked(typePPTX, "ppt/s.xml", "<sld><cSld><spTree><sp><txBody><p><r><t>", "abc *_[ ", "</t></r></p></txBody></sp></spTree></cSld></sld>", slide...),
		"elements of a slide":      unpacked(typePPTX, "ppt/s.xml", "<sld><cSld><spTree><sp><txBody><p>", "<r><t>a</t></r>", "</p></txBody></sp></spTree></cSld></sld>", slide...),
		"one text of a sheet":      workbook("xl/sheet.xml", `<worksheet><sheetData><row><c t="str"><v>`, "abc *_[ ", "</v></c></row></sheetData></worksheet>"),
		"cells of a sheet":         workbook("xl/sheet.xml", "<worksheet><sheetData>", "<row><c><v>1</v></c></row>", "</sheetData></worksheet>"),
		"far cells of a sheet":     workbook("xl/sheet.xml", "<worksheet><sheetData>", `<row><c><v>1</v></c><c r="XFD1"><f>A1</f></c></row>`, "</sheetData></worksheet>"),
		"merged cells of a sheet":  workbook("xl/sheet.xml", "<worksheet><mergeCells>", `<mergeCell ref="A1:B2"/>`, "</mergeCells></worksheet>"),
		"one shared text":          workbook("xl/strings.xml", "<sst><si><t>", "abc *_[ ", "</t></si></sst>"),
		"shared texts":             workbook("xl/strings.xml", "<sst>", "<si><t>a</t></si>", "</sst>"),
		"formats of a workbook":    workbook("xl/styles.xml", "<styleSheet><cellXfs>", `<xf numFmtId="9"/>`, "</cellXfs></styleSheet>"),
		"one text of a chapter":    unpacked(typeEPUB, "a.xhtml", "<p>", "abc *_[ ", "</p>", book...),
		"elements of a chapter":    unpacked(typeEPUB, "a.xhtml", "<p>", "<i/>", "</p>", book...),
		"attributes of a chapter":  unpacked(typeEPUB, "a.xhtml", "<p", " a", ">", book...),
		"empty blocks of chapters": unpacked(typeEPUB, "a.xhtml", "", "<p>", "", book...),
	}
}

type document struct {
	data      []byte
	mediaType string
}

// large are documents without an archive that are made to need much.
func large() map[string]document {
	fill := func(mediaType, before, s string) document {
		return document{[]byte(before + strings.Repeat(s, 10<<20/len(s))), mediaType}
	}
	return map[string]document{
		"elements of a page":   fill(typeHTML, "", "<p>"),
		"texts of a page":      fill(typeHTML, "", "a<p>"),
		"attributes of a page": fill(typeHTML, "<p", " a"),
		"values of a page":     fill(typeHTML, "<p", " a='>'"),
		"text of a page":       fill(typeHTML, "<p>", "*_[ "),
		"cells of a page":      fill(typeHTML, "<table>", "<tr><td colspan=64>"),
		// These took minutes, or gigabytes.
		"rows below many columns": fill(typeHTML, "<table><tr>"+strings.Repeat("<td>", 1<<18)+"<tr>", "<td>x<tr>"),
		"rows below many cells":   fill(typeHTML, "<table><tr>"+strings.Repeat("<td rowspan=1000>", 1<<17)+"<tr>", "<td>x<tr>"),
		"text boxes of RTF":       fill(typeRTF, `{\rtf1`, `{\shptxt  }`),
		"cells of a CSV":          fill(typeCSV, "", ",\n"),
		"one cell of a CSV":       fill(typeCSV, "", "*_[ "),
		"columns of a CSV":        fill(typeCSV, "", "a,"),
		"groups of RTF":           fill(typeRTF, `{\rtf1`, `{\b a}`),
		"cells of RTF":            fill(typeRTF, `{\rtf1`, `\cell `),
		"notes of RTF":            fill(typeRTF, `{\rtf1`, `{\footnote a}`),
		"text of RTF":             fill(typeRTF, `{\rtf1 `, `*_[ `),
	}
}

// TestWeight holds the estimate of memory to documents that are made to need much.
func TestWeight(t *testing.T) {
	o := Options{MaxText: 4 << 20}
	all := hostile(t)
	maps.Copy(all, large())
	for name, d := range all {
		var x Extracted
		var err error
		rises := highest(func() {
			x, err = read(t.Context(), bytes.NewReader(d.data), int64(len(d.data)), asType(d.mediaType), o)
		})
		most := weight(int64(len(d.data)), d.mediaType, newBudget(t.Context(), o))
		t.Logf("%-26s %6d KB, heap %4d MB, weight %4d MB, text %5d KB, %v", name, len(d.data)>>10, rises>>20, most>>20, len(x.Text)>>10, err)
		if int64(rises) > most+most/5 { // on one processor, collections lag behind
			t.Errorf("%s: the heap rises by %d MB, the weight is %d MB", name, rises>>20, most>>20)
		}
		if err != nil && artel.KindOf(err) != artel.TooLarge {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && !x.Cut && len(x.Text) > 0 && strings.HasPrefix(name, "one text") {
			t.Errorf("%s: %d bytes of text are all there is", name, len(x.Text))
		}
	}
}

// TestCostOfFields: the code of a field is not read again for each run of its result.
func TestCostOfFields(t *testing.T) {
	run := func(s string) string { return "<w:r>" + s + "</w:r>" }
	field := run(`<w:fldChar w:fldCharType="begin"/>`) + run("<w:instrText>"+strings.Repeat("x", 8000)+"</w:instrText>") + run(`<w:fldChar w:fldCharType="separate"/>`)
	doc := wordDocument(t, "<w:p>"+strings.Repeat(field, 32)+strings.Repeat(run("<w:t>a</w:t>"), 10_000)+"</w:p>")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x := textOf(t, doc, asType(typeDOCX), Options{})
	runtime.ReadMemStats(&after)
	if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 500 || len(x.Text) < 10_000 {
		t.Errorf("%d bytes of text took %d MB", len(x.Text), made)
	}
}

// TestTextIsCutWhileItIsRead: reading ends soon after the text is full.
func TestTextIsCutWhileItIsRead(t *testing.T) {
	for name, d := range hostile(t) {
		if !strings.HasPrefix(name, "one text") {
			continue
		}
		b := newBudget(t.Context(), Options{MaxText: 1 << 20})
		src := &source{budget: b, at: &meteredAt{r: bytes.NewReader(d.data), b: b}, size: int64(len(d.data))}
		o := &out{budget: b}
		if err := readerOf(d.mediaType)(src, o); err != nil && !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
		if b.expanded > 3<<20 || o.b.Len() < 1<<20 || !strings.HasPrefix(o.b.String()[o.b.Len()/2:], "abc") && !strings.Contains(o.b.String(), `abc \*`) {
			t.Errorf("%s: %d KB are unpacked for %d KB of text", name, b.expanded>>10, o.b.Len()>>10)
		}
	}
}

// A probe counts the documents that are being read.
type probe struct {
	io.ReaderAt
	entered atomic.Bool
	reading *atomic.Int32
	release chan struct{}
}

func (p *probe) ReadAt(b []byte, off int64) (int, error) {
	if p.entered.CompareAndSwap(false, true) {
		p.reading.Add(1)
		<-p.release
	}
	return p.ReaderAt.ReadAt(b, off)
}

// TestMemoryIsShared: documents wait until the memory that they may need is free, and
// while they wait they keep to their context.
func TestMemoryIsShared(t *testing.T) {
	doc := wordDocument(t, `<w:p><w:r><w:t>hello</w:t></w:r></w:p>`)
	large := int64(8 << 20)
	synctest.Test(t, func(t *testing.T) {
		one := weight(large, typeDOCX, newBudget(t.Context(), Options{}))
		fit := int32(maxMemory / one)
		var reading atomic.Int32
		release, done := make(chan struct{}), make(chan error, 16)
		start := func(ctx context.Context) {
			p := &probe{ReaderAt: bytes.NewReader(append(doc, make([]byte, large-int64(len(doc)))...)), reading: &reading, release: release}
			go func() {
				_, err := Text(ctx, p, large, asType(typeDOCX), Options{})
				done <- err
			}()
		}
		for range 5 {
			start(t.Context())
		}
		synctest.Wait() // so that the last one has to wait
		ctx, cancel := context.WithCancel(t.Context())
		start(ctx)
		synctest.Wait()
		if got := reading.Load(); got != fit || fit < 1 || fit > 3 {
			t.Errorf("%d documents of %d MB are read at once, want %d", got, one>>20, fit)
		}
		cancel()
		if err := <-done; artel.KindOf(err) != artel.Canceled {
			t.Errorf("a canceled call that waits returns %v", err)
		}
		close(release)
		for range 5 {
			<-done
		}
	})
	if err := memory.Acquire(t.Context(), maxMemory); err != nil {
		t.Fatal(err)
	}
	memory.Release(maxMemory)
}

// TestLongTextKeepsTheContext: a long text is not finished after the end of the context.
func TestLongTextKeepsTheContext(t *testing.T) {
	checks := 0
	b := &budget{stopped: func() error {
		if checks++; checks > 3 {
			return context.Canceled
		}
		return nil
	}}
	got := b.inline([]span{plain(strings.Repeat("abc *_[ ", 1<<20))})
	if len(got) > 5*maxPiece || checks > 5 {
		t.Errorf("%d KB are written after %d checks", len(got)>>10, checks)
	}
	long := strings.Repeat("word *x* _y_ a_b 字&amp; <b> ", 40_000)
	b.stopped = func() error { return nil }
	if got := b.inline([]span{plain(long)}); got != strings.TrimSpace(lines(long, false)) {
		t.Error("a long text is escaped otherwise than a short one")
	}
}

// TestAttributesAreBounded cuts a page whose tags have more attributes than are read, also
// behind a ">" in quotes.
func TestAttributesAreBounded(t *testing.T) {
	many := strings.Repeat(" a", 2*maxElements+1)
	for name, page := range map[string]string{
		"plain": "<p>shown</p><b" + many + ">", "quoted": `<p>shown</p><b x=">"` + many + ">", "apostrophes": "<p>shown</p><b x = '>'" + many + ">",
	} {
		x := textOf(t, []byte(page), asType(typeHTML), Options{})
		if !x.Cut || !strings.Contains(x.Text, "shown") || !strings.Contains(x.Text, "more elements than are read") {
			t.Errorf("%s: cut %t: %.200s", name, x.Cut, x.Text)
		}
	}
	for _, page := range []string{`<b x=a"b>shown</b><b"c>more</b>`, `<b =">shown</b> more <i title="a > b">x</i>`} {
		if x := textOf(t, []byte(page), asType(typeHTML), Options{}); x.Cut || !strings.Contains(x.Text, "shown") || !strings.Contains(x.Text, "more") {
			t.Errorf("%s: %q", page, x.Text)
		}
	}
}
