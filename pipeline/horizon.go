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
	// fullTokens is how many bytes of text make a token at most, in text that
	// people write. Where there are more, the build begins again.
	fullTokens = 6
	// leastBeyond is how many messages have to be left out at least, for that
	// to be worth a note.
	leastBeyond = 100
)

// A horizon is how far a build looks back.
type horizon struct {
	whole  bool     // it looks at everything
	beyond []string // ids of history messages that it has not looked at, oldest first
}

// look shortens the history that was loaded, where that makes no difference to
// what is sent.
func (d *Draft) look() {
	if d.horizon.whole || !d.narrow() {
		return
	}
	limits := d.windowLimits()
	window := smaller(limits.MaxTokens, d.Service.Capabilities.ContextWindow.Value)
	if window <= 0 {
		return
	}
	first := min(d.filled(window*fullTokens), protected(d.Messages))
	for first > 0 && d.Messages[first].Role == artel.RoleTool { // an exchange goes as one
		first--
	}
	if first < leastBeyond || len(d.Messages)-first <= d.deepest() || !spoken(d.Messages[first:]) {
		return
	}
	kept := make([]Message, 0, len(d.Messages)-first+1)
	for i := range d.Messages {
		if i >= first || d.Messages[i].Origin != OriginHistory {
			kept = append(kept, d.Messages[i])
		} else {
			d.horizon.beyond = append(d.horizon.beyond, d.Messages[i].ID)
		}
	}
	d.Messages = kept
	d.Log(Info, "the oldest messages are far beyond the window and were not looked at", map[string]any{"count": len(d.horizon.beyond)})
}

// narrow reports whether all processors up to the limiter, which has to run,
// treat a message in the same way whatever stands far before it.
func (d *Draft) narrow() bool {
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
// of text.
func (d *Draft) filled(bytes int) int {
	for i := len(d.Messages) - 1; i >= 0; i-- {
		for _, p := range d.Messages[i].Parts {
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

// deepest is how far from the newest message a preset wants to stand at most.
func (d *Draft) deepest() int {
	most := 0
	for _, p := range d.Agent.Presets {
		if strings.ContainsAny(p.Place.Depth, "~:") {
			return len(d.Messages) // as often as the history is long
		}
		for s := range strings.SplitSeq(p.Place.Depth, ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
				most = max(most, n)
			} else if strings.TrimSpace(s) != "" {
				return len(d.Messages)
			}
		}
	}
	return most
}

// spoken reports whether a user and an assistant say something in ms: macros
// may ask for the last of it.
func spoken(ms []Message) bool {
	said := func(r artel.Role) bool {
		return slices.ContainsFunc(ms, func(m Message) bool {
			return m.Role == r && m.Origin == OriginHistory && artel.TextOf(m.Parts) != ""
		})
	}
	return said(artel.RoleUser) && said(artel.RoleAssistant)
}

// shortSighted reports whether the limiter has not met the end of what fits
// before the horizon.
func (d *Draft) shortSighted() bool {
	if len(d.horizon.beyond) == 0 {
		return false
	}
	out, ok := Value[limited](d)
	return !ok || len(out.dropped)+len(out.cut) == 0
}
