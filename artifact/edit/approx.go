// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits bound approximate matches. Lengths are code points of the old text, and
// an edit is one code point inserted, deleted or replaced.
type Limits struct {
	// MaxRatio is the part of the old text that may differ, 0 to 1. MinDistance
	// can raise it to at most 30 %.
	MaxRatio float64

	MinDistance int // edits allowed even if MaxRatio allows fewer
	MinLength   int // shorter old texts are not matched approximately
	Margin      int // edits by which every other place must be worse; [MarginTenth]: a tenth of the old text, at least 2
}

// MarginTenth is a margin of a tenth of the old text.
const MarginTenth = -1

// DefaultLimits returns the default limits.
func DefaultLimits() Limits {
	return Limits{MaxRatio: 0.3, MinDistance: 5, MinLength: 12, Margin: MarginTenth}
}

// check refuses invalid limits.
func (l Limits) check() error {
	switch {
	case !(l.MaxRatio >= 0 && l.MaxRatio <= 1):
		return refuse(Invalid, "max_ratio is %g; want 0 to 1", l.MaxRatio)
	case l.MinDistance < 0:
		return refuse(Invalid, "min_distance is %d; want 0 or more", l.MinDistance)
	case l.MinLength < 0:
		return refuse(Invalid, "min_length is %d; want 0 or more", l.MinLength)
	case l.Margin < MarginTenth:
		return refuse(Invalid, "margin is %d; want 0 or more edits", l.Margin)
	}
	return nil
}

// distance returns the maximum number of edits for an old text of a length.
func (l Limits) distance(length int) int {
	allowed := max(l.MinDistance, int(l.MaxRatio*float64(length)))
	similar := int(max(DefaultLimits().MaxRatio, l.MaxRatio) * float64(length))
	return min(allowed, similar, length-1)
}

// margin returns the number of edits by which other places must be worse.
func (l Limits) margin(length int) int {
	if l.Margin == MarginTenth {
		return max(2, length/10)
	}
	return l.Margin
}

// findApproximate finds the substring that differs least from the old text. It
// refuses if another place is nearly as close, or if it is not clear at which
// character the match begins or ends.
func findApproximate(ctx context.Context, j *job, e Edit, _ bool) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		length := utf8.RuneCountInString(e.Old)
		limit := j.limits.distance(length)
		if length < j.limits.MinLength || limit <= 0 {
			return
		}
		a := approximate{meter: &j.meter, text: j.doc.text, old: e.Old, pattern: []rune(e.Old)}
		a.profile = newProfile(a.pattern)
		a.margin = j.limits.margin(length)
		m, found, err := a.find(ctx, limit)
		if err != nil {
			yield(match{}, err)
			return
		}
		if found {
			m.put = e.New
			if strings.Contains(m.put, lineEnd) {
				m.put = withLineEnds(m.put, lineEndAt(j.doc.text, m.start))
			}
			yield(m, nil)
		}
	}
}

// An approximate is one search.
type approximate struct {
	meter     *meter
	text, old string
	pattern   []rune
	profile   *profile
	backward  *profile // of the pattern from its end
	margin    int
}

// A region is a part of the text, in bytes.
type region struct{ from, till int }

func (a *approximate) find(ctx context.Context, limit int) (match, bool, error) {
	at, err := a.areaOf(ctx, limit)
	if err != nil {
		return match{}, false, err
	}
	d, ends := at.limit, at.ends
	if ends == nil {
		if err := a.affordable(at.regions, at.limit); err != nil {
			return match{}, false, err
		}
		if d, ends, err = a.closest(ctx, at.regions, at.limit); err != nil || len(ends) == 0 {
			return match{}, false, err
		}
	}
	end, ok := a.chooseEdge(ends, d, lastOf, endEdge)
	if !ok {
		return match{}, false, a.unclear(ctx, d, ends)
	}
	starts, err := a.starts(ctx, 0, end, d)
	if err != nil {
		return match{}, false, err
	}
	start, ok := a.chooseEdge(starts, d, firstOf, startEdge)
	if !ok {
		return match{}, false, a.tied(region{starts[0], end}, region{starts[len(starts)-1], end})
	}
	best := region{start, end}
	other, found, err := a.second(ctx, at.regions, best, d+a.margin)
	if err != nil {
		return match{}, false, err
	}
	if found {
		return match{}, false, a.tied(best, other)
	}
	return match{start: start, end: end, similarity: 1 - float64(d)/float64(len(a.pattern))}, true, nil
}

// affordable refuses at once a search that would exceed the work limit: in any
// text, as many rows of a column as there may be edits have counts within the
// limit.
func (a *approximate) affordable(regions []region, limit int) error {
	columns := 0
	for _, r := range regions {
		columns += countChars(a.text[r.from:r.till])
	}
	if int64(columns)*int64((limit+word-1)/word) > int64(*a.meter) {
		return tooCostly()
	}
	return nil
}

// closest returns the least distance in the regions, if it is within limit, and
// the ends of the matches with it. It collects no more ends than one place can
// have.
func (a *approximate) closest(ctx context.Context, regions []region, limit int) (d int, ends []int, err error) {
	d = limit
	for _, r := range regions {
		err := a.profile.search(ctx, a.meter, a.text[r.from:r.till], d, func(end, distance int) int {
			if distance < d {
				d, ends = distance, ends[:0]
			}
			if len(ends) <= len(a.pattern)+d {
				ends = append(ends, r.from+end)
			} else if d == 1 {
				return -1 // nothing is closer: the exact layer has found nothing
			}
			return d
		})
		if err != nil {
			return 0, nil, err
		}
	}
	return d, ends, nil
}

// starts returns, in ascending order, where the matches begin that lie after from,
// end at end and differ by d edits, which is the minimum.
func (a *approximate) starts(ctx context.Context, from, end, d int) ([]int, error) {
	if a.backward == nil {
		a.backward = a.profile.reversed()
	}
	most := min(len(a.pattern)+d, end-from)
	before := make([]int32, 0, most) // numbers of the characters from end to from
	at := make([]int, 0, most)       // where each of them begins
	for i := end; i > from && len(before) < most; {
		r, n := rune(a.text[i-1]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeLastRuneInString(a.text[:i])
		}
		i -= n
		before, at = append(before, a.profile.number(r)), append(at, i)
	}
	lengths, err := a.backward.lengths(ctx, a.meter, before, d)
	var starts []int
	for _, n := range slices.Backward(lengths) {
		starts = append(starts, at[n-1])
	}
	return starts, err
}

// second finds another match than best that differs by at most limit edits.
func (a *approximate) second(ctx context.Context, regions []region, best region, limit int) (region, bool, error) {
	limit = min(limit, len(a.pattern)-1)
	for _, r := range regions {
		for _, side := range []region{{r.from, min(r.till, best.from)}, {max(r.from, best.till), r.till}} {
			if side.from >= side.till {
				continue
			}
			end, d := -1, 0
			err := a.profile.search(ctx, a.meter, a.text[side.from:side.till], limit, func(e, distance int) int {
				end, d = side.from+e, distance
				return -1
			})
			if err != nil {
				return region{}, false, err
			}
			if end >= 0 {
				return a.place(ctx, side.from, end, d)
			}
		}
	}
	return region{}, false, nil
}

// place returns a match that ends at end and differs by d edits.
func (a *approximate) place(ctx context.Context, from, end, d int) (region, bool, error) {
	starts, err := a.starts(ctx, from, end, d)
	if err != nil {
		return region{}, false, err
	}
	return region{starts[len(starts)/2], end}, true, nil
}

// unclear refuses matches that end at several places.
func (a *approximate) unclear(ctx context.Context, d int, ends []int) error {
	first, _, err := a.place(ctx, 0, ends[0], d)
	if err != nil {
		return err
	}
	last, _, err := a.place(ctx, 0, ends[len(ends)-1], d)
	if err != nil {
		return err
	}
	return a.tied(first, last)
}

// tied refuses because of two matches. If they overlap, it is one place with an
// unclear edge.
func (a *approximate) tied(p, q region) error {
	if q.from < p.from || q.from == p.from && q.till < p.till {
		p, q = q, p
	}
	c := cursor{text: a.text}
	places := []Place{c.place(match{start: p.from, end: p.till}), c.place(match{start: q.from, end: q.till})}
	var r *Refusal
	if q.from < p.till {
		r = refuse(Ambiguous, "the old text resembles what stands on line %d, but it is not clear at which character that begins or ends; copy the passage exactly as it stands", places[0].Line)
	} else {
		r = refuse(Ambiguous, "the old text is not there, and it resembles more than one place: lines %d, %d; copy the passage exactly as it stands, with more of what is around it", places[0].Line, places[1].Line)
	}
	r.Places = places
	return r
}
