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

// A history is what a request tells about the conversation.
type history struct {
	locale      phrase.Locale
	mark        string       // of the run; begins the ids of its calls
	ordinal     int          // of the newest message of the user, from 1
	text        string       // of that message, without its attachments
	attachments []attachment // of that message
	earlier     []attachment // of the newest message before it that had some
	answers     int          // of the model, since that message
	calls       []done       // of the whole conversation, in order
	began       int          // the index in calls where the run begins
	planned     bool         // there is a task plan, whoever made it
	tools       map[string]bool
	summing     bool     // it is asked to sum up the conversation
	agents      []string // whom it can give work to
}

// A done is a tool call and what came of it.
type done struct {
	artel.ToolCall
	result *artel.ToolResult // nil: none came
}

func (d done) ok() bool { return d.result != nil && !d.result.IsError }

// An attachment is something that the user gave with the message, in the form
// in which it reached the model: text, media, or neither where the model was
// told that it cannot read it.
type attachment struct {
	id        string // of the artifact; empty: not known
	name      string
	mediaType string
	text      *string
	origin    origin // of text
	media     *artel.Media
	carried   bool // it belongs to a message that could not hold it
}

// An origin says how the text of an attachment came about.
type origin int

const (
	own origin = iota
	extracted
	written // down, by another service
)

// What the context pipeline writes around the things that it places in a
// message: the name of a text attachment before its fence, the label of media,
// a description in the place of media, and the reminder at the end. And the
// labels that package provider puts before media which another message could
// not hold, and in the place of media that was sent before.
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

// read takes a request apart.
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
				continue // nothing but the reminder, or the media of tool results
			}
			if asksForSummary(text) {
				h.summing = true
				continue
			}
			if ordinal, answers, rest, ok := remembered(text); ok { // by a summary that it wrote itself
				h.ordinal, h.answers, h.began = ordinal, answers, len(h.calls)
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
			h.answers, h.began = 0, len(h.calls)
			h.locale = languageOf(text, h.locale)
			fmt.Fprintf(hash, "%q", text)
		case artel.RoleAssistant:
			h.answers++
			for _, c := range artel.CallsOf(m.Parts) {
				h.calls = append(h.calls, done{c, results[c.ID]})
			}
		}
	}
	h.mark = fmt.Sprintf("demo_%d_%08x", h.ordinal, hash.Sum32())
	return h
}

// userMessage separates what the user wrote from what was attached. shown is
// the media of the messages so far by the name that later ones call it by.
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

// joined returns parts with texts in a row as one, as APIs have them that take
// a message without media as one text.
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

// show remembers what a message calls m. The version is left out, since only
// labels tell it.
func show(shown map[string]*artel.Media, id, name string, m *artel.Media) {
	if id != "" {
		shown["artifact "+id] = m
	} else {
		shown["file ("+name+")"] = m
	}
}

// before returns the media that a text calls by its label.
func before(shown map[string]*artel.Media, label string) *artel.Media {
	if f := strings.Fields(label); len(f) > 1 && f[0] == "artifact" {
		return shown["artifact "+f[1]]
	}
	return shown[label]
}

// userText takes the attachments, descriptions and the reminder out of a text.
// Where media follows, its last line may be the label of that.
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
					a.origin = written
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

// fenced returns what the fence at the beginning of lines holds, and how many
// lines it takes.
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

// known drops the ids that stand for none.
func known(id string) string {
	if _, err := artel.ParseArtifactID(id); err != nil || id == "unknown" || id == "未知" {
		return ""
	}
	return id
}

// languageOf returns Chinese for text in which Han characters prevail and
// Japanese kana are absent, before where there are no letters to tell by.
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
	case kana, 4*han < others: // a Han character says about as much as four letters
		return phrase.English
	}
	return phrase.Chinese
}

// written returns the text of an artifact as the calls before the run left it,
// as far as they show it.
func (h *history) written(id string) (text string, ok bool) {
	for _, c := range h.calls[:h.began] {
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
