// SPDX-License-Identifier: Apache-2.0

// Package sse reads and writes server-sent events: the text/event-stream of
// model APIs and of Artel's own event log.
//
// [Events] reads a stream; how the bytes are split into reads does not change the
// events, and memory is bounded. A [Writer] sends to one HTTP client. Resuming a
// stream is up to the caller, who has the last [Event.ID].
package sse

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/artelhq/artel"
)

// MaxEvent is the default limit of one event, in bytes.
const MaxEvent = 16 << 20

// A Event is one event of a text/event-stream.
type Event struct {
	Name string // the event field; empty: "message"
	Data string // the data lines joined with "\n"
	ID   string // the last id seen on the stream so far
}

// Events reads a text/event-stream by the rules of the WHATWG HTML standard
// (section 9.2.6): lines end in CR, LF or CRLF, one BOM is skipped, comments
// and unknown fields are ignored, data lines are joined, events without data
// and an incomplete last event are dropped. Bytes are not decoded, and the
// retry field is ignored: the caller decides when to reconnect.
//
// Each event is yielded as soon as its last byte is read. The sequence ends at
// the end of r, or yields one error: that of r, or one of kind TooLarge when a
// line or event exceeds limit bytes (0: [MaxEvent]).
func Events(r io.Reader, limit int) iter.Seq2[Event, error] {
	if limit <= 0 {
		limit = MaxEvent
	}
	return func(yield func(Event, error) bool) {
		p := eventParser{limit: limit}
		buf := make([]byte, 16<<10)
		for {
			n, err := r.Read(buf)
			if !p.feed(buf[:n], yield) {
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

type eventParser struct {
	limit   int
	line    []byte // begun in an earlier read
	data    []byte
	name    string
	id      string
	hasData bool
	afterCR bool // a following LF belongs to the line end
	begun   bool // the first line, which may have a BOM, was read
}

// feed parses bytes and reports whether to continue.
func (p *eventParser) feed(b []byte, yield func(Event, error) bool) bool {
	if p.afterCR && len(b) > 0 {
		p.afterCR = false
		if b[0] == '\n' {
			b = b[1:]
		}
	}
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		head := b
		if end >= 0 {
			head = b[:end]
		}
		if cr := bytes.IndexByte(head, '\r'); cr >= 0 {
			end = cr
		}
		if end < 0 {
			p.line = append(p.line, b...)
			return p.within(len(p.line)+len(p.data), yield)
		}
		line := b[:end]
		if len(p.line) > 0 {
			p.line = append(p.line, line...)
			line = p.line
		}
		if b[end] == '\r' {
			if end+1 == len(b) {
				p.afterCR = true
			} else if b[end+1] == '\n' {
				end++
			}
		}
		b = b[end+1:]
		if !p.within(len(line)+len(p.data), yield) || !p.take(line, yield) {
			return false
		}
		p.line = p.line[:0]
	}
	return true
}

func (p *eventParser) within(n int, yield func(Event, error) bool) bool {
	if n <= p.limit {
		return true
	}
	yield(Event{}, artel.Errorf(artel.TooLarge, "sse.Events", "", "an event of the stream passes the limit of %d bytes", p.limit))
	return false
}

// take interprets one line.
func (p *eventParser) take(line []byte, yield func(Event, error) bool) bool {
	if !p.begun {
		p.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if len(line) == 0 {
		return p.dispatch(yield)
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "data":
		if p.hasData {
			p.data = append(p.data, '\n')
		}
		p.data = append(p.data, value...)
		p.hasData = true
	case "event":
		p.name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			p.id = string(value)
		}
	}
	return true
}

func (p *eventParser) dispatch(yield func(Event, error) bool) bool {
	e := Event{Name: p.name, Data: string(p.data), ID: p.id}
	ready := p.hasData
	p.name, p.data, p.hasData = "", p.data[:0], false
	return !ready || yield(e, nil)
}
