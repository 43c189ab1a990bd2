// SPDX-License-Identifier: Apache-2.0

// Package model holds the configured model services, their capabilities, and the
// means to call them.
//
// A [Service] is one endpoint, with [Capabilities] of known provenance.
// [ParseServices] reads configuration entries, [Discover] the environment, and
// [DiscoverLocal] asks servers on this machine; a [Registry] holds the services
// and can be replaced while it is used.
//
// A [Provider] implements one API dialect; the packages below model/provider are
// the implementations. A [Caller] adds retries, timeouts and limits on
// concurrency.
//
// An unknown capability counts as absent: an unknown model gets text only.
package model

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/artelhq/artel"
)

// A Provider sends requests to a model API and streams the answers.
// Implementations are safe for concurrent use and keep no state of conversations.
type Provider interface {
	// Generate calls the model. The sequence yields deltas and ends after a
	// [Finish], or yields one error and ends. Breaking the loop, or ctx,
	// cancels the call promptly. The request is sent when the sequence is ranged
	// over; ranging again sends it again.
	//
	// Errors are [*artel.Error] of one of these kinds: Invalid (the
	// API refused the request), Denied (key), TooLarge (context), Unsupported
	// (a part or feature), Unavailable (rate limit, overload, network, broken
	// stream), Canceled. They wrap a [*CallError] with the details.
	Generate(ctx context.Context, r *Request) iter.Seq2[Delta, error]
}

// A Writer is a Provider that can encode a request without sending it.
type Writer interface {
	// Write returns the body that Generate sends.
	Write(r *Request) (Body, error)
}

// A Body is the JSON body of a request.
type Body interface {
	Hash() artel.Digest // of its text and the digests of its media
	Len() int64         // bytes, including the media
	Redacted() []byte   // JSON with blob refs instead of media
}

// A Request is one model call, independent of the dialect. Providers do not
// change it.
type Request struct {
	Service   Service
	Messages  []Message
	Tools     []ToolSpec
	MaxOutput int // tokens; 0: the API's default
	Choice    ToolChoice
	Format    Format
	Sampling  Sampling
	// Names are the media sent as a name instead of their bytes; nil: none. Providers
	// fill it.
	Names map[artel.Digest]Name
	// OnNames is called before each call with the media sent by name, which may be
	// none, if the provider supports names; may be nil.
	OnNames func(map[artel.Digest]Name)
	// OnTry is called by a [Caller] when an attempt begins; may be nil.
	OnTry func()

	// OnRetry is called by a [Caller] before it waits for another attempt; its
	// error ends the call. May be nil.
	OnRetry func(Retry) error
}

// A Name replaces the bytes of media in a request.
type Name struct {
	By   Transport // [ByURL], [ByFileID] or [ByMediaID]
	Text string    // without characters that JSON escapes
}

// A ToolChoice says which tools an answer may or must call. The zero value
// leaves it to the model.
type ToolChoice struct {
	Mode     ChoiceMode
	Name     string // of ChooseNamed
	OneByOne bool   // at most one call in an answer
}

// A ChoiceMode is a kind of ToolChoice.
type ChoiceMode string

// The modes.
const (
	ChooseAuto  ChoiceMode = ""      // the model decides
	ChooseNone  ChoiceMode = "none"  // no tool
	ChooseAny   ChoiceMode = "any"   // at least one tool
	ChooseNamed ChoiceMode = "named" // the named tool
)

// A Format is the required form of an answer. The zero value is any text. It is
// not sent to an API that does not support it.
type Format struct {
	JSON   bool            // a JSON object, at least
	Schema json.RawMessage // a JSON Schema of the answer; implies JSON; absent: any object
	Name   string          // of the schema; may be empty
	Strict bool            // the API is to enforce the schema
}

// Sampling holds sampling parameters. Absent ones have the API's default.
type Sampling struct {
	Temperature *float64
	TopP        *float64
	Stop        []string // texts that end the answer
}

// A Message is one message of a request. Its media parts are sent unchanged: the
// caller has replaced what the service cannot take by text. Every Media.Ref is a
// blob ref. Providers place the media of tool results.
type Message struct {
	Role  artel.Role
	Parts artel.Parts
}

// A ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"parameters"` // a JSON Schema of type object
}

// A Delta is one piece of a streamed answer: [TextDelta], [ReasoningDelta],
// [ReasoningDone], [CallDelta] or [Finish].
type Delta interface{ delta() }

// TextDelta is text to append to the answer.
type TextDelta string

// ReasoningDelta is text to append to the reasoning.
type ReasoningDelta string

// ReasoningDone ends a block of reasoning: the ReasoningDeltas since the last one,
// possibly none. Opaque is state of the service, such as a signature or encrypted
// content, which is sent back unchanged at the same position among the parts;
// nil: none. Providers of dialects without such state may omit it.
type ReasoningDone struct{ Opaque json.RawMessage }

// CallDelta is one complete tool call. Its arguments are valid JSON; invalid ones
// are wrapped in a JSON string.
type CallDelta artel.ToolCall

// Finish ends an answer.
type Finish struct {
	Reason StopReason
	Usage  artel.Usage // zero: not reported
}

func (TextDelta) delta()      {}
func (ReasoningDelta) delta() {}
func (ReasoningDone) delta()  {}
func (CallDelta) delta()      {}
func (Finish) delta()         {}

// A StopReason says why a model stopped.
type StopReason string

// The stop reasons.
const (
	StopEnd     StopReason = "end"     // the answer is complete
	StopTools   StopReason = "tools"   // it called tools
	StopLength  StopReason = "length"  // the output limit
	StopRefusal StopReason = "refusal" // the model or a filter refused
)

// A CallError holds the details of a failed call.
type CallError struct {
	Service    artel.ServiceID
	Status     int           // HTTP status; 0: no response
	Code       string        // the API's code or type; may be empty
	Message    string        // the API's message, shortened
	RetryAfter time.Duration // requested by the API; 0: none
	Transient  bool          // the same call may succeed later
	Refusal    Refusal       // why the API refused the request, if known
}

// Error returns the API's message.
func (e *CallError) Error() string {
	switch {
	case e.Message != "":
		return e.Message
	case e.Code != "":
		return e.Code
	}
	return "the model service did not answer"
}
