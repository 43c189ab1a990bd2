// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
)

// defaultSeparator separates merged texts.
const defaultSeparator = "\n\n"

// A formatting is the configuration of the formatters; each has only the keys
// that it uses.
type formatting struct {
	Separator *string `json:"separator"`
	Fillers   struct {
		User      *string `json:"user"`
		Assistant *string `json:"assistant"`
	} `json:"fillers"`
}

func (f formatting) separator() string {
	if f.Separator == nil {
		return defaultSeparator
	}
	return *f.Separator
}

// filler returns the text of a filler message of a role.
func (f formatting) filler(r artel.Role, l phrase.Locale) string {
	given, key := f.Fillers.User, phrase.FillerUser
	if r == artel.RoleAssistant {
		given, key = f.Fillers.Assistant, phrase.FillerAssistant
	}
	if given != nil {
		return *given
	}
	return l.Say(key, nil)
}

// A formatter reshapes a list of messages. It returns ms itself if nothing
// changes, and never writes into it.
type formatter func(d *Draft, f formatting, ms []Message) []Message

// formatters returns the processors of the group [MessageFormatters]. None of
// them touches a message with opaque state of a service, which only accepts
// that state unchanged.
func formatters() []Processor {
	separator := Field{Key: "separator", Label: "Separator between merged texts", Type: FieldTextarea, Default: defaultSeparator}
	fillers := Field{
		Key: "fillers", Label: "Filler messages", Type: FieldJSON,
		Placeholder: `{"user": "Continue.", "assistant": "OK."}`, Check: checkFillers,
	}
	all := []Processor{
		{
			ID: MergeSystem, Name: "Merge system messages", Priority: PriorityMergeSystem, Icon: "⚙",
			Description: "Merges the system messages at the beginning into one. Later ones stay in place.",
			Fields:      []Field{separator}, format: mergeSystem,
		},
		{
			ID: MergeRoles, Name: "Merge roles", Priority: PriorityMergeRoles, Icon: "⛓",
			Description: "Merges neighboring messages of one role. Tool results are never merged.",
			Fields:      []Field{separator}, format: mergeRoles,
		},
		{
			ID: ConvertSystem, Name: "Convert system messages", Priority: PriorityConvertSystem, Icon: "🔁", DefaultOff: true,
			Description: "Turns system messages into user messages, in place.",
			format:      convertSystem,
		},
		{
			ID: EnsureAlternation, Name: "Ensure alternation", Priority: PriorityEnsureAlternation, Icon: "⇄", DefaultOff: true,
			Description: "Inserts a filler between two consecutive messages of the user, or of the assistant.",
			Fields:      []Field{fillers}, format: ensureAlternation,
		},
		{
			ID: FirstUser, Name: "First message from the user", Priority: PriorityFirstUser, Icon: "①", DefaultOff: true,
			Description: "Inserts a filler of the user before the first message, unless that is from the user.",
			Fields:      []Field{fillers}, format: firstUser,
		},
	}
	for i := range all {
		all[i].Group, all[i].Core, all[i].Required, all[i].Adds = MessageFormatters, true, true, Session
		all[i].Process = process(all[i].format)
	}
	return all
}

func checkFillers(v json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.DisallowUnknownFields()
	var f struct{ User, Assistant *string }
	if err := dec.Decode(&f); err != nil {
		return fmt.Errorf(`want an object like {"user": "…", "assistant": "…"}: %w`, err)
	}
	for _, s := range []*string{f.User, f.Assistant} {
		if s != nil && strings.TrimSpace(*s) == "" {
			return errors.New("an empty filler is refused by the APIs that need one: want a text")
		}
	}
	return nil
}

// process returns the Process function of a formatter.
func process(f formatter) func(context.Context, *Draft) error {
	return func(_ context.Context, d *Draft) error {
		var conf formatting
		if err := d.Config(&conf); err != nil {
			return err
		}
		before := d.Messages
		d.Messages = f(d, conf, before)
		d.unchanged = sameMessages(before, d.Messages)
		return nil
	}
}

func sameMessages(a, b []Message) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func mergeSystem(d *Draft, f formatting, ms []Message) []Message {
	n := 0
	for n < len(ms) && ms[n].Role == artel.RoleSystem {
		n++
	}
	if head := d.merge(ms[:n], f.separator()); len(head) < n {
		return slices.Concat(head, ms[n:])
	}
	return ms
}

func mergeRoles(d *Draft, f formatting, ms []Message) []Message { return d.merge(ms, f.separator()) }

func convertSystem(_ *Draft, _ formatting, ms []Message) []Message {
	system := func(m Message) bool { return m.Role == artel.RoleSystem && !opaque(m.Parts) }
	if !slices.ContainsFunc(ms, system) {
		return ms
	}
	ms = slices.Clone(ms)
	for i := range ms {
		if system(ms[i]) {
			ms[i].Role = artel.RoleUser
		}
	}
	return ms
}

func ensureAlternation(d *Draft, f formatting, ms []Message) []Message {
	var out []Message
	from := 0
	for i := 1; i < len(ms); i++ {
		a, b := ms[i-1], ms[i]
		speaks := a.Role == artel.RoleUser || a.Role == artel.RoleAssistant
		if !speaks || a.Role != b.Role || opaque(a.Parts) || opaque(b.Parts) {
			continue
		}
		role := artel.RoleAssistant
		if a.Role == role {
			role = artel.RoleUser
		}
		out = append(append(out, ms[from:i]...), d.filler(f, role, EnsureAlternation, i))
		from = i
	}
	if from == 0 {
		return ms
	}
	return append(out, ms[from:]...)
}

func firstUser(d *Draft, f formatting, ms []Message) []Message {
	i := slices.IndexFunc(ms, func(m Message) bool { return m.Role != artel.RoleSystem })
	if i < 0 || ms[i].Role == artel.RoleUser || opaque(ms[i].Parts) {
		return ms
	}
	return slices.Insert(slices.Clone(ms), i, d.filler(f, artel.RoleUser, FirstUser, i))
}

// filler returns a filler message of a role. by and i make its id.
func (d *Draft) filler(f formatting, r artel.Role, by string, i int) Message {
	return Message{
		ID: fmt.Sprintf("artel:%s-%d", by, i), Role: r, Parts: artel.Parts{artel.Text{Text: f.filler(r, d.Locale)}},
		Origin: OriginFiller, Stability: Session,
	}
}

// merge joins adjacent messages of the same role. It returns ms itself if there
// are none.
func (d *Draft) merge(ms []Message, separator string) []Message {
	first := 1
	for first < len(ms) && !mergeable(&ms[first-1], &ms[first]) {
		first++
	}
	if first >= len(ms) {
		return ms
	}
	out := append(make([]Message, 0, len(ms)), ms[:first-1]...)
	for i := first - 1; i < len(ms); {
		end := i + 1
		for end < len(ms) && mergeable(&ms[i], &ms[end]) {
			end++
		}
		if end == i+1 {
			out = append(out, ms[i])
		} else {
			out = append(out, d.joined(ms[i:end], separator))
		}
		i = end
	}
	return out
}

func mergeable(a, b *Message) bool {
	return a.Role == b.Role && a.Role != artel.RoleTool && !opaque(a.Parts) && !opaque(b.Parts)
}

// joined merges messages into one, with the id of the first. Adjacent texts
// become one, with the separator between them; other parts are kept.
func (d *Draft) joined(ms []Message, separator string) Message {
	out := ms[0]
	out.Origin, out.Parts, out.MergedFrom, out.history = OriginMerged, nil, nil, 0
	joiner := textJoiner{separator: separator}
	for i := range ms {
		m := &ms[i]
		if out.Agent != m.Agent {
			out.Agent = ""
		}
		out.Stability = out.Stability.Least(m.Stability)
		joiner.add(m.Parts)
		out.history += d.historyTokens(m)
		if len(m.MergedFrom) > 0 {
			out.MergedFrom = append(out.MergedFrom, m.MergedFrom...)
		} else {
			out.MergedFrom = append(out.MergedFrom, m.ID)
		}
	}
	out.Parts = joiner.finish()
	return out
}

// A textJoiner joins parts. Adjacent texts are collected and joined at once, so
// that joining takes linear time.
type textJoiner struct {
	separator string
	parts     artel.Parts
	pending   []string // texts of the next part
}

// add appends the parts of a message. A message without text adds no separator.
func (s *textJoiner) add(ps artel.Parts) {
	first := true
	for _, p := range ps {
		t, ok := p.(artel.Text)
		if ok && t.Text == "" {
			continue
		}
		if !ok || !first {
			s.flush()
		}
		if first = false; ok {
			s.pending = append(s.pending, t.Text)
		} else {
			s.parts = append(s.parts, p)
		}
	}
}

func (s *textJoiner) flush() {
	if len(s.pending) > 0 {
		s.parts = append(s.parts, artel.Text{Text: strings.Join(s.pending, s.separator)})
		s.pending = s.pending[:0]
	}
}

func (s *textJoiner) finish() artel.Parts {
	s.flush()
	return s.parts
}

// opaque reports whether the parts carry state that only the service that made
// it understands.
func opaque(ps artel.Parts) bool {
	return slices.ContainsFunc(ps, func(p artel.Part) bool {
		switch p := p.(type) {
		case artel.Reasoning:
			return p.Opaque != nil
		case artel.ToolCall:
			return p.Opaque != nil
		}
		return false
	})
}

// historyTokens counts the tokens of a message that come from the history.
func (d *Draft) historyTokens(m *Message) int {
	switch m.Origin {
	case OriginHistory:
		return d.counter.count(m)
	case OriginMerged:
		return m.history
	}
	return 0
}
