// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"math"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/token"
)

// meter counts the tokens of a draft in the service's vocabulary, each
// message once as long as it is not changed.
type meter struct {
	counter    *token.Counter
	vocabulary string
	dialect    model.Dialect
	seen       map[string]metered // by message id
	err        error              // the first failure of the counter
}

type metered struct {
	parts artel.Parts
	n     int
}

// newMeter counts in a vocabulary; "": the service's.
func newMeter(c *token.Counter, s model.Service, v string) *meter {
	v = cmp.Or(v, s.Capabilities.Tokenizer.Value)
	if !slices.Contains(token.Vocabularies(), v) {
		v = token.O200k // an estimate for models whose vocabulary is not public
	}
	return &meter{counter: c, vocabulary: v, dialect: s.Dialect, seen: make(map[string]metered)}
}

func (m *meter) all(ms []Message) int {
	n := 0
	for _, x := range ms {
		n += m.message(x)
	}
	return n
}

func (m *meter) message(x Message) int {
	if s, ok := m.seen[x.ID]; ok && sameParts(s.parts, x.Parts) {
		return s.n
	}
	n := m.parts(x.Parts)
	m.seen[x.ID] = metered{x.Parts, n}
	return n
}

func (m *meter) parts(ps artel.Parts) int {
	n := 0
	for _, p := range ps {
		switch p := p.(type) {
		case artel.Text:
			n += m.text(p.Text)
		case artel.Media:
			n += mediaTokens(m.dialect, p)
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

func (m *meter) tools(ts []model.ToolSpec) int {
	n := 0
	for _, t := range ts {
		n += m.text(t.Name) + m.text(t.Description) + m.text(string(t.Schema))
	}
	return n
}

func (m *meter) text(s string) int {
	n, err := m.counter.Count(m.vocabulary, s)
	if err != nil && m.err == nil {
		m.err = err
	}
	return n
}

// Estimates of what media cost where the API reference gives no formula, or a
// figure is missing from the part.
const (
	bytesPerToken    = 4       // of opaque state, which is base64 of something like text
	unknownSide      = 1024    // pixels
	bytesPerPage     = 100_000 // of a PDF
	bytesPerSecAudio = 16_000  // 128 kbit/s
	bytesPerSecVideo = 250_000 // 2 Mbit/s
)

// mediaTokens estimates what a part costs that is sent as it is. Images and
// pages follow the API references of Anthropic (vision: width × height / 750,
// after scaling to 1,568 pixels; a page of a PDF is its text and its image),
// Google (258 per tile of 768 pixels and per page, 32 per second of audio, 263
// of video) and OpenAI (vision: 85 and 170 for each tile of 512 pixels).
func mediaTokens(d model.Dialect, m artel.Media) int {
	switch m.Kind {
	case artel.KindImage:
		w, h := float64(m.Width), float64(m.Height)
		if w <= 0 || h <= 0 {
			w, h = unknownSide, unknownSide
		}
		return imageTokens(d, w, h)
	case artel.KindAudio:
		return int(math.Ceil(seconds(m, bytesPerSecAudio) * 32))
	case artel.KindVideo:
		return int(math.Ceil(seconds(m, bytesPerSecVideo) * 263))
	case artel.KindText:
		return int(m.Size / bytesPerToken)
	}
	pages := m.Pages
	if pages <= 0 {
		pages = int(max(1, (m.Size+bytesPerPage-1)/bytesPerPage))
	}
	if d == model.Gemini {
		return pages * 258
	}
	return pages * 2_250 // the middle of the 1,500 to 3,000 that Anthropic names
}

func imageTokens(d model.Dialect, w, h float64) int {
	switch d {
	case model.Anthropic:
		w, h = fit(w, h, 1568)
		return min(1600, int(math.Ceil(w*h/750)))
	case model.Gemini:
		if w <= 384 && h <= 384 {
			return 258
		}
		return 258 * int(math.Ceil(w/768)*math.Ceil(h/768))
	}
	w, h = fit(w, h, 2048)
	if short := min(w, h); short > 768 {
		w, h = w*768/short, h*768/short
	}
	return 85 + 170*int(math.Ceil(w/512)*math.Ceil(h/512))
}

// fit scales w and h so that neither is longer than side.
func fit(w, h, side float64) (float64, float64) {
	if long := max(w, h); long > side {
		return w * side / long, h * side / long
	}
	return w, h
}

func seconds(m artel.Media, bytesPerSecond int64) float64 {
	if m.Duration > 0 {
		return m.Duration
	}
	return float64(m.Size) / float64(bytesPerSecond)
}
