// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// A placing is how the media of a request reach a service that speaks the
// client's dialect.
type conformer struct {
	x       *exchange
	s       model.Service
	text    string
	l       layout
	edits   []edit
	carried map[int][]string  // parts that go after the group of results that ends with an element
	seen    map[string]string // media that were carried, and how they were called
	request *model.Request
	changes []Change
}

// place returns the request's JSON for s: media take the form that it takes and
// stand where it takes them. Where there is nothing to do it is what the client
// wrote.
func (x *exchange) conform(ctx context.Context, s model.Service, refused map[artel.Digest]bool) (string, *conformer, error) {
	text := x.d.stripForeign(x.text)
	p := &conformer{
		x: x, s: s, text: text, l: x.scan(text), carried: map[int][]string{}, seen: map[string]string{},
		request: &model.Request{Service: s},
	}
	order, moved := p.order()
	if err := p.settleMedia(ctx, refused); err != nil {
		return "", nil, err
	}
	after := p.appendCarried(order)
	l := array{elements: spansOf(p.l.elements), after: after}
	if moved {
		l.order = order
	}
	return arrange(text, l, p.edits), p, nil
}

func spansOf(es []element) []span {
	out := make([]span, len(es))
	for i, e := range es {
		out[i] = e.span
	}
	return out
}

// order returns the elements in an order in which the results of a group follow
// the calls, with nothing between them. moved says that it is another.
func (p *conformer) order() (order []int, moved bool) {
	es := p.l.elements
	for i := 0; i < len(es); i++ {
		order = append(order, i)
		if !es[i].calls {
			continue
		}
		end := i + 1
		for end < len(es) && es[end].role != artel.RoleAssistant {
			end++
		}
		var rest []int
		for j := i + 1; j < end; j++ {
			if !es[j].result {
				rest = append(rest, j)
				continue
			}
			if len(rest) > 0 {
				moved = true
				for _, r := range p.l.results {
					if r.element == j {
						p.changes = append(p.changes, Change{Did: DidMove, Call: r.call, Service: p.s.ID})
					}
				}
			}
			order = append(order, j)
		}
		order = append(order, rest...)
		i = end - 1
	}
	return order, moved
}

// media settles all media.
func (p *conformer) settleMedia(ctx context.Context, refused map[artel.Digest]bool) error {
	x := p.x
	var all, held []artel.Media
	var places []medium
	for _, m := range p.l.media {
		if known, ok := x.mediaAt(ctx, m); ok {
			all, held, places = append(all, known), append(held, known), append(places, m)
		} else if p.hasOnlyName(m) {
			all, places = append(all, artel.Media{Kind: m.kind(), Filename: m.filename}), append(places, m)
		}
	}
	if len(all) == 0 {
		return nil
	}
	made, err := x.request.Settle(ctx, p.s, held, int64(len(x.text)), func(d artel.Digest) bool { return refused[d] })
	if err != nil {
		return err
	}
	settled := make([]app.Settled, len(all))
	for i, m := range all {
		if m.Ref.Digest == "" {
			settled[i] = p.decideByName(places[i], m)
		} else {
			settled[i], made = made[0], made[1:]
		}
	}
	for i := 0; i < len(places); {
		end := i + 1
		for end < len(places) && places[i].result >= 0 && places[end].result == places[i].result {
			end++
		}
		if places[i].result >= 0 {
			p.inResult(p.l.results[places[i].result], places[i:end], all[i:end], settled[i:end])
		} else {
			p.inMessage(places[i], all[i], settled[i])
		}
		i = end
	}
	return nil
}

// elsewhere reports whether a result names media whose bytes are not in the
// request, and that have to leave it where the service takes none there. Results
// of Gemini's functions name none.
func (p *conformer) hasOnlyName(m medium) bool {
	return m.result >= 0 && !p.l.split && (m.id || strings.HasPrefix(m.value, "https://") || strings.HasPrefix(m.value, "http://"))
}

// kind is what the part holds.
func (m medium) kind() artel.MediaKind {
	if m.accepts == "" {
		return artel.KindDocument
	}
	return m.accepts
}

// settle decides about media of which nothing is known but where they are. The
// name that they have is all that a model which takes none can be told.
func (p *conformer) decideByName(m medium, known artel.Media) app.Settled {
	need, mediaType := artel.CanFile, "application/octet-stream"
	if known.Kind == artel.KindImage {
		need, mediaType = artel.CanVision, "image/*"
	}
	if !p.s.Capabilities.Has(need) {
		s := app.Settled{Text: m.value}
		s.Decision.Step, s.Decision.Reason = artel.StepDescribed, artel.ReasonCapabilityMissing
		return s
	}
	known.MediaType = mediaType
	return app.Settled{Media: &known}
}

// message settles one piece of media in a message.
func (p *conformer) inMessage(m medium, was artel.Media, s app.Settled) {
	p.noteChange(s, was, model.InUser, "")
	switch {
	case s.Media == nil:
		p.edits = append(p.edits, edit{m.part, p.x.d.textPart(s.Text)})
	case s.Media.Ref.Digest != was.Ref.Digest:
		p.edits = append(p.edits, p.x.replace(m, *s.Media))
	}
	if s.Media != nil {
		p.request.Messages = append(p.request.Messages, model.Message{Role: artel.RoleUser, Parts: artel.Parts{*s.Media}})
	}
}

// result settles the media of one result of a tool. Where it may not keep them,
// they are carried, and what is left is a text.
func (p *conformer) inResult(r result, places []medium, all []artel.Media, settled []app.Settled) {
	from := ", from tool call " + string(r.call)
	inside := artel.ToolResult{CallID: r.call}
	var texts []string
	var edits []edit
	flat, shown := p.l.flat, false // no media stays, some do or follow
	for _, s := range settled {
		flat = flat && (s.Media == nil || !p.s.Capabilities.ToolTakes(s.Media.MediaType))
	}
	for i, s := range settled {
		switch {
		case s.Media == nil:
			p.noteChange(s, all[i], "", r.call)
			texts = append(texts, s.Text)
			edits = append(edits, edit{places[i].part, p.x.d.textPart(s.Text)})
			continue
		case p.s.Capabilities.ToolTakes(s.Media.MediaType):
			p.noteChange(s, all[i], model.InTool, r.call)
			if s.Media.Ref.Digest != all[i].Ref.Digest {
				edits = append(edits, p.x.replace(places[i], *s.Media))
			}
		default:
			p.noteChange(s, all[i], model.AfterTool, r.call)
			label := provider.Label(*s.Media) + from
			part, key, carried := "", string(s.Media.Ref.Digest), s.Media.MediaType
			if key == "" { // it stands there as it did here
				part, key, carried = places[i].part.of(p.text), places[i].value, ""
			}
			p.changes = append(p.changes, Change{Did: DidCarry, Ref: s.Media.Ref, MediaType: carried, Place: model.AfterTool, Call: r.call, Service: p.s.ID})
			if before, ok := p.seen[key]; ok {
				p.carried[r.element] = append(p.carried[r.element], p.x.d.textPart(label+": the same as "+before+", already shown"))
			} else {
				p.seen[key] = provider.Label(*s.Media)
				if part == "" {
					part = p.x.d.mediaPart(*s.Media, false, p.x.addPayload(*s.Media))
				}
				p.carried[r.element] = append(p.carried[r.element], p.x.d.textPart(label), part)
			}
			edits = append(edits, edit{places[i].part, p.x.d.textPart(label)})
		}
		shown = true
		if s.Media.Ref.Digest != "" {
			inside.Parts = append(inside.Parts, *s.Media)
		}
	}
	if len(inside.Parts) > 0 {
		p.request.Messages = append(p.request.Messages, model.Message{Role: artel.RoleTool, Parts: artel.Parts{inside}})
	}
	switch {
	case p.l.split:
		p.inSplitResult(r, places, settled, texts)
		return
	case !flat:
		p.edits = append(p.edits, edits...)
		return
	}
	// The text that is left is a string, which every service takes.
	var said []string
	for _, s := range r.texts {
		if t := textOf(p.text, s); t != "" {
			said = append(said, t)
		}
	}
	said = append(said, texts...)
	if len(said) == 0 && shown {
		said = append(said, resultFollows)
	}
	text := joinTexts(said)
	p.edits = append(p.edits, p.x.d.fillResult(p.text, r, &text, nil)...)
}

// apart settles the media of a result that stand in a list of their own: what
// does not stay there goes, and texts in the place of media follow the results.
func (p *conformer) inSplitResult(r result, places []medium, settled []app.Settled, texts []string) {
	var kept []string
	changed := false
	for i, s := range settled {
		if s.Media == nil || !p.s.Capabilities.ToolTakes(s.Media.MediaType) {
			changed = true
			continue
		}
		part := places[i].part.of(p.text)
		if known, _ := p.x.extraction.Find(places[i].value); known.Digest != s.Media.Ref.Digest {
			part, changed = p.x.d.mediaPart(*s.Media, true, p.x.addPayload(*s.Media)), true
		}
		kept = append(kept, part)
	}
	switch {
	case !changed:
	case len(kept) == 0:
		p.edits = append(p.edits, edit{r.mediaMember, ""})
	default:
		p.edits = append(p.edits, edit{r.mediaList, "[" + strings.Join(kept, ",") + "]"})
	}
	for _, t := range texts {
		p.carried[r.element] = append(p.carried[r.element], p.x.d.textPart("from tool call "+string(r.call)+": "+t))
	}
}

// resultFollows is what is left of a result that was media alone, as
// [provider.Place] says it.
const resultFollows = "(the result is the media that follow)"

// joinTexts joins the texts that say something.
func joinTexts(ss []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(ss), func(s string) bool { return s == "" }), "\n\n")
}

func (p *conformer) noteChange(s app.Settled, was artel.Media, place model.Place, call artel.CallID) {
	d := s.Decision
	if s.Media != nil && (d.Step == artel.StepNative || d.Step == "") {
		return
	}
	p.changes = append(p.changes, Change{
		Did: string(d.Step), Reason: d.Reason, Ref: was.Ref, MediaType: was.MediaType, Place: place, Call: call, Service: p.s.ID,
	})
}

// carry puts what is carried after its group, and a bridge where no user may
// follow a tool. It returns what comes after which element.
func (p *conformer) appendCarried(order []int) map[int]string {
	es := p.l.elements
	bridge := p.s.Capabilities.NeedsFiller()
	if len(p.carried) == 0 && !bridge {
		return nil
	}
	after := map[int]string{}
	var waiting []string
	for place, i := range order {
		waiting = append(waiting, p.carried[i]...)
		if !es[i].result || place+1 < len(order) && es[order[place+1]].result {
			continue
		}
		// The group of results ends here.
		if es[i].insertAt > 0 && len(waiting) > 0 {
			p.edits = append(p.edits, edit{span{es[i].insertAt, es[i].insertAt}, "," + strings.Join(waiting, ",")})
			waiting = nil
		}
		next := element{}
		if place+1 < len(order) {
			next = es[order[place+1]]
		}
		user := next.role == artel.RoleUser
		if bridge && (user || len(waiting) > 0) {
			after[i] = p.x.d.filler()
		}
		if len(waiting) == 0 {
			continue
		}
		if joined := []edit(nil); user {
			if joined = p.x.d.prependParts(p.text, next, slices.Clone(waiting)); joined != nil {
				p.edits = append(p.edits, joined...)
				waiting = nil
				continue
			}
		}
		if after[i] != "" {
			after[i] += ","
		}
		after[i] += p.x.d.userMessage(waiting)
		waiting = nil
	}
	return after
}
