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

// vocabularyOf returns the vocabulary that a configuration of the token limiter
// names; "": none.
func vocabularyOf(config json.RawMessage) string {
	var conf limiting
	if readConfig(config, &conf) != nil {
		return "" // the processor reports the error
	}
	return conf.Vocabulary
}

// limits returns the agent's limits, overridden by the configuration.
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

// A limited is the limiter's result on the blackboard.
type limited struct {
	budget  int
	dropped []string
	cut     []string
	minimum int // tokens of the smallest possible request, if that exceeds the budget
}

// limit drops the oldest history that does not fit. It counts the draft as the
// formatters will leave it, so that separators and fillers are within the
// budget.
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

// smaller returns the smaller of two limits, of which 0 and less mean none.
func smaller(a, b int) int {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// reserve returns the part of a window kept free for the reply: the model's
// longest output if known, at most a quarter.
func reserve(window, maxOutput int) int {
	if maxOutput > 0 {
		return min(maxOutput, window/4)
	}
	return window / 4
}

// A limiter finds the history that fits.
type limiter struct {
	d         *Draft
	budget    int
	exchanges []span
	history   []bool    // by message: may be dropped
	messages  []Message // kept
	verified  bool      // messages are known to fit
}

// droppable reports, for each message, whether all messages of its exchange are
// history.
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

// walk keeps as much of the history as fits, from its end. kept is the index
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
	k := 0 // exchanges that fit, from the newest on
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
	// Separators and fillers may still exceed the budget.
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
			l.d.Log(Warn, "a message is cut, so the opaque state of its service is not sent", map[string]any{"message_id": short.ID})
		}
	}
	return kept, out
}

// keep returns the messages without the history before kept. short, if set,
// replaces its message. It returns the draft's messages if nothing is dropped.
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

// tokens counts the request with these messages after the formatters.
func (l *limiter) tokens(ms []Message) int {
	return l.d.toolTokens + l.d.counter.all(l.d.formatted(ms))
}

// formatted applies the formatters of this build to ms.
func (d *Draft) formatted(ms []Message) []Message {
	for _, p := range d.steps {
		if p.format == nil {
			continue
		}
		var conf formatting
		if readConfig(p.setting.Config, &conf) == nil { // on an error, the processor reports it
			ms = p.format(d, conf, ms)
		}
	}
	return ms
}

// withinBudget refuses messages added after the token limiter that exceed the
// budget.
func (d *Draft) withinBudget() error {
	cut, ok := Value[limited](d)
	if !ok {
		return nil
	}
	if n := d.toolTokens + d.counter.all(d.formatted(d.Messages)); n > cut.budget {
		return artel.Errorf(artel.TooLarge, "pipeline.Build", "", "the request has %d tokens with the messages added after the token limiter, and %d fit", n, cut.budget)
	}
	return nil
}

// shorten returns m with only the first characters of its text and a note about
// the rest. Other parts are left out. False: the result would not be shorter.
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
// that does not split a grapheme.
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
// message of the history, or its last exchange if there is no user message.
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
