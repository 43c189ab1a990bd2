// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"hash"
	"slices"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// The next request of a conversation begins like the one before. The request
// cache keeps the last requests, so that the messages of a common prefix are
// neither encoded nor hashed again.

const (
	maxCachedRequests = 8 // requests kept
	markEvery         = 4 // messages between two marks
)

// A requestCache is safe for concurrent use.
type requestCache struct {
	tools toolCache

	mu   sync.Mutex
	last []*cachedRequest // newest last
}

// A cachedRequest is an encoded request. It is immutable once stored, and
// shares its texts with the history.
type cachedRequest struct {
	head     Head
	key      countKey // of the messages' token counts
	tools    Segment
	messages []encodedMessage
	marks    [][]byte // the hash's state behind each markEvery messages
}

// An encodedMessage is one message of it.
type encodedMessage struct {
	role    artel.Role
	parts   artel.Parts
	bytes   int
	tokens  int32
	segment *Segment // nil: none was needed
}

// A requestEncoder encodes one request.
type requestEncoder struct {
	next   cachedRequest
	base   *cachedRequest // cached request with a common prefix; nil: none
	shared int            // messages of the common prefix
	hash   hash.Hash
	buf    bytes.Buffer
	filled bool // buf holds the lines of the current message
}

// encoder returns an encoder for the request of these messages.
func (o *requestCache) encoder(head Head, tools Segment, ms []Message) (*requestEncoder, error) {
	b := &requestEncoder{next: cachedRequest{head: head, tools: tools, messages: make([]encodedMessage, 0, len(ms))}, hash: sha256.New()}
	b.base, b.shared = o.closest(&b.next, ms)
	if n := b.shared / markEvery; n > 0 {
		b.next.marks = slices.Clone(b.base.marks[:n])
		return b, b.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(b.next.marks[n-1])
	}
	_, _ = b.hash.Write(head.line())
	_, _ = b.hash.Write(tools.Body)
	return b, nil
}

// counts returns the token counts of a cached request that was counted with the
// same key and contains one of the newest of n messages.
func (o *requestCache) counts(by countKey, n int, parts func(i int) artel.Parts) cachedCounts {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range slices.Backward(o.last) {
		if b.key != by {
			continue
		}
		for i := n - 1; i >= max(0, n-maxMisses); i-- {
			k := cachedCounts{messages: b.messages}
			if _, ok := k.find(parts(i)); ok {
				return cachedCounts{messages: b.messages}
			}
		}
	}
	return cachedCounts{}
}

// closest returns the cached request with the longest common prefix of
// messages, and the length of that prefix.
func (o *requestCache) closest(next *cachedRequest, ms []Message) (best *cachedRequest, shared int) {
	o.mu.Lock()
	last := slices.Clone(o.last)
	o.mu.Unlock()
	for _, b := range slices.Backward(last) {
		if b.head != next.head || b.tools.Digest != next.tools.Digest {
			continue
		}
		n := 0
		for n < len(ms) && n < len(b.messages) && b.messages[n].matches(&ms[n]) {
			n++
		}
		if n > shared {
			best, shared = b, n
		}
		if 2*n > len(ms) {
			break // a longer prefix would save little
		}
	}
	return best, shared
}

func (l *encodedMessage) matches(m *Message) bool {
	return l.role == m.Role && equalParts(l.parts, m.Parts)
}

// add encodes the next message, which was counted, and returns the length of
// its lines.
func (b *requestEncoder) add(m *Message) (int, error) {
	i := len(b.next.messages)
	x := encodedMessage{role: m.Role, parts: m.Parts}
	b.filled = false
	if i < b.shared {
		x = b.base.messages[i]
		x.parts = m.Parts
	}
	if i >= b.shared/markEvery*markEvery {
		lines, err := b.lines(m)
		if err != nil {
			return 0, err
		}
		_, _ = b.hash.Write(lines)
		x.bytes = len(lines)
		if (i+1)%markEvery == 0 {
			mark, err := b.hash.(encoding.BinaryMarshaler).MarshalBinary()
			if err != nil {
				return 0, err
			}
			b.next.marks = append(b.next.marks, mark)
		}
	}
	x.tokens = m.count.tokens
	b.next.messages = append(b.next.messages, x)
	return x.bytes, nil
}

// segment returns the segment of the message that was added last.
func (b *requestEncoder) segment(m *Message) (Segment, error) {
	x := &b.next.messages[len(b.next.messages)-1]
	if x.segment == nil {
		lines, err := b.lines(m)
		if err != nil {
			return Segment{}, err
		}
		x.segment = &Segment{digestOf(lines), bytes.Clone(lines)}
	}
	return *x.segment, nil
}

func (b *requestEncoder) lines(m *Message) ([]byte, error) {
	if b.filled {
		return b.buf.Bytes(), nil
	}
	b.buf.Reset()
	b.filled = true
	err := encodeMessage(&b.buf, model.Message{Role: m.Role, Parts: m.Parts})
	return b.buf.Bytes(), err
}

// store keeps the request of b, replacing the one that it shares most messages
// with.
func (o *requestCache) store(b *requestEncoder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b.base != nil && 2*b.shared > len(b.base.messages) {
		o.last = slices.DeleteFunc(o.last, func(x *cachedRequest) bool { return x == b.base })
	} else if len(o.last) >= maxCachedRequests {
		o.last = slices.Delete(o.last, 0, 1)
	}
	done := b.next // a copy, without the encoder's buffers
	o.last = append(o.last, &done)
}

// equalParts reports whether two lists surely have the same encoding. Texts at
// the same address are compared without reading them.
func equalParts(a, b artel.Parts) bool {
	if len(a) != len(b) {
		return false
	}
	if sameParts(a, b) {
		return true
	}
	for i := range a {
		if !equalPart(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalPart(a, b artel.Part) bool {
	switch a := a.(type) {
	case artel.Text:
		b, ok := b.(artel.Text)
		return ok && a == b
	case artel.Media:
		b, ok := b.(artel.Media)
		return ok && a == b
	case artel.ToolCall:
		b, ok := b.(artel.ToolCall)
		return ok && a.ID == b.ID && a.Name == b.Name && a.Service == b.Service &&
			bytes.Equal(a.Arguments, b.Arguments) && bytes.Equal(a.Opaque, b.Opaque)
	case artel.ToolResult:
		b, ok := b.(artel.ToolResult)
		return ok && a.CallID == b.CallID && a.IsError == b.IsError && a.Millis == b.Millis && a.Content == b.Content &&
			a.Metadata == nil && b.Metadata == nil && equalParts(a.Parts, b.Parts)
	case artel.Reasoning:
		b, ok := b.(artel.Reasoning)
		return ok && a.Service == b.Service && a.Text == b.Text && bytes.Equal(a.Opaque, b.Opaque)
	}
	return false
}

// A toolCache keeps the segments of the last lists of tools.
type toolCache struct {
	mu   sync.Mutex
	last [4]struct {
		tools   []model.ToolSpec
		segment Segment
	}
	next int

	counts    [4]countedTools
	nextCount int
}

// countedTools is a list of tools with its tokens.
type countedTools struct {
	tools  []model.ToolSpec
	key    countKey
	tokens int
}

// count returns the tokens of tools.
func (t *toolCache) count(tools []model.ToolSpec, m *messageCounter) int {
	key := m.key()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.counts {
		if k := &t.counts[i]; k.tools != nil && k.key == key && slices.EqualFunc(k.tools, tools, sameTool) {
			return k.tokens
		}
	}
	n := m.tools(tools)
	if m.err == nil {
		t.counts[t.nextCount] = countedTools{slices.Clone(tools), key, n}
		t.nextCount = (t.nextCount + 1) % len(t.counts)
	}
	return n
}

func (t *toolCache) lines(tools []model.ToolSpec) (Segment, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.last {
		if slices.EqualFunc(k.tools, tools, sameTool) {
			return k.segment, nil
		}
	}
	lines, err := toolLines(tools)
	k := &t.last[t.next]
	if k.tools, k.segment = slices.Clone(tools), (Segment{digestOf(lines), lines}); err != nil {
		k.tools = nil
	}
	t.next = (t.next + 1) % len(t.last)
	return k.segment, err
}

func sameTool(a, b model.ToolSpec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}
