// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"regexp"
	"time"
	"unicode/utf16"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/artelhq/artel"
)

const op = "pdf.Open"

// A Document is an open PDF. Its methods must not be called concurrently.
type Document struct {
	at      io.ReaderAt
	failed  error // of the last read
	until   time.Time
	limit   time.Duration
	release func()

	mod, glue api.Module
	funcs     map[string]api.Function
	handle    uint64
	form      uint64 // 0: none
	pages     int
	scratch   uint32 // scratchSize bytes in the memory of the instance
	broken    error  // why the instance stopped
}

const scratchSize = 64 << 10 // bytes

type documentKey struct{}

// errTooLong is the cause of the end of contexts at the time limit.
var errTooLong = errors.New("the time for the document is over")

// within returns a context for calls: it ends with ctx and at the time limit.
func (d *Document) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(context.WithValue(ctx, documentKey{}, d), d.until, errTooLong)
}

// open makes an instance and opens the document in it.
func (s *sandbox) open(ctx context.Context, r io.ReaderAt, size int64, o Options) (_ *Document, err error) {
	d := &Document{at: r, funcs: map[string]api.Function{}, until: time.Now().Add(o.MaxTime), limit: o.MaxTime}
	ctx, cancel := d.within(ctx)
	defer cancel()
	defer func() {
		if err != nil {
			d.end()
		}
	}()
	if size > 1<<32-1 {
		return nil, artel.Errorf(artel.TooLarge, op, "", "the document is larger than 4 GB, which PDF readers do not take; split it")
	}
	made := experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(newMemory))
	if d.mod, err = s.runtime.InstantiateModule(made, s.pdfium, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")); err != nil {
		return nil, d.explain(ctx, err)
	}
	linked := experimental.WithImportResolver(ctx, func(name string) api.Module {
		if name == "pdfium" {
			return d.mod
		}
		return nil
	})
	if d.glue, err = s.runtime.InstantiateModule(linked, s.glue, wazero.NewModuleConfig().WithName("").WithStartFunctions()); err != nil {
		return nil, d.explain(ctx, err)
	}
	if _, err = d.call(ctx, "FPDF_InitLibrary"); err != nil {
		return nil, err
	}
	scratch, err := d.call(ctx, "malloc", scratchSize)
	if err != nil {
		return nil, err
	}
	d.scratch = uint32(scratch)
	if err = d.load(ctx, size); err != nil {
		return nil, err
	}
	pages, err := d.call(ctx, "FPDF_GetPageCount", d.handle)
	if err != nil {
		return nil, err
	}
	if d.pages = int(int32(pages)); d.pages <= 0 {
		return nil, artel.Errorf(artel.Invalid, op, "", "the document has no pages that can be found; open it in the program that made it and save it again")
	}
	return d, nil
}

// The errors of pdfium for documents that it does not open.
const (
	badFormat   = 3
	badPassword = 4
	badSecurity = 5
)

// load opens the document, with a trailer of its own if that is missing.
func (d *Document) load(ctx context.Context, size int64) error {
	for repaired := false; ; repaired = true {
		access, err := d.call(ctx, "FPDF_FILEACCESS_Create", uint64(size), uint64(d.scratch))
		if err != nil {
			return err
		}
		if d.handle, err = d.call(ctx, "FPDF_LoadCustomDocument", access, 0); err != nil || d.handle != 0 {
			return err
		}
		if d.failed != nil && !errors.Is(d.failed, io.EOF) {
			return d.failed
		}
		code, err := d.call(ctx, "FPDF_GetLastError")
		if err != nil {
			return err
		}
		switch code {
		case badPassword, badSecurity:
			return artel.Errorf(artel.Unsupported, op, "", "the document is encrypted; save it without a password and upload it again")
		case badFormat:
			if trailer := d.trailer(size); trailer != "" && !repaired {
				d.at = &extended{d.at, size, trailer}
				size += int64(len(trailer))
				continue
			}
		}
		return artel.Errorf(artel.Invalid, op, "", "the document is damaged (no pages can be found in it); open it in the program that made it and save it again")
	}
}

// trailer returns the end that a document lacks which was cut off, "" if its catalog
// cannot be found.
func (d *Document) trailer(size int64) string {
	const most = 16 << 20 // bytes that are searched
	b := make([]byte, min(size, most))
	n, _ := d.at.ReadAt(b, 0)
	m := catalog.FindSubmatch(b[:n])
	if m == nil {
		return ""
	}
	return "\ntrailer\n<</Root " + string(m[1]) + " " + string(m[2]) + " R>>\nstartxref\n0\n%%EOF\n"
}

var catalog = regexp.MustCompile(`(\d{1,9})\s+(\d{1,5})\s+obj\s*<<[^<>]*/Type\s*/Catalog`)

// An extended reads a document and bytes after it.
type extended struct {
	at   io.ReaderAt
	size int64
	more string
}

// ReadAt implements [io.ReaderAt].
func (e *extended) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	if off < e.size {
		var err error
		if n, err = e.at.ReadAt(p[:min(int64(len(p)), e.size-off)], off); n < len(p) && off+int64(n) < e.size {
			return n, err
		}
	}
	if n < len(p) {
		n += copy(p[n:], e.more[min(off+int64(n)-e.size, int64(len(e.more))):])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// call calls a function of pdfium and returns its result, if it has one.
func (d *Document) call(ctx context.Context, name string, args ...uint64) (uint64, error) {
	if d.broken != nil {
		return 0, d.broken
	}
	f := d.funcs[name]
	if f == nil {
		if f = d.mod.ExportedFunction(name); f == nil {
			f = d.glue.ExportedFunction(name)
		}
		d.funcs[name] = f
	}
	stack := [8]uint64{}
	copy(stack[:], args)
	if err := f.CallWithStack(ctx, stack[:max(len(args), 1)]); err != nil {
		d.broken = d.explain(ctx, err)
		return 0, d.broken
	}
	return stack[0], nil
}

// explain turns an error of the runtime into one for users.
func (d *Document) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errTooLong):
		return artel.Errorf(artel.TooLarge, op, "", "the document takes longer than %s to read; split it or save it again in a simpler form", d.limit)
	case ctx.Err() != nil:
		return stopped(ctx)
	case d.failed != nil && !errors.Is(d.failed, io.EOF):
		return d.failed
	}
	return artel.Errorf(artel.TooLarge, op, "", "the document needs more memory than it may, or breaks its reader; save it again in the program that made it (%w)", firstLine(err))
}

// firstLine leaves the stack of the instance out of an error.
func firstLine(err error) error {
	for i, r := range err.Error() {
		if r == '\n' {
			return errors.New(err.Error()[:i])
		}
	}
	return err
}

func stopped(ctx context.Context) error {
	return artel.Errorf(artel.Canceled, op, "", "reading the document was stopped: %w", ctx.Err())
}

// Pages returns the number of pages.
func (d *Document) Pages() int { return d.pages }

// Close ends the instance. The document is of no use afterwards.
func (d *Document) Close() error {
	d.end()
	d.release()
	return nil
}

func (d *Document) end() {
	ctx := context.Background()
	if d.glue != nil {
		_ = d.glue.Close(ctx)
	}
	if d.mod != nil {
		_ = d.mod.Close(ctx)
	}
}

// floats reads n float32 values of the scratch memory, from an offset in bytes.
func (d *Document) floats(offset uint32, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		f, _ := d.mod.Memory().ReadFloat32Le(d.scratch + offset + uint32(4*i))
		v[i] = float64(f)
	}
	return v
}

// maxString bounds the texts that pdfium returns in one piece, in bytes.
const maxString = 1 << 20

// text calls a function that writes text to a buffer as UTF-16 or in bytes and returns
// its length in bytes with the final zero. args come before the buffer and its size.
func (d *Document) text(ctx context.Context, wide bool, name string, args ...uint64) (_ string, err error) {
	at := uint64(d.scratch)
	n, err := d.call(ctx, name, append(args, at, scratchSize/2)...)
	if err != nil || n == 0 || uint32(n) > maxString {
		return "", err
	}
	if n = uint64(uint32(n)); n > scratchSize/2 {
		if at, err = d.call(ctx, "malloc", n); err != nil || at == 0 {
			return "", err
		}
		defer func() {
			if _, e := d.call(ctx, "free", at); err == nil {
				err = e
			}
		}()
		if _, err = d.call(ctx, name, append(args, at, n)...); err != nil {
			return "", err
		}
	}
	b, _ := d.mod.Memory().Read(uint32(at), uint32(n))
	if !wide {
		return string(b[:max(len(b)-1, 0)]), nil
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	for len(units) > 0 && units[len(units)-1] == 0 {
		units = units[:len(units)-1]
	}
	return string(utf16.Decode(units)), nil
}
