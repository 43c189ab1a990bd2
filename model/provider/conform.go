// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// NoResult is what a model reads for a call whose result is missing.
const NoResult = "no result: the call was interrupted before it answered"

// FillerMessage is what the assistant says between the result of a tool and a user
// message, for APIs that refuse one after the other.
const FillerMessage = "(I have read the results.)"

// OpeningMessage is what the user says first where an API wants that, and nobody did.
const OpeningMessage = "(The conversation begins here.)"

// Conform makes messages legal for APIs of the chat family, whatever the history
// was made with, and leaves the input untouched. In what it returns:
//
//   - a tool message holds one [artel.ToolResult] and directly follows the
//     assistant message that called; each call has one result, in the order of
//     the calls, [NoResult] where there is none. Results that nobody called
//     for become user text;
//   - media stand in user messages alone. Those of tool results, and of
//     assistant and system messages, follow in one user message after the
//     whole group, each behind a label that says where it comes from; a user
//     message that follows directly takes them in;
//   - the same media is sent once, and named by a text afterwards;
//   - there is no reasoning, which the family has no place for;
//   - no message is empty.
//
// Where to says that tool results take media of a type, they keep them; what
// stays needs no label. Where no user message may follow a tool message, a
// [FillerMessage] stands between them.
//
// The label names the artifact where the ref holds it beside the digest.
//
// Dialects that want more than that have a [MessageRules].
func Conform(messages []model.Message, to model.Capabilities) []model.Message {
	return MessageRules{}.Conform(messages, to)
}

// A MessageRules is what a dialect asks of a conversation beyond what [Conform] says. The
// zero MessageRules is the chat family's.
type MessageRules struct {
	// Results says how the results of a group stand.
	Results ResultLayout
	// Alternate joins neighbors of one role, so that no two are left.
	Alternate bool
	// UserFirst lets the user speak first, by [OpeningMessage] where nobody did; what
	// the system says comes before.
	UserFirst bool
	// SystemFirst turns system messages after any other into user text, set in
	// <system-reminder>.
	SystemFirst bool
	// UniqueIDs gives calls whose id another one had before, or that have none,
	// an id of their own, and their results too; always the same one.
	UniqueIDs bool
	// Own is the service that is called, where it wants its opaque state back:
	// its reasoning stays as far as it has such state, and its calls keep
	// theirs; the calls of others lose it. Empty: no reasoning stays, and calls
	// are left as they are.
	Own artel.ServiceID
	// ToolTypes are the media types that tool results hold, "image/*" allowed,
	// as far as the capabilities let them in; nil: whatever these do.
	ToolTypes []string
}

// A ResultLayout says how the results of a group of calls stand. They are always
// in the order of the calls.
type ResultLayout int

// The forms of results.
const (
	OneByOne ResultLayout = iota // each in a tool message of its own
	Together                     // all in one tool message
	WithUser                     // all at the head of a user message, which takes in what the user says next
)

// Conform is [Conform] for the form.
func (f MessageRules) Conform(messages []model.Message, to model.Capabilities) []model.Message {
	stays := func(mediaType string) bool { return f.allowsInResult(mediaType, to) }
	p := conformer{form: f, allowedInResult: stays, fillerNeeded: to.NeedsFiller(), seen: map[artel.Digest]string{}}
	if f.UniqueIDs {
		p.ids = idsOf(messages)
	}
	begun := false
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		begun = begun || m.Role != artel.RoleSystem
		switch m.Role {
		case artel.RoleAssistant:
			end := i + 1
			for end < len(messages) && messages[end].Role != artel.RoleAssistant {
				end++
			}
			p.assistant(m, messages[i+1:end])
		case artel.RoleTool:
			p.unmatchedResults(m)
		case artel.RoleSystem:
			if f.SystemFirst && begun {
				m = systemReminder(m)
				p.user(m)
				continue
			}
			p.system(m)
		default:
			p.user(m)
		}
	}
	p.flush()
	return f.join(p.out)
}

type conformer struct {
	form            MessageRules
	ids             map[artel.CallID]bool       // all there are; true: one is taken
	allowedInResult func(mediaType string) bool // in tool results
	fillerNeeded    bool
	out             []model.Message
	deferred        artel.Parts             // waits for the next user message
	seen            map[artel.Digest]string // what was sent, and how it was called
	matched         map[artel.CallID]int    // results of the group in work that found their call
}

// assistant places m and the results of its calls, which lie somewhere among
// the messages before the next assistant message.
func (p *conformer) assistant(m model.Message, after []model.Message) {
	p.flush()
	p.matched = map[artel.CallID]int{}
	var kept artel.Parts
	var calls []artel.ToolCall // as they are in the history
	var sent []artel.CallID    // as they are sent
	var media artel.Parts
	for _, part := range m.Parts {
		switch v := part.(type) {
		case artel.Media:
			media = append(media, p.labeled(v, ", from the assistant")...)
			continue
		case artel.ToolCall:
			calls = append(calls, v)
			part = p.call(v, &sent)
		case artel.Reasoning:
			if !p.form.replays(v) {
				continue
			}
		case artel.Text:
			if v.Text == "" {
				continue
			}
		}
		kept = append(kept, part)
	}
	if len(kept) > 0 {
		p.out = append(p.out, model.Message{Role: artel.RoleAssistant, Parts: kept})
	}
	results := map[artel.CallID][]artel.ToolResult{}
	for _, msg := range after {
		if msg.Role == artel.RoleTool {
			for _, r := range artel.ResultsOf(msg.Parts) {
				results[r.CallID] = append(results[r.CallID], r)
			}
		}
	}
	for i, c := range calls {
		r := artel.ToolResult{Content: NoResult, IsError: true}
		if n := p.matched[c.ID]; n < len(results[c.ID]) {
			r = results[c.ID][n]
			p.matched[c.ID]++
		}
		r.CallID = sent[i]
		p.out = append(p.out, model.Message{Role: artel.RoleTool, Parts: artel.Parts{p.result(r)}})
	}
	p.deferred = append(media, p.deferred...)
}

// result takes the media out of r, unless they may stay.
func (p *conformer) result(r artel.ToolResult) artel.ToolResult {
	var texts []string
	if r.Content != "" {
		texts = append(texts, r.Content)
	}
	var kept artel.Parts
	from := ", from tool call " + string(r.CallID)
	carried := false
	for _, part := range r.Parts {
		switch v := part.(type) {
		case artel.Media:
			if p.allowedInResult(v.MediaType) {
				kept = append(kept, p.unlessRepeated(v)...)
			} else {
				carried = true
				p.deferred = append(p.deferred, p.labeled(v, from)...)
			}
		case artel.Text:
			if v.Text != "" {
				texts = append(texts, v.Text)
			}
		}
	}
	if len(texts) == 0 && carried && len(kept) == 0 {
		texts = append(texts, MediaFollow)
	}
	r.Content, r.Parts = strings.Join(texts, "\n\n"), kept
	return r
}

// orphans handles a tool message when its turn comes: what the group before it
// has not taken is told as user text.
func (p *conformer) unmatchedResults(m model.Message) {
	for _, r := range artel.ResultsOf(m.Parts) {
		if p.matched[r.CallID] > 0 {
			p.matched[r.CallID]--
			continue
		}
		stays := p.allowedInResult
		p.allowedInResult = func(string) bool { return false }
		waiting := p.deferred
		p.deferred = nil
		r = p.result(r)
		p.allowedInResult = stays
		text := artel.Text{Text: fmt.Sprintf("result of tool call %s, which is no longer in the conversation:\n\n%s", r.CallID, r.Content)}
		p.deferred = append(append(waiting, text), p.deferred...)
	}
}

func (p *conformer) system(m model.Message) {
	// Carried parts belong before a reminder that comes after them, but not
	// into the middle of the leading instructions.
	if n := len(p.out); n > 0 && p.out[n-1].Role != artel.RoleSystem {
		p.flush()
	}
	var kept artel.Parts
	for _, part := range m.Parts {
		switch v := part.(type) {
		case artel.Media:
			p.deferred = append(p.deferred, p.labeled(v, ", from the instructions")...)
		case artel.Text:
			if v.Text != "" {
				kept = append(kept, v)
			}
		}
	}
	if len(kept) > 0 {
		p.out = append(p.out, model.Message{Role: artel.RoleSystem, Parts: kept})
	}
}

func (p *conformer) user(m model.Message) {
	parts := p.deferred
	p.deferred = nil
	for _, part := range m.Parts {
		switch v := part.(type) {
		case artel.Media:
			parts = append(parts, p.unlessRepeated(v)...)
		case artel.Text:
			if v.Text != "" {
				parts = append(parts, v)
			}
		}
	}
	if len(parts) > 0 {
		p.say(parts)
	}
}

// flush sends the carried parts as a message of their own.
func (p *conformer) flush() {
	if len(p.deferred) > 0 {
		p.say(p.deferred)
		p.deferred = nil
	}
}

// say adds a user message.
func (p *conformer) say(parts artel.Parts) {
	if n := len(p.out); p.fillerNeeded && n > 0 && p.out[n-1].Role == artel.RoleTool {
		p.out = append(p.out, model.Message{Role: artel.RoleAssistant, Parts: artel.Parts{artel.Text{Text: FillerMessage}}})
	}
	p.out = append(p.out, model.Message{Role: artel.RoleUser, Parts: parts})
}

// labeled returns a label and m, or the label alone if m was sent before.
func (p *conformer) labeled(m artel.Media, from string) artel.Parts {
	label := Label(m) + from
	if before, ok := p.seen[m.Ref.Digest]; ok {
		return artel.Parts{artel.Text{Text: Repeated(label, before)}}
	}
	p.seen[m.Ref.Digest] = Label(m)
	return artel.Parts{artel.Text{Text: label}, m}
}

// once returns m, or a text that names it if it was sent before.
func (p *conformer) unlessRepeated(m artel.Media) artel.Parts {
	if before, ok := p.seen[m.Ref.Digest]; ok {
		return artel.Parts{artel.Text{Text: Repeated(Label(m), before)}}
	}
	p.seen[m.Ref.Digest] = Label(m)
	return artel.Parts{m}
}

// MediaFollow is the content of a tool's result whose media are all in a message
// after it.
const MediaFollow = "(the result is the media that follow)"

// Repeated returns the text that replaces media already sent under the label
// before.
func Repeated(label, before string) string {
	return label + ": the same as " + before + ", already shown"
}

// Label names m to a model: "artifact {id} v{n} ({filename})" as far as the
// ref and the part know.
func Label(m artel.Media) string {
	var b strings.Builder
	if m.Ref.Artifact != "" {
		b.WriteString("artifact " + string(m.Ref.Artifact))
		if m.Ref.Version > 0 {
			fmt.Fprintf(&b, " v%d", m.Ref.Version)
		}
	} else {
		b.WriteString("file")
	}
	if name := artel.Shorten(m.Filename, 200); name != "" {
		b.WriteString(" (" + name + ")")
	}
	return b.String()
}

// HasMedia reports whether any of ps is media.
func HasMedia(ps artel.Parts) bool {
	return slices.ContainsFunc(ps, func(p artel.Part) bool { _, ok := p.(artel.Media); return ok })
}

// keeps reports whether reasoning is passed back.
func (f MessageRules) replays(r artel.Reasoning) bool {
	return f.Own != "" && r.Service == f.Own && len(r.Opaque) > 0
}

// holds reports whether media of a type stay in tool results.
func (f MessageRules) allowsInResult(mediaType string, to model.Capabilities) bool {
	if f.ToolTypes != nil && !slices.ContainsFunc(f.ToolTypes, func(t string) bool {
		major, all := strings.CutSuffix(t, "/*")
		return t == mediaType || all && strings.HasPrefix(mediaType, major+"/")
	}) {
		return false
	}
	return to.ToolTakes(mediaType)
}

// call returns c as it is sent, and adds its id to those that are.
func (p *conformer) call(c artel.ToolCall, sent *[]artel.CallID) artel.ToolCall {
	if p.form.Own != "" && c.Service != p.form.Own {
		c.Opaque, c.Service = nil, ""
	}
	if p.form.UniqueIDs {
		c.ID = p.unique(c.ID)
	}
	*sent = append(*sent, c.ID)
	return c
}

// idsOf returns the ids of all calls, none of them taken.
func idsOf(messages []model.Message) map[artel.CallID]bool {
	ids := map[artel.CallID]bool{}
	for _, m := range messages {
		for _, c := range artel.CallsOf(m.Parts) {
			ids[c.ID] = false
		}
	}
	return ids
}

// unique takes id, or where it is taken the first like it that nobody has.
func (p *conformer) unique(id artel.CallID) artel.CallID {
	if taken := p.ids[id]; !taken && id != "" {
		p.ids[id] = true
		return id
	}
	stem := id
	if stem == "" {
		stem = "call"
	}
	for n := 2; ; n++ {
		next := stem + "_" + artel.CallID(strconv.Itoa(n))
		if _, there := p.ids[next]; !there {
			p.ids[next] = true
			return next
		}
	}
}

// remind turns what the system says into what a user message tells of it.
func systemReminder(m model.Message) model.Message {
	m.Parts = slices.Clone(m.Parts)
	for i, part := range m.Parts {
		if t, ok := part.(artel.Text); ok && t.Text != "" {
			m.Parts[i] = artel.Text{Text: "<system-reminder>\n" + t.Text + "\n</system-reminder>"}
		}
	}
	m.Role = artel.RoleUser
	return m
}

// join brings neighbors together as the form says. It may change messages, and
// makes new parts where it adds to them.
func (f MessageRules) join(messages []model.Message) []model.Message {
	var out []model.Message
	spoken := false // anything but system messages
	for _, m := range messages {
		results := m.Role == artel.RoleTool
		if results && f.Results == WithUser {
			m.Role = artel.RoleUser
		}
		if m.Role != artel.RoleSystem {
			if f.UserFirst && !spoken && m.Role != artel.RoleUser {
				out = append(out, opening())
			}
			spoken = true
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role && f.joins(m.Role, results, holdsResults(out[n-1])) {
			out[n-1].Parts = append(slices.Clip(out[n-1].Parts), m.Parts...)
			continue
		}
		out = append(out, m)
	}
	if f.UserFirst && !spoken {
		out = append(out, opening())
	}
	return out
}

func opening() model.Message {
	return model.Message{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: OpeningMessage}}}
}

func holdsResults(m model.Message) bool {
	_, ok := m.Parts[len(m.Parts)-1].(artel.ToolResult)
	return ok
}

// joins reports whether a message joins the one before it, which has its role:
// results say whether it has any, after whether the other ends with one.
func (f MessageRules) joins(role artel.Role, results, after bool) bool {
	switch {
	case results:
		return after && f.Results != OneByOne
	case after:
		return f.Results == WithUser
	}
	return f.Alternate
}
