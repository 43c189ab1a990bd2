// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/gemini"
)

// rewriteResults takes media, and text beyond the limit, out of the texts of
// results.
func (x *exchange) rewriteResults(ctx context.Context, l *provider.Layout) ([]provider.Edit, error) {
	isCaller := func(e provider.Element) bool { return e.Role == artel.RoleAssistant }
	if len(l.Results) == 0 && !slices.ContainsFunc(l.Elements, isCaller) {
		return nil, nil // there are no calls either
	}
	var edits []provider.Edit
	calls := x.d.SentCalls(x.text)
	for _, r := range l.Results {
		for len(calls) > 0 && calls[0].From < r.Content.From {
			more, err := x.rewriteArguments(ctx, calls[0])
			if err != nil {
				return nil, err
			}
			edits, calls = append(edits, more...), calls[1:]
		}
		var parts []string
		var texts []provider.Edit
		var whole *string
		for _, s := range r.Texts {
			m, err := x.request.Texts.Result(ctx, provider.TextAt(x.text, s))
			if err != nil {
				return nil, fmt.Errorf("the result of tool call %s: %w", artel.Shorten(string(r.Call), 80), err)
			}
			if len(m.Steps) == 0 {
				continue
			}
			for _, step := range m.Steps {
				x.logChange(Change{Did: string(step.Did), Ref: step.Ref, Call: r.Call})
			}
			for _, found := range m.Media {
				if part, ok := x.resultPart(ctx, found); ok {
					parts = append(parts, part)
				} else {
					m.Text = joinTexts([]string{m.Text, found.Name.Text})
				}
			}
			if s == r.Content {
				whole = &m.Text
			} else {
				texts = append(texts, provider.Edit{Span: s, With: provider.QuoteJSON(m.Text)})
			}
		}
		if whole != nil || len(parts) > 0 {
			edits = append(edits, x.d.FillResult(x.text, r, whole, parts)...)
		}
		edits = append(edits, texts...)
	}
	for _, c := range calls {
		more, err := x.rewriteArguments(ctx, c)
		if err != nil {
			return nil, err
		}
		edits = append(edits, more...)
	}
	return edits, nil
}

// rewriteArguments takes media out of the arguments of an earlier call: those that
// were put back into them, and those that a client's own model wrote.
func (x *exchange) rewriteArguments(ctx context.Context, c provider.CallText) ([]provider.Edit, error) {
	rewrite := func(text string) (string, bool, error) {
		m, err := x.request.Texts.Argument(ctx, text)
		for _, step := range m.Steps {
			x.logChange(Change{Did: string(step.Did), Ref: step.Ref})
		}
		return m.Text, len(m.Steps) > 0, err
	}
	inside := func(value string) ([]provider.Edit, error) {
		var edits []provider.Edit
		for _, s := range gemini.StringsIn(gjson.Parse(value), nil) {
			text, changed, err := rewrite(provider.TextAt(value, s))
			if err != nil {
				return nil, err
			}
			if changed {
				edits = append(edits, provider.Edit{Span: s, With: provider.QuoteJSON(text)})
			}
		}
		return edits, nil
	}
	raw := c.Of(x.text)
	if len(raw) < minArguments {
		return nil, nil
	}
	switch c.Form {
	case provider.PlainText:
		text, changed, err := rewrite(provider.TextAt(x.text, c.Span))
		if err != nil || !changed {
			return nil, err
		}
		return []provider.Edit{{Span: c.Span, With: provider.QuoteJSON(text)}}, nil
	case provider.JSONText:
		text := provider.TextAt(x.text, c.Span)
		if !gjson.Valid(text) {
			return nil, nil
		}
		edits, err := inside(text)
		if err != nil || len(edits) == 0 {
			return nil, err
		}
		return []provider.Edit{{Span: c.Span, With: provider.QuoteJSON(provider.ApplyEdits(text, edits))}}, nil
	}
	edits, err := inside(raw)
	for i := range edits {
		edits[i].From, edits[i].To = edits[i].From+c.From, edits[i].To+c.From
	}
	return edits, err
}

// minArguments is the length of the shortest arguments that can hold media.
const minArguments = 64

// The headers with which a client says for one request how the texts of tools are
// rewritten: all, parts or off; off or a number of characters; true or false; and
// whether tools are deferred: true or false.
const (
	scrubHeader   = "X-Artel-Scrub"
	offloadHeader = "X-Artel-Offload"
	repairHeader  = "X-Artel-Repair"
	deferHeader   = "X-Artel-Defer-Tools"
)

// readRewriting reads the headers about tools.
func (x *exchange) readRewriting() error {
	scrub, err := backend.ParseScrub(x.r.Header.Get(scrubHeader))
	if err != nil {
		return provider.InvalidRequest("The header %s is wrong: %v.", scrubHeader, err)
	}
	offload, err := backend.ParseOffload(x.r.Header.Get(offloadHeader))
	if err != nil {
		return provider.InvalidRequest("The header %s is wrong: %v.", offloadHeader, err)
	}
	repair, err := backend.ParseSwitch(x.r.Header.Get(repairHeader))
	if err != nil {
		return provider.InvalidRequest("The header %s is wrong: %v.", repairHeader, err)
	}
	deferTools, err := backend.ParseSwitch(x.r.Header.Get(deferHeader))
	if err != nil {
		return provider.InvalidRequest("The header %s is wrong: %v.", deferHeader, err)
	}
	x.request.Texts.Rewrite(backend.Rewriting{Scrub: scrub, Offload: offload, Repair: repair, Defer: deferTools})
	return x.readCache()
}
