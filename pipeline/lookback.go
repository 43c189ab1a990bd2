// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
)

// Only the end of a long history fits the context window. A build loads just
// enough messages to surely fill it, so that its cost grows with the window and
// not with the history. The request equals that of the whole history, because
// the token limiter keeps messages from the end and stops at the first that does
// not fit: if it drops or cuts a loaded message, no older one would be sent. If
// it drops none, the build is repeated with the whole history.
//
// Without lookback a build of 10,000 messages takes 50 to 90 ms of processor
// time instead of 5, and 12 to 17 ms instead of 2 after one new message.

const (
	// maxTokenBytes is the assumed maximum of bytes per token. If a text has
	// more, the build may have to be repeated with the whole history.
	maxTokenBytes = 6
	// minOlder is the least number of messages to leave out; leaving out
	// fewer saves little.
	minOlder = 100
)

// A lookback is the part of the history that a build leaves unloaded.
type lookback struct {
	full  bool     // load the whole history
	older []string // ids of history messages that were not loaded, oldest first
}

// loadRecent loads the end of the history that surely fills the window, if the
// request cannot depend on older messages. False: the whole history has to be
// loaded.
func (d *Draft) loadRecent(path []artel.Message, places []int) (bool, error) {
	if d.lookback.full || !d.lookbackAllowed() {
		return false, nil
	}
	limits := d.windowLimits()
	window := smaller(limits.MaxTokens, d.Service.Capabilities.ContextWindow.Value)
	if window <= 0 || len(places) < minOlder {
		return false, nil
	}
	summary := 0
	if path[places[0]].Summary { // the summary is always sent
		if summary = 1; !independent(&path[places[0]]) {
			return false, nil
		}
	}
	deepest := d.deepest(len(path))
	for n := d.windowStart(path, places, window*maxTokenBytes); n-summary >= minOlder; n -= len(places) - n {
		for n > summary && !independent(&path[places[n]]) { // do not split an exchange
			n--
		}
		if n-summary < minOlder {
			break
		}
		logs := len(d.logs)
		beyond, err := d.olderIDs(path, places[summary:n])
		if err != nil {
			return false, err
		}
		near, err := d.loadMessages(path, places[n:])
		if err != nil {
			return false, err
		}
		first := min(lastBytes(near, window*maxTokenBytes), protected(near))
		for first > 0 && near[first].Role == artel.RoleTool {
			first--
		}
		if first > 0 && len(near)-first > deepest && bothSpeak(near[first:]) {
			if summary > 0 {
				if d.Messages, err = d.loadMessages(path, places[:1]); err != nil {
					return false, err
				}
			}
			for i := range near[:first] {
				beyond = append(beyond, near[i].ID)
			}
			d.lookback.older, d.Messages = beyond, append(d.Messages, near[first:]...)
			d.Log(Info, "the oldest messages are far outside the window and were not loaded", map[string]any{"count": len(beyond)})
			return true, nil
		}
		d.logs = d.logs[:logs] // look back twice as far, or over everything
	}
	return false, nil
}

// windowStart returns the index of the oldest message to load: the one before
// the text reaches bytes.
func (d *Draft) windowStart(path []artel.Message, places []int, bytes int) int {
	for k := len(places) - 1; k > 0; k-- {
		for _, p := range path[places[k]].Parts {
			if r, ok := p.(artel.Reasoning); !ok || r.Service == d.Service.ID {
				bytes -= textBytes(p)
			}
		}
		if bytes <= 0 {
			return k - 1
		}
	}
	return 0
}

// independent reports whether a stored message is sent unchanged, regardless of
// its neighbours.
func independent(m *artel.Message) bool {
	if m.Role != artel.RoleUser && m.Role != artel.RoleAssistant && m.Role != artel.RoleSystem {
		return false
	}
	for _, p := range m.Parts {
		switch p.(type) {
		case artel.Text, artel.Media:
		default:
			return false
		}
	}
	return !blank(m.Parts)
}

// olderIDs returns the ids of the messages that loading these indexes would
// give. It loads only messages that depend on their neighbours.
func (d *Draft) olderIDs(path []artel.Message, places []int) ([]string, error) {
	ids := make([]string, 0, len(places))
	for i := 0; i < len(places); {
		if m := &path[places[i]]; independent(m) {
			ids = append(ids, string(m.ID))
			i++
			continue
		}
		end := i + 1
		for end < len(places) && !independent(&path[places[end]]) {
			end++
		}
		ms, err := d.loadMessages(path, places[i:end])
		if err != nil {
			return nil, err
		}
		for k := range ms {
			ids = append(ids, ms[k].ID)
		}
		i = end
	}
	return ids, nil
}

// lookbackAllowed reports whether the token limiter runs and all processors are
// built in: none of those looks at messages far before the one that it works
// on, except for the one that chooses entries of world books.
func (d *Draft) lookbackAllowed() bool {
	runs := false
	if len(d.Books) > 0 {
		return false // keys, depths and earlier firings of entries may concern any message
	}
	for _, p := range d.steps {
		if !p.Core {
			return false // a plugin may read any message
		}
		runs = runs || p.ID == TokenLimiter
	}
	return runs && d.Until == ""
}

// windowLimits returns the effective limits of the token limiter.
func (d *Draft) windowLimits() Limits {
	for _, p := range d.steps {
		var conf limiting
		if p.ID == TokenLimiter && readConfig(p.setting.Config, &conf) == nil {
			return conf.limits(d.Agent.Context)
		}
	}
	return d.Agent.Context
}

// lastBytes returns the index from which on the messages have this many bytes
// of text; 0 if all together have fewer.
func lastBytes(ms []Message, bytes int) int {
	for i := len(ms) - 1; i >= 0; i-- {
		for _, p := range ms[i].Parts {
			bytes -= textBytes(p)
		}
		if bytes <= 0 {
			return i
		}
	}
	return 0
}

func textBytes(p artel.Part) int {
	switch p := p.(type) {
	case artel.Text:
		return len(p.Text)
	case artel.ToolCall:
		return len(p.Arguments)
	case artel.ToolResult:
		return len(p.Content)
	case artel.Reasoning:
		return len(p.Text)
	}
	return 0
}

// deepest returns the largest depth of a preset, in a history of all messages.
func (d *Draft) deepest(all int) int {
	most := 0
	for _, p := range d.Agent.Presets {
		if strings.ContainsAny(p.Place.Depth, "~:") {
			return all // repeated over the whole history
		}
		for s := range strings.SplitSeq(p.Place.Depth, ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
				most = max(most, n)
			} else if strings.TrimSpace(s) != "" {
				return all
			}
		}
	}
	return most
}

// bothSpeak reports whether ms holds a text of the user and one of the
// assistant, which macros may refer to.
func bothSpeak(ms []Message) bool {
	said := func(r artel.Role) bool {
		return slices.ContainsFunc(ms, func(m Message) bool {
			return m.Role == r && m.Origin == OriginHistory && artel.TextOf(m.Parts) != ""
		})
	}
	return said(artel.RoleUser) && said(artel.RoleAssistant)
}

// lookbackTooShort reports whether the token limiter kept every loaded message,
// so that older ones may fit too.
func (d *Draft) lookbackTooShort() bool {
	if len(d.lookback.older) == 0 {
		return false
	}
	out, ok := Value[limited](d)
	return !ok || len(out.dropped)+len(out.cut) == 0
}
