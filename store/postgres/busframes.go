// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

const (
	// maxPayload is how many bytes a notification has at most: PostgreSQL takes less than
	// 8,000.
	maxPayload = 7_900
	// maxMessage is how many bytes a message has at most.
	maxMessage = 1 << 20
	// maxPeers is how many processes are known at most.
	maxPeers = 1024
)

// A frame is a message on its way. In a payload it is a line with kind, subject, id and
// length, and then the bytes. Payloads are ASCII, since the database may have any encoding:
// other bytes are in base64, and then the kind is a capital letter.
type frame struct {
	kind    byte
	subject string // of a reply: the process that has asked
	id      string // of a question and its reply
	data    []byte
}

// The kinds.
const (
	frameMessage  = 'm'
	frameQuestion = 'q'
	frameReply    = 'r'
)

// The kinds of payloads.
const (
	payloadWhole = 'w' // frames
	payloadFirst = 'f' // the first part of a frame that is longer than a payload
	payloadNext  = 'n'
	payloadLast  = 'l'
)

// fits reports whether a subject can be in a frame.
func fits(subject string) bool {
	return subject != "" && len(subject) <= 255 && !strings.ContainsFunc(subject, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (f frame) encode() []byte {
	kind, data := f.kind, f.data
	if bytes.ContainsFunc(data, func(r rune) bool { return r < ' ' || r > '~' }) {
		kind -= 'a' - 'A'
		data = base64.StdEncoding.AppendEncode(nil, data)
	}
	out := append([]byte{kind, ' '}, f.subject...)
	out = append(out, ' ')
	out = append(out, f.id...)
	out = append(out, ' ')
	out = strconv.AppendInt(out, int64(len(data)), 10)
	out = append(out, '\n')
	return append(out, data...)
}

// decode returns the frames of a text. ok is false if it is none.
func decode(text string) (frames []frame, ok bool) {
	for text != "" {
		line, rest, found := strings.Cut(text, "\n")
		fields := strings.Split(line, " ")
		if !found || len(fields) != 4 || len(fields[0]) != 1 {
			return nil, false
		}
		n, err := strconv.Atoi(fields[3])
		if err != nil || n < 0 || n > len(rest) {
			return nil, false
		}
		f := frame{kind: fields[0][0], subject: fields[1], id: fields[2], data: []byte(rest[:n])}
		if f.kind >= 'A' && f.kind <= 'Z' {
			f.kind += 'a' - 'A'
			if f.data, err = base64.StdEncoding.DecodeString(rest[:n]); err != nil {
				return nil, false
			}
		}
		frames = append(frames, f)
		text = rest[n:]
	}
	return frames, true
}

// header begins a payload of a process. Its payloads are numbered, from 1.
func header(from string, number uint64, kind byte) string {
	return from + " " + strconv.FormatUint(number, 10) + " " + string(kind) + "\n"
}

// parse reads the header of a payload.
func parse(payload string) (from string, number uint64, kind byte, body string, ok bool) {
	line, body, found := strings.Cut(payload, "\n")
	fields := strings.Split(line, " ")
	if !found || len(fields) != 3 || len(fields[0]) == 0 || len(fields[0]) > 64 || len(fields[2]) != 1 {
		return "", 0, 0, "", false
	}
	number, err := strconv.ParseUint(fields[1], 10, 64)
	return fields[0], number, fields[2][0], body, err == nil
}

// pack returns the payloads of frames, and the number of the last one.
func pack(from string, last uint64, frames []frame) ([]string, uint64) {
	var payloads []string
	var body []byte
	put := func(kind byte, body []byte) {
		last++
		payloads = append(payloads, header(from, last, kind)+string(body))
	}
	const room = maxPayload - 96 // beside the header
	for _, f := range frames {
		next := f.encode()
		if len(body)+len(next) > room && len(body) > 0 {
			put(payloadWhole, body)
			body = body[:0]
		}
		if len(next) <= room {
			body = append(body, next...)
			continue
		}
		for kind := byte(payloadFirst); len(next) > 0; kind = payloadNext {
			if len(next) <= room {
				kind = payloadLast
			}
			n := min(len(next), room)
			put(kind, next[:n])
			next = next[n:]
		}
	}
	if len(body) > 0 {
		put(payloadWhole, body)
	}
	return payloads, last
}

// A peer is what is known of another process.
type peer struct {
	last  uint64 // number of its last payload
	parts []byte // of a frame that has not come completely; nil: none
	heard time.Time
}

// peers is what is known of the other processes.
type peers map[string]*peer

// take returns the frames that a payload completes. lost reports that something before it is
// missing, or cannot be read.
func (ps peers) take(from string, number uint64, kind byte, body string, now time.Time) (frames []frame, lost bool) {
	p := ps[from]
	switch {
	case p == nil:
		ps.trim(now)
		p = &peer{last: number - 1}
		ps[from] = p
	case number <= p.last:
		return nil, false // it came twice
	}
	p.heard = now
	if lost = number != p.last+1; lost {
		p.parts = nil
	}
	p.last = number
	text := body
	switch kind {
	case payloadWhole:
		p.parts = nil
	case payloadFirst:
		p.parts = []byte(body)
		return nil, lost
	case payloadNext, payloadLast:
		if p.parts == nil { // what came before is lost
			return nil, true
		}
		if p.parts = append(p.parts, body...); len(p.parts) > 2*maxMessage {
			p.parts = nil
			return nil, true
		}
		if kind == payloadNext {
			return nil, lost
		}
		text, p.parts = string(p.parts), nil
	default:
		return nil, true
	}
	frames, ok := decode(text)
	return frames, lost || !ok
}

// trim forgets processes that have ended.
func (ps peers) trim(now time.Time) {
	for from, p := range ps {
		if now.Sub(p.heard) > time.Minute {
			delete(ps, from)
		}
	}
	if len(ps) >= maxPeers {
		clear(ps)
	}
}
