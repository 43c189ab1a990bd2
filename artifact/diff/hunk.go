// SPDX-License-Identifier: Apache-2.0

package diff

// A run is a place that changed: lines of the old text from a0 to before a1
// were replaced by those of the new text from b0 to before b1. One of them may
// be empty.
type run struct{ a0, a1, b0, b1 int }

// runs returns what changed, in order. Between two runs stands a common line.
func (c changes) runs() []run {
	var out []run
	i, j := 0, 0
	for i < len(c.removed) || j < len(c.added) {
		r := run{i, i, j, j}
		for r.a1 < len(c.removed) && c.removed[r.a1] {
			r.a1++
		}
		for r.b1 < len(c.added) && c.added[r.b1] {
			r.b1++
		}
		i, j = r.a1, r.b1
		if r.a0 < r.a1 || r.b0 < r.b1 {
			out = append(out, r)
			continue
		}
		i++
		j++
	}
	return out
}

// hunks gathers runs in hunks with lines around them.
func (d *Diff) hunks(old, new *text, runs []run, o Options) {
	told := 0
	for len(runs) > 0 {
		n := 1
		for n < len(runs) && runs[n].a0-runs[n-1].a1 <= 2*o.Context {
			n++
		}
		group := runs[:n]
		runs = runs[n:]
		size := 0
		for _, r := range group {
			d.Stats.Removed += r.a1 - r.a0
			d.Stats.Added += r.b1 - r.b0
			size += r.b1 - r.b0
		}
		first, last := group[0], group[n-1]
		above := min(o.Context, first.a0)
		below := min(o.Context, old.count()-last.a1)
		size += last.a1 + below - (first.a0 - above)
		// Skip hunks that would show nothing of the change.
		if told+above >= o.Limit {
			told, d.Cut = o.Limit, true
			continue
		}
		h := hunker{old: old, new: new, room: min(size, o.Limit-told)}
		h.OldStart, h.NewStart = old.before+first.a0-above, new.before+first.b0-above
		h.Hunk.Lines = make([]Line, 0, h.room)
		d.Cut = d.Cut || h.room < size
		told += h.room
		i, j := first.a0-above, first.b0-above
		for _, r := range group {
			h.equal(i, r.a0, j)
			for i = r.a0; i < r.a1; i++ {
				h.tell(Removed, i, 0)
			}
			for j = r.b0; j < r.b1; j++ {
				h.tell(Added, 0, j)
			}
		}
		h.equal(i, i+below, j)
		if h.OldLines > 0 {
			h.OldStart++
		}
		if h.NewLines > 0 {
			h.NewStart++
		}
		d.Hunks = append(d.Hunks, h.Hunk)
	}
}

// A hunker writes lines into a hunk while there is room.
type hunker struct {
	Hunk
	old, new *text
	room     int
}

// equal adds the common lines from i to before end, and from j on the other side.
func (h *hunker) equal(i, end, j int) {
	for ; i < end; i, j = i+1, j+1 {
		h.tell(Equal, i, j)
	}
}

func (h *hunker) tell(op Op, i, j int) {
	if len(h.Lines) == h.room {
		return
	}
	l := Line{Op: op}
	if op != Added {
		l.Text, l.End = split(h.old.line(i))
		l.Old = h.old.before + i + 1
		h.OldLines++
	}
	if op != Removed {
		l.Text, l.End = split(h.new.line(j))
		l.New = h.new.before + j + 1
		h.NewLines++
	}
	h.Lines = append(h.Lines, l)
}
