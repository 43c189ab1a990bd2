// SPDX-License-Identifier: Apache-2.0

// Package extract converts documents to Markdown.
//
// Begin with [Text]. It reads Word (docx), Excel (xlsx), PowerPoint (pptx), PDF,
// HTML, CSV, TSV, OpenDocument text, EPUB and RTF. Headings, lists, tables, links,
// emphasis, code and footnotes are kept; sheets become tables under their names;
// slides keep titles and notes. A picture becomes ![alternative text](its name in
// the document), without its bytes. Comments like "<!-- page 2 -->" mark positions.
// Omitted content is counted in [Extracted.LeftOut] and in a final comment.
//
// The input is untrusted. Every reader works within the bounds of [Options], limits
// expansion and depth, and stops when its context ends. Nothing outside the document
// is opened, and no script, macro, formula or external entity is evaluated.
package extract

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/pdf"
)

// The defaults of [Options].
const (
	DefaultMaxText     = 20 << 20  // bytes
	DefaultMaxExpanded = 512 << 20 // bytes
	DefaultMaxPages    = 5_000
	DefaultMaxCells    = 2_000_000
)

// MarkdownType is the media type of the result of [Text].
const MarkdownType = "text/markdown"

// Options bound the work. Zero means the default of each.
type Options struct {
	MaxText     int64 // bytes of the text; the rest is cut
	MaxExpanded int64 // total bytes of decompressed parts
	MaxPages    int   // pages, slides, sheets or chapters; the rest is cut
	MaxCells    int   // cells of sheets and tables; the rest is cut

	PDF *pdf.Engine // opens PDFs; nil: an engine that is started for the call alone
}

// An Omission is a kind of content that is not in the text.
type Omission string

// The omissions. Pictures count only if they have no Markdown, as in a PDF.
const (
	OmitPicture  Omission = "pictures"
	OmitChart    Omission = "charts"
	OmitDiagram  Omission = "diagrams"
	OmitObject   Omission = "embedded objects"
	OmitHidden   Omission = "hidden passages"
	OmitDeleted  Omission = "deleted passages"
	OmitControl  Omission = "form fields"
	OmitPage     Omission = "unreadable pages"
	OmitGlyph    Omission = "characters without a known meaning"
	OmitScript   Omission = "scripts"
	OmitMedia    Omission = "sound and video clips"
	OmitScan     Omission = "pages that are only pictures"
	OmitPart     Omission = "unreadable parts"
	OmitFile     Omission = "attached files"
	OmitEncoding Omission = "characters that do not decode"
)

// Extracted is the text of a document. The caller owns it.
type Extracted struct {
	Text      string // Markdown, UTF-8, ends in a newline unless empty
	MediaType string // [MarkdownType]
	Pages     int    // pages, slides, sheets or chapters of the document; 0: none or not known
	Cut       bool   // a bound truncated the text
	LeftOut   map[Omission]int

	// Doubt says why the text stands for little of the document, "" if it does not:
	// more than a fifth of its characters have no known meaning, or half of its pages
	// are only pictures. It is also said at the head of Text.
	Doubt string
}

// Supports reports whether [Text] reads documents of a media type. It does not check
// the bytes.
func Supports(mediaType string) bool { return readerOf(mediaType) != nil }

// A reader writes the text of src to o.
type reader func(src *source, o *out) error

// A source is the document that a reader reads.
type source struct {
	*budget
	open func() (*openPDF, error) // at as a PDF
	at   io.ReaderAt              // fails beyond its bounds and after the end of the context
	size int64
	info artel.MediaInfo
}

func readerOf(mediaType string) reader {
	switch mediaType {
	case "text/html", "application/xhtml+xml":
		return readHTML
	case "text/csv", "text/tab-separated-values":
		return readCSV
	case "application/pdf":
		return readPDF
	case "application/rtf":
		return readRTF
	case "application/epub+zip":
		return readEPUB
	case "application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text-template":
		return readODT
	}
	office, ok := strings.CutPrefix(mediaType, "application/vnd.openxmlformats-officedocument.")
	if !ok {
		office, ok = strings.CutPrefix(mediaType, "application/vnd.ms-")
		if !ok || !strings.Contains(office, ".macroenabled.12") || strings.Contains(office, ".binary.") { // xlsb is no XML
			return nil
		}
	}
	switch {
	case strings.HasPrefix(office, "word"):
		return readDOCX
	case strings.HasPrefix(office, "spreadsheetml"), strings.HasPrefix(office, "excel"):
		return readXLSX
	case strings.HasPrefix(office, "presentationml"), strings.HasPrefix(office, "powerpoint"):
		return readPPTX
	}
	return nil
}

// Text returns the text of the size bytes at r as Markdown. The reader is
// chosen by info.MediaType, and text is decoded from info.Charset, both as
// package media detected them.
//
// All calls of a process share a limit on memory: one waits, until ctx ends, while the
// documents that are being read may need it all. So a reader never calls Text.
//
// A bound on the text, the pages or the cells truncates the text and sets Cut. Errors
// are [*artel.Error]: of kind Unsupported for other media types and encrypted
// documents, Invalid for damaged ones, TooLarge beyond MaxExpanded or the limits on
// work, Canceled if ctx ended, or that of r.
func Text(ctx context.Context, r io.ReaderAt, size int64, info artel.MediaInfo, o Options) (x Extracted, err error) {
	defer func() {
		if p := recover(); p != nil {
			x, err = Extracted{}, artel.Errorf(artel.Internal, op, info.MediaType, "reading the document failed: %v", p)
		}
	}()
	return read(ctx, r, size, info, o)
}

const op = "extract.Text"

// read is [Text] without recovering from panics.
func read(ctx context.Context, r io.ReaderAt, size int64, info artel.MediaInfo, opts Options) (Extracted, error) {
	f := readerOf(info.MediaType)
	if f == nil {
		if isOLE(r) {
			return Extracted{}, oldOffice(r, size)
		}
		return Extracted{}, artel.Errorf(artel.Unsupported, op, info.MediaType,
			"no text can be taken out of this media type; docx, xlsx, pptx, pdf, html, csv, tsv, odt, epub and rtf can be read")
	}
	b := newBudget(ctx, opts)
	release, err := reserve(ctx, weight(size, info.MediaType, b))
	if err != nil {
		return Extracted{}, explain(ctx, r, size, info, err)
	}
	defer release()
	src := &source{budget: b, at: &meteredAt{r: r, b: b}, size: size, info: info}
	src.open = func() (*openPDF, error) { return openWith(ctx, opts.PDF, src) }
	o := &out{budget: b}
	err = f(src, o)
	if err == nil || errors.Is(err, errFull) {
		err = cmp.Or(ctx.Err(), err) // a line that the end of the context left incomplete
	}
	if err != nil && !errors.Is(err, errFull) {
		return Extracted{}, explain(ctx, r, size, info, err)
	}
	return o.finish(), nil
}

// explain turns the error of a reader into one for users.
func explain(ctx context.Context, r io.ReaderAt, size int64, info artel.MediaInfo, err error) error {
	if ctx.Err() != nil {
		return artel.Errorf(artel.Canceled, op, info.MediaType, "reading the document was stopped: %w", ctx.Err())
	}
	if _, ok := errors.AsType[*artel.Error](err); ok {
		return err
	}
	if isOLE(r) {
		return oldOffice(r, size)
	}
	if damaged(err) {
		return artel.Errorf(artel.Invalid, op, info.MediaType,
			"the document is damaged (%w); open it in the program that made it and save it again", err)
	}
	return artel.Errorf(artel.KindOf(err), op, info.MediaType, "reading the document: %w", err)
}

// damaged reports errors caused by the bytes and not by their storage.
func damaged(err error) bool {
	for _, is := range []error{io.EOF, io.ErrUnexpectedEOF, zip.ErrFormat, zip.ErrAlgorithm, zip.ErrChecksum, errDamaged} {
		if errors.Is(err, is) {
			return true
		}
	}
	if _, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return true
	}
	_, ok := errors.AsType[flate.CorruptInputError](err)
	return ok
}

// isOLE reports the container of old Office formats and of encrypted new ones.
func isOLE(r io.ReaderAt) bool {
	var head [8]byte
	n, _ := r.ReadAt(head[:], 0)
	return n == len(head) && string(head[:]) == "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"
}

// oldOffice returns the error for either: an encrypted package has a stream
// EncryptedPackage in the directory of the container.
func oldOffice(r io.ReaderAt, size int64) error {
	const most = 4 << 20
	name := []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")
	buf := make([]byte, min(size, most))
	for _, off := range []int64{0, max(0, size-most)} {
		n, _ := r.ReadAt(buf, off)
		if bytes.Contains(buf[:n], name) {
			return artel.Errorf(artel.Unsupported, op, "", "the document is encrypted; save it without a password and upload it again")
		}
	}
	return artel.Errorf(artel.Unsupported, op, "", "the document has the format of Office before 2007 (doc, xls, ppt); save it as docx, xlsx, pptx or pdf and upload it again")
}

// finish ends the text with comments about omissions.
func (o *out) finish() Extracted {
	x := Extracted{MediaType: MarkdownType, Pages: o.pages, Cut: o.full || o.over || o.cut != "", LeftOut: o.omitted, Doubt: o.doubt}
	if o.full || o.over {
		o.truncate("the text is longer than " + byteSize(o.maxText))
	}
	var said []string
	for what, n := range o.omitted {
		said = append(said, fmt.Sprintf("%d %s", n, what))
	}
	slices.SortFunc(said, func(a, b string) int { // by name, for a deterministic text
		return cmp.Compare(a[strings.IndexByte(a, ' '):], b[strings.IndexByte(b, ' '):])
	})
	if len(said) > 0 {
		o.last("<!-- left out: " + strings.Join(said, ", ") + " -->")
	}
	if o.cut != "" {
		o.last("<!-- cut here: " + o.cut + " -->")
	}
	if o.b.Len() > 0 && !strings.HasSuffix(o.b.String(), "\n") {
		o.b.WriteByte('\n')
	}
	x.Text = o.b.String()
	if o.doubt != "" {
		x.Text = "<!-- this text is doubtful: " + o.doubt + "; look at the pages themselves -->\n\n" + x.Text
	}
	return x
}

// last adds a comment beyond the limit of the text.
func (o *out) last(comment string) {
	if o.b.Len() > 0 {
		o.b.WriteString("\n\n")
	}
	o.b.WriteString(comment)
}
