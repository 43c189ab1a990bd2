// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"math"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline/token"
)

// A messageCounter counts the tokens of a draft in the service's vocabulary.
// Each message stores its count until its parts change.
type messageCounter struct {
	counter    *token.Counter
	vocabulary string
	ratio      float64 // tokens that the service reports per token counted; 0: unknown
	model      string
	dialect    string
	err        error // the first failure of the counter
	cached     cachedCounts
}

// bytesPerToken is the estimate for opaque state, which is mostly base64.
const bytesPerToken = 4

// A tokenCount is the number of tokens that a counter found in the parts of a
// message.
type tokenCount struct {
	by     *messageCounter
	first  *artel.Part // of the counted parts; nil: no parts
	parts  int32
	tokens int32
}

// newMessageCounter counts in a vocabulary; "": the service's, corrected by the
// ratio that it reported.
func newMessageCounter(c *token.Counter, s model.Service, v string) *messageCounter {
	ratio := 0.0
	if v == "" {
		v, ratio = s.Capabilities.Tokenizer.Value, s.Capabilities.TokenRatio.Value
	}
	if !slices.Contains(token.Vocabularies(), v) {
		v = token.O200k // estimate for models without a public vocabulary
	}
	return &messageCounter{counter: c, vocabulary: v, ratio: ratio, model: s.Model, dialect: string(s.Dialect)}
}

func (m *messageCounter) all(ms []Message) int {
	n := 0
	for i := range ms {
		n += m.count(&ms[i])
	}
	return n
}

// count stores the count in x, so that copies of x have it.
func (m *messageCounter) count(x *Message) int {
	var first *artel.Part
	if len(x.Parts) > 0 {
		first = &x.Parts[0]
	}
	if t := &x.count; t.by != m || t.first != first || int(t.parts) != len(x.Parts) {
		n, ok := m.cached.find(x.Parts)
		if !ok {
			n = int32(min(m.parts(x.Parts), math.MaxInt32))
		}
		*t = tokenCount{m, first, int32(len(x.Parts)), n}
	}
	return int(x.count.tokens)
}

// A countKey holds everything that counts depend on.
type countKey struct {
	vocabulary, model, dialect string
	ratio                      float64
}

func (m *messageCounter) key() countKey {
	return countKey{m.vocabulary, m.model, m.dialect, m.ratio}
}

// A cachedCounts looks up counts in a cached request. Both requests have their
// messages in the same order, so each search starts after the last hit.
type cachedCounts struct {
	messages []encodedMessage
	next     int
	misses   int
}

// maxMisses is the number of failed searches after which searching stops.
const maxMisses = 8

func (k *cachedCounts) find(ps artel.Parts) (int32, bool) {
	if len(ps) == 0 || k.misses >= maxMisses {
		return 0, false
	}
	for i := k.next; i < len(k.messages); i++ {
		if sameParts(k.messages[i].parts, ps) {
			k.next = i + 1
			return k.messages[i].tokens, true
		}
	}
	k.misses++
	return 0, false
}

func (m *messageCounter) parts(ps artel.Parts) int {
	n := 0
	for _, p := range ps {
		switch p := p.(type) {
		case artel.Text:
			n += m.text(p.Text)
		case artel.Media:
			n += token.Media(m.model, m.dialect, p)
		case artel.ToolCall:
			n += m.text(p.Name) + m.text(string(p.Arguments)) + len(p.Opaque)/bytesPerToken
		case artel.ToolResult:
			n += m.text(p.Content) + m.parts(p.Parts)
		case artel.Reasoning:
			n += m.text(p.Text) + len(p.Opaque)/bytesPerToken
		}
	}
	return n
}

func (m *messageCounter) tools(ts []model.ToolSpec) int {
	n := 0
	for _, t := range ts {
		n += m.text(t.Name) + m.text(t.Description) + m.text(string(t.Schema))
	}
	return n
}

func (m *messageCounter) text(s string) int {
	n, err := m.counter.Count(m.vocabulary, s)
	if err != nil && m.err == nil {
		m.err = err
	}
	if m.ratio > 0 {
		n = int(math.Ceil(float64(n) * m.ratio))
	}
	return n
}
