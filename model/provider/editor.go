// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// An Editor knows the JSON of one dialect that clients speak: it finds and edits the
// parts of requests that the gateway's rules are about, without decoding the rest, and
// reads the answers of services that are passed on. It has no state. A dialect that
// only services speak needs none.
type Editor interface {
	Server
	RequestReader
	RequestEditor
	PartWriter
	CallFinder
	AnswerReader
}

// An AnswerReader reads and writes what clients get.
type AnswerReader interface {
	AnswerWriter
	StreamReader
}

// An Operation is what clients ask of a dialect.
type Operation int

// The operations.
const (
	OperationNone     Operation = iota
	OperationGenerate           // an answer of a model
	OperationCount              // the number of tokens of a request
)

// A Server knows the addresses of a dialect, and how it lists models.
type Server interface {
	// Operation returns what a request with this path asks for.
	Operation(path string) Operation
	// CountedText returns the JSON of the request whose tokens a request for
	// [OperationCount] wants counted.
	CountedText(text string) string
	// CountBody is the answer to such a request, to be written as JSON.
	CountBody(tokens int) any
	// ModelBody describes a service as the dialect describes a model.
	ModelBody(s model.Service) any
	// ModelsBody is the list of all services.
	ModelsBody(all []model.Service) any
}

// A CallFinder finds the arguments of tool calls.
type CallFinder interface {
	// SentCalls returns the places of the arguments of earlier calls in a request, in its
	// order.
	SentCalls(text string) []CallText
	// GotCalls returns the places of the arguments of calls in a complete response, or in
	// the data of an event.
	GotCalls(data string) []CallText
	// Choices returns the choices that the data of an event are about, as in
	// CallText.Choice; none if the dialect has one choice.
	Choices(data string) []string
	// IsPing reports events that only keep the connection alive.
	IsPing(event []byte) bool
}

// A RequestReader reads the requests of a dialect.
type RequestReader interface {
	// Dialect is the name of the dialect.
	Dialect() model.Dialect
	// Target returns the head of a request whose URL names the model; false if
	// the body does.
	Target(r *http.Request) (Head, bool)
	// Payloads is the dialect's [Rule].
	Payloads(path []string) Encoding
	// Scan returns the layout of a request, which is valid JSON.
	Scan(text string) Layout
	// StripForeign removes state that Artel wrapped for services of other
	// dialects (thinking signatures, encrypted reasoning); an API of this
	// dialect would reject it.
	StripForeign(text string) string
	// Decode decodes a request whose payloads were extracted. The error is a
	// [*Fault] if the request is wrong.
	Decode(ctx context.Context, r io.Reader) (ServerCall, error)
}

// A ServerCall is a decoded request.
type ServerCall interface {
	// Neutral returns a new request without a dialect.
	Neutral() *model.Request
	// Body returns the complete response. name is the model as the client named
	// it; by is the service whose reasoning the response holds.
	Body(name string, by artel.ServiceID, deltas iter.Seq2[model.Delta, error]) ([]byte, error)
	// Stream writes the response as events. An error among the deltas is
	// written as the dialect does, and returned.
	Stream(name string, by artel.ServiceID, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error
}

// A CallLimiter is a [ServerCall] whose response may hold fewer calls than a model
// makes; the others are left out.
type CallLimiter interface {
	// MaxCalls returns how many calls the response holds; 0: any number. field is the
	// name of their place.
	MaxCalls() (n int, field string)
}

// An AnswerWriter writes errors of a dialect, and checks answers.
type AnswerWriter interface {
	// ErrorBody returns the body of an error response.
	ErrorBody(f Fault) []byte
	// IsError reports whether a body has the form of the dialect's errors.
	IsError(body []byte) bool
	// ErrorEvent returns what ends a stream that broke off; first and last are
	// its first and its last event.
	ErrorEvent(f Fault, first, last []byte) []byte
	// KeepAlive is what a silent stream of events gets.
	KeepAlive() []byte
	// CheckBody returns the usage of a complete response; false if it is an
	// error.
	CheckBody(body []byte) (artel.Usage, bool)
	// FilterStop reports whether a complete response, or the data of an event, says
	// that a content filter ended the answer, and whether it has none of the answer.
	FilterStop(data []byte) (stopped, empty bool)
}

// A StreamReader reads the events of a dialect.
type StreamReader interface {
	// IsPrelude reports whether an event of a stream, which has data, says nothing
	// that the client needs before the answer itself: after it, another service can
	// still answer.
	IsPrelude(event []byte) bool
	// Inspect classifies one event of a stream.
	Inspect(event []byte) EventInfo
	// Skippable reports whether Inspect would surely return the zero value for
	// each event of a run; most are pieces of text. It is much faster, and may
	// return false for such a run.
	Skippable(run []byte) bool
	// Usage reads the data of an event with EventInfo.Usage; before is the
	// usage known from earlier events.
	Usage(data []byte, before artel.Usage) artel.Usage
}

// An EventInfo classifies an event of a stream.
type EventInfo struct {
	End         bool // the last event of a successful stream
	MayEnd      bool // EOF after this event is a normal end
	ErrorBegins bool // an error; more about it may follow
	Failed      bool // an error; nothing follows
	States      bool // it may have calls with a state; see [TurnEditor]
	Usage       bool // it has token counts
	UsageOnly   bool // and nothing else
}

// ContainsNone reports whether a run of events contains none of the words.
func ContainsNone(run []byte, words ...string) bool {
	for _, w := range words {
		if bytes.Contains(run, []byte(w)) {
			return false
		}
	}
	return true
}

// EventData returns the data of an event.
func EventData(event []byte) []byte {
	if rest, ok := bytes.CutPrefix(event, []byte("data:")); ok { // most events are one line
		if n := bytes.IndexByte(rest, '\n'); n >= 0 && len(bytes.TrimLeft(rest[n:], "\r\n")) == 0 && bytes.IndexByte(bytes.TrimRight(rest[:n], "\r"), '\r') < 0 {
			return bytes.TrimSpace(rest[:n])
		}
	}
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

// EventType returns the name of an event, or, since some servers omit it, the type in
// its data.
func EventType(event []byte) string {
	if name := EventName(event); name != "" {
		return name
	}
	return gjson.GetBytes(EventData(event), "type").String()
}

// EventName returns the name of an event; empty if it has none.
func EventName(event []byte) string {
	for line := range bytes.Lines(event) {
		if rest, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			return string(bytes.TrimSpace(rest))
		}
	}
	return ""
}

// A CallText is a place of the arguments of a tool call in JSON of a dialect.
type CallText struct {
	Span            // of the JSON value
	Form   TextForm // of the arguments in the value
	Stream string   // what the pieces of one call have in common; "": all of the arguments are there
	Choice string   // the choice of the answer that has the pieces; its calls follow one another
}

// A TextForm is how arguments stand in a JSON value.
type TextForm int

// The forms.
const (
	JSONValue TextForm = iota // the arguments are the value
	JSONText                  // the value is a string that holds JSON
	PlainText                 // the value is a string that holds the input of a custom tool
)
