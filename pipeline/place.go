// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// defaultOrder is where a preset stands among those at its place that says
// nothing about it.
const defaultOrder = 100

// Anchors is what processors before the injection assembler leave on the
// blackboard to make anchors of their own: by the name of a slot, what it shows
// where an agent's preset gives it no text. A slot without an entry here works
// too, with its own text alone.
type Anchors map[Slot]string

// A prompt is a preset that takes part in a build.
type prompt struct {
	Preset
	position  int // in the agent's list
	order     int
	stability Stability
}

func (p prompt) message(o Origin) Message {
	m := Message{
		ID: p.ID, Role: cmp.Or(p.Role, artel.RoleSystem), Parts: artel.Parts{artel.Text{Text: p.Text}},
		Origin: o, Stability: p.stability,
	}
	if o == OriginDepth {
		m.Stability = Turn // it moves with every message
	}
	return m
}

// kind implements the defaults that are told at [Place].
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

// An assembly puts prompts around and into a history.
type assembly struct {
	d       *Draft
	slots   map[Slot]int // the position of the preset that is the slot
	beside  map[Slot]*sides
	at      map[int][]point // what goes before which message of the history
	before  []Message       // of the skeleton
	after   []Message
	reached bool // the slot of the history
	anchors Anchors
}

type sides struct{ before, after []prompt }

// A point is a place of a prompt in the history.
type point struct {
	prompt
	depth int
}

// assemble places prompts, which are in the order of the agent's list, around
// and among the history, behind what stands first.
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

// place sorts out what stands at an anchor or a depth.
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

// deep places a prompt among n messages of history. A point inside a tool
// exchange, which must stay whole, moves before it.
func (a *assembly) addAtDepth(p prompt, n int, whole map[int]int) {
	depths := parseDepths(p.Place.Depth, n)
	if len(depths) == 0 {
		a.d.Log(Warn, "a preset has no depth to stand at and is not sent", map[string]any{"preset": p.ID, "depth": artel.Shorten(p.Place.Depth, 80)})
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

// exchangeStarts maps the places inside of tool exchanges to where these begin.
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
		a.d.Log(Warn, "a preset names an anchor that no preset is the slot of; it goes before the history",
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

// list adds a prompt of the skeleton.
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

// shown gives a slot its text where it has none of its own.
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

// add writes prompts on the side of the history that the list has come to.
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

// among returns the history with what stands at depths in it.
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
		return out // all of the list stands before
	}
	return append(out, a.after...)
}
