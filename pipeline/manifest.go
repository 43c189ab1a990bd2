// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A Manifest lists the content of a request, so that the request can be rebuilt
// byte for byte. It holds no text: a message that was sent as stored is named
// by its id, and everything else is in segments that are named by their
// digests.
//
// The canonical form of a request, of which [Record.RequestHash] is the hash,
// is a sequence of JSON lines: the Head; each tool; and for each message
// {"role":…} with the artifacts that its media belong to, followed by its
// parts. A text is an object, any other part a list of its own, with digests in
// place of bytes. Providers cache prefixes, so the most stable content comes
// first.
type Manifest struct {
	Head      Head              `json:"head"`
	Tools     artel.Digest      `json:"tools,omitempty"` // of the segment with all tools; empty: no tools
	ToolBytes int               `json:"tool_bytes,omitempty"`
	Messages  []ManifestMessage `json:"messages"`
}

// A Head is the destination of a request.
type Head struct {
	Service   artel.ServiceID `json:"service"`
	Dialect   model.Dialect   `json:"dialect"`
	Model     string          `json:"model"`
	MaxOutput int             `json:"max_output,omitempty"`
	Sampling  *Sampling       `json:"sampling,omitempty"`
	Client    *ClientSettings `json:"client,omitempty"` // with which a client of the gateway has asked
}

// A ManifestMessage is one message of a request.
type ManifestMessage struct {
	ID         string       `json:"id"`
	Role       artel.Role   `json:"role"`
	Origin     Origin       `json:"origin"`
	MergedFrom []string     `json:"merged_from,omitempty"`
	Stability  Stability    `json:"stability,omitempty"`
	Stored     bool         `json:"stored,omitempty"` // it is the stored message of this id, as prepared for the service
	Digest     artel.Digest `json:"digest,omitempty"` // of its segment, unless Stored
	Bytes      int          `json:"bytes"`            // of its lines
	Tokens     int          `json:"tokens"`
}

// A Segment is a run of lines of a request.
type Segment struct {
	Digest artel.Digest
	Body   []byte
}

// Bytes returns the length of the canonical form.
func (r Manifest) Bytes() int { return len(r.Head.line()) + r.ToolBytes + bytesOf(r.Messages) }

func bytesOf(ms []ManifestMessage) int {
	n := 0
	for i := range ms {
		n += ms[i].Bytes
	}
	return n
}

func (h Head) line() []byte {
	b, _ := json.Marshal(h) // strings and a number cannot fail
	return append(b, '\n')
}

// encode writes the canonical form of req into a hash, and returns its manifest
// and segments. The messages of d are those of req.
func (d *Draft) encode(req *model.Request, o *requestCache) (r Manifest, segments []Segment, hash string, err error) {
	r.Head = headOf(req)
	r.Head.Client = d.Client.recorded()
	var tools Segment
	if len(req.Tools) > 0 {
		if tools, err = o.tools.lines(req.Tools); err != nil {
			return r, nil, "", err
		}
		r.Tools, r.ToolBytes = tools.Digest, len(tools.Body)
		segments = append(segments, tools)
	}
	r.Messages = make([]ManifestMessage, len(d.Messages))
	stored := newFinder(d.History, len(d.Messages))
	b, err := o.encoder(r.Head, tools, d.Messages)
	if err != nil {
		return r, nil, "", err
	}
	b.next.key = d.counter.key()
	for i := range d.Messages {
		m, x := &d.Messages[i], &r.Messages[i]
		x.ID, x.Role, x.Origin, x.MergedFrom, x.Stability = m.ID, m.Role, m.Origin, m.MergedFrom, m.Stability
		x.Tokens = d.counter.count(m)
		if x.Bytes, err = b.add(m); err != nil {
			return r, nil, "", err
		}
		if x.Stored = d.asStored(stored.find(m), m); !x.Stored {
			s, err := b.segment(m)
			if err != nil {
				return r, nil, "", err
			}
			x.Digest = s.Digest
			segments = append(segments, s)
		}
	}
	o.store(b)
	return r, segments, hex.EncodeToString(b.hash.Sum(nil)), nil
}

// asStored reports whether m is the stored message was, as prepared for the
// service. It is false for nil.
func (d *Draft) asStored(was *artel.Message, m *Message) bool {
	return was != nil && was.Role == m.Role && sameValue(d.forModel(was.Parts), m.Parts)
}

func headOf(r *model.Request) Head {
	return Head{Service: r.Service.ID, Dialect: r.Service.Dialect, Model: r.Service.Model, MaxOutput: r.MaxOutput, Sampling: samplingOf(r)}
}

func digestOf(b []byte) artel.Digest { return artel.NewDigest(sha256.Sum256(b)) }

func sameValue(a, b artel.Parts) bool { return sameParts(a, b) || reflect.DeepEqual(a, b) }

// A finder finds the stored messages of a draft. They are mostly in the order
// of the history, so each search starts after the last hit.
type finder struct {
	history []artel.Message
	next    int
}

// newFinder starts where a draft of the last n messages of the history starts.
func newFinder(history []artel.Message, n int) *finder {
	return &finder{history: history, next: max(0, len(history)-n)}
}

// find returns the stored message of m; nil if m is not stored.
func (f *finder) find(m *Message) *artel.Message {
	if m.Origin != OriginHistory && m.Origin != OriginSummary {
		return nil
	}
	in := func(from, to int) *artel.Message {
		for i := from; i < to; i++ {
			if string(f.history[i].ID) == m.ID {
				f.next = i + 1
				return &f.history[i]
			}
		}
		return nil
	}
	from := f.next
	if was := in(from, len(f.history)); was != nil {
		return was
	}
	return in(0, from)
}

func newEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

func toolLines(tools []model.ToolSpec) ([]byte, error) {
	var b bytes.Buffer
	e := newEncoder(&b)
	for _, t := range tools {
		if err := e.Encode(t); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// A firstLine is the first line of a message. It names the artifacts of the
// media, because an encoded part has only the digest and codecs show the
// artifact to the model.
type firstLine struct {
	Role      artel.Role  `json:"role"`
	Artifacts []artel.Ref `json:"artifacts,omitempty"` // of the media, in their order; empty refs for media without an artifact
}

func firstLineOf(m model.Message) firstLine {
	l := firstLine{Role: m.Role}
	any := false
	for _, media := range artel.MediaOf(m.Parts) {
		ref := media.Ref
		ref.Digest = ""
		any = any || ref != artel.Ref{}
		l.Artifacts = append(l.Artifacts, ref)
	}
	if !any {
		l.Artifacts = nil
	}
	return l
}

// restoreRefs sets the artifacts of the media in ps, and returns the refs that
// are left.
func restoreRefs(ps artel.Parts, refs []artel.Ref) []artel.Ref {
	for i, p := range ps {
		switch p := p.(type) {
		case artel.Media:
			if len(refs) > 0 {
				digest := p.Ref.Digest
				p.Ref, refs = refs[0], refs[1:]
				p.Ref.Digest = digest
				ps[i] = p
			}
		case artel.ToolResult:
			refs = restoreRefs(p.Parts, refs)
		}
	}
	return refs
}

// encodeMessage writes a message part by part, because a text alone is encoded
// several times faster than inside a list.
func encodeMessage(b *bytes.Buffer, m model.Message) error {
	e := newEncoder(b)
	var err error
	if head := firstLineOf(m); len(head.Artifacts) == 0 && quotable(string(m.Role)) {
		b.WriteString(`{"role":"`)
		quote(b, string(m.Role))
		b.WriteString("\"}\n")
	} else {
		err = e.Encode(head)
	}
	for _, p := range m.Parts {
		if err != nil {
			return err
		}
		t, ok := p.(artel.Text)
		switch {
		case !ok:
			err = e.Encode(artel.Parts{p})
		case quotable(t.Text):
			b.WriteString(`{"type":"text","text":"`)
			quote(b, t.Text)
			b.WriteString("\"}\n")
		default:
			err = e.Encode(struct {
				Type string `json:"type"`
				artel.Text
			}{"text", t})
		}
	}
	return err
}

// quotable reports whether quote writes s as encoding/json does. This holds for
// nearly all texts, and quote is several times faster.
func quotable(s string) bool {
	wide := false
	for i := range len(s) {
		c := s[i]
		if c-' ' < utf8.RuneSelf-' ' {
			continue
		}
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
		wide = wide || c >= utf8.RuneSelf
	}
	return !wide || utf8.ValidString(s) && !strings.Contains(s, "\u2028") && !strings.Contains(s, "\u2029")
}

// quote writes a quotable text with JSON escapes.
func quote(b *bytes.Buffer, s string) {
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b.WriteString(s[from:i])
		from = i + 1
		b.WriteByte('\\')
		switch c {
		case '\n':
			b.WriteByte('n')
		case '\r':
			b.WriteByte('r')
		case '\t':
			b.WriteByte('t')
		default:
			b.WriteByte(c)
		}
	}
	b.WriteString(s[from:])
}

// Lines returns the canonical form of a message.
func Lines(m model.Message) ([]byte, error) {
	var b bytes.Buffer
	err := encodeMessage(&b, m)
	return b.Bytes(), err
}

// decodeMessage reads the output of encodeMessage.
func decodeMessage(lines []byte) (m model.Message, err error) {
	dec := json.NewDecoder(bytes.NewReader(lines))
	var head firstLine
	if err := dec.Decode(&head); err != nil {
		return m, err
	}
	m.Role = head.Role
	for {
		var line json.RawMessage
		if err := dec.Decode(&line); errors.Is(err, io.EOF) {
			restoreRefs(m.Parts, head.Artifacts)
			return m, nil
		} else if err != nil {
			return m, err
		}
		if line[0] != '[' {
			line = slices.Concat([]byte{'['}, line, []byte{']'})
		}
		var ps artel.Parts
		if err := json.Unmarshal(line, &ps); err != nil {
			return m, err
		}
		m.Parts = append(m.Parts, ps...)
	}
}

// Contents reads the content that a manifest names. Its errors are returned
// unchanged.
type Contents struct {
	Stored  func(artel.MessageID) (artel.Message, error)
	Segment func(artel.Digest) ([]byte, error)
}

// Rebuild rebuilds the request, for a service that matches the Head, and
// compares it with its hash. It is of kind Conflict if the request differs
// because some of its content has changed.
func (r Manifest) Rebuild(s model.Service, p Contents, hash string) (*model.Request, error) {
	const op = "pipeline.Rebuild"
	s.ID, s.Dialect, s.Model = r.Head.Service, r.Head.Dialect, r.Head.Model
	req := &model.Request{Service: s, MaxOutput: r.Head.MaxOutput, Messages: make([]model.Message, len(r.Messages))}
	var sampling Sampling
	if r.Head.Sampling != nil {
		sampling = *r.Head.Sampling
	}
	req.Sampling, req.Reasoning = sampling.model(), sampling.reasoning()
	r.Head.Client.apply(req)
	h := sha256.New()
	_, _ = h.Write(r.Head.line())
	if r.Tools != "" {
		lines, err := p.Segment(r.Tools)
		if err != nil {
			return nil, err
		}
		_, _ = h.Write(lines)
		dec := json.NewDecoder(bytes.NewReader(lines))
		for dec.More() {
			var t model.ToolSpec
			if err := dec.Decode(&t); err != nil {
				return nil, artel.Errorf(artel.Internal, op, string(r.Tools), "the segment is damaged: %w", err)
			}
			req.Tools = append(req.Tools, t)
		}
	}
	for i, x := range r.Messages {
		m, lines, err := x.Message(s.ID, p)
		if err != nil {
			return nil, err
		}
		_, _ = h.Write(lines)
		req.Messages[i] = m
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != hash {
		return nil, artel.Errorf(artel.Conflict, op, "", "the request that was sent cannot be rebuilt: its hash was %s and is now %s", hash, got)
	}
	return req, nil
}

// Message rebuilds one message of a request, and its lines.
func (x ManifestMessage) Message(s artel.ServiceID, p Contents) (m model.Message, lines []byte, err error) {
	if !x.Stored {
		if lines, err = p.Segment(x.Digest); err != nil {
			return m, nil, err
		}
		if m, err = decodeMessage(lines); err != nil {
			err = artel.Errorf(artel.Internal, "pipeline.Rebuild", string(x.Digest), "the segment is damaged: %w", err)
		}
		return m, lines, err
	}
	was, err := p.Stored(artel.MessageID(x.ID))
	if err != nil {
		return m, nil, err
	}
	d := Draft{Input: Input{Service: model.Service{ID: s}}}
	m = model.Message{Role: x.Role, Parts: d.forModel(was.Parts)}
	lines, err = Lines(m)
	return m, lines, err
}

// Same reports whether two messages of requests to the same service have the
// same lines.
func (x *ManifestMessage) Same(o *ManifestMessage) bool {
	return x.Role == o.Role && x.Stored == o.Stored && x.Digest == o.Digest && (!x.Stored || x.ID == o.ID)
}

// A Prefix is what two requests have in common at their beginning.
type Prefix struct {
	Bytes    int `json:"bytes"`    // that are equal
	Messages int `json:"messages"` // that are equal as a whole
	Of       int `json:"of"`       // bytes of the later request
	Before   int `json:"before"`   // bytes of the earlier one
}

// Ratio is the share of the earlier request, 0 to 1, that the later one begins
// with and that a provider's cache can serve.
func (p Prefix) Ratio() float64 {
	if p.Before == 0 {
		return 0
	}
	return float64(p.Bytes) / float64(p.Before)
}

// Prefix compares the request with the one before it. lines returns the lines
// of a message of either; a message without lines counts as different from its
// beginning on. Requests with different heads have nothing in common.
func (r Manifest) Prefix(before Manifest, lines func(earlier bool, x ManifestMessage) ([]byte, error)) (Prefix, error) {
	if r.Head != before.Head || r.Tools != before.Tools {
		out := Prefix{Of: r.Bytes(), Before: before.Bytes()}
		if r.Head == before.Head {
			out.Bytes = len(r.Head.line())
		}
		return out, nil
	}
	out := Prefix{Bytes: len(r.Head.line()) + r.ToolBytes}
	n := min(len(r.Messages), len(before.Messages))
	for out.Messages < n && r.Messages[out.Messages].Same(&before.Messages[out.Messages]) {
		out.Bytes += r.Messages[out.Messages].Bytes
		out.Messages++
	}
	out.Of = out.Bytes + bytesOf(r.Messages[out.Messages:])
	out.Before = out.Bytes + bytesOf(before.Messages[out.Messages:])
	if out.Messages == n {
		return out, nil
	}
	now, err := lines(false, r.Messages[out.Messages])
	if err != nil {
		return out, fmt.Errorf("the first message that differs: %w", err)
	}
	was, err := lines(true, before.Messages[out.Messages])
	if err != nil {
		return out, fmt.Errorf("the first message that differs: %w", err)
	}
	out.Bytes += common(now, was)
	return out, nil
}

// common is the length of the beginning that a and b share.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
