// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline/token"
)

func tokenLimiter() Processor {
	return Processor{
		ID:          TokenLimiter,
		Name:        "Token limiter",
		Description: "Drops the oldest messages so that the request and the reply fit into the model's context window.",
		Priority:    PriorityTokenLimiter,
		Icon:        "✂",
		Core:        true, Required: true,
		Fields: []Field{
			{
				Key: "max_tokens", Label: "Maximum tokens of request and reply together", Type: FieldNumber, Range: From(0),
				Placeholder: "the agent's setting, otherwise the model's window",
			},
			{
				Key: "reply_reserve", Label: "Tokens reserved for the reply", Type: FieldNumber, Range: From(0),
				Placeholder: "the model's longest reply, at most a quarter of its window",
			},
			{
				Key: "keep_chars", Label: "Characters to keep of the first message that does not fit", Type: FieldNumber, Range: From(0),
				Placeholder: "the agent's setting, otherwise none",
			},
			{
				Key: "vocabulary", Label: "Tokenizer for counting", Type: FieldSelect, Options: token.Vocabularies(),
				Placeholder: "the model's",
			},
		},
		Adds:    Session,
		Process: limit,
	}
}

// limiting is the configuration of the token limiter.
type limiting struct {
	MaxTokens    *int   `json:"max_tokens"`
	ReplyReserve *int   `json:"reply_reserve"`
	KeepChars    *int   `json:"keep_chars"`
	Vocabulary   string `json:"vocabulary"`
}

// vocabularyOf is the vocabulary that a configuration of the token limiter
// names; "": none.
func vocabularyOf(config json.RawMessage) string {
	var conf limiting
	if readConfig(config, &conf) != nil {
		return "" // the processor says what is wrong with it
	}
	return conf.Vocabulary
}

// limits are those of the agent, where the configuration names no other.
func (c limiting) limits(l Limits) Limits {
	if c.MaxTokens != nil {
		l.MaxTokens = *c.MaxTokens
	}
	if c.ReplyReserve != nil {
		l.ReplyReserve = c.ReplyReserve
	}
	if c.KeepChars != nil {
		l.KeepChars = *c.KeepChars
	}
	return l
}

// limited is what the limiter leaves on the blackboard.
type limited struct {
	budget  int
	dropped []string
	cut     []string
	minimum int // tokens of the least that could be sent, where that is too much
}

// limit drops the oldest history that does not fit. What fits is found by the
// tokens that the draft has once the formatters have run, so that separators
// and fillers are in the budget.
func limit(_ context.Context, d *Draft) error {
	var conf limiting
	if err := d.Config(&conf); err != nil {
		return err
	}
	limits := conf.limits(d.Agent.Context)
	window := smaller(limits.MaxTokens, d.Service.Capabilities.ContextWindow.Value)
	if window <= 0 {
		return nil
	}
	reserve := reserve(window, d.Service.Capabilities.MaxOutput.Value)
	if limits.ReplyReserve != nil {
		reserve = min(max(*limits.ReplyReserve, 0), window)
	}
	us := exchanges(d.Messages)
	l := limiter{d: d, budget: window - reserve, exchanges: us, history: droppable(d.Messages, us)}
	kept, out := l.walk(limits.KeepChars)
	gone := len(d.Messages)
	for i := range kept {
		if id := d.Messages[i].ID; l.history[i] && !slices.Contains(out.cut, id) {
			out.dropped = append(out.dropped, id)
		}
	}
	d.unchanged = sameMessages(d.Messages, l.messages)
	d.Messages = l.messages
	gone -= len(d.Messages)
	total := 0
	if !l.verified {
		total = l.tokens(d.Messages)
	}
	if total > l.budget {
		out.minimum = total
	}
	Set(d, out)
	if total > l.budget {
		return artel.Errorf(artel.TooLarge, "pipeline.Build", "",
			"the request needs at least %d tokens, but %d fit: a window of %d less %d for the reply; shorten the message, attach less, or choose a service with a larger window",
			total, l.budget, window, reserve)
	}
	if gone > 0 || len(out.cut) > 0 {
		d.Log(Info, "the oldest messages do not fit and are not sent", map[string]any{
			"count": gone, "cut": len(out.cut), "budget": l.budget, "window": window, "reply_reserve": reserve,
		})
	}
	return nil
}

// smaller returns the smaller of two numbers of which 0 and less mean none.
func smaller(a, b int) int {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// reserve is what the reply gets of a window: the model's longest output where
// it is known, and at most a quarter.
func reserve(window, maxOutput int) int {
	if maxOutput > 0 {
		return min(maxOutput, window/4)
	}
	return window / 4
}

// A limiter finds what fits.
type limiter struct {
	d         *Draft
	budget    int
	exchanges []span
	history   []bool    // by message: it may be dropped
	messages  []Message // that are kept
	verified  bool      // they fit
}

// droppable says of each message whether it is history, and all of its unit is.
func droppable(ms []Message, us []span) []bool {
	out := make([]bool, len(ms))
	for _, u := range us {
		all := true
		for i := u.start; i < u.end; i++ {
			all = all && ms[i].Origin == OriginHistory
		}
		for i := u.start; i < u.end; i++ {
			out[i] = all
		}
	}
	return out
}

// walk keeps as much of the history as fits, from its end. It returns the index
// before which history is dropped.
func (l *limiter) walk(keepChars int) (kept int, out limited) {
	ms := l.d.Messages
	out.budget = l.budget
	first := protected(ms)
	room := l.budget - l.d.toolTokens
	for i := range ms {
		if !l.history[i] || i >= first {
			room -= l.d.counter.count(&ms[i])
		}
	}
	us := l.exchanges
	for len(us) > 0 && us[len(us)-1].start >= first {
		us = us[:len(us)-1]
	}
	k := 0 // units that fit by themselves, from the newest on
	for k < len(us) {
		u, n := us[len(us)-1-k], 0
		for i := u.start; i < u.end && l.history[i]; i++ {
			n += l.d.counter.count(&ms[i])
		}
		if n > room {
			break
		}
		room -= n
		k++
	}
	// Separators and fillers may still be too much.
	enough := func(k int) bool { return l.fits(us[len(us)-k].start, nil) }
	if k > 0 && !enough(k) {
		k = sort.Search(k, func(n int) bool { return !enough(n + 1) })
	}
	kept, l.verified = first, k > 0
	if k > 0 {
		kept = us[len(us)-k].start
	}
	l.messages = l.keep(kept, nil)
	if keepChars <= 0 || k == len(us) {
		return kept, out
	}
	u := us[len(us)-1-k]
	if u.end-u.start > 1 || !l.history[u.start] {
		return kept, out
	}
	if short, ok := l.d.shorten(ms[u.start], keepChars); ok && l.fits(kept, &short) {
		l.messages, l.verified = l.keep(kept, &short), true
		out.cut = []string{short.ID}
		if opaque(ms[u.start].Parts) {
			l.d.Log(Warn, "a message is cut, and the state that its service keeps with it is not sent", map[string]any{"message_id": short.ID})
		}
	}
	return kept, out
}

// keep returns the messages without the history before kept, with short, where
// there is one, in the place of its message; those of the draft where none goes.
func (l *limiter) keep(kept int, short *Message) []Message {
	n := len(l.d.Messages)
	for _, may := range l.history[:kept] {
		if may {
			n--
		}
	}
	if n == len(l.d.Messages) {
		return l.d.Messages
	}
	out := make([]Message, 0, n+1)
	for i := range kept {
		m := &l.d.Messages[i]
		switch {
		case !l.history[i]:
			out = append(out, *m)
		case short != nil && m.ID == short.ID:
			out = append(out, *short)
		}
	}
	return append(out, l.d.Messages[kept:]...)
}

func (l *limiter) fits(kept int, short *Message) bool {
	return l.tokens(l.keep(kept, short)) <= l.budget
}

// tokens are those of the request with these messages, as the formatters will
// leave them.
func (l *limiter) tokens(ms []Message) int {
	return l.d.toolTokens + l.d.counter.all(l.d.formatted(ms))
}

// formatted is what the formatters of this build will make of ms.
func (d *Draft) formatted(ms []Message) []Message {
	for _, p := range d.steps {
		f := formatterOf(p.ID)
		if f == nil || p.Group != MessageFormatters {
			continue
		}
		var conf formatting
		if readConfig(p.setting.Config, &conf) == nil { // else the processor says what is wrong with it
			ms = f(d, conf, ms)
		}
	}
	return ms
}

// withinBudget refuses what somebody has added after the token limiter has
// counted, where that is too much.
func (d *Draft) withinBudget() error {
	cut, ok := Value[limited](d)
	if !ok {
		return nil
	}
	if n := d.toolTokens + d.counter.all(d.formatted(d.Messages)); n > cut.budget {
		return artel.Errorf(artel.TooLarge, "pipeline.Build", "", "the request has %d tokens with what was added after the token limiter had counted, and %d fit", n, cut.budget)
	}
	return nil
}

// shorten returns m with the first characters of its text and a word on what is
// missing; false where that is not shorter. All other parts go.
func (d *Draft) shorten(m Message, chars int) (Message, bool) {
	if m.Role == artel.RoleTool || artel.HasCalls(m.Parts) {
		return m, false
	}
	text := artel.TextOf(m.Parts)
	total := utf8.RuneCountInString(text)
	if total <= chars {
		return m, false
	}
	shown := graphemePrefix(text, chars)
	short := shown + "\n" + d.Locale.Say(phrase.LimitCut, map[string]any{"Shown": utf8.RuneCountInString(shown), "Total": total})
	if strings.TrimSpace(shown) == "" || utf8.RuneCountInString(short) >= total {
		return m, false
	}
	m.Parts = artel.Parts{artel.Text{Text: short}}
	return m, true
}

// graphemePrefix returns the longest beginning of s with at most n code points
// that does not end within what people see as one character.
func graphemePrefix(s string, n int) string {
	end := 0
	for g := graphemes.FromString(s); g.Next(); {
		if n -= utf8.RuneCountInString(g.Value()); n < 0 {
			break
		}
		end += len(g.Value())
	}
	return s[:end]
}

// protected returns the index from which on nothing is dropped: the last user
// message of the history, or its last exchange where there is none.
func protected(ms []Message) int {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Origin == OriginHistory && ms[i].Role == artel.RoleUser {
			return i
		}
	}
	last := len(ms)
	for _, u := range exchanges(ms) {
		if ms[u.start].Origin == OriginHistory {
			last = u.start
		}
	}
	return last
}

type span struct{ start, end int }

// units cuts ms into what is kept or dropped together.
func exchanges(ms []Message) []span {
	us := make([]span, 0, len(ms))
	for i := 0; i < len(ms); {
		end := exchange(ms, i)
		us = append(us, span{i, end})
		i = end
	}
	return us
}
