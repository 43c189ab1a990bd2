// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
)

// The tools of the script, used if the request offers them.
const (
	createTool  = "create_artifact"
	updateTool  = "update_artifact"
	rewriteTool = "rewrite_artifact"
	readTool    = "read_artifact"
	getTool     = "get_artifact"
	listTool    = "list_artifacts"

	delegateTool = "call_subagent"
)

const (
	reportID           = "report"
	attachmentsPerTurn = 8 // attachments opened in one turn
)

// A goal is an aim of the run with the tools that can reach it, best first. Each is
// tried once.
type goal struct {
	name       string // in the ids of its calls
	text       phrase.Key
	args       map[string]any // of the text
	approaches []approach
}

type approach struct {
	tool string
	args any
}

type editArgs struct {
	ID    string `json:"id"`
	Edits []edit `json:"edits"`
}

type edit struct {
	Old string `json:"old"`
	New string `json:"new"`
}

type writeArgs struct {
	ID      string `json:"id"`
	Title   string `json:"title,omitempty"`
	Content string `json:"content"`
}

// act decides the next turn: the first goal that is neither reached nor given up,
// or the final answer.
func (p *Provider) act(ctx context.Context, h *history) ([]move, error) {
	if h.isInstruction() {
		return h.subagentTurn(), nil
	}
	if !h.tools[createTool] && !h.tools[rewriteTool] {
		found, err := p.findings(ctx, h)
		return []move{h.say(phrase.DemoNoTools, nil) + say("\n\n"+found)}, err
	}
	if moves := h.nextTurn(h.plan()); moves != nil {
		if h.answers == 0 {
			moves = append([]move{think(h.locale.Say(phrase.DemoThought, nil))}, moves...)
		}
		return moves, nil
	}
	if moves := h.delegate(); moves != nil {
		return moves, nil
	}
	if calls := h.reads(); len(calls) > 0 {
		return append([]move{h.say(phrase.DemoReading, map[string]any{"Count": len(calls)})}, calls...), nil
	}
	found, err := p.findings(ctx, h)
	if err != nil {
		return nil, err
	}
	found = strings.TrimSpace(found + "\n" + h.answered())
	all := len(h.items())
	for _, g := range []goal{h.tickStep("look", all-1), h.report(found), h.tickStep("close", all)} {
		if moves := h.nextTurn(g); moves != nil {
			return moves, nil
		}
	}
	last := phrase.DemoDone
	if !h.reached("report") {
		last = phrase.DemoDoneUnwritten
	}
	return []move{h.say(last, nil) + say("\n\n"+found)}, nil
}

// say says k, after the notice if it is the first text of the run.
func (h *history) say(k phrase.Key, args map[string]any) say {
	text := h.locale.Say(k, args)
	if h.answers == 0 {
		text = h.locale.Say(phrase.DemoNotice, nil) + "\n\n" + text
	}
	return say(text)
}

// nextTurn returns the next turn towards g; nil if g is reached or no approach is
// left.
func (h *history) nextTurn(g goal) []move {
	if h.reached(g.name) {
		return nil
	}
	tried := h.tried(g.name)
	if len(tried) > 0 {
		g.text, g.args = phrase.DemoMending, nil
	}
	for _, w := range g.approaches {
		if h.tools[w.tool] && !tried[w.tool] {
			return []move{h.say(g.text, g.args), h.call(fmt.Sprintf("%s_%d", g.name, len(tried)+1), w)}
		}
	}
	return nil
}

// attempts returns the calls of this run for a goal. Their ids end in the goal's
// name and the number of the attempt.
func (h *history) attempts(name string) []callRecord {
	var out []callRecord
	for _, c := range h.calls[h.runStart:] {
		rest, ok := strings.CutPrefix(string(c.ID), "demo_")
		if fields := strings.Split(rest, "_"); ok && len(fields) == 4 && fields[2] == name {
			out = append(out, c)
		}
	}
	return out
}

func (h *history) reached(name string) bool {
	for _, c := range h.attempts(name) {
		if c.ok() {
			return true
		}
	}
	return false
}

func (h *history) tried(name string) map[string]bool {
	tried := map[string]bool{}
	for _, c := range h.attempts(name) {
		tried[c.Name] = true
	}
	return tried
}

func (h *history) call(suffix string, w approach) call {
	args, err := json.Marshal(w.args)
	if err != nil {
		panic("demo: " + err.Error()) // strings and structs of them cannot fail
	}
	return call{ID: artel.CallID(h.mark + "_" + suffix), Name: w.tool, Arguments: args}
}

// items returns the steps of the plan; the last is the report.
func (h *history) items() []string {
	var items []string
	add := func(k phrase.Key, name string) {
		items = append(items, h.locale.Say(k, map[string]any{"Number": len(items) + 1, "Name": name}))
	}
	for _, a := range h.attachments {
		add(phrase.DemoItemLook, a.title(h.locale))
	}
	if len(items) == 0 {
		add(phrase.DemoItemMessage, "")
	}
	add(phrase.DemoItemReport, "")
	return items
}

const (
	open   = "- [ ] "
	ticked = "- [x] "
)

// planText returns the plan with its first n steps ticked off.
func (h *history) planText(n int) string {
	var b strings.Builder
	b.WriteString("# " + h.locale.Say(phrase.DemoPlanTitle, nil) + "\n\n")
	for i, item := range h.items() {
		mark := open
		if i < n {
			mark = ticked
		}
		b.WriteString(mark + item + "\n")
	}
	return b.String()
}

func (h *history) plan() goal {
	g := goal{name: "plan", text: phrase.DemoBegin, args: map[string]any{"Count": len(h.attachments)}}
	if len(h.attachments) == 0 {
		g.text = phrase.DemoBeginAlone
	}
	w := writeArgs{ID: string(artel.TaskPlan), Content: h.planText(0)}
	rewrite := approach{rewriteTool, w}
	w.Title = h.locale.Say(phrase.DemoPlanTitle, nil)
	g.approaches = []approach{{createTool, w}, rewrite}
	if _, ok := h.written(string(artel.TaskPlan)); ok || h.planned {
		g.approaches = []approach{rewrite, {createTool, w}}
	}
	return g
}

// tickStep returns the goal of ticking off the first n steps of the plan, which
// needs a plan.
func (h *history) tickStep(name string, n int) goal {
	g := goal{name: name, text: phrase.DemoTicking}
	items := h.items()
	first := 0
	if n == len(items) {
		g.text, first = phrase.DemoClosing, n-1
	}
	if !h.reached("plan") {
		return g
	}
	var edits []edit
	for _, item := range items[first:n] {
		edits = append(edits, edit{open + item, ticked + item})
	}
	g.approaches = []approach{
		{updateTool, editArgs{string(artel.TaskPlan), edits}},
		{rewriteTool, writeArgs{ID: string(artel.TaskPlan), Content: h.planText(n)}},
	}
	return g
}

// report returns the goal of a report about this message. An earlier report gets a
// new section above the older ones.
func (h *history) report(found string) goal {
	g := goal{name: "report", text: phrase.DemoWriting}
	section := h.section(found)
	title := h.locale.Say(phrase.DemoReportTitle, nil)
	notice := h.locale.Say(phrase.DemoNotice, nil)
	text := "# " + title + "\n\n" + notice + "\n\n" + section
	if earlier, ok := h.written(reportID); ok {
		for _, l := range phrase.Locales() {
			if old := l.Say(phrase.DemoNotice, nil); strings.Count(earlier, old) == 1 {
				e := edit{old, old + "\n\n" + strings.TrimSuffix(section, "\n")}
				text = strings.Replace(earlier, e.Old, e.New, 1)
				g.approaches = append(g.approaches, approach{updateTool, editArgs{reportID, []edit{e}}})
				break
			}
		}
		g.approaches = append(g.approaches, approach{rewriteTool, writeArgs{ID: reportID, Content: text}})
	}
	g.approaches = append(g.approaches, approach{createTool, writeArgs{reportID, title, text}})
	g.approaches = append(g.approaches, approach{rewriteTool, writeArgs{ID: reportID, Content: text}})
	return g
}

// maxQuote limits the quote of the message in the report, in characters.
const maxQuote = 500

func (h *history) section(found string) string {
	var b strings.Builder
	b.WriteString("## " + h.locale.Say(phrase.DemoSection, map[string]any{"Number": h.ordinal}) + "\n\n")
	if h.text == "" {
		b.WriteString(h.locale.Say(phrase.DemoNoMessage, nil) + "\n")
	} else {
		b.WriteString("> " + strings.ReplaceAll(shorten(h.text, maxQuote), "\n", "\n> ") + "\n\n")
		b.WriteString(h.messageSize() + "\n")
	}
	if len(h.attachments) == 0 {
		found = h.answered()
	}
	if found != "" {
		b.WriteString("\n### " + h.locale.Say(phrase.DemoFindings, nil) + "\n\n" + found + "\n")
	}
	return b.String()
}

func (h *history) messageSize() string {
	return h.locale.Say(phrase.DemoMessageSize, map[string]any{"Count": utf8.RuneCountInString(h.text)})
}

// reads returns the calls that open the next attachments with known artifacts.
// Failures are mentioned in the report, not retried.
func (h *history) reads() []move {
	var calls []move
	for i, a := range h.attachments {
		name := fmt.Sprintf("read-%d", i+1)
		if a.id == "" || len(h.attempts(name)) > 0 {
			continue
		}
		w := approach{getTool, map[string]string{"ref": "artifact:" + a.id}}
		if a.text != nil {
			w = approach{readTool, map[string]string{"id": a.id}}
		}
		if h.tools[w.tool] && len(calls) < attachmentsPerTurn {
			calls = append(calls, h.call(name+"_1", w))
		}
	}
	return calls
}
