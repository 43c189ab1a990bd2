// SPDX-License-Identifier: Apache-2.0

package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// A Mark is one observation about a model at an endpoint: media of a type are or
// are not accepted in a place, certain bytes are not, or a limit has a value. It
// applies to every service with the same endpoint, model and dialect. A mark about
// certain bytes applies only to the client whose requests were refused: what one
// client sends changes nothing for others, unless the service refused the form.
type Mark struct {
	Endpoint  string       `json:"endpoint"` // base URL
	Model     string       `json:"model"`
	Dialect   Dialect      `json:"dialect,omitempty"`    // in which it was observed; empty: all
	Place     Place        `json:"place,omitempty"`      // empty: of a limit
	MediaType string       `json:"media_type,omitempty"` // as sent: "image/png"; or a pattern: "image/*"
	Digest    artel.Digest `json:"digest,omitempty"`     // only these bytes; empty: all of the type
	Holder    string       `json:"holder,omitempty"`     // the client that sent Digest
	Field     string       `json:"field,omitempty"`      // of requests, not taken, in its neutral name; empty: not of a field
	Limit     RefusalClass `json:"limit,omitempty"`      // a class with a number; empty: not of a limit
	Value     int64        `json:"value,omitempty"`      // of Limit
	Ratio     float64      `json:"ratio,omitempty"`      // of reported to counted tokens, with no other field of a mark set; 0: none
	OK        bool         `json:"ok"`                   // accepted and understood; false for limits
	Source    Provenance   `json:"source"`               // FromProbe or FromLearned
	At        time.Time    `json:"at"`
	Until     time.Time    `json:"until"`
	Evidence  string       `json:"evidence,omitempty"` // the API's message or the model's answer, shortened
	Seen      int          `json:"seen,omitempty"`     // requests that showed it, of marks from refusals; others: 0
}

// Confirmations is how many requests must show the same before a mark from
// refusals applies to further ones: a single refusal may have had another cause.
const Confirmations = 2

// Applies reports whether m is confirmed.
func (m Mark) Applies() bool { return m.Seen == 0 || m.Seen >= Confirmations }

// Key identifies the subject of m among the marks of a service: 12 hexadecimal
// digits.
func (m Mark) Key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []any{m.Dialect, m.Place, m.MediaType, m.Digest, m.Holder, m.Limit, m.Ratio != 0, m.Field}))
	return hex.EncodeToString(sum[:6])
}

// A Place is a position of media in a request.
type Place string

// The places.
const (
	InUser    Place = "user"       // in a user message
	InTool    Place = "tool"       // in a tool result
	AfterTool Place = "after_tool" // in a user message after a tool result
)

// Lifetimes of marks. They expire because endpoints change; observing a refusal
// again costs one call.
const (
	ProbeHolds   = 30 * 24 * time.Hour // probed
	LearnedHolds = 7 * 24 * time.Hour  // learned from calls
)

// replaces reports whether the newer m supersedes b: both have the same subject, or
// m accepts a pattern that covers b. What is not confirmed supersedes nothing that is.
func (m Mark) replaces(b Mark) bool {
	if !m.Applies() && b.Applies() {
		return false
	}
	whole := m.OK && b.Digest == "" && m.Endpoint == b.Endpoint && m.Model == b.Model && m.Dialect == b.Dialect && m.Place == b.Place && b.Limit == "" && b.Ratio == 0 && b.MediaType != "" && listed([]string{m.MediaType}, b.MediaType)
	return whole || m.same(b)
}

// same reports whether m and b have the same subject.
func (m Mark) same(b Mark) bool {
	return m.Endpoint == b.Endpoint && m.Model == b.Model && m.Dialect == b.Dialect && m.Place == b.Place && m.MediaType == b.MediaType &&
		m.Digest == b.Digest && m.Holder == b.Holder && m.Field == b.Field && m.Limit == b.Limit && (m.Ratio == 0) == (b.Ratio == 0)
}

// maxMarks limits a ledger; the oldest marks are dropped.
const maxMarks = 2000

// A Ledger stores marks. It is safe for concurrent use.
type Ledger struct {
	opts LedgerOptions

	mu    sync.Mutex
	marks []Mark // oldest first
}

// LedgerOptions configure a [Ledger].
type LedgerOptions struct {
	Data []byte                  // the last argument of Save; nil: none
	Save func(data []byte) error // persists the marks; nil: in memory only
	Now  func() time.Time        // nil: time.Now
	Log  *slog.Logger            // receives errors of reading and saving; nil: slog.Default
}

// ledgerFile is the saved form.
type ledgerFile struct {
	Version int    `json:"version"`
	Marks   []Mark `json:"marks"`
}

// NewLedger returns a ledger with the valid marks of o.Data. Unreadable data are
// logged and dropped, because all of it can be learned again.
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
	l.marks = slices.DeleteFunc(file.Marks, func(m Mark) bool { return !m.valid() || m.unconfirmable() })
	return l
}

// valid reports whether m may be in a ledger.
func (m Mark) valid() bool {
	probed, learned := m.Source == FromProbe, m.Source == FromLearned
	return m.Endpoint != "" && m.Model != "" && (probed || learned) && !m.Until.IsZero() && (m.Digest == "" || m.Holder != "") && m.Value >= 0 && (m.Limit == "" || m.Value > 0) && (m.Ratio == 0 || m.Ratio >= leastRatio && m.Ratio <= mostRatio)
}

// unconfirmable reports marks that earlier versions learned from one refusal, whatever
// its cause.
func (m Mark) unconfirmable() bool {
	return m.Source == FromLearned && m.Dialect == "" && m.Ratio == 0
}

// Add stores marks, each of which replaces earlier ones with the same subject;
// those from refusals (Seen is not 0) also count them. Missing times are set from the
// current time.
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
			m.Until = m.At.Add(m.lifetime())
		}
		for _, b := range l.marks {
			if m.Seen > 0 && m.same(b) && b.Until.After(now) {
				m.Seen += b.Seen
			}
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

func (m Mark) lifetime() time.Duration {
	if m.Source == FromProbe {
		return ProbeHolds
	}
	return LearnedHolds
}

// Forget removes the marks of a service: that with a key, or all with the key "". It
// returns how many they were.
func (l *Ledger) Forget(s Service, key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.marks)
	l.marks = slices.DeleteFunc(l.marks, func(m Mark) bool { return m.about(s) && (key == "" || m.Key() == key) })
	if len(l.marks) < n {
		l.save()
	}
	return n - len(l.marks)
}

// about reports whether m applies to s.
func (m Mark) about(s Service) bool {
	return m.Endpoint == s.BaseURL && m.Model == s.Model && (m.Dialect == "" || m.Dialect == s.Dialect)
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

// of returns the unexpired marks of a service, oldest first, and when the next one
// expires; zero: there is none.
func (l *Ledger) of(s Service) (marks []Mark, next time.Time) {
	if s.BaseURL == "" || s.Model == "" {
		return nil, next
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opts.Now()
	for _, m := range l.marks {
		if !m.about(s) || !m.Until.After(now) {
			continue
		}
		marks = append(marks, m)
		if next.IsZero() || m.Until.Before(next) {
			next = m.Until
		}
	}
	return marks, next
}

// mark returns m with the endpoint, model and dialect of s.
func (s Service) mark(m Mark) Mark {
	m.Endpoint, m.Model, m.Dialect = s.BaseURL, s.Model, s.Dialect
	return m
}

// withMarks applies marks to c. The operator's facts stay unless force is set,
// which is for the retry of a refused call.
func (c Capabilities) withMarks(marks []Mark, force bool) Capabilities {
	may := func(p Provenance) bool { return force || p != FromOperator }
	for _, m := range marks {
		if m.Digest != "" || !force && !m.Applies() {
			continue // not about the model, or not confirmed
		}
		switch {
		case m.Ratio > 0:
			c.TokenRatio = known(m.Source, m.Ratio)
		case m.Field != "":
			c.RefusesFields = known(m.Source, append(slices.Clone(c.RefusesFields.Value), m.Field))
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

// lowerLimit lowers a limit. Higher values are ignored.
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

// allow adds exactly the media type of m.
func (c *Capabilities) allow(m Mark, may func(Provenance) bool) {
	need := needOf(m.MediaType)
	c.Refuses.Value = slices.DeleteFunc(slices.Clone(c.Refuses.Value), func(t string) bool { return t == m.MediaType })
	if c.Has(need) || !may(c.Input.Source) {
		return
	}
	if need == artel.CanFile && c.Accepts.Value == nil {
		// Accepting a PDF does not imply other files.
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

// refuse removes a media type, and the capability if m covers all of its types.
func (c *Capabilities) refuse(m Mark, may func(Provenance) bool) {
	need := needOf(m.MediaType)
	if strings.HasSuffix(m.MediaType, "/*") && c.Has(need) && may(c.Input.Source) {
		c.Input = known(m.Source, slices.DeleteFunc(slices.Clone(c.Input.Value), func(have artel.Capability) bool { return have == need }))
	}
	if may(c.Accepts.Source) && !listed(c.Refuses.Value, m.MediaType) {
		c.Refuses = known(m.Source, append(slices.Clone(c.Refuses.Value), m.MediaType))
	}
}

// needOf returns the capability that media of a type or pattern need.
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

// Lowered returns s for the retry of a refused call: marks apply even against the
// operator's facts.
func (s Service) Lowered(marks []Mark) Service {
	s.Capabilities = s.clone().Capabilities.withMarks(marks, true)
	return s
}
