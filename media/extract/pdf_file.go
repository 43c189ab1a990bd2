// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"fmt"
	"io"
	"regexp"

	"github.com/artelhq/artel"
)

// A pdfFile finds the objects of a PDF and reads those that are asked for.
type pdfFile struct {
	*source
	table   map[int]pdfPlace
	trailer pdfDict
	kept    map[int]any         // objects that were read
	packs   map[int]*pdfPack    // object streams that were unpacked
	opening map[int]bool        // objects that are being read
	crypt   *pdfCrypt           // nil if it is not encrypted
	fonts   map[pdfRef]*pdfFont // those that were read
	packed  int64               // bytes in packs
}

// A pdfPlace is where an object is: at an offset, or the index-th of the
// objects in a stream.
type pdfPlace struct {
	at    int64
	in    int // number of the stream, 0 is none
	index int
	gen   int
}

// A pdfPack is an object stream, unpacked.
type pdfPack struct {
	data    []byte
	numbers []int
	offsets []int
	index   map[int]int // by number
}

const (
	maxPDFObjects  = 1_000_000
	maxPDFSections = 1000
	maxPDFKept     = 50_000
	maxPDFStream   = 64 << 20 // bytes of one unpacked stream
)

func openPDF(src *source) (*pdfFile, error) {
	f := &pdfFile{source: src, fonts: map[pdfRef]*pdfFont{}}
	f.reset()
	tail := make([]byte, min(src.size, 2048))
	if _, err := src.at.ReadAt(tail, src.size-int64(len(tail))); err != nil && err != io.EOF { // as ReadAt promises
		return nil, err
	}
	if i := bytes.LastIndex(tail, []byte("startxref")); i >= 0 {
		if off, ok := newLexer(src.budget, tail[i+9:]).token().(int); ok {
			f.readSections(int64(off))
		}
	}
	if err := src.stopped(); err != nil {
		return nil, err
	}
	if _, ok := f.dict(f.trailer["Root"])["Pages"]; !ok {
		if err := f.rebuild(); err != nil {
			return nil, err
		}
	}
	if err := f.decrypt(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *pdfFile) reset() {
	f.table, f.trailer = map[int]pdfPlace{}, pdfDict{}
	f.kept, f.packs, f.opening = map[int]any{}, map[int]*pdfPack{}, map[int]bool{}
}

// readSections follows the chain of cross-reference sections. What the newest
// says counts.
func (f *pdfFile) readSections(off int64) {
	seen := map[int64]bool{}
	queue := []int64{off}
	for len(queue) > 0 && len(seen) < maxPDFSections {
		off := queue[0]
		queue = queue[1:]
		if off < 0 || off >= f.size || seen[off] {
			continue
		}
		seen[off] = true
		l := lexAt(f.budget, f.at, off)
		var d pdfDict
		switch t := l.object().(type) {
		case pdfWord:
			if t != "xref" || !f.readTable(l) {
				return
			}
			d, _ = l.object().(pdfDict)
			if x, ok := d["XRefStm"].(int); ok {
				queue = append(queue, int64(x))
			}
		case int:
			s, ok := f.objectBody(l).(*pdfStream)
			if !ok {
				return
			}
			d = s.dict
			f.readTableStream(s)
		}
		for k, v := range d {
			if _, ok := f.trailer[k]; !ok {
				f.trailer[k] = v
			}
		}
		if prev, ok := d["Prev"].(int); ok {
			queue = append(queue, int64(prev))
		}
	}
}

// readTable reads an old table up to the word trailer.
func (f *pdfFile) readTable(l *lexer) bool {
	l.refs = false
	defer func() { l.refs = true }()
	for {
		first := l.token()
		if w, ok := first.(pdfWord); ok && w == "trailer" {
			return true
		}
		start, ok1 := first.(int)
		n, ok2 := l.token().(int)
		if !ok1 || !ok2 || start < 0 || n < 0 {
			return false
		}
		for i := range n {
			off, ok := l.token().(int)
			gen, _ := l.token().(int)
			kind, _ := l.token().(pdfWord)
			if !ok || kind != "n" && kind != "f" {
				return false
			}
			if kind == "n" && off > 0 {
				f.place(start+i, pdfPlace{at: int64(off), gen: gen})
			}
		}
	}
}

func (f *pdfFile) place(num int, p pdfPlace) {
	if _, ok := f.table[num]; !ok && num > 0 && num < 1<<30 && len(f.table) < maxPDFObjects {
		f.table[num] = p
	}
}

// readTableStream reads a table that is a stream.
func (f *pdfFile) readTableStream(s *pdfStream) {
	w := f.list(s.dict["W"])
	data, err := f.unpack(s, pdfRef{})
	if len(w) < 3 || err != nil {
		return
	}
	var widths [3]int
	row := 0
	for i := range widths {
		widths[i], _ = w[i].(int)
		if widths[i] < 0 || widths[i] > 8 {
			return
		}
		row += widths[i]
	}
	index := f.list(s.dict["Index"])
	if len(index) < 2 {
		size, _ := s.dict["Size"].(int)
		index = []any{0, size}
	}
	for i := 0; i+1 < len(index) && row > 0; i += 2 {
		start, _ := index[i].(int)
		n, _ := index[i+1].(int)
		for k := 0; k < n && len(data) >= row; k++ {
			var v [3]int64
			at := 0
			for c, width := range widths {
				for _, b := range data[at : at+width] {
					v[c] = v[c]<<8 | int64(b)
				}
				at += width
			}
			if widths[0] == 0 {
				v[0] = 1
			}
			data = data[row:]
			switch v[0] {
			case 1:
				f.place(start+k, pdfPlace{at: v[1], gen: int(v[2] & 0xFFFF)})
			case 2:
				f.place(start+k, pdfPlace{in: int(v[1] & 0x3FFFFFFF), index: int(v[2] & 0x3FFFFFFF)})
			}
		}
	}
}

var pdfMark = regexp.MustCompile(`(\d{1,10})[ \t\r\n]+(\d{1,5})[ \t\r\n]+obj|trailer`)

// rebuild looks through the whole file for objects, as a damaged table says
// nothing. The last object of a number counts.
func (f *pdfFile) rebuild() error {
	f.reset()
	const window, overlap = 1 << 20, 64
	buf := make([]byte, window)
	var packs []int
	looks := 0 // at what may be a trailer
	for base := int64(0); base < f.size; base += window - overlap {
		n, err := f.at.ReadAt(buf[:min(window, f.size-base)], base)
		if err != nil && err != io.EOF { // as ReadAt promises
			return err
		}
		for _, m := range pdfMark.FindAllSubmatchIndex(buf[:n], -1) {
			if err := f.step(); err != nil {
				return err
			}
			off := base + int64(m[0])
			if m[2] < 0 {
				if looks++; looks > maxPDFSections {
					continue
				}
				if d, ok := lexAt(f.budget, f.at, off+7).object().(pdfDict); ok && d["Root"] != nil {
					f.trailer = d
				}
				continue
			}
			num := number(string(buf[m[2]:m[3]]))
			if num <= 0 || num >= 1<<30 || len(f.table) >= maxPDFObjects {
				continue
			}
			f.table[num] = pdfPlace{at: off, gen: number(string(buf[m[4]:m[5]]))}
			after := buf[m[1]:min(n, m[1]+400)]
			if bytes.Contains(after, []byte("/ObjStm")) {
				packs = append(packs, num)
			}
			if bytes.Contains(after, []byte("/XRef")) || f.trailer["Root"] == nil && bytes.Contains(after, []byte("/Catalog")) {
				if looks++; looks > maxPDFSections {
					continue
				}
				l := lexAt(f.budget, f.at, base+int64(m[1]))
				if d, ok := l.object().(pdfDict); ok {
					switch {
					case d["Type"] == pdfName("Catalog"):
						f.trailer["Root"] = pdfRef{num, 0}
					case d["Root"] != nil:
						f.trailer = d
					}
				}
			}
		}
	}
	for _, num := range packs {
		if p := f.pack(num); p != nil {
			for i, n := range p.numbers {
				f.place(n, pdfPlace{in: num, index: i})
			}
		}
	}
	if f.trailer["Root"] == nil {
		for num := range f.table {
			if d := f.dict(pdfRef{num, 0}); d["Type"] == pdfName("Catalog") {
				f.trailer["Root"] = pdfRef{num, 0}
			}
		}
	}
	if f.dict(f.trailer["Root"]) == nil {
		return fmt.Errorf("%w: no pages can be found in it", errDamaged)
	}
	return nil
}

// objectBody reads "gen obj …" after the number of an object.
func (f *pdfFile) objectBody(l *lexer) any {
	if _, ok := l.token().(int); !ok {
		return nil
	}
	if w, ok := l.token().(pdfWord); !ok || w != "obj" {
		return nil
	}
	o := l.object()
	d, ok := o.(pdfDict)
	if !ok {
		return o
	}
	if w, ok := l.token().(pdfWord); !ok || w != "stream" {
		return o
	}
	if l.peek() == '\r' {
		l.next()
	}
	if l.peek() == '\n' {
		l.next()
	}
	return &pdfStream{dict: d, at: l.offset()}
}

// get follows references to an object. What is missing, damaged or part of
// itself is nil.
func (f *pdfFile) get(o any) any {
	for range 16 {
		r, ok := o.(pdfRef)
		if !ok {
			return o
		}
		o = f.load(r.num)
	}
	return nil
}

func (f *pdfFile) load(num int) any {
	if o, ok := f.kept[num]; ok {
		return o
	}
	p, ok := f.table[num]
	if !ok || f.opening[num] || f.step() != nil {
		return nil
	}
	f.opening[num] = true
	defer delete(f.opening, num)
	var o any
	if p.in > 0 {
		if pack := f.pack(p.in); pack != nil {
			o = pack.object(f.budget, p.index, num)
		}
	} else if l := lexAt(f.budget, f.at, p.at); p.at < f.size {
		if n, ok := l.token().(int); ok && n == num {
			o = f.objectBody(l)
		}
		if f.crypt != nil {
			o = f.crypt.strings(o, pdfRef{num, p.gen}, 0)
		}
	}
	if _, word := o.(pdfWord); word {
		o = nil
	}
	if _, end := o.(pdfEnd); end {
		o = nil
	}
	if len(f.kept) >= maxPDFKept {
		clear(f.kept)
	}
	f.kept[num] = o
	return o
}

// pack unpacks an object stream. Few are kept at a time.
func (f *pdfFile) pack(num int) *pdfPack {
	if p, ok := f.packs[num]; ok {
		return p
	}
	place := f.table[num]
	if place.in > 0 {
		return nil // a stream is never inside another
	}
	s, ok := f.load(num).(*pdfStream)
	if !ok {
		return nil
	}
	n, _ := f.get(s.dict["N"]).(int)
	first, _ := f.get(s.dict["First"]).(int)
	data, err := f.unpack(s, pdfRef{num, place.gen})
	if err != nil || first < 0 || first > len(data) {
		f.packs[num] = nil
		return nil
	}
	p := &pdfPack{data: data, index: map[int]int{}}
	l := newLexer(f.budget, data[:first])
	for range min(max(n, 0), maxPDFItems) {
		number, ok1 := l.token().(int)
		off, ok2 := l.token().(int)
		if !ok1 || !ok2 {
			break
		}
		p.index[number] = len(p.numbers)
		p.numbers = append(p.numbers, number)
		p.offsets = append(p.offsets, first+off)
	}
	if f.packed += int64(len(data)); f.packed > maxPDFStream {
		clear(f.packs)
		f.packed = int64(len(data))
	}
	f.packs[num] = p
	return p
}

func (p *pdfPack) object(b *budget, index, num int) any {
	if index < 0 || index >= len(p.numbers) || p.numbers[index] != num {
		at, ok := p.index[num]
		if !ok {
			return nil
		}
		index = at
	}
	if p.offsets[index] < 0 || p.offsets[index] >= len(p.data) {
		return nil
	}
	l := newLexer(b, p.data[p.offsets[index]:])
	l.refs = true
	return l.object()
}

func (f *pdfFile) dict(o any) pdfDict {
	switch o := f.get(o).(type) {
	case pdfDict:
		return o
	case *pdfStream:
		return o.dict
	}
	return nil
}

func (f *pdfFile) list(o any) []any {
	l, _ := f.get(o).([]any)
	return l
}

func (f *pdfFile) num(o any) (float64, bool) { return numeric(f.get(o)) }

func numeric(o any) (float64, bool) {
	switch n := o.(type) {
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func (f *pdfFile) name(o any) string {
	n, _ := f.get(o).(pdfName)
	return string(n)
}

func encryptedPDF() error {
	return artel.Errorf(artel.Unsupported, op, "application/pdf", "the document is encrypted; save it without a password and upload it again")
}
