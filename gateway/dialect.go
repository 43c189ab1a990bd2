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

// A dialect is what the gateway knows of an API that clients speak. It has no
// state.
type dialect interface {
	requestReader
	answerWriter
	partWriter
	requestEditor
}

// reading is how requests of a dialect are understood.
type requestReader interface {
	name() model.Dialect
	// address reads what the address of a request says of it; false: its body
	// says it.
	target(r *http.Request) (head, bool)
	// payloads is the dialect's [provider.Rule].
	payloads(path []string) provider.Encoding
	// scan finds what the rules are about, in JSON that is valid.
	scan(text string) layout
	// own returns the JSON of a request without what services of other dialects
	// have left in it for themselves, and this one would refuse.
	stripForeign(text string) string
	// decode reads a request that was lifted, whose payloads are no longer looked
	// at. The error is a *fault for what the client did wrong.
	decode(ctx context.Context, r io.Reader) (call, error)
}

// A call is a request that was decoded.
type call interface {
	// neutral is the request without its dialect, a new one each time.
	neutral() *model.Request
	// whole is the answer that is not streamed, of a model by the name that the
	// client used. by is the service whose reasoning it is.
	body(name string, by artel.ServiceID, deltas iter.Seq2[model.Delta, error]) ([]byte, error)
	// stream writes the answer as events; an error among the deltas is told as
	// the dialect does, and returned.
	stream(name string, by artel.ServiceID, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error
}

// speaking is how answers of a dialect are told and understood.
type answerWriter interface {
	// refuse is the body of an error.
	errorBody(f *fault) []byte
	// broken is what ends a stream that cannot go on; first and last are the
	// first and the last event of it.
	errorEvent(f *fault, first, last []byte) []byte
	// sees looks at one event of a stream.
	inspect(event []byte) eventInfo
	// plain reports whether each event of a run says, for certain, what the zero
	// verdict does: most are pieces of text. It is much faster than to ask one by
	// one, and may be false where all do.
	skippable(run []byte) bool
	// whole looks at an answer that is not streamed. It is false where that is
	// an error.
	checkBody(body []byte) (artel.Usage, bool)
	// usage reads the data of an event for which verdict said so; before is what
	// is known from events before it.
	usage(data []byte, before artel.Usage) artel.Usage
}

// A verdict is what an event of a stream means.
type eventInfo struct {
	end         bool // it is the last of a stream that is whole
	mayEnd      bool // it may be the last: the stream may end after it
	errorBegins bool // it tells an error, and more of that may follow
	failed      bool // it tells an error, and nothing follows
	usage       bool // it says how many tokens there were
}

// lacks reports whether none of the words is in a run of events.
func containsNone(run []byte, words ...string) bool {
	for _, w := range words {
		if bytes.Contains(run, []byte(w)) {
			return false
		}
	}
	return true
}

// dataOf is what the data lines of an event hold, mostly one.
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

// nameOf is the name of an event; empty: it has none.
func nameOf(event []byte) string {
	for line := range bytes.Lines(event) {
		if rest, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			return string(bytes.TrimSpace(rest))
		}
	}
	return ""
}

// pieces streams an answer where a client wants no events.
type listStreamer interface {
	streamList(name string, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error
}
