// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// A Mark is what an exchange with an endpoint has shown about one of its
// models: that media of a type are taken in a place or not, that certain bytes
// are not, or how far a limit goes. It holds for every service that names the
// same endpoint and model.
type Mark struct {
	Endpoint  string       `json:"endpoint"` // base URL
	Model     string       `json:"model"`
	Place     Place        `json:"place,omitempty"`      // empty: of a limit
	MediaType string       `json:"media_type,omitempty"` // "image/png", "image/*"
	Digest    artel.Digest `json:"digest,omitempty"`     // the bytes that it is about; empty: all of the type
	Limit     RefusalClass `json:"limit,omitempty"`      // a class that has a number; empty: none
	Value     int64        `json:"value,omitempty"`      // of Limit
	Ratio     float64      `json:"ratio,omitempty"`      // of reported tokens to counted ones, and about nothing else; 0: none
	OK        bool         `json:"ok"`                   // it was taken, and understood; never of a limit
	Source    Provenance   `json:"source"`               // FromProbe or FromLearned
	At        time.Time    `json:"at"`
	Until     time.Time    `json:"until"`
	Evidence  string       `json:"evidence,omitempty"` // the API's words, or the model's, shortened
}

// A Place is where in a request media stand.
type Place string

// The places.
const (
	InUser    Place = "user"       // in a user message
	InTool    Place = "tool"       // in the result of a tool
	AfterTool Place = "after_tool" // in a user message that follows the result of a tool
)

// How long marks hold. Endpoints change without a word, so nothing that was
// seen once holds for ever; a refusal costs one more call when it is seen again.
const (
	ProbeHolds   = 30 * 24 * time.Hour // what was tried on purpose
	LearnedHolds = 7 * 24 * time.Hour  // what a call was refused for
	BytesHold    = 30 * 24 * time.Hour // bytes that were refused: they do not change
)

// replaces reports whether m, which is newer, says all that b says: it is about
// the same, or what was seen to work with a kind as a whole.
func (m Mark) replaces(b Mark) bool {
	whole := m.OK && b.Digest == "" && m.Endpoint == b.Endpoint && m.Model == b.Model && m.Place == b.Place && b.Limit == "" && b.Ratio == 0 && b.MediaType != "" && listed([]string{m.MediaType}, b.MediaType)
	return whole || m.same(b)
}

// same reports whether b is about what m is about.
func (m Mark) same(b Mark) bool {
	return m.Endpoint == b.Endpoint && m.Model == b.Model && m.Place == b.Place && m.MediaType == b.MediaType && m.Digest == b.Digest && m.Limit == b.Limit && (m.Ratio == 0) == (b.Ratio == 0)
}

// maxMarks is how many marks are kept; the oldest go first.
const maxMarks = 2000

// A Ledger keeps marks. It is safe for concurrent use.
type Ledger struct {
	opts LedgerOptions

	mu    sync.Mutex
	marks []Mark // oldest first
}

// LedgerOptions say where marks come from and go to.
type LedgerOptions struct {
	Data []byte                  // what Save was given last; nil: nothing yet
	Save func(data []byte) error // keeps the marks; nil: they end with the process
	Now  func() time.Time        // nil: time.Now
	Log  *slog.Logger            // told when marks cannot be read or saved; nil: slog.Default
}

// ledgerFile is what is saved.
type ledgerFile struct {
	Version int    `json:"version"`
	Marks   []Mark `json:"marks"`
}

// NewLedger returns a ledger with the marks of o.Data that still hold. Data
// that cannot be read are logged and count as none: everything in them can be
// learned again.
func NewLedger(o LedgerOptions) *Ledger {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	l := &Ledger{opts: o}
	var file ledgerFile
	if len(o.Data) > 0 {
		err := json.Unmarshal(o.Data, &file)
		if err == nil && file.Version != 1 {
			err = fmt.Errorf("version %d is not known", file.Version)
		}
		if err != nil {
			o.Log.Warn("what was learned about services cannot be read and is learned anew", "err", err)
			file.Marks = nil
		}
	}
	l.marks = slices.DeleteFunc(file.Marks, func(m Mark) bool { return !m.valid() })
	return l
}

// sound reports whether m could have been kept by a ledger.
func (m Mark) valid() bool {
	probed, learned := m.Source == FromProbe, m.Source == FromLearned
	return m.Endpoint != "" && m.Model != "" && (probed || learned) && !m.Until.IsZero() && m.Value >= 0 && (m.Limit == "" || m.Value > 0) && (m.Ratio == 0 || m.Ratio >= leastRatio && m.Ratio <= mostRatio)
}

// Add keeps marks, each in the place of an earlier one about the same thing. A
// mark without times gets those of now.
func (l *Ledger) Add(marks ...Mark) {
	if len(marks) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opts.Now().UTC().Truncate(time.Second)
	for _, m := range marks {
		if m.At.IsZero() {
			m.At = now
		}
		if m.Until.IsZero() {
			m.Until = m.At.Add(m.holds())
		}
		m.Evidence = artel.Shorten(m.Evidence, 200)
		if m.valid() {
			l.marks = append(slices.DeleteFunc(l.marks, m.replaces), m)
		}
	}
	l.marks = slices.DeleteFunc(l.marks, func(m Mark) bool { return !m.Until.After(now) })
	if n := len(l.marks) - maxMarks; n > 0 {
		l.marks = slices.Delete(l.marks, 0, n)
	}
	l.save()
}

func (m Mark) holds() time.Duration {
	switch {
	case m.Source == FromProbe:
		return ProbeHolds
	case m.Digest != "":
		return BytesHold
	}
	return LearnedHolds
}

func (l *Ledger) save() {
	if l.opts.Save == nil {
		return
	}
	data, err := json.MarshalIndent(ledgerFile{Version: 1, Marks: l.marks}, "", "\t")
	if err == nil {
		err = l.opts.Save(data)
	}
	if err != nil {
		l.opts.Log.Warn("what was learned about services cannot be saved; it holds until the end of the process", "err", err)
	}
}

// of returns the marks of a service that hold, oldest first, and when the next
// of them ends; zero: none does.
func (l *Ledger) of(s Service) (marks []Mark, next time.Time) {
	if s.BaseURL == "" || s.Model == "" {
		return nil, next
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opts.Now()
	for _, m := range l.marks {
		if m.Endpoint != s.BaseURL || m.Model != s.Model || !m.Until.After(now) {
			continue
		}
		marks = append(marks, m)
		if next.IsZero() || m.Until.Before(next) {
			next = m.Until
		}
	}
	return marks, next
}

// mark makes a mark about s.
func (s Service) mark(m Mark) Mark {
	m.Endpoint, m.Model = s.BaseURL, s.Model
	return m
}

// under applies marks to c. What the operator stated stays, unless force is
// set: a call that was refused is not made the same way again, whoever says
// that it should work.
func (c Capabilities) withMarks(marks []Mark, force bool) Capabilities {
	may := func(p Provenance) bool { return force || p != FromOperator }
	for _, m := range marks {
		if m.Digest != "" {
			continue // not about the model
		}
		switch {
		case m.Ratio > 0:
			c.TokenRatio = known(m.Source, m.Ratio)
		case m.Limit != "":
			c.lowerLimit(m, may)
		case m.Place == AfterTool:
			if may(c.UserAfterTool.Source) {
				c.UserAfterTool = known(m.Source, m.OK)
			}
		case m.Place == InTool && strings.HasPrefix(m.MediaType, "image/"):
			if may(c.ToolImage.Source) {
				c.ToolImage = known(m.Source, m.OK)
			}
		case m.Place == InTool:
			if may(c.ToolFile.Source) {
				c.ToolFile = known(m.Source, m.OK)
			}
		case m.OK:
			c.allow(m, may)
		default:
			c.refuse(m, may)
		}
	}
	return c
}

// bound lowers a limit; a number that is no lower tells nothing new.
func (c *Capabilities) lowerLimit(m Mark, may func(Provenance) bool) {
	switch m.Limit {
	case RefusedCount:
		lower(&c.MaxImages, m, may)
	case RefusedSide:
		lower(&c.MaxSide, m, may)
	case RefusedPages:
		lower(&c.MaxPages, m, may)
	case RefusedItem:
		lower(&c.MaxItemBytes, m, may)
	case RefusedRequest:
		lower(&c.MaxRequestBytes, m, may)
	}
}

func lower[T int | int64](f *Fact[T], m Mark, may func(Provenance) bool) {
	if may(f.Source) && (f.Value == 0 || T(m.Value) < f.Value) {
		*f = known(m.Source, T(m.Value))
	}
}

// allow opens a service for what it was seen to understand, and nothing beside.
func (c *Capabilities) allow(m Mark, may func(Provenance) bool) {
	need := needOf(m.MediaType)
	c.Refuses.Value = slices.DeleteFunc(slices.Clone(c.Refuses.Value), func(t string) bool { return t == m.MediaType })
	if c.Has(need) || !may(c.Input.Source) {
		return
	}
	if need == artel.CanFile && c.Accepts.Value == nil {
		// A PDF says nothing about other files.
		only := []string{m.MediaType}
		for can, types := range map[artel.Capability]string{artel.CanVision: "image/*", artel.CanAudio: "audio/*", artel.CanVideo: "video/*"} {
			if c.Has(can) {
				only = append(only, types)
			}
		}
		slices.Sort(only)
		c.Accepts = known(m.Source, only)
	}
	can := map[artel.Capability]bool{need: true}
	for _, have := range c.Input.Value {
		can[have] = true
	}
	c.Input = known(m.Source, inputsOf(can))
}

// refuse closes a service for a type: by taking the capability away where the
// type is all that it is about.
func (c *Capabilities) refuse(m Mark, may func(Provenance) bool) {
	need := needOf(m.MediaType)
	if strings.HasSuffix(m.MediaType, "/*") && c.Has(need) && may(c.Input.Source) {
		c.Input = known(m.Source, slices.DeleteFunc(slices.Clone(c.Input.Value), func(have artel.Capability) bool { return have == need }))
	}
	if may(c.Accepts.Source) && !listed(c.Refuses.Value, m.MediaType) {
		c.Refuses = known(m.Source, append(slices.Clone(c.Refuses.Value), m.MediaType))
	}
}

// needOf is the capability that media of a type or pattern need.
func needOf(mediaType string) artel.Capability {
	major, _, _ := strings.Cut(mediaType, "/")
	switch major {
	case "image":
		return artel.CanVision
	case "audio":
		return artel.CanAudio
	case "video":
		return artel.CanVideo
	}
	return artel.CanFile
}

// Lowered returns s as a call sees it that was refused and is made again: what
// marks say holds, even against the operator.
func (s Service) Lowered(marks []Mark) Service {
	s.Capabilities = s.clone().Capabilities.withMarks(marks, true)
	return s
}
