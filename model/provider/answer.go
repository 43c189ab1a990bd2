// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/sse"
)

// MaxAnswer limits an answer that is not streamed, in bytes.
const MaxAnswer = 64 << 20

// An Answer reads the response of a service: JSON in one piece, or server-sent
// events.
type Answer struct {
	Failures Failures
	// Whole reads an answer in one piece.
	Whole func(b *bufio.Reader) error
	// Event reads one event of a stream and reports whether it was the last. data
	// has no surrounding white space and is not empty.
	Event func(name string, data []byte) (done bool, err error)
	// Open says that streams have no final event: the end of the body is their end.
	Open bool
}

// Read reads body as JSON or as events. The error is one of the functions', an
// [*artel.Error] for an answer in another form, or the error of body.
func (a Answer) Read(body io.Reader) error {
	b := bufio.NewReader(body)
	first, err := firstByte(b)
	if errors.Is(err, io.EOF) {
		return a.Failures.Broken("the service sent an empty answer")
	}
	if err != nil {
		return err
	}
	switch first {
	case '{', '[':
		return a.Whole(b)
	case '<':
		return a.Failures.Wrong("the answer is a web page, not the API's; check the base URL")
	}
	return a.events(b)
}

// firstByte returns the first byte that is neither white space nor part of a byte
// order mark, without consuming it.
func firstByte(b *bufio.Reader) (byte, error) {
	for {
		c, err := b.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\r', '\n', 0xef, 0xbb, 0xbf:
			continue
		}
		return c, b.UnreadByte()
	}
}

func (a Answer) events(b io.Reader) error {
	any := false
	for e, err := range sse.Events(b, 0) {
		if err != nil {
			if artel.KindOf(err) == artel.TooLarge {
				return a.Failures.Wrong(err.Error())
			}
			return err
		}
		any = true
		data := strings.TrimSpace(e.Data)
		if data == "" {
			continue // a keep-alive of some servers
		}
		if done, err := a.Event(e.Name, []byte(data)); done || err != nil {
			return err
		}
	}
	switch {
	case !any:
		return a.Failures.Broken("the answer is neither JSON nor an event stream")
	case a.Open:
		return nil
	}
	return a.Failures.Broken("the stream broke off")
}

// ReadWhole reads an answer of at most [MaxAnswer] bytes into v, and returns its
// JSON.
func (f Failures) ReadWhole(b io.Reader, v any) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(b, MaxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxAnswer {
		return nil, f.Wrong("the answer is larger than 64 MiB")
	}
	if err := IgnoreUsageError(json.Unmarshal(data, v)); err != nil {
		return nil, f.Broken("the answer is not valid JSON: " + err.Error())
	}
	return data, nil
}

// ReadEvent reads the data of an event into v.
func (f Failures) ReadEvent(data []byte, v any) error {
	if err := IgnoreUsageError(json.Unmarshal(data, v)); err != nil {
		return f.Broken("the stream has an event that is not valid JSON: " + err.Error())
	}
	return nil
}

// IgnoreUsageError returns err unless it is a type error in the usage, which
// servers report in many forms and an answer does not need.
func IgnoreUsageError(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && strings.Contains("."+wrong.Field, ".usage") {
		return nil
	}
	return err
}

// Given reports whether a field of JSON, such as an error, has a value: it is false
// for null and for empty objects and strings.
func Given(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "{}", `""`, "false":
		return false
	}
	return true
}
