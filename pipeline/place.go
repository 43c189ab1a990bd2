// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// defaultOrder is the order of presets without one.
const defaultOrder = 100

// Anchors lets processors before the injection assembler define texts for
// slots, by leaving it on the blackboard: the text of a slot whose preset has
// none. Slots without an entry show only their own text.
type Anchors map[Slot]string

// A prompt is a preset that takes part in a build.
type prompt struct {
	Preset
	position  int // in the agent's list
	order     int
	stability Stability
	origin    Origin // of its message; "": by its place
}

func (p prompt) message(o Origin) Message {
	m := Message{
		ID: p.ID, Role: cmp.Or(p.Role, artel.RoleSystem), Parts: artel.Parts{artel.Text{Text: p.Text}},
		Origin: o, Stability: p.stability,
	}
	if o == OriginDepth {
		m.Stability = Turn // it moves with every message
	}
	m.Origin = cmp.Or(p.origin, m.Origin)
	return m
}

// kind implements the defaults described at [Place].
func (p Place) kind() PlaceKind {
	switch {
	case p.Kind != "":
		return p.Kind
	case p.Depth != "":
		return AtDepth
	case p.Anchor != "":
		return AtAnchor
	}
	return InList
}

// An assembly inserts prompts around and into a history.
type assembly struct {
	d       *Draft
	slots   map[Slot]int // position of the preset that defines the slot
	beside  map[Slot]*sides
	at      map[int][]point // prompts by the index of the history message that they precede
	before  []Message       // skeleton before the history
	after   []Message
	reached bool // the skeleton has passed the slot of the history
	anchors Anchors
}

type sides struct{ before, after []prompt }

// A point is a prompt at a depth of the history.
type point struct {
	prompt
	depth int
}

// assemble places prompts, which are in the order of the agent's list, around
// and within the history. The messages of first come before everything.
func assemble(d *Draft, first []Message, prompts []prompt, history []Message) []Message {
	a := assembly{d: d, before: first, slots: map[Slot]int{}, beside: map[Slot]*sides{}, at: map[int][]point{}}
	a.anchors, _ = Value[Anchors](d)
	for _, p := range prompts {
		if p.Slot == "" {
			continue
		}
		if _, twice := a.slots[p.Slot]; twice {
			d.Log(Warn, "a second preset for one slot is not sent", map[string]any{"preset": p.ID, "slot": string(p.Slot)})
			continue
		}
		a.slots[p.Slot] = p.position
	}
	a.distribute(prompts, history)
	for _, p := range prompts {
		a.addToSkeleton(p)
	}
	return a.join(history)
}

// distribute collects the prompts at anchors and depths.
func (a *assembly) distribute(prompts []prompt, history []Message) {
	var whole map[int]int
	for _, p := range prompts {
		if p.Slot != "" || strings.TrimSpace(p.Text) == "" {
			continue
		}
		switch p.Place.kind() {
		case AtDepth:
			if whole == nil {
				whole = exchangeStarts(history)
			}
			a.addAtDepth(p, len(history), whole)
		case AtAnchor:
			a.addAtAnchor(p)
		}
	}
	for _, s := range a.beside {
		slices.SortStableFunc(s.before, byOrder)
		slices.SortStableFunc(s.after, byOrder)
	}
	for _, points := range a.at {
		slices.SortStableFunc(points, func(x, y point) int {
			return cmp.Or(cmp.Compare(y.depth, x.depth), byOrder(x.prompt, y.prompt))
		})
	}
}

func byOrder(x, y prompt) int {
	return cmp.Or(cmp.Compare(x.order, y.order), cmp.Compare(x.position, y.position))
}

// addAtDepth places a prompt among n messages of history. A position inside a
// tool exchange moves before the exchange.
func (a *assembly) addAtDepth(p prompt, n int, whole map[int]int) {
	depths := parseDepths(p.Place.Depth, n)
	if len(depths) == 0 {
		a.d.Log(Warn, "a preset has no valid depth and is not sent", map[string]any{"preset": p.ID, "depth": artel.Shorten(p.Place.Depth, 80)})
		return
	}
	taken := map[int]bool{}
	for _, depth := range depths {
		i := max(0, n-depth)
		if start, ok := whole[i]; ok {
			i = start
		}
		if !taken[i] {
			taken[i] = true
			a.at[i] = append(a.at[i], point{p, depth})
		}
	}
}

// exchangeStarts maps each index inside a tool exchange to the start of the
// exchange.
func exchangeStarts(ms []Message) map[int]int {
	inside := map[int]int{}
	for _, u := range exchanges(ms) {
		for i := u.start + 1; i < u.end; i++ {
			inside[i] = u.start
		}
	}
	return inside
}

func (a *assembly) addAtAnchor(p prompt) {
	slot, side := Slot(p.Place.Anchor), p.Place.Side
	if _, ok := a.slots[slot]; !ok && slot != SlotHistory {
		a.d.Log(Warn, "a preset names an anchor that no preset defines as a slot; it is placed before the history",
			map[string]any{"preset": p.ID, "anchor": artel.Shorten(p.Place.Anchor, 80)})
		slot, side = SlotHistory, Before
	}
	s := a.beside[slot]
	if s == nil {
		s = &sides{}
		a.beside[slot] = s
	}
	if side == Before {
		s.before = append(s.before, p)
	} else {
		s.after = append(s.after, p)
	}
}

// addToSkeleton adds a prompt of the skeleton.
func (a *assembly) addToSkeleton(p prompt) {
	switch {
	case p.Slot == SlotHistory:
		a.reached = a.reached || a.slots[p.Slot] == p.position
	case p.Slot != "" && a.slots[p.Slot] == p.position:
		s := a.beside[p.Slot]
		if s == nil {
			s = &sides{}
		}
		a.add(OriginAnchor, s.before...)
		a.add(OriginPreset, a.slotText(p))
		a.add(OriginAnchor, s.after...)
	case p.Slot == "" && p.Place.kind() == InList:
		a.add(OriginPreset, p)
	}
}

// slotText sets the text of a slot that has none of its own.
func (a *assembly) slotText(p prompt) prompt {
	if strings.TrimSpace(p.Text) != "" {
		return p
	}
	p.Text = a.anchors[p.Slot]
	if p.Slot == SlotUser {
		p.Text = a.d.User.Persona
	}
	return p
}

// add appends prompts before or after the history, depending on where the
// skeleton is.
func (a *assembly) add(o Origin, ps ...prompt) {
	to := &a.before
	if a.reached {
		to = &a.after
	}
	for _, p := range ps {
		if strings.TrimSpace(p.Text) != "" {
			*to = append(*to, p.message(o))
		}
	}
}

// insertAtDepths returns the history with the prompts at depths.
func (a *assembly) insertAtDepths(history []Message) []Message {
	out := make([]Message, 0, len(history)+len(a.at)+extraMessages)
	from := 0
	for _, i := range slices.Sorted(maps.Keys(a.at)) {
		out = append(out, history[from:i]...)
		from = i
		for _, p := range a.at[i] {
			out = append(out, p.message(OriginDepth))
		}
	}
	return append(out, history[from:]...)
}

func (a *assembly) join(history []Message) []Message {
	s := a.beside[SlotHistory]
	if s == nil {
		s = &sides{}
	}
	for _, p := range s.before {
		a.before = append(a.before, p.message(OriginAnchor))
	}
	if len(a.at) > 0 {
		history = a.insertAtDepths(history)
	}
	out := slices.Insert(history, 0, a.before...)
	for _, p := range s.after {
		out = append(out, p.message(OriginAnchor))
	}
	if _, ok := a.slots[SlotHistory]; !ok {
		return out // the whole skeleton comes before the history
	}
	return append(out, a.after...)
}

// parseDepths reads the depths in s for a history of n messages: 0 is after the
// newest, 1 before it, and a depth larger than n is before the oldest. Depths
// are separated by commas: "N" is one, "S~I" is S and, up to n, every further
// I. White space around numbers is ignored, and invalid items are skipped. The
// result is sorted, deepest first, without duplicates.
func parseDepths(s string, n int) []int {
	var out []int
	for item := range strings.SplitSeq(s, ",") {
		first, step, repeated := strings.Cut(item, "~")
		start, ok := parseDepth(first)
		if !ok {
			continue
		}
		interval := 0
		if repeated {
			if interval, ok = parseDepth(step); !ok {
				continue
			}
		}
		out = append(out, start)
		if interval == 0 {
			continue
		}
		for start <= n-interval {
			start += interval
			out = append(out, start)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return slices.Compact(out)
}

// parseDepth reads a number without a sign. A number too large for any history
// becomes the largest.
func parseDepth(s string) (int, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if n = n*10 + int(s[i]-'0'); n > math.MaxInt32 {
			n = math.MaxInt32
		}
	}
	return n, true
}
