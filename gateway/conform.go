// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/pipeline"
)

// A conformer edits a request for a service of the same dialect so that its
// media have forms and places that the service takes.
type conformer struct {
	x       *exchange
	s       *model.Service
	text    string
	l       provider.Layout
	edits   []provider.Edit
	carried map[int][]string  // parts to insert after the group of results that ends with an element
	seen    map[string]string // labels of carried media, by digest or address
	request *model.Request
	changes []Change

	mislabeled map[provider.Span]bool // parts whose media are of another type than they say
}

// conform returns the request's JSON for s. It is unchanged if the service
// takes all media as they are.
func (x *exchange) conform(ctx context.Context, s *model.Service, refused map[artel.Digest]bool) (string, *conformer, error) {
	text := x.d.StripForeign(x.text)
	p := &conformer{
		x: x, s: s, text: text, l: x.scan(text), carried: map[int][]string{}, seen: map[string]string{}, mislabeled: map[provider.Span]bool{},
		request: &model.Request{Service: *s},
	}
	order, moved := p.order()
	if err := p.settleMedia(ctx, refused); err != nil {
		return "", nil, err
	}
	after := p.appendCarried(order)
	l := provider.Array{Elements: spansOf(p.l.Elements), After: after}
	if moved {
		l.Order = order
	}
	return p.editTurns(provider.Arrange(text, l, p.edits)), p, nil
}

// editTurns joins the results and signs the calls of a forwarded request, as the
// service requires.
func (p *conformer) editTurns(text string) string {
	d, ok := p.x.d.(provider.TurnEditor)
	if !ok {
		return text
	}
	text, joined := d.JoinResults(text)
	for _, call := range joined {
		p.changes = append(p.changes, Change{Did: DidMove, Call: call, Service: p.s.ID})
	}
	text, signed := d.SignCalls(text, func(c artel.ToolCall) json.RawMessage {
		call := &model.Request{Messages: []model.Message{{Parts: artel.Parts{c}}}}
		p.x.request.RestoreCalls(p.x.r.Context(), call)
		if c, ok := call.Messages[0].Parts[0].(artel.ToolCall); ok && c.Service == p.s.ID {
			return c.Opaque
		}
		return nil
	})
	for _, call := range signed {
		p.changes = append(p.changes, Change{Did: DidSign, Call: call, Service: p.s.ID})
	}
	return text
}

func spansOf(es []provider.Element) []provider.Span {
	out := make([]provider.Span, len(es))
	for i, e := range es {
		out[i] = e.Span
	}
	return out
}

// Order returns the elements in an order in which the results of a group
// directly follow the calls. moved says that it differs.
func (p *conformer) order() (order []int, moved bool) {
	es := p.l.Elements
	for i := 0; i < len(es); i++ {
		order = append(order, i)
		if !es[i].Calls {
			continue
		}
		end := i + 1
		for end < len(es) && es[end].Role != artel.RoleAssistant {
			end++
		}
		var rest []int
		for j := i + 1; j < end; j++ {
			if !es[j].Result {
				rest = append(rest, j)
				continue
			}
			if len(rest) > 0 {
				moved = true
				for _, r := range p.l.Results {
					if r.Element == j {
						p.changes = append(p.changes, Change{Did: DidMove, Call: r.Call, Service: p.s.ID})
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

// settleMedia settles all media and edits their parts.
func (p *conformer) settleMedia(ctx context.Context, refused map[artel.Digest]bool) error {
	x := p.x
	var all, stored []artel.Media
	var places []provider.Medium
	for _, m := range p.l.Media {
		if known, mislabeled, ok := x.mediaAt(ctx, m); ok {
			if mislabeled {
				p.mislabeled[m.Part] = true
				p.changes = append(p.changes, relabeled(known, x.declared(m), callOf(p.l, m), p.s.ID))
			}
			all, stored, places = append(all, known), append(stored, known), append(places, m)
		} else if p.hasOnlyName(m) {
			all, places = append(all, artel.Media{Kind: m.Kind(), Filename: m.Filename}), append(places, m)
		}
	}
	if len(all) == 0 {
		return nil
	}
	made, err := x.request.PrepareMedia(ctx, *p.s, stored, int64(len(x.text)), func(d artel.Digest) bool { return refused[d] })
	if err != nil {
		return err
	}
	settled := make([]pipeline.PreparedMedia, len(all))
	for i, m := range all {
		if m.Ref.Digest == "" {
			settled[i] = p.decideByName(places[i], m)
		} else {
			settled[i], made = made[0], made[1:]
		}
	}
	for i := 0; i < len(places); {
		end := i + 1
		for end < len(places) && places[i].Result >= 0 && places[end].Result == places[i].Result {
			end++
		}
		if places[i].Result >= 0 {
			p.inResult(p.l.Results[places[i].Result], places[i:end], all[i:end], settled[i:end])
		} else {
			p.inMessage(places[i], all[i], settled[i])
		}
		i = end
	}
	return nil
}

// hasOnlyName reports whether media in a result are an address or a file id,
// without bytes in the request. They must leave the result if the service takes
// no media there. Results of Gemini's functions hold no names.
func (p *conformer) hasOnlyName(m provider.Medium) bool {
	return m.Result >= 0 && !p.l.Split && (m.ID || strings.HasPrefix(m.Value, "https://") || strings.HasPrefix(m.Value, "http://"))
}

// decideByName settles media of which only the name is known. A model that
// cannot take them gets the name as text.
func (p *conformer) decideByName(m provider.Medium, known artel.Media) pipeline.PreparedMedia {
	need, mediaType := artel.CanFile, "application/octet-stream"
	if known.Kind == artel.KindImage {
		need, mediaType = artel.CanVision, "image/*"
	}
	if !p.s.Capabilities.Has(need) {
		s := pipeline.PreparedMedia{Text: m.Value}
		s.Decision.Step, s.Decision.Reason = artel.StepDescribed, artel.ReasonCapabilityMissing
		return s
	}
	known.MediaType = mediaType
	return pipeline.PreparedMedia{Media: &known}
}

// inMessage edits settled media in a message.
func (p *conformer) inMessage(m provider.Medium, was artel.Media, s pipeline.PreparedMedia) {
	p.noteChange(s, was, model.InUser, "")
	switch {
	case s.Media == nil:
		p.edits = append(p.edits, provider.Edit{Span: m.Part, With: p.x.d.TextPart(s.Text)})
	case s.Media.Ref.Digest != was.Ref.Digest || p.mislabeled[m.Part]:
		p.edits = append(p.edits, p.x.replace(m, *s.Media))
	}
	if s.Media != nil {
		p.request.Messages = append(p.request.Messages, model.Message{Role: artel.RoleUser, Parts: artel.Parts{*s.Media}})
	}
}

// inResult edits the settled media of a tool's result. Media that the service
// does not take there are carried into a message after it; if none stay, the
// result becomes a text.
func (p *conformer) inResult(r provider.Result, places []provider.Medium, all []artel.Media, settled []pipeline.PreparedMedia) {
	from := ", from tool call " + string(r.Call)
	inside := artel.ToolResult{CallID: r.Call}
	var texts []string
	var edits []provider.Edit
	flat, shown := p.l.Flat, false // no media stay; some stay or are carried
	for _, s := range settled {
		flat = flat && (s.Media == nil || !p.s.Capabilities.ToolTakes(s.Media.MediaType))
	}
	for i, s := range settled {
		switch {
		case s.Media == nil:
			p.noteChange(s, all[i], "", r.Call)
			texts = append(texts, s.Text)
			edits = append(edits, provider.Edit{Span: places[i].Part, With: p.x.d.TextPart(s.Text)})
			continue
		case p.s.Capabilities.ToolTakes(s.Media.MediaType):
			p.noteChange(s, all[i], model.InTool, r.Call)
			if s.Media.Ref.Digest != all[i].Ref.Digest || p.mislabeled[places[i].Part] {
				edits = append(edits, p.x.replace(places[i], *s.Media))
			}
		default:
			p.noteChange(s, all[i], model.AfterTool, r.Call)
			label := provider.Label(*s.Media) + from
			part, key, carried := "", string(s.Media.Ref.Digest), s.Media.MediaType
			if key == "" { // named: carried unchanged
				part, key, carried = places[i].Part.Of(p.text), places[i].Value, ""
			}
			p.changes = append(p.changes, Change{Did: DidCarry, Ref: s.Media.Ref, MediaType: carried, Place: model.AfterTool, Call: r.Call, Service: p.s.ID})
			if before, ok := p.seen[key]; ok {
				p.carried[r.Element] = append(p.carried[r.Element], p.x.d.TextPart(provider.Repeated(label, before)))
			} else {
				p.seen[key] = provider.LabelFrom(*s.Media, from)
				if part == "" {
					part = p.x.d.MediaPart(*s.Media, false, p.x.addPayload(*s.Media))
				}
				p.carried[r.Element] = append(p.carried[r.Element], p.x.d.TextPart(label), part)
			}
			edits = append(edits, provider.Edit{Span: places[i].Part, With: p.x.d.TextPart(label)})
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
	case p.l.Split:
		p.inSplitResult(r, places, settled, texts)
		return
	case !flat:
		p.edits = append(p.edits, edits...)
		return
	}
	// Every service takes a result that is a string.
	var said []string
	for _, s := range r.Texts {
		if t := provider.TextAt(p.text, s); t != "" {
			said = append(said, t)
		}
	}
	said = append(said, texts...)
	if len(said) == 0 && shown {
		said = append(said, provider.MediaFollow)
	}
	text := joinTexts(said)
	p.edits = append(p.edits, p.x.d.FillResult(p.text, r, &text, nil)...)
}

// inSplitResult edits the settled media of a result that has them in a separate
// list. Media that the service does not take are removed; the texts that
// replace them follow the results.
func (p *conformer) inSplitResult(r provider.Result, places []provider.Medium, settled []pipeline.PreparedMedia, texts []string) {
	var kept []string
	changed := false
	for i, s := range settled {
		if s.Media == nil || !p.s.Capabilities.ToolTakes(s.Media.MediaType) {
			changed = true
			continue
		}
		part := places[i].Part.Of(p.text)
		if known, _ := p.x.extraction.Find(places[i].Value); known.Digest != s.Media.Ref.Digest || p.mislabeled[places[i].Part] {
			part, changed = p.x.d.MediaPart(*s.Media, true, p.x.addPayload(*s.Media)), true
		}
		kept = append(kept, part)
	}
	switch {
	case !changed:
	case len(kept) == 0:
		p.edits = append(p.edits, provider.Edit{Span: r.MediaMember, With: ""})
	default:
		p.edits = append(p.edits, provider.Edit{Span: r.MediaList, With: "[" + strings.Join(kept, ",") + "]"})
	}
	for _, t := range texts {
		p.carried[r.Element] = append(p.carried[r.Element], p.x.d.TextPart("from tool call "+string(r.Call)+": "+t))
	}
}

// joinTexts joins the texts that are not empty.
func joinTexts(ss []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(ss), func(s string) bool { return s == "" }), "\n\n")
}

// relabeled describes that media are sent under the type of their bytes instead of
// the declared one.
func relabeled(m artel.Media, declared string, call artel.CallID, s artel.ServiceID) Change {
	return Change{Did: DidRelabel, Field: artel.Shorten(declared, 100), Ref: m.Ref, MediaType: m.MediaType, Call: call, Service: s}
}

// noteChange records the form of media, unless they are sent as they are.
func (p *conformer) noteChange(s pipeline.PreparedMedia, was artel.Media, place model.Place, call artel.CallID) {
	d := s.Decision
	if s.Media != nil && (d.Step == artel.StepNative || d.Step == "") {
		return
	}
	p.changes = append(p.changes, Change{
		Did: string(d.Step), Reason: d.Reason, Ref: was.Ref, MediaType: was.MediaType, Place: place, Call: call, Service: p.s.ID,
	})
}

// appendCarried puts carried parts after their group of results, and a filler
// message before a user if the service needs one. It returns what to insert
// after which element.
func (p *conformer) appendCarried(order []int) map[int]string {
	es := p.l.Elements
	filler := p.s.Capabilities.NeedsFiller()
	if len(p.carried) == 0 && !filler {
		return nil
	}
	after := map[int]string{}
	var waiting []string
	for position, i := range order {
		waiting = append(waiting, p.carried[i]...)
		if !es[i].Result || position+1 < len(order) && es[order[position+1]].Result {
			continue
		}
		// The group of results ends here.
		if es[i].InsertAt > 0 && len(waiting) > 0 {
			p.edits = append(p.edits, provider.Edit{Span: provider.Span{From: es[i].InsertAt, To: es[i].InsertAt}, With: "," + strings.Join(waiting, ",")})
			waiting = nil
		}
		next := provider.Element{}
		if position+1 < len(order) {
			next = es[order[position+1]]
		}
		user := next.Role == artel.RoleUser
		if filler && (user || len(waiting) > 0) {
			after[i] = p.x.d.Filler()
		}
		if len(waiting) == 0 {
			continue
		}
		if joined := []provider.Edit(nil); user {
			if joined = p.x.d.PrependParts(p.text, next, slices.Clone(waiting)); joined != nil {
				p.edits = append(p.edits, joined...)
				waiting = nil
				continue
			}
		}
		if after[i] != "" {
			after[i] += ","
		}
		after[i] += p.x.d.UserMessage(waiting)
		waiting = nil
	}
	return after
}
