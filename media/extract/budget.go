// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/artelhq/artel"
)

var (
	// errFull ends reading without being a failure: a bound was met and the
	// text is cut.
	errFull = errors.New("the text is cut")
	// errDamaged is what is wrong with bytes that do not follow their format.
	errDamaged = errors.New("it does not follow its format")
)

// Bounds that no option changes: nobody's document comes near them, and beyond
// them a document is made to exhaust its reader.
const (
	maxDepth     = 200       // nested elements, objects, pages
	maxDirectory = 16 << 20  // bytes of a ZIP's directory
	maxNodes     = 1_000_000 // elements of one paragraph, row or slide
	maxNesting   = 12        // nested lists and quotes that are still indented
	maxSteps     = 200 << 20 // elementary steps of one call
	tickEvery    = 1 << 12   // steps between two looks at the context
)

// A budget is what one call may spend. Everything that reads shares it.
type budget struct {
	stopped     func() error // of the context
	maxText     int64
	maxExpanded int64
	maxPages    int
	maxCells    int

	expanded int64
	cells    int
	steps    int
	tick     int    // the step at which the context is looked at next
	full     bool   // no more text is taken
	cut      string // why a reader stopped before the end, for people
	pages    int
	left     map[Omission]int
}

func newBudget(ctx context.Context, o Options) *budget {
	return &budget{
		stopped: ctx.Err,
		maxText: cmp.Or(max(o.MaxText, 0), DefaultMaxText), maxExpanded: cmp.Or(max(o.MaxExpanded, 0), DefaultMaxExpanded),
		maxPages: cmp.Or(max(o.MaxPages, 0), DefaultMaxPages), maxCells: cmp.Or(max(o.MaxCells, 0), DefaultMaxCells),
	}
}

// step counts work. It fails when the context has ended, when there is no more
// room for text, and when a document takes more steps than any honest one.
func (b *budget) step() error {
	b.steps++
	if b.full {
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

// spend counts n bytes that came out of a compressed part.
func (b *budget) spend(n int) error {
	b.expanded += int64(n)
	if b.expanded > b.maxExpanded {
		return artel.Errorf(artel.TooLarge, op, "", "the document grows to more than %d bytes when it is unpacked; raise the limit or split it", b.maxExpanded)
	}
	return b.stopped()
}

// cell counts a cell and reports whether it is still to be read.
func (b *budget) cell() bool {
	b.cells++
	if b.cells > b.maxCells {
		b.omitRest("the document has more cells than the limit")
		return false
	}
	return true
}

// omit counts something that the text does not say.
func (b *budget) omit(what Omission, n int) {
	if n <= 0 {
		return
	}
	if b.left == nil {
		b.left = map[Omission]int{}
	}
	b.left[what] += n
}

// omitRest says why the text ends before the document.
func (b *budget) omitRest(why string) { b.cut = cmp.Or(b.cut, why) }

// A meteredAt fails once the context has ended, and while limit is set, once
// more than that was read.
type meteredAt struct {
	r     io.ReaderAt
	b     *budget
	limit int64 // 0 is none
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

// An expander counts what a compressed part grows to.
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
