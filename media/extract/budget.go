// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/artelhq/artel"
)

var (
	// errFull ends reading without a failure: a bound truncates the text.
	errFull = errors.New("the text is cut")
	// errDamaged means that bytes do not follow their format.
	errDamaged = errors.New("it does not follow its format")
)

// Fixed bounds, far above any real document: beyond them a document is treated as
// hostile.
const (
	maxDepth     = 200       // nested elements, objects, pages
	maxDirectory = 16 << 20  // bytes of a ZIP's directory
	maxNodes     = 1_000_000 // elements of one paragraph, row or slide
	maxStyles    = 50_000    // styles of a document
	maxNesting   = 12        // nested lists and quotes with indentation
	maxSteps     = 200 << 20 // elementary steps of one call
	tickEvery    = 1 << 12   // steps between checks of the context
)

// A budget bounds the work of one call and is shared by all its readers.
type budget struct {
	stopped     func() error // of the context
	maxText     int64
	maxExpanded int64
	maxPages    int
	maxCells    int

	expanded int64
	cells    int
	steps    int
	tick     int    // the step of the next check of the context
	full     bool   // the text has reached its limit
	over     bool   // a part has more text than fits; reading ends
	cut      string // why a reader stopped before the end, for users
	pages    int
	doubt    string // why the text stands for little of the document
	omitted  map[Omission]int
}

func newBudget(ctx context.Context, o Options) *budget {
	return &budget{
		stopped: ctx.Err,
		maxText: cmp.Or(max(o.MaxText, 0), DefaultMaxText), maxExpanded: cmp.Or(max(o.MaxExpanded, 0), DefaultMaxExpanded),
		maxPages: cmp.Or(max(o.MaxPages, 0), DefaultMaxPages), maxCells: cmp.Or(max(o.MaxCells, 0), DefaultMaxCells),
	}
}

// step counts work. It fails if the context has ended, the text is full, or the steps
// exceed maxSteps.
func (b *budget) step() error {
	b.steps++
	if b.full || b.over {
		return errFull
	}
	if b.steps < b.tick {
		return nil
	}
	b.tick = b.steps + tickEvery
	if b.steps > maxSteps {
		return artel.Errorf(artel.TooLarge, op, "", "the document takes more work than any should; its text is not read")
	}
	return b.stopped()
}

// spend counts n decompressed bytes.
func (b *budget) spend(n int) error {
	b.expanded += int64(n)
	if b.expanded > b.maxExpanded {
		return artel.Errorf(artel.TooLarge, op, "", "the document unpacks to more than %s; save it again in the program that made it, or split it", byteSize(b.maxExpanded))
	}
	return b.stopped()
}

// byteSize returns a number of bytes for people.
func byteSize(n int64) string {
	if n >= 1<<20 {
		return strconv.FormatInt(n>>20, 10) + " MB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// cell counts a cell and reports whether it is within the limit.
func (b *budget) cell() bool {
	b.cells++
	if b.cells > b.maxCells {
		b.truncate("the document has more cells than the limit")
		return false
	}
	return true
}

// omit counts omitted content.
func (b *budget) omit(what Omission, n int) {
	if n <= 0 {
		return
	}
	if b.omitted == nil {
		b.omitted = map[Omission]int{}
	}
	b.omitted[what] += n
}

// truncate records why the text ends before the document.
func (b *budget) truncate(why string) { b.cut = cmp.Or(b.cut, why) }

// A meteredAt fails after the end of the context and beyond limit.
type meteredAt struct {
	r     io.ReaderAt
	b     *budget
	limit int64 // 0: none
	spent int64
}

func (m *meteredAt) ReadAt(p []byte, off int64) (int, error) {
	if err := m.b.stopped(); err != nil {
		return 0, err
	}
	m.spent += int64(len(p))
	if m.limit > 0 && m.spent > m.limit {
		return 0, artel.Errorf(artel.TooLarge, op, "", "the document has too many parts")
	}
	return m.r.ReadAt(p, off)
}

// An expander counts decompressed bytes.
type expander struct {
	r io.Reader
	b *budget
}

func (e *expander) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if spent := e.b.spend(n); spent != nil {
		return n, spent
	}
	return n, err
}
