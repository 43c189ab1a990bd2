// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// Bounds of one page, far above any real one.
const (
	maxChars     = 400_000
	maxLinks     = 2_000
	maxFields    = 5_000
	maxFieldText = 8 << 20 // bytes of their names and values
	batch        = 2_048   // characters read at once
	charSize     = 80      // bytes of a record of glue.wat
)

// A Page is what is on a page. Coordinates are in points, as the page is shown: x grows
// to the right and y upwards.
type Page struct {
	Box      Rect
	Chars    []Char // in reading order, right-to-left text too, as the page writes its lines
	Links    []Link
	Fields   []Field
	Pictures int
	Attached int  // files that are attached to places of the page
	Cut      bool // the page has more characters than are read
}

// A Rect is an area, X0 ≤ X1 and Y0 ≤ Y1.
type Rect struct{ X0, Y0, X1, Y1 float64 }

// A Char is a character with its place.
type Char struct {
	Rune      rune
	Generated bool // pdfium concluded this space or line break from distances
	Unknown   bool // the font does not tell the character; Rune is of no use
	Turned    bool // the text does not run horizontally
	Font      *Font
	Size      float64 // in points
	X, Y      float64 // origin on the baseline
	Box       Rect    // from the origin to the next character, and the height of the font
}

// A Font is the look of characters.
type Font struct {
	Name               string
	Bold, Italic, Mono bool
}

// A Link is an area that leads to an address.
type Link struct {
	Rect
	URI string
}

// A Field is a form field with a value, a comment, or a note typed on the page, which has
// no name.
type Field struct{ Name, Value string }

// Page reads page n, from 0 on.
func (d *Document) Page(ctx context.Context, n int) (_ Page, err error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	page, err := d.loadPage(ctx, n)
	if err != nil {
		return Page{}, err
	}
	defer func() {
		if _, e := d.call(ctx, "FPDF_ClosePage", page); err == nil {
			err = e
		}
	}()
	var p Page
	turn, err := d.orientation(ctx, page)
	if err != nil {
		return p, err
	}
	if _, err = d.call(ctx, "FPDF_GetPageBoundingBox", page, uint64(d.scratch)); err != nil {
		return p, err
	}
	box := d.floats(0, 4) // left, top, right, bottom
	p.Box = turn.rect(box[0], box[1], box[2], box[3])
	pictures, err := d.call(ctx, "pictures", page)
	if err != nil {
		return p, err
	}
	p.Pictures = int(pictures)
	if err := d.chars(ctx, page, turn, &p); err != nil {
		return p, err
	}
	if err := d.links(ctx, page, turn, &p); err != nil {
		return p, err
	}
	return p, d.fields(ctx, page, &p)
}

// loadPage loads page n; the caller closes it.
func (d *Document) loadPage(ctx context.Context, n int) (uint64, error) {
	page, err := d.call(ctx, "FPDF_LoadPage", d.handle, uint64(n))
	if err == nil && page == 0 {
		err = artel.Errorf(artel.Invalid, "pdf.Page", "", "page %d is damaged", n+1)
	}
	return page, err
}

// A rotation maps points of a page to those of the page as it is shown.
type rotation [4]float64 // x' = a·x + c·y, y' = b·x + d·y

func (d *Document) orientation(ctx context.Context, page uint64) (rotation, error) {
	quarter, err := d.call(ctx, "FPDFPage_GetRotation", page)
	switch quarter {
	case 1:
		return rotation{0, -1, 1, 0}, err
	case 2:
		return rotation{-1, 0, 0, -1}, err
	case 3:
		return rotation{0, 1, -1, 0}, err
	}
	return rotation{1, 0, 0, 1}, err
}

func (r rotation) point(x, y float64) (float64, float64) { return r[0]*x + r[2]*y, r[1]*x + r[3]*y }

func (r rotation) rect(ax, ay, bx, by float64) Rect {
	ax, ay = r.point(ax, ay)
	bx, by = r.point(bx, by)
	return Rect{min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)}
}

// chars reads the characters of a page.
func (d *Document) chars(ctx context.Context, page uint64, turn rotation, p *Page) (err error) {
	text, err := d.call(ctx, "FPDFText_LoadPage", page)
	if err != nil || text == 0 {
		return err
	}
	defer func() {
		if _, e := d.call(ctx, "FPDFText_ClosePage", text); err == nil {
			err = e
		}
	}()
	count, err := d.call(ctx, "FPDFText_CountChars", text)
	if err != nil {
		return err
	}
	n := max(int(int32(count)), 0)
	if n > maxChars {
		n, p.Cut = maxChars, true
	}
	if n == 0 {
		return nil
	}
	size := batch * charSize
	out, err := d.call(ctx, "malloc", uint64(size))
	if err != nil || out == 0 {
		return err
	}
	p.Chars = make([]Char, 0, n)
	fonts := map[uint32]*Font{}
	for from := 0; from < n; from += batch {
		to := min(from+batch, n)
		if _, err := d.call(ctx, "chars", text, uint64(from), uint64(to), out); err != nil {
			return err
		}
		b, _ := d.mod.Memory().Read(uint32(out), uint32((to-from)*charSize))
		handles := make([]uint32, 0, to-from)
		for ; len(b) >= charSize; b = b[charSize:] {
			p.Chars = append(p.Chars, readChar(b, turn))
			handles = append(handles, binary.LittleEndian.Uint32(b[72:]))
		}
		for i, h := range handles {
			f := fonts[h]
			if f == nil {
				if f, err = d.font(ctx, h); err != nil {
					return err
				}
				fonts[h] = f
			}
			p.Chars[from+i].Font = f
		}
	}
	p.Chars = paired(p.Chars)
	_, err = d.call(ctx, "free", out)
	return err
}

// paired joins the two halves in which pdfium gives characters beyond U+FFFF, such as
// italic letters of formulas and emoji. A half alone has no meaning.
func paired(chars []Char) []Char {
	kept := chars[:0]
	for i := 0; i < len(chars); i++ {
		c := chars[i]
		if utf16.IsSurrogate(c.Rune) {
			both := rune(utf8.RuneError)
			if i+1 < len(chars) {
				both = utf16.DecodeRune(c.Rune, chars[i+1].Rune)
			}
			if c.Rune = both; both != utf8.RuneError {
				i++
			} else {
				c.Unknown = true
			}
		}
		kept = append(kept, c)
	}
	return kept
}

// readChar decodes a record of glue.wat.
func readChar(b []byte, turn rotation) Char {
	f32 := func(at int) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[at:]))) }
	f64 := func(at int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[at:])) }
	flags := b[4]
	c := Char{Rune: rune(binary.LittleEndian.Uint32(b)), Generated: flags&1 != 0, Unknown: flags&4 != 0}
	if flags&2 != 0 {
		c.Rune = '-'
	}
	c.X, c.Y = turn.point(f64(16), f64(24))
	c.Box = turn.rect(f32(32), f32(36), f32(40), f32(44))
	ax, ay := turn.point(f32(48), f32(52)) // where the direction of the text and upwards lead
	ux, uy := turn.point(f32(56), f32(60))
	c.Size = math.Abs(f64(8)) * math.Hypot(ux, uy)
	c.Turned = math.Abs(ay) > 0.3*math.Abs(ax) || ax*f64(8) < 0
	return c
}

// font returns the look of a font; 0 stands for none.
func (d *Document) font(ctx context.Context, handle uint32) (*Font, error) {
	f := &Font{}
	if handle == 0 {
		return f, nil
	}
	var err error
	if f.Name, err = d.text(ctx, false, "FPDFFont_GetBaseFontName", uint64(handle)); err != nil {
		return nil, err
	}
	f.Name = strings.ToValidUTF8(f.Name, "")
	flags, err := d.call(ctx, "FPDFFont_GetFlags", uint64(handle))
	if err != nil {
		return nil, err
	}
	weight, err := d.call(ctx, "FPDFFont_GetWeight", uint64(handle))
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(f.Name)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(name, w) {
				return true
			}
		}
		return false
	}
	f.Bold = has("bold", "black", "heavy") || int32(flags)&(1<<18) != 0 || int32(weight) >= 600 && int32(weight) <= 1000
	f.Italic = has("italic", "oblique") || int32(flags)&(1<<6) != 0
	f.Mono = int32(flags)&1 != 0
	return f, nil
}

// links reads where the link annotations of a page lead.
func (d *Document) links(ctx context.Context, page uint64, turn rotation, p *Page) error {
	mem := d.mod.Memory()
	mem.WriteUint32Le(d.scratch, 0) // the position of the enumeration, the link after it
	for range maxLinks {
		found, err := d.call(ctx, "FPDFLink_Enumerate", page, uint64(d.scratch), uint64(d.scratch+4))
		if err != nil || uint32(found) == 0 {
			return err
		}
		next, _ := mem.ReadUint32Le(d.scratch)
		link, _ := mem.ReadUint32Le(d.scratch + 4)
		action, err := d.call(ctx, "FPDFLink_GetAction", uint64(link))
		if err != nil {
			return err
		}
		if action != 0 {
			uri, err := d.text(ctx, false, "FPDFAction_GetURIPath", d.handle, action)
			if err != nil {
				return err
			}
			if uri != "" && len(uri) <= 4096 {
				if _, err := d.call(ctx, "FPDFLink_GetAnnotRect", uint64(link), uint64(d.scratch)); err != nil {
					return err
				}
				r := d.floats(0, 4)
				p.Links = append(p.Links, Link{turn.rect(r[0], r[1], r[2], r[3]), strings.ToValidUTF8(uri, "")})
			}
		}
		mem.WriteUint32Le(d.scratch, next)
	}
	found, err := d.call(ctx, "FPDFLink_Enumerate", page, uint64(d.scratch), uint64(d.scratch+4))
	p.Cut = p.Cut || uint32(found) != 0
	return err
}

// fields reads the values of the form fields of a page.
func (d *Document) fields(ctx context.Context, page uint64, p *Page) error {
	if err := d.openForm(ctx); err != nil {
		return err
	}
	n, err := d.call(ctx, "FPDFPage_GetAnnotCount", page)
	if err != nil {
		return err
	}
	size := 0
	for i := range max(int(int32(n)), 0) {
		if i == maxFields || size > maxFieldText {
			p.Cut = true
			break
		}
		f, kind, err := d.field(ctx, page, i)
		if err != nil {
			return err
		}
		if kind == fileAttachment {
			p.Attached++
		}
		size += len(f.Name) + len(f.Value)
		// Each button of a group has the value of the group.
		if strings.TrimSpace(f.Value) != "" && (len(p.Fields) == 0 || p.Fields[len(p.Fields)-1] != f) {
			p.Fields = append(p.Fields, f)
		}
	}
	return nil
}

// openForm makes the environment of forms that pdfium asks for, once, for documents with
// a form. No script of the document runs in it.
func (d *Document) openForm(ctx context.Context) error {
	if d.form != 0 {
		return nil
	}
	kind, err := d.call(ctx, "FPDF_GetFormType", d.handle)
	if err != nil || kind == 0 {
		return err
	}
	info, err := d.call(ctx, "FPDF_FORMFILLINFO_Create")
	if err != nil || info == 0 {
		return err
	}
	d.form, err = d.call(ctx, "FPDFDOC_InitFormFillEnvironment", d.handle, info)
	return err
}

// The kinds of annotations and fields that hold values.
const (
	note           = 1
	freeText       = 3 // from here on to ink, marks on the page, with comments
	ink            = 15
	fileAttachment = 17
	widget         = 20
	fieldCheck     = 2
	fieldRadio     = 3
	fieldButton    = 1
)

// field returns the value of annotation i of a page, and its kind.
func (d *Document) field(ctx context.Context, page uint64, i int) (f Field, kind uint64, err error) {
	annotation, err := d.call(ctx, "FPDFPage_GetAnnot", page, uint64(i))
	if err != nil || annotation == 0 {
		return f, 0, err
	}
	defer func() {
		if _, e := d.call(ctx, "FPDFPage_CloseAnnot", annotation); err == nil {
			err = e
		}
	}()
	kind, err = d.call(ctx, "FPDFAnnot_GetSubtype", annotation)
	switch {
	case err != nil:
		return f, kind, err
	case kind == note, kind >= freeText && kind <= ink, kind == fileAttachment:
		f, err = d.comment(ctx, annotation, kind)
		return f, kind, err
	case kind == widget && d.form != 0:
		f, err = d.formField(ctx, annotation)
	}
	return f, kind, err
}

// comment returns what an annotation says.
func (d *Document) comment(ctx context.Context, annotation, kind uint64) (f Field, err error) {
	value := func(key string) (string, error) {
		at := uint64(d.scratch + scratchSize/2)
		d.mod.Memory().WriteString(uint32(at), key+"\x00")
		return d.text(ctx, true, "FPDFAnnot_GetStringValue", annotation, at)
	}
	if f.Value, err = value("Contents"); err != nil || kind == freeText || strings.TrimSpace(f.Value) == "" {
		return f, err
	}
	if f.Name = "Attached file"; kind != fileAttachment {
		var author string
		if author, err = value("T"); author != "" {
			author = " by " + author
		}
		f.Name = "Comment" + author
	}
	return f, err
}

// formField returns the value of a field of a form, if it has one.
func (d *Document) formField(ctx context.Context, annotation uint64) (f Field, err error) {
	kind, err := d.call(ctx, "FPDFAnnot_GetFormFieldType", d.form, annotation)
	if err != nil || int32(kind) <= fieldButton {
		return f, err
	}
	if f.Value, err = d.text(ctx, true, "FPDFAnnot_GetFormFieldValue", d.form, annotation); err != nil || f.Value == "" {
		return f, err
	}
	if (kind == fieldCheck || kind == fieldRadio) && f.Value == "Off" {
		return Field{}, nil
	}
	if f.Name, err = d.text(ctx, true, "FPDFAnnot_GetFormFieldAlternateName", d.form, annotation); err == nil && f.Name == "" {
		f.Name, err = d.text(ctx, true, "FPDFAnnot_GetFormFieldName", d.form, annotation)
	}
	return f, err
}
