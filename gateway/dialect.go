// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// A dialect is an API that clients speak. It has no state.
type dialect interface {
	requestReader
	answerWriter
	partWriter
	requestEditor
}

// A requestReader reads the requests of a dialect.
type requestReader interface {
	name() model.Dialect
	// target returns the head of a request whose URL names the model; false if
	// the body does.
	target(r *http.Request) (head, bool)
	// payloads is the dialect's [provider.Rule].
	payloads(path []string) provider.Encoding
	// scan returns the layout of a request, which is valid JSON.
	scan(text string) layout
	// stripForeign removes state that Artel wrapped for services of other
	// dialects (thinking signatures, encrypted reasoning); an API of this
	// dialect would reject it.
	stripForeign(text string) string
	// decode decodes a request whose payloads were extracted. The error is a
	// *fault if the request is wrong.
	decode(ctx context.Context, r io.Reader) (call, error)
}

// A call is a decoded request.
type call interface {
	// neutral returns a new request without a dialect.
	neutral() *model.Request
	// body returns the complete response. name is the model as the client named
	// it; by is the service whose reasoning the response holds.
	body(name string, by artel.ServiceID, deltas iter.Seq2[model.Delta, error]) ([]byte, error)
	// stream writes the response as events. An error among the deltas is
	// written as the dialect does, and returned.
	stream(name string, by artel.ServiceID, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error
}

// An answerWriter writes errors of a dialect and inspects responses.
type answerWriter interface {
	// errorBody returns the body of an error response.
	errorBody(f *fault) []byte
	// errorEvent returns what ends a stream that broke off; first and last are
	// its first and its last event.
	errorEvent(f *fault, first, last []byte) []byte
	// inspect classifies one event of a stream.
	inspect(event []byte) eventInfo
	// skippable reports whether inspect would surely return the zero value for
	// each event of a run; most are pieces of text. It is much faster, and may
	// return false for such a run.
	skippable(run []byte) bool
	// checkBody returns the usage of a complete response; false if it is an
	// error.
	checkBody(body []byte) (artel.Usage, bool)
	// usage reads the data of an event with eventInfo.usage; before is the
	// usage known from earlier events.
	usage(data []byte, before artel.Usage) artel.Usage
}

// An eventInfo classifies an event of a stream.
type eventInfo struct {
	end         bool // the last event of a successful stream
	mayEnd      bool // EOF after this event is a normal end
	errorBegins bool // an error; more about it may follow
	failed      bool // an error; nothing follows
	usage       bool // it has token counts
}

// containsNone reports whether a run of events contains none of the words.
func containsNone(run []byte, words ...string) bool {
	for _, w := range words {
		if bytes.Contains(run, []byte(w)) {
			return false
		}
	}
	return true
}

// dataOf returns the data of an event.
func dataOf(event []byte) []byte {
	var all []byte
	for line := range bytes.Lines(event) {
		rest, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:"))
		if !ok {
			continue
		}
		rest = bytes.TrimPrefix(rest, []byte(" "))
		if all == nil {
			all = rest
			continue
		}
		all = append(append(bytes.Clone(all), '\n'), rest...)
	}
	return bytes.TrimSpace(all)
}

// nameOf returns the name of an event; empty if it has none.
func nameOf(event []byte) string {
	for line := range bytes.Lines(event) {
		if rest, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			return string(bytes.TrimSpace(rest))
		}
	}
	return ""
}

// A listStreamer streams a response as a JSON list.
type listStreamer interface {
	streamList(name string, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error
}
