// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/inspect"
	"github.com/artelhq/artel/artifact/diff"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/run/record"
)

// An inspector reads the record of one call.
type inspector struct {
	view
	call   *inspect.BuiltContext
	blocks []record.Block
	stored map[string]artel.Message // of the branch, by id
}

// inspectedBranch is how many stored messages are loaded for comparison.
const inspectedBranch = 1000

func (v *inspector) read(ctx context.Context, run artel.Run) (err error) {
	if v.blocks, err = v.app.Contexts.Blocks(ctx, v.call.ContextKey); err != nil {
		return err
	}
	leaf := run.Reply
	if leaf == "" { // the run is active, or produced no answer
		c, err := v.app.Conversations.Find(ctx, run.Conversation)
		if err != nil {
			return err
		}
		leaf = cmp.Or(c.Leaf, run.Message)
	}
	branch, err := v.app.Messages.Branch(ctx, run.Conversation, leaf, inspectedBranch)
	v.stored = make(map[string]artel.Message, len(branch))
	for _, m := range branch {
		v.stored[string(m.ID)] = m
	}
	return err
}

// A Share is the number of tokens of one source.
type Share struct {
	Processor string // "": the tool descriptions
	Tone      string // color class
	Messages  int
	Tokens    int
	X, Width  string // in the bar, of 1,000
}

var tones = [...]string{"tone-one", "tone-two", "tone-three", "tone-four", "tone-five", "tone-six"}

// shares sums up tokens by the processor that added them, largest first. The
// bar is as long as the budget, or as the request if there is no budget.
func (v inspector) shares() []Share {
	sums := map[string]*Share{}
	all := 0
	for _, b := range v.blocks {
		s := sums[b.Processor]
		if s == nil {
			s = &Share{Processor: b.Processor}
			sums[b.Processor] = s
		}
		s.Messages++
		s.Tokens += b.Tokens
		all += b.Tokens
	}
	if tools := v.call.Tokens.Total - all; tools > 0 {
		sums[""] = &Share{Tokens: tools}
	}
	out := make([]Share, 0, len(sums))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, *sums[name])
	}
	slices.SortStableFunc(out, func(a, b Share) int { return b.Tokens - a.Tokens })
	whole, x := float64(max(v.call.Tokens.Budget, v.call.Tokens.Total, all, 1)), 0.0
	for i := range out {
		width := 1000 * float64(out[i].Tokens) / whole
		out[i].Tone, out[i].X, out[i].Width = tones[i%len(tones)], fmt.Sprintf("%.2f", x), fmt.Sprintf("%.2f", width)
		x += width
	}
	return out
}

// label names a message by its role and beginning.
func (v inspector) label(id string) string {
	var role artel.Role
	var parts artel.Parts
	if i := slices.IndexFunc(v.blocks, func(b record.Block) bool { return b.ID == id }); i >= 0 {
		role, parts = v.blocks[i].Role, v.blocks[i].Parts
	} else if m, ok := v.stored[id]; ok {
		role, parts = m.Role, m.Parts
	} else {
		return id
	}
	text := strings.Join(strings.Fields(textsOf(parts)), " ")
	return v.locale.Say(phrase.Key("page.inspect_role_"+string(role)), nil) + " · " + artel.Shorten(text, 80)
}

// textsOf joins the texts of parts, including those of tool results.
func textsOf(parts artel.Parts) string {
	var out []string
	for _, p := range parts {
		switch p := p.(type) {
		case artel.Text:
			out = append(out, p.Text)
		case artel.ToolResult:
			out = append(out, p.Content)
		}
	}
	return strings.Join(out, "\n\n")
}

// An InspectedBlock is one message of a request.
type InspectedBlock struct {
	record.Block
	Number int
	Label  string
	Text   string
	Cut    string // size of the shown beginning of the text; "": all
	Media  []string
	Calls  []string // tool calls with arguments
	Rows   []CompareRow
}

func (v inspector) shown(ctx context.Context) ([]InspectedBlock, error) {
	out := make([]InspectedBlock, len(v.blocks))
	for i, b := range v.blocks {
		shown := InspectedBlock{Block: b, Number: i + 1, Label: v.label(b.ID)}
		shown.Text, shown.Cut = shorten(textsOf(b.Parts))
		for _, m := range artel.MediaOf(b.Parts) {
			said := []string{artel.Visible(m.Filename), typeName(v.locale, m.MediaType), phrase.Size(m.Size)}
			if i := slices.IndexFunc(v.call.Media, func(c record.CarriedMedia) bool { return c.Digest == m.Ref.Digest }); i >= 0 {
				said = append(said, v.way(v.call.Media[i]))
			}
			shown.Media = append(shown.Media, strings.Join(said, " · "))
		}
		for _, c := range artel.CallsOf(b.Parts) {
			shown.Calls = append(shown.Calls, artel.Shorten(c.Name+" "+string(c.Arguments), 2000))
		}
		var err error
		if shown.Rows, err = v.changes(ctx, b.ID); err != nil {
			return nil, err
		}
		out[i] = shown
	}
	return out, nil
}

// changes returns the lines in which the sent text of a message differs from
// the stored one; none if it is not stored.
func (v inspector) changes(ctx context.Context, id string) ([]CompareRow, error) {
	i := slices.IndexFunc(v.blocks, func(b record.Block) bool { return b.ID == id })
	m, ok := v.stored[id]
	if i < 0 || !ok || v.blocks[i].Incomplete {
		return nil, nil
	}
	return rowsBetween(ctx, textsOf(m.Parts), textsOf(v.blocks[i].Parts))
}

// changed returns the messages that the record lists as changed.
func (v inspector) changed() (ids []string) {
	for _, s := range v.call.Record.Processors {
		for _, id := range s.Changed[:min(len(s.Changed), inspectedBlocks)] {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// rowsBetween returns the lines in which two texts differ.
func rowsBetween(ctx context.Context, before, after string) ([]CompareRow, error) {
	if before == after || len(before)+len(after) > 2*maxShown {
		return nil, nil
	}
	d, err := diff.Lines(ctx, before, after, diff.Options{Context: 2, Limit: 400})
	return rowsOf(d.Hunks, false), err
}

// An InspectedStep is the work of one processor.
type InspectedStep struct {
	ID            string
	Settings      string // level that configured it
	Took          string
	Before, After int // tokens
	Changes       []InspectedChange
	Logs          []InspectedLog
}

// Quiet reports whether it changed and logged nothing.
func (s InspectedStep) Quiet() bool { return len(s.Changes) == 0 && len(s.Logs) == 0 }

// An InspectedChange is a change by a processor: of one message, or all that it
// added or removed.
type InspectedChange struct {
	Kind   inspect.Change
	Labels []string
	More   int      // further ones
	Others []string // processors that changed the message too
	Rows   []CompareRow
	Rules  []InspectedRule // the effect of each, if several rules changed the message
}

// An InspectedRule is the effect of one rule on a message.
type InspectedRule struct {
	Name string
	Rows []CompareRow
}

// An InspectedLog is a log entry of a processor.
type InspectedLog struct {
	Entry          *InspectedEntry // of a world book; nil: the log is about something else
	Level, Message string
	Rule           string   // rule that the entry is about; "": none
	Messages       []string // messages that it is about
	More           int      // further ones
	Details        string
}

// listedMessages is how many messages a list names.
const listedMessages = 10

func (v inspector) labels(ids []string) (out []string, more int) {
	for _, id := range ids[:min(len(ids), listedMessages)] {
		out = append(out, v.label(id))
	}
	return out, max(0, len(ids)-listedMessages)
}

func (v inspector) steps(ctx context.Context) ([]InspectedStep, error) {
	var out []InspectedStep
	var passes map[string][]inspect.MessagePass
	var err error
	preview := v.call.Run == "" // the steps of a preview cannot be fetched one by one
	if !preview {
		if passes, err = v.app.Contexts.Passes(ctx, v.call.ContextKey, v.changed()...); err != nil {
			return nil, err
		}
	}
	for _, s := range v.call.Record.Processors {
		step := InspectedStep{
			ID: s.ID, Settings: string(s.Settings), Took: fmt.Sprintf("%.1f ms", s.Millis), Before: s.TokensBefore, After: s.TokensAfter,
		}
		for _, c := range []struct {
			kind inspect.Change
			ids  []string
		}{{inspect.Added, s.Added}, {inspect.Removed, s.Removed}} {
			if len(c.ids) > 0 {
				change := InspectedChange{Kind: c.kind}
				change.Labels, change.More = v.labels(c.ids)
				step.Changes = append(step.Changes, change)
			}
		}
		for n, id := range s.Changed {
			if n == inspectedBlocks {
				step.Changes = append(step.Changes, InspectedChange{Kind: inspect.Changed, More: len(s.Changed) - n})
				break
			}
			change := InspectedChange{Kind: inspect.Changed, Labels: []string{v.label(id)}}
			if i := slices.IndexFunc(v.blocks, func(b record.Block) bool { return b.ID == id }); i >= 0 {
				change.Others = slices.DeleteFunc(slices.Clone(v.blocks[i].Changed), func(p string) bool { return p == s.ID })
			}
			own := slices.DeleteFunc(slices.Clone(passes[id]), func(p inspect.MessagePass) bool { return p.Processor != s.ID })
			for _, p := range own {
				rows, err := rowsBetween(ctx, textsOf(p.Before), textsOf(p.After))
				if err != nil {
					return nil, err
				}
				if len(own) == 1 {
					change.Rows = rows
				} else if len(p.Rules) > 0 {
					change.Rules = append(change.Rules, InspectedRule{p.Rules[0], rows})
				}
			}
			if preview {
				if change.Rows, err = v.changes(ctx, id); err != nil {
					return nil, err
				}
			}
			step.Changes = append(step.Changes, change)
		}
		for _, l := range s.Logs {
			log := InspectedLog{Level: string(l.Level), Message: l.Message}
			rest := maps.Clone(l.Details)
			if rule, ok := rest["rule"].(string); ok {
				log.Rule = rule
				delete(rest, "rule")
				delete(rest, "count") // of the messages, which are listed
			}
			log.Entry = entryOf(rest)
			if id, ok := rest["message"].(string); ok && log.Entry != nil {
				log.Messages, _ = v.labels([]string{id})
				delete(rest, "message")
			}
			if ids, ok := rest["messages"].([]any); ok {
				var names []string
				for _, id := range ids {
					names = append(names, fmt.Sprint(id))
				}
				log.Messages, log.More = v.labels(names)
				delete(rest, "messages")
			}
			if len(rest) > 0 {
				details, err := json.Marshal(rest)
				if err != nil {
					return nil, artel.Errorf(artel.Internal, "webui", s.ID, "a note cannot be written: %w", err)
				}
				log.Details = artel.Shorten(string(details), 2000)
			}
			step.Logs = append(step.Logs, log)
		}
		out = append(out, step)
	}
	return out, nil
}
