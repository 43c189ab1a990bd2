// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"slices"
)

// limits bound the cost of a comparison.
type limits struct {
	edits int // a search for the middle of a path goes this far from each end
	work  int // steps that all such searches may take together
}

// After the work is spent, searches are this short. Each still goes forward by
// about hasty lines, so that the rest takes time in proportion to its length.
const (
	hasty     = 32
	hastyWork = 2 * hasty * hasty
)

// checkDepth is the number of steps of a search between two checks of the context.
const checkDepth = 64

// deepest is how often a part is divided at lines that occur once.
const deepest = 8

// lineLimits are those for n lines on both sides together.
func lineLimits(n int) limits {
	return limits{edits: 4096, work: 1<<26 + 8*n}
}

// changes marks the lines of two texts that are not in the other. The unmarked
// lines are equal, in order.
type changes struct {
	removed, added []bool
	minimal        bool
}

// A box is a part of both sequences.
type box struct {
	a0, a1, b0, b1 int
	depth          int  // divisions at anchors so far
	fresh          bool // by the last division, so that it may have nothing in common
}

// A comparison is the state of [compare].
type comparison struct {
	ctx    context.Context
	a, b   []int32 // what both sides have
	atA    []int   // where an element of a stood at first
	atB    []int
	ids    int
	out    changes
	limits limits
	steps  int // all that searches took

	forward, backward []int32 // how far each diagonal was followed, see middle
	once              []once  // by number, for anchors
	stack             []box
}

// compare finds a longest common subsequence of two sequences of numbers below
// ids, or a long one if that would cost more than the limits allow.
func compare(ctx context.Context, a, b []int32, ids int, l limits) (changes, error) {
	c := &comparison{ctx: ctx, ids: ids, limits: l}
	if err := c.run(a, b); err != nil {
		return changes{}, err
	}
	return c.out, nil
}

func (c *comparison) run(a, b []int32) error {
	c.out = changes{removed: make([]bool, len(a)), added: make([]bool, len(b)), minimal: true}
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	endA, endB := len(a), len(b)
	for endA > head && endB > head && a[endA-1] == b[endB-1] {
		endA--
		endB--
	}
	in := make([]uint8, c.ids) // 1: in a, 2: in b
	for _, id := range a[head:endA] {
		in[id] |= 1
	}
	for _, id := range b[head:endB] {
		in[id] |= 2
	}
	c.a, c.atA = shared(a[head:endA], head, in, c.out.removed)
	c.b, c.atB = shared(b[head:endB], head, in, c.out.added)
	c.stack = append(c.stack, box{a1: len(c.a), b1: len(c.b)})
	for len(c.stack) > 0 {
		top := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		if err := c.solve(top); err != nil {
			return err
		}
	}
	return nil
}

// shared returns the elements that occur on both sides, with their positions, and
// marks the others.
func shared(ids []int32, offset int, in []uint8, marks []bool) (kept []int32, at []int) {
	n := 0
	for _, id := range ids {
		if in[id] == 3 {
			n++
		}
	}
	kept, at = make([]int32, 0, n), make([]int, 0, n)
	for i, id := range ids {
		if in[id] == 3 {
			kept, at = append(kept, id), append(at, offset+i)
		} else {
			marks[offset+i] = true
		}
	}
	return kept, at
}

// solve marks what differs in a box, or divides it in two or more boxes.
func (c *comparison) solve(x box) error {
	for x.a0 < x.a1 && x.b0 < x.b1 && c.a[x.a0] == c.b[x.b0] {
		x.a0++
		x.b0++
	}
	for x.a0 < x.a1 && x.b0 < x.b1 && c.a[x.a1-1] == c.b[x.b1-1] {
		x.a1--
		x.b1--
	}
	if x.a0 == x.a1 || x.b0 == x.b1 || x.fresh && c.disjoint(x) {
		c.mark(x)
		return nil
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	i, j, found, err := c.middle(c.a[x.a0:x.a1], c.b[x.b0:x.b1])
	if err != nil {
		return err
	}
	if !found {
		if x.depth < deepest && c.divide(x) {
			return nil
		}
		x.depth = deepest
		c.out.minimal = false
	}
	i, j = x.a0+i, x.b0+j
	c.stack = append(c.stack, box{i, x.a1, j, x.b1, x.depth, false}, box{x.a0, i, x.b0, j, x.depth, false})
	return nil
}

// mark marks all elements of a box as changed.
func (c *comparison) mark(x box) {
	for _, i := range c.atA[x.a0:x.a1] {
		c.out.removed[i] = true
	}
	for _, j := range c.atB[x.b0:x.b1] {
		c.out.added[j] = true
	}
}

// none stands for a diagonal that was not reached.
const none = -1 << 30

// middle finds a point that a shortest path from the beginning to the end of
// both sequences goes through, about half way. Both are not empty and differ
// at their beginnings and ends, so that the point is neither of those. A path
// goes right (an element of a is removed), down (one of b is added) or along a
// diagonal (they are equal); the search goes from both ends at once, and knows
// for each diagonal x-y the point farthest on it after so many steps to the
// right and down. The way back is the way forward in the reversed sequences.
// If found is false, the search was ended by the limits, and the point is the
// one that got farthest from its end.
func (c *comparison) middle(a, b []int32) (x, y int, found bool, err error) {
	edits, work := c.limits.edits, c.limits.work
	hurried := work <= 0
	if hurried {
		edits, work = min(edits, hasty), hastyWork
	}
	edits = min(edits, (len(a)+len(b)+1)/2+1)
	if need := 2*edits + 5; len(c.forward) < need {
		c.forward, c.backward = make([]int32, need), make([]int32, need)
	}
	zero := edits + 2 // the index of diagonal 0
	f, r := c.forward, c.backward
	n, m := len(a), len(b)
	delta := n - m
	odd := delta&1 != 0
	f[zero], r[zero] = 0, 0
	spent, far := 0, 0
	defer func() {
		c.steps += spent
		if !hurried {
			c.limits.work -= spent
		}
	}()
	for d := 1; d <= edits; d++ {
		if d%checkDepth == 0 && c.ctx.Err() != nil {
			return 0, 0, false, c.ctx.Err()
		}
		f[zero-d-1], f[zero+d+1], r[zero-d-1], r[zero+d+1] = none, none, none, none
		low, high := -d, d
		if low < -m {
			low = -m + (d-m)&1
		}
		if high > n {
			high = n - (d-n)&1
		}
		for k := low; k <= high; k += 2 {
			i := int(max(f[zero+k-1]+1, f[zero+k+1]))
			if i < 0 || i > n || i-k > m {
				f[zero+k] = none
				continue
			}
			from := i
			for i < n && i-k < m && a[i] == b[i-k] {
				i++
			}
			f[zero+k] = int32(i)
			if back := delta - k; odd && back > -d && back < d && i+int(r[zero+back]) >= n {
				return i, i - k, true, nil
			}
			if 2*i-k > far {
				far, x, y = 2*i-k, i, i-k
			}
			if spent += i - from + 1; spent > work {
				return x, y, false, nil
			}
		}
		for k := low; k <= high; k += 2 {
			i := int(max(r[zero+k-1]+1, r[zero+k+1]))
			if i < 0 || i > n || i-k > m {
				r[zero+k] = none
				continue
			}
			from := i
			for i < n && i-k < m && a[n-1-i] == b[m-1-i+k] {
				i++
			}
			r[zero+k] = int32(i)
			if back := delta - k; !odd && back >= -d && back <= d && i+int(f[zero+back]) >= n {
				return n - i, m - i + k, true, nil
			}
			if 2*i-k > far {
				far, x, y = 2*i-k, n-i, m-i+k
			}
			if spent += i - from + 1; spent > work {
				return x, y, false, nil
			}
		}
	}
	return x, y, false, nil
}

// once counts and locates a number in a box.
type once struct {
	a, b uint8 // how often, 2 for more
	at   int32 // in b
}

// divide cuts a box at the lines that occur once on each side of it, as many of
// them as stand in the same order. It reports whether there are any.
func (c *comparison) divide(x box) bool {
	if c.once == nil {
		c.once = make([]once, c.ids)
	}
	defer c.forget(x)
	for j, id := range c.b[x.b0:x.b1] {
		c.once[id].b = min(c.once[id].b+1, 2)
		c.once[id].at = int32(x.b0 + j)
	}
	for _, id := range c.a[x.a0:x.a1] {
		c.once[id].a = min(c.once[id].a+1, 2)
	}
	var as, bs []int
	for i, id := range c.a[x.a0:x.a1] {
		if o := c.once[id]; o.a == 1 && o.b == 1 {
			as, bs = append(as, x.a0+i), append(bs, int(o.at))
		}
	}
	if len(as) == 0 {
		return false
	}
	c.out.minimal = false
	a0, b0 := x.a0, x.b0
	for _, i := range increasing(bs) {
		// An anchor is the first line of the box that it begins, where it is
		// found equal.
		c.stack = append(c.stack, box{a0, as[i], b0, bs[i], x.depth + 1, true})
		a0, b0 = as[i], bs[i]
	}
	c.stack = append(c.stack, box{a0, x.a1, b0, x.b1, x.depth + 1, true})
	return true
}

// disjoint reports whether nothing in the box is common.
func (c *comparison) disjoint(x box) bool {
	defer c.forget(x)
	for _, id := range c.b[x.b0:x.b1] {
		c.once[id].b = 1
	}
	for _, id := range c.a[x.a0:x.a1] {
		if c.once[id].b > 0 {
			return false
		}
	}
	return true
}

// forget clears what divide and disjoint noted of a box.
func (c *comparison) forget(x box) {
	for _, id := range c.a[x.a0:x.a1] {
		c.once[id] = once{}
	}
	for _, id := range c.b[x.b0:x.b1] {
		c.once[id] = once{}
	}
}

// increasing returns the indexes of a longest increasing subsequence of values
// that differ from each other.
func increasing(values []int) []int {
	var ends []int // ends[n]: the index of the least value that ends a sequence of n+1
	before := make([]int, len(values))
	for i, v := range values {
		n, _ := slices.BinarySearchFunc(ends, v, func(end, v int) int { return values[end] - v })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	out := make([]int, len(ends))
	for n, i := len(ends)-1, ends[len(ends)-1]; n >= 0; n, i = n-1, before[i] {
		out[n] = i
	}
	return out
}
