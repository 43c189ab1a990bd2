// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
)

// A history is the conversation as the script reads it from a request.
type history struct {
	locale           phrase.Locale
	mark             string       // prefix of the ids of the run's calls
	ordinal          int          // of the newest message of the user, from 1
	text             string       // of that message, without its attachments
	attachments      []attachment // of that message
	earlier          []attachment // of the newest earlier message with attachments
	answers          int          // number of answers since that message
	calls            []callRecord // of the whole conversation, in order
	runStart         int          // the index in calls where the run begins
	planned          bool         // there is a task plan
	tools            map[string]bool
	summaryRequested bool     // the message asks for a summary of the conversation
	agents           []string // available subagents
}

// A callRecord is a tool call and its result.
type callRecord struct {
	artel.ToolCall
	result *artel.ToolResult // nil: missing
}

func (d callRecord) ok() bool { return d.result != nil && !d.result.IsError }

// An attachment is an attachment of a user message in the form that reached the
// model: text, media, or neither if the model cannot read it.
type attachment struct {
	id        string // of the artifact; empty: not known
	name      string
	mediaType string
	text      *string
	origin    textOrigin // of text
	media     *artel.Media
	carried   bool // its own message could not hold it
}

// A textOrigin is the origin of the text of an attachment.
type textOrigin int

const (
	own textOrigin = iota
	extracted
	transcribed // by another service
)

// marks matches the texts that the pipeline adds to a message: the name before the
// fence of a text attachment, the label of media, a description in place of media,
// and the reminder at the end; and the labels of package provider for moved and for
// repeated media.
var marks = sync.OnceValue(func() (m struct {
	textHead, mediaLabel, described, unreadable, cutHint, readable, fenceLine, carriedLabel, repeated *regexp.Regexp
},
) {
	m.textHead = regexp.MustCompile(`^attachment (\S+)(?: v\d+)? \((.*), ([^\s,()]+)\)(, the text that was taken out of it|, written down by \S+)?:$`)
	m.mediaLabel = regexp.MustCompile(`^attachment (\S+)(?: v\d+)? \((.*?)(?:, \d+ × \d+ pixels, shown as \d+ × \d+)?\)$`)
	m.repeated = regexp.MustCompile(`^(?:artifact (\S+)(?: v\d+)?|file)(?: \((.*)\))?: the same as (.*), already shown$`)
	m.described = regexp.MustCompile(`^\[(?:cannot read|not shown|无法读取|未显示)\] (.*) \((?:artifact:([^()]*)|blob:[^()]*)\)$`)
	m.readable = regexp.MustCompile(`^(?:It holds text: |其中有文本：用 )read_artifact\(id='.*'\)`)
	m.unreadable = regexp.MustCompile(`^\[(?:file failed|文件处理失败): (.*)\]$`)
	m.cutHint = regexp.MustCompile(`^\[\d+ of \d+ characters are shown.*\]$`)
	m.fenceLine = regexp.MustCompile("^(`{3,})$")
	m.carriedLabel = regexp.MustCompile(`^(?:artifact (\S+)(?: v\d+)?|file)(?: \((.*)\))?, from (?:tool call \S+|the assistant|the instructions)(?:: the same as .*, already shown)?$`)
	return m
})

var reminderTag = [2]string{"<system-reminder>", "</system-reminder>"}

// read parses a request.
func read(r *model.Request) *history {
	h := &history{locale: phrase.English, tools: map[string]bool{}}
	for _, t := range r.Tools {
		h.tools[t.Name] = true
		if t.Name == delegateTool {
			h.agents = agentsIn(t.Schema)
		}
	}
	hash := fnv.New32a()
	results := map[artel.CallID]*artel.ToolResult{}
	shown := map[string]*artel.Media{}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.ToolResult:
				results[p.CallID] = &p
			case artel.Text:
				h.planned = h.planned || m.Role != artel.RoleAssistant && strings.Contains(p.Text, "<team_task_plan")
			}
		}
	}
	for _, m := range r.Messages {
		switch m.Role {
		case artel.RoleUser:
			text, attachments := userMessage(m.Parts, shown)
			if text == "" && len(attachments) == 0 {
				continue // only the reminder, or media of tool results
			}
			if asksForSummary(text) {
				h.summaryRequested = true
				continue
			}
			if ordinal, answers, rest, ok := fromSummary(text); ok { // its own summary
				h.ordinal, h.answers, h.runStart = ordinal, answers, len(h.calls)
				fmt.Fprintf(hash, "%q", text)
				if text = rest; text == "" && len(attachments) == 0 {
					continue
				}
			}
			h.ordinal++
			if len(h.attachments) > 0 {
				h.earlier = h.attachments
			}
			h.text, h.attachments = text, attachments
			h.answers, h.runStart = 0, len(h.calls)
			h.locale = languageOf(text, h.locale)
			fmt.Fprintf(hash, "%q", text)
		case artel.RoleAssistant:
			h.answers++
			for _, c := range artel.CallsOf(m.Parts) {
				h.calls = append(h.calls, callRecord{c, results[c.ID]})
			}
		}
	}
	h.mark = fmt.Sprintf("demo_%d_%08x", h.ordinal, hash.Sum32())
	return h
}

// userMessage separates the user's text from the attachments. shown has the media
// of earlier messages by label.
func userMessage(parts artel.Parts, shown map[string]*artel.Media) (string, []attachment) {
	var (
		words []string
		found []attachment
		label *attachment
	)
	parts = joined(parts)
	for i, p := range parts {
		switch p := p.(type) {
		case artel.Media:
			if label != nil && label.carried {
				show(shown, label.id, label.name, &p)
				label = nil
				continue
			}
			a := attachment{name: p.Filename, mediaType: p.MediaType, media: &p}
			if label != nil {
				a.id = label.id
				if a.name == "" {
					a.name = label.name
				}
			}
			show(shown, a.id, a.name, &p)
			found, label = append(found, a), nil
		case artel.Text:
			media := i+1 < len(parts)
			if media {
				_, media = parts[i+1].(artel.Media)
			}
			var text string
			var more []attachment
			text, more, label = userText(p.Text, media, shown)
			found = append(found, more...)
			if text != "" {
				words = append(words, text)
			}
		}
	}
	return strings.Join(words, "\n\n"), found
}

// joined returns parts with adjacent texts joined, as some APIs take them.
func joined(parts artel.Parts) artel.Parts {
	var out artel.Parts
	for _, p := range parts {
		text, ok := p.(artel.Text)
		if n := len(out); ok && n > 0 {
			if before, ok := out[n-1].(artel.Text); ok {
				out[n-1] = artel.Text{Text: before.Text + "\n\n" + text.Text}
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// show records the label of m, without the version, which is only in labels.
func show(shown map[string]*artel.Media, id, name string, m *artel.Media) {
	if id != "" {
		shown["artifact "+id] = m
	} else {
		shown["file ("+name+")"] = m
	}
}

// before returns the media with this label.
func before(shown map[string]*artel.Media, label string) *artel.Media {
	if f := strings.Fields(label); len(f) > 1 && f[0] == "artifact" {
		return shown["artifact "+f[1]]
	}
	return shown[label]
}

// userText separates a text into the user's words, attachments and descriptions,
// and drops the reminder. If media follows, its last line may be their label.
func userText(text string, mediaFollows bool, shown map[string]*artel.Media) (words string, found []attachment, label *attachment) {
	lines := strings.Split(text, "\n")
	if n := len(lines) - 1; mediaFollows {
		if m := marks().mediaLabel.FindStringSubmatch(lines[n]); m != nil {
			label, lines = &attachment{id: known(m[1]), name: m[2]}, lines[:n]
		} else if m := marks().carriedLabel.FindStringSubmatch(lines[n]); m != nil {
			label = &attachment{carried: true, id: known(m[1]), name: m[2]}
		}
	}
	var rest []string
	for i := 0; i < len(lines); i++ {
		if m := marks().textHead.FindStringSubmatch(lines[i]); m != nil {
			if body, length, ok := fenced(lines[i+1:]); ok {
				a := attachment{id: known(m[1]), name: m[2], mediaType: m[3], text: &body}
				switch {
				case strings.HasPrefix(m[4], ", written"):
					a.origin = transcribed
				case m[4] != "":
					a.origin = extracted
				}
				found = append(found, a)
				if i += length; i+1 < len(lines) && marks().cutHint.MatchString(lines[i+1]) {
					i++
				}
				continue
			}
		}
		if m := marks().described.FindStringSubmatch(lines[i]); m != nil {
			found = append(found, attachment{id: known(m[2]), name: m[1]})
			i = min(i+3, len(lines)-1) // type, size, advice
			if i+1 < len(lines) && marks().readable.MatchString(lines[i+1]) {
				i++
			}
			continue
		}
		if m := marks().unreadable.FindStringSubmatch(lines[i]); m != nil {
			found = append(found, attachment{name: m[1]})
			i = min(i+2, len(lines)-1) // error, advice
			continue
		}
		if marks().carriedLabel.MatchString(lines[i]) {
			continue
		}
		if m := marks().repeated.FindStringSubmatch(lines[i]); m != nil {
			a := attachment{id: known(m[1]), name: m[2], media: before(shown, m[3])}
			for n := len(rest); n > 0 && rest[n-1] == ""; n-- {
				rest = rest[:n-1]
			}
			if n := len(rest); n > 0 {
				if l := marks().mediaLabel.FindStringSubmatch(rest[n-1]); l != nil {
					a.id, a.name, rest = known(l[1]), l[2], rest[:n-1]
				}
			}
			found = append(found, a)
			continue
		}
		rest = append(rest, lines[i])
	}
	words = strings.Join(rest, "\n")
	if i, j := strings.Index(words, reminderTag[0]), strings.LastIndex(words, reminderTag[1]); i >= 0 && j > i {
		words = words[:i] + words[j+len(reminderTag[1]):]
	}
	return strings.TrimSpace(words), found, label
}

// fenced returns the content of the fence at the beginning of lines, and its number
// of lines.
func fenced(lines []string) (body string, length int, ok bool) {
	if len(lines) == 0 {
		return "", 0, false
	}
	m := marks().fenceLine.FindStringSubmatch(lines[0])
	if m == nil {
		return "", 0, false
	}
	for i, line := range lines[1:] {
		if line == m[1] {
			return strings.Join(lines[1:i+1], "\n"), i + 2, true
		}
	}
	return "", 0, false
}

// known returns id, or "" for placeholders.
func known(id string) string {
	if _, err := artel.ParseArtifactID(id); err != nil || id == "unknown" || id == "未知" {
		return ""
	}
	return id
}

// languageOf returns Chinese for text with mostly Han characters and no kana;
// before if there are no letters.
func languageOf(text string, before phrase.Locale) phrase.Locale {
	han, others, kana := 0, 0, false
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Han, r):
			han++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kana = true
		case unicode.IsLetter(r):
			others++
		}
	}
	switch {
	case han == 0 && others == 0 && !kana:
		return before
	case kana, 4*han < others: // a Han character counts as four letters
		return phrase.English
	}
	return phrase.Chinese
}

// written returns the text of an artifact after the calls before the run, as far as
// they show it.
func (h *history) written(id string) (text string, ok bool) {
	for _, c := range h.calls[:h.runStart] {
		var args struct {
			ID      string `json:"id"`
			Content string `json:"content"`
			Edits   []struct {
				Old string `json:"old"`
				New string `json:"new"`
			} `json:"edits"`
		}
		if !c.ok() || json.Unmarshal(c.Arguments, &args) != nil || args.ID != id {
			continue
		}
		switch c.Name {
		case createTool, rewriteTool:
			text, ok = args.Content, true
		case updateTool:
			for _, e := range args.Edits {
				text = strings.Replace(text, e.Old, e.New, 1)
			}
		}
	}
	return text, ok
}
