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

// NoResult is the text that a model reads for a call without a result.
const NoResult = "no result: the call was interrupted before it answered"

// FillerMessage is an assistant message between the result of a tool and a user
// message, for APIs that refuse one directly after the other.
const FillerMessage = "(I have read the results.)"

// OpeningMessage is a user message at the beginning, for APIs that require one,
// when the conversation starts otherwise.
const OpeningMessage = "(The conversation begins here.)"

// Conform makes messages legal for APIs of the chat family, whatever history they
// come from, and leaves the input unchanged. In the result:
//
//   - a tool message holds one [artel.ToolResult] and directly follows the
//     assistant message with its call; each call has one result, in the order of
//     the calls, or [NoResult]. Results without a call, and further results of a call,
//     become user text;
//   - media are in user messages only. Media of tool results, assistant and
//     system messages follow in one user message after the whole group, each
//     after a label that names its origin; a user message that follows directly
//     absorbs them;
//   - repeated media are sent once, and named by a text afterwards. Media of users
//     without a name of their own are named by their number: "picture 2 of the user";
//   - there is no reasoning, because the family has no field for it;
//   - no message is empty.
//
// Tool results keep media of the types that to allows there, without a label. If
// the API allows no user message after a tool message, a [FillerMessage] separates
// them. Labels name the artifact if the ref has one beside the digest.
//
// Dialects with further requirements use [MessageRules].
func Conform(messages []model.Message, to model.Capabilities) []model.Message {
	return MessageRules{}.Conform(messages, to)
}

// MessageRules are the requirements of a dialect beyond [Conform]. The zero value
// is the chat family's.
type MessageRules struct {
	// Results is the layout of the results of a group of calls.
	Results ResultLayout
	// Alternate joins neighbouring messages of one role, so that roles alternate.
	Alternate bool
	// UserFirst makes a user message the first one after the system messages, with
	// [OpeningMessage] if necessary.
	UserFirst bool
	// SystemFirst turns system messages after any other message into user text in
	// <system-reminder>.
	SystemFirst bool
	// UniqueIDs gives calls with a repeated or empty id another id, always the same
	// one, and their results too.
	UniqueIDs bool
	// Own is the called service, if it needs its opaque state back: its reasoning
	// with such state stays, and its calls keep theirs; the calls of other services
	// lose it. If empty, no reasoning stays and calls are unchanged.
	Own artel.ServiceID
	// ToolTypes are the media types that tool results can hold, as far as the
	// capabilities allow them; "image/*" is allowed. nil: all.
	ToolTypes []string
}

// A ResultLayout is the layout of the results of a group of calls, always in the
// order of the calls.
type ResultLayout int

// The layouts of results.
const (
	OneByOne ResultLayout = iota // a tool message for each
	Together                     // all in one tool message
	WithUser                     // all at the head of a user message, which absorbs the next one
)

// Conform is the function [Conform] with the rules applied.
func (f MessageRules) Conform(messages []model.Message, to model.Capabilities) []model.Message {
	stays := func(mediaType string) bool { return f.allowsInResult(mediaType, to) }
	p := conformer{form: f, allowedInResult: stays, fillerNeeded: to.NeedsFiller(), seen: map[artel.Digest]string{}, shown: map[string]int{}, names: map[string]bool{}}
	if f.UniqueIDs {
		p.ids, p.next = idsOf(messages), map[artel.CallID]int{}
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

// A conformer builds the messages of one call of Conform.
type conformer struct {
	form            MessageRules
	ids             map[artel.CallID]bool       // all ids; true: already used
	next            map[artel.CallID]int        // the number after the last one used with a stem
	allowedInResult func(mediaType string) bool // in tool results
	fillerNeeded    bool
	out             []model.Message
	deferred        artel.Parts             // media and texts for the next user message
	seen            map[artel.Digest]string // label of the media sent so far
	shown           map[string]int          // media of users, by their kind
	names           map[string]bool         // of media of users
	matched         map[artel.CallID]int    // by call of the current group: the results used
}

// assistant adds m and the results of its calls, which are among the messages
// before the next assistant message.
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

// result moves the media out of r unless they are allowed in results.
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
				kept = append(kept, p.unlessRepeated(v, LabelFrom(v, from))...)
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

// unmatchedResults turns results without a call in the history into user text.
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
		if _, answered := p.matched[r.CallID]; answered {
			text.Text = fmt.Sprintf("further result of tool call %s:\n\n%s", r.CallID, r.Content)
		}
		p.deferred = append(append(waiting, text), p.deferred...)
	}
}

func (p *conformer) system(m model.Message) {
	// Deferred parts precede a later reminder, but do not interrupt the leading
	// instructions.
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
			parts = append(parts, p.fromUser(v)...)
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

// flush adds the deferred parts as a user message.
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

// labeled returns a label and m, or only the label if m was sent before.
func (p *conformer) labeled(m artel.Media, from string) artel.Parts {
	label := Label(m) + from
	if before, ok := p.seen[m.Ref.Digest]; ok {
		return artel.Parts{artel.Text{Text: Repeated(label, before)}}
	}
	p.seen[m.Ref.Digest] = LabelFrom(m, from)
	return artel.Parts{artel.Text{Text: label}, m}
}

// unlessRepeated returns m, or a text that names it if it was sent before.
func (p *conformer) unlessRepeated(m artel.Media, label string) artel.Parts {
	if before, ok := p.seen[m.Ref.Digest]; ok {
		return artel.Parts{artel.Text{Text: Repeated(label, before)}}
	}
	p.seen[m.Ref.Digest] = label
	return artel.Parts{m}
}

// fromUser returns m, or a text that names it if it was sent before. Its name is its
// label, or its number among the user's media if it has none or one of another.
func (p *conformer) fromUser(m artel.Media) artel.Parts {
	kind := map[artel.MediaKind]string{artel.KindImage: "picture", artel.KindAudio: "recording", artel.KindVideo: "video"}[m.Kind]
	if kind == "" {
		kind = "document"
	}
	label, repeated := Label(m), "this "+kind
	if m.Ref.Artifact != "" || m.Filename != "" {
		repeated = label
	}
	if _, ok := p.seen[m.Ref.Digest]; ok {
		return p.unlessRepeated(m, repeated)
	}
	p.shown[kind]++
	if repeated != label || p.names[label] {
		label = kind + " " + strconv.Itoa(p.shown[kind]) + " of the user"
	}
	p.names[label] = true
	return p.unlessRepeated(m, label)
}

// MediaFollow is the content of a tool's result whose media are all in a message
// after it.
const MediaFollow = "(the result is the media that follow)"

// Repeated returns the text that replaces media already sent under the label
// before.
func Repeated(label, before string) string {
	return label + ": the same as " + before + ", already shown"
}

// Label returns the name of m for a model: "artifact {id} v{n} ({filename})", as
// far as known.
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

// LabelFrom returns the name of m by which a later text refers to it: its label, and
// where it is from if it has no name.
func LabelFrom(m artel.Media, from string) string {
	if m.Ref.Artifact != "" || m.Filename != "" {
		return Label(m)
	}
	return Label(m) + from
}

// HasMedia reports whether ps contains media.
func HasMedia(ps artel.Parts) bool {
	return slices.ContainsFunc(ps, func(p artel.Part) bool { _, ok := p.(artel.Media); return ok })
}

// replays reports whether reasoning is sent back.
func (f MessageRules) replays(r artel.Reasoning) bool {
	return f.Own != "" && r.Service == f.Own && len(r.Opaque) > 0
}

// allowsInResult reports whether media of a type stay in tool results.
func (f MessageRules) allowsInResult(mediaType string, to model.Capabilities) bool {
	if f.ToolTypes != nil && !slices.ContainsFunc(f.ToolTypes, func(t string) bool {
		major, all := strings.CutSuffix(t, "/*")
		return t == mediaType || all && strings.HasPrefix(mediaType, major+"/")
	}) {
		return false
	}
	return to.ToolTakes(mediaType)
}

// call returns c as it is sent, and appends its id to sent.
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

// idsOf returns the ids of all calls, each unused.
func idsOf(messages []model.Message) map[artel.CallID]bool {
	ids := map[artel.CallID]bool{}
	for _, m := range messages {
		for _, c := range artel.CallsOf(m.Parts) {
			ids[c.ID] = false
		}
	}
	return ids
}

// unique returns id, or id_2, id_3 and so on if it is already used.
func (p *conformer) unique(id artel.CallID) artel.CallID {
	if taken := p.ids[id]; !taken && id != "" {
		p.ids[id] = true
		return id
	}
	stem := id
	if stem == "" {
		stem = "call"
	}
	for n := max(2, p.next[stem]); ; n++ {
		next := stem + "_" + artel.CallID(strconv.Itoa(n))
		if _, there := p.ids[next]; !there {
			p.ids[next] = true
			p.next[stem] = n + 1
			return next
		}
	}
}

// systemReminder turns a system message into a user message with its text in
// <system-reminder>.
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

// join joins neighbouring messages as the rules say. It may change messages, and
// copies the parts that it appends to.
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

// joins reports whether a message joins the previous one of the same role. results
// says whether it has results, after whether the previous one ends with one.
func (f MessageRules) joins(role artel.Role, results, after bool) bool {
	switch {
	case results:
		return after && f.Results != OneByOne
	case after:
		return f.Results == WithUser
	}
	return f.Alternate
}
