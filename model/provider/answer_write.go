// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"io"
	"unicode/utf8"
)

// ErrNoFinish is the error of an answer whose deltas end without a [model.Finish].
var ErrNoFinish = errors.New("the model ended without a finish")

// An EventWriter writes the events of a streamed answer.
type EventWriter struct {
	W     io.Writer
	Flush func() error // called after each event; may be nil
}

// Event writes data, without line breaks, as a server-sent event. An empty name is
// left out.
func (w EventWriter) Event(name string, data []byte) error {
	if name != "" {
		name = "event: " + name + "\n"
	}
	return w.Raw([]byte(name), []byte("data: "), data, []byte("\n\n"))
}

// Raw writes the pieces of one event, and flushes.
func (w EventWriter) Raw(pieces ...[]byte) error {
	var all []byte
	for _, p := range pieces {
		all = append(all, p...)
	}
	if _, err := w.W.Write(all); err != nil || w.Flush == nil {
		return err
	}
	return w.Flush()
}

// Halves cuts s into two pieces of whole characters, for the arguments of a call in
// a stream: real APIs send them in fragments, so clients must join them.
func Halves(s string) [2]string {
	cut := len(s) / 2
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return [2]string{s[:cut], s[cut:]}
}
