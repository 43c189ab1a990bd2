// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"compress/flate"
	"encoding/ascii85"
	"errors"
	"fmt"
	"io"

	"golang.org/x/image/tiff/lzw"
)

var endStream = []byte("endstream")

// raw returns a reader of the bytes of a stream as they are in the file.
func (f *pdfFile) raw(s *pdfStream) io.Reader {
	if s.data != nil {
		return bytes.NewReader(s.data)
	}
	n := int64(-1)
	if v, ok := f.get(s.dict["Length"]).(int); ok && v >= 0 && s.at+int64(v) <= f.size {
		var after [16]byte
		k, _ := f.at.ReadAt(after[:], s.at+int64(v))
		if bytes.HasPrefix(bytes.TrimLeft(after[:k], "\r\n \t"), endStream) {
			n = int64(v)
		}
	}
	if n < 0 { // the length is wrong: look for the end
		n = f.search(s.at)
	}
	return io.NewSectionReader(f.at, s.at, n)
}

// search returns how far "endstream" is.
func (f *pdfFile) search(at int64) int64 {
	buf := make([]byte, 64<<10)
	for off := at; off < f.size; off += int64(len(buf) - len(endStream)) {
		n, _ := f.at.ReadAt(buf, off)
		if i := bytes.Index(buf[:n], endStream); i >= 0 {
			return off + int64(i) - at
		}
		f.steps += n / 64 // so that many streams without an end do not cost the file each
		if n < len(buf) || f.step() != nil || f.steps > maxSteps {
			break
		}
	}
	return f.size - at
}

var errPicture = errors.New("the stream is a picture")

// unpack returns the bytes of a stream without its filters. Damage ends the
// bytes and is no error as long as some came.
func (f *pdfFile) unpack(s *pdfStream, ref pdfRef) ([]byte, error) {
	r := f.raw(s)
	if f.crypt != nil && ref.num > 0 && s.data == nil && s.dict["Type"] != pdfName("XRef") {
		data, err := io.ReadAll(io.LimitReader(r, maxPDFStream))
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(f.crypt.bytes(data, ref, true))
	}
	filters, params := f.list(s.dict["Filter"]), f.list(s.dict["DecodeParms"])
	if n := f.name(s.dict["Filter"]); n != "" {
		filters, params = []any{pdfName(n)}, []any{s.dict["DecodeParms"]}
	}
	if len(filters) > 8 {
		return nil, fmt.Errorf("%w: a stream has %d filters", errDamaged, len(filters))
	}
	for i, name := range filters {
		var param pdfDict
		if i < len(params) {
			param = f.dict(params[i])
		}
		var err error
		if r, err = f.filter(r, f.name(name), param); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(r, maxPDFStream))
	if err != nil && (len(data) == 0 || !damaged(err)) {
		return nil, err
	}
	return data, nil
}

func (f *pdfFile) filter(r io.Reader, name string, param pdfDict) (io.Reader, error) {
	switch name {
	case "FlateDecode", "Fl":
		var head [2]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return bytes.NewReader(nil), nil
		}
		if head[0]&0x0F != 8 || (int(head[0])<<8|int(head[1]))%31 != 0 { // no zlib header
			r = io.MultiReader(bytes.NewReader(head[:]), r)
		}
		return f.predict(&expander{r: flate.NewReader(r), b: f.budget}, param)
	case "LZWDecode", "LZW":
		return f.predict(&expander{r: lzw.NewReader(r, lzw.MSB, 8), b: f.budget}, param)
	case "ASCII85Decode", "A85":
		return &expander{r: ascii85.NewDecoder(&ascii85End{r: r}), b: f.budget}, nil
	case "ASCIIHexDecode", "AHx":
		data, err := io.ReadAll(io.LimitReader(r, maxPDFString))
		l := newLexer(f.budget, data)
		return bytes.NewReader([]byte(l.hex())), err
	case "RunLengthDecode", "RL":
		data, err := io.ReadAll(io.LimitReader(r, maxPDFStream/128))
		return bytes.NewReader(runLength(data)), err
	case "Crypt":
		return r, nil
	}
	return nil, errPicture
}

// An ascii85End ends at "~>".
type ascii85End struct {
	r    io.Reader
	done bool
}

func (a *ascii85End) Read(p []byte) (int, error) {
	if a.done {
		return 0, io.EOF
	}
	n, err := a.r.Read(p)
	if i := bytes.IndexByte(p[:n], '~'); i >= 0 {
		a.done = true
		return i, io.EOF
	}
	return n, err
}

func runLength(data []byte) []byte {
	var b []byte
	for len(data) > 0 && data[0] != 128 && len(b) < maxPDFStream {
		n := int(data[0])
		data = data[1:]
		if n < 128 {
			k := min(n+1, len(data))
			b = append(b, data[:k]...)
			data = data[k:]
			continue
		}
		if len(data) == 0 {
			break
		}
		b = append(b, bytes.Repeat(data[:1], 257-n)...)
		data = data[1:]
	}
	return b
}

// predict undoes the prediction that a filter's parameters name.
func (f *pdfFile) predict(r io.Reader, param pdfDict) (io.Reader, error) {
	value := func(key pdfName, otherwise int) int {
		if n, ok := f.get(param[key]).(int); ok {
			return n
		}
		return otherwise
	}
	predictor := value("Predictor", 1)
	if predictor < 2 {
		return r, nil
	}
	colors, bits, columns := value("Colors", 1), value("BitsPerComponent", 8), value("Columns", 1)
	if colors < 1 || colors > 32 || bits < 1 || bits > 16 || columns < 1 || columns > 1<<20 {
		return nil, fmt.Errorf("%w: a stream has wrong parameters", errDamaged)
	}
	row := (colors*bits*columns + 7) / 8
	return &predicted{r: r, png: predictor >= 10, step: max(1, colors*bits/8), row: make([]byte, row), above: make([]byte, row)}, nil
}

// A predicted undoes the prediction of PNG, or of TIFF for whole bytes.
type predicted struct {
	r          io.Reader
	png        bool
	step       int
	row, above []byte
	left       []byte // of row, still to be given
	err        error
}

func (p *predicted) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		p.next()
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}

func (p *predicted) next() {
	p.row, p.above = p.above, p.row
	kind := byte(1)
	if p.png {
		var k [1]byte
		if _, p.err = io.ReadFull(p.r, k[:]); p.err != nil {
			return
		}
		kind = k[0]
	}
	n, err := io.ReadFull(p.r, p.row)
	p.err = err
	if errors.Is(err, io.ErrUnexpectedEOF) {
		clear(p.row[n:])
	} else if err != nil {
		return
	}
	for i := range n {
		var left, corner byte
		if i >= p.step {
			left, corner = p.row[i-p.step], p.above[i-p.step]
		}
		switch kind {
		case 1:
			p.row[i] += left
		case 2:
			p.row[i] += p.above[i]
		case 3:
			p.row[i] += byte((int(left) + int(p.above[i])) / 2)
		case 4:
			p.row[i] += paeth(left, p.above[i], corner)
		}
	}
	p.left = p.row[:n]
}

func paeth(left, above, corner byte) byte {
	abs := func(n int) int { return max(n, -n) }
	p := int(left) + int(above) - int(corner)
	a, b, c := abs(p-int(left)), abs(p-int(above)), abs(p-int(corner))
	switch {
	case a <= b && a <= c:
		return left
	case b <= c:
		return above
	}
	return corner
}
