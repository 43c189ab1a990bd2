// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
)

// Of a long history only the end fits. A build looks at no more of it than
// surely fills the window, so that its cost grows with the window and not with
// the history. What comes out is what would come out of the whole: the limiter
// stops at the first message that does not fit, and where it has not met one,
// the build begins again with the whole history.

const (
	// maxTokenBytes is how many bytes of text make a token at most, in text that
	// people write. Where there are more, the build begins again.
	maxTokenBytes = 6
	// minOlder is how many messages have to be left out at least, for that
	// to be worth a note.
	minOlder = 100
)

// A horizon is how far a build looks back.
type lookback struct {
	full  bool     // it looks at everything
	older []string // ids of history messages that it has not looked at, oldest first
}

// loadRecent loads the end of the history, from what surely fills the window on,
// where that makes no difference to what is sent. False: all has to be loaded.
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
	if path[places[0]].Summary { // it stays
		if summary = 1; !independent(&path[places[0]]) {
			return false, nil
		}
	}
	deepest := d.deepest(len(path))
	for n := d.windowStart(path, places, window*maxTokenBytes); n-summary >= minOlder; n -= len(places) - n {
		for n > summary && !independent(&path[places[n]]) { // an exchange goes as one
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
			d.Log(Info, "the oldest messages are far beyond the window and were not looked at", map[string]any{"count": len(beyond)})
			return true, nil
		}
		d.logs = d.logs[:logs] // twice as far back, or all of it
	}
	return false, nil
}

// filling returns from which of the places on there is more text than that: a
// message more than fills the window, so that the horizon can be where it is filled.
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

// plain reports whether a stored message is sent as it is whatever stands
// beside it.
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

// beyond returns the ids of what would be loaded of these places, of which only
// what is not plain is looked at closely.
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

// narrow reports whether all processors up to the limiter, which has to run,
// treat a message in the same way whatever stands far before it.
func (d *Draft) lookbackAllowed() bool {
	runs := false
	for _, p := range d.steps {
		if !p.Core {
			return false // nobody knows what it looks at
		}
		runs = runs || p.ID == TokenLimiter
	}
	return runs && d.Until == ""
}

// windowLimits are those of the token limiter.
func (d *Draft) windowLimits() Limits {
	for _, p := range d.steps {
		var conf limiting
		if p.ID == TokenLimiter && readConfig(p.setting.Config, &conf) == nil {
			return conf.limits(d.Agent.Context)
		}
	}
	return d.Agent.Context
}

// filled returns the index of the message from which on there are so many bytes
// of text; 0 where there are not.
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

// deepest is how far from the newest message a preset wants to stand at most,
// in a history of so many messages.
func (d *Draft) deepest(all int) int {
	most := 0
	for _, p := range d.Agent.Presets {
		if strings.ContainsAny(p.Place.Depth, "~:") {
			return all // as often as the history is long
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

// spoken reports whether a user and an assistant say something in ms: macros
// may ask for the last of it.
func bothSpeak(ms []Message) bool {
	said := func(r artel.Role) bool {
		return slices.ContainsFunc(ms, func(m Message) bool {
			return m.Role == r && m.Origin == OriginHistory && artel.TextOf(m.Parts) != ""
		})
	}
	return said(artel.RoleUser) && said(artel.RoleAssistant)
}

// lookbackTooShort reports whether the limiter has not met the end of what fits
// before the horizon.
func (d *Draft) lookbackTooShort() bool {
	if len(d.lookback.older) == 0 {
		return false
	}
	out, ok := Value[limited](d)
	return !ok || len(out.dropped)+len(out.cut) == 0
}
