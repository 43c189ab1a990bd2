// SPDX-License-Identifier: Apache-2.0

// Package model knows the models: which services there are, what each can
// take, and how to call one.
//
// A [Service] is one configured endpoint, with [Capabilities] of known
// provenance. [ParseServices] makes services of configuration entries,
// [Discover] finds them in the environment and [DiscoverLocal] on this
// machine; a [Registry] holds them and can be replaced while it is used.
//
// A [Provider] speaks one API dialect; the wings of package provider fulfil
// the contract. A [Caller] adds what every call needs whatever the dialect:
// retries, time limits and limits on concurrency.
//
// What is not known about a model is taken as absent: an unknown model gets
// text and nothing else.
package model

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/artelhq/artel"
)

// A Provider turns a Request into one call of a model API and streams the
// answer. Implementations are safe for concurrent use and hold no state of a
// conversation.
type Provider interface {
	// Generate calls the model. The sequence yields deltas and ends after a
	// [Finish], or yields one error and ends. Breaking the loop, or ctx,
	// cancels the call within moments. Nothing is sent before the sequence is
	// ranged over, and ranging again calls again.
	//
	// Errors are [*artel.Error] whose kind says who can do what: Invalid (the
	// API refused the request), Denied (key), TooLarge (context), Unsupported
	// (a part or feature), Unavailable (rate limit, overload, network, broken
	// stream), Canceled. A [*CallError] inside has the details.
	Generate(ctx context.Context, r *Request) iter.Seq2[Delta, error]
}

// A Writer is a Provider that can write a request without sending it.
type Writer interface {
	// Write returns the body that Generate would send.
	Write(r *Request) (Body, error)
}

// A Body is a request as an API gets it, in JSON.
type Body interface {
	Hash() artel.Digest // of its text and the digests of its media, in their order
	Len() int64         // bytes, with the media in it
	Redacted() []byte   // JSON with "blob:" and a digest in the place of media
}

// A Request is one model call, neutral of dialect. The provider does not
// change it.
type Request struct {
	Service   Service
	Messages  []Message
	Tools     []ToolSpec
	MaxOutput int // tokens; 0: the API's default
	Choice    ToolChoice
	Format    Format
	Sampling  Sampling
	// Names are the media that a name stands for in the request, instead of their
	// bytes; nil: none. Providers fill it.
	Names map[artel.Digest]Name
	// OnNames is told before each call, also of none, of the media that go by names
	// in it, where the provider knows names; nil: nobody is.
	OnNames func(map[artel.Digest]Name)
	// OnTry is told of each attempt of a [Caller], when it begins; nil: nobody is.
	OnTry func()

	// OnRetry is told by a [Caller] that another attempt follows, before it waits
	// for that; its error ends the call. nil: nobody is.
	OnRetry func(Retry) error
}

// A Name is what stands in a request instead of the bytes of media.
type Name struct {
	By   Transport // what it is: [ByURL], [ByFileID] or [ByMediaID]
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
	ChooseAny   ChoiceMode = "any"   // at least one, whichever
	ChooseNamed ChoiceMode = "named" // the one of that name
)

// A Format is the form that an answer must have. The zero value is any text.
// An API that cannot promise it is asked without.
type Format struct {
	JSON   bool            // a JSON object, at least
	Schema json.RawMessage // a JSON Schema that it fulfils; implies JSON; absent: any object
	Name   string          // of the schema; may be empty
	Strict bool            // the API is to enforce the schema
}

// Sampling are the settings of a model's dice. What is absent has the API's
// default.
type Sampling struct {
	Temperature *float64
	TopP        *float64
	Stop        []string // texts that end the answer
}

// A Message is one entry of a request. Its media parts are to be sent as they
// are: whatever the service cannot take has been replaced by text before, and
// every Media.Ref is a blob ref. Media of a tool result are placed by the
// dialect's wing.
type Message struct {
	Role  artel.Role
	Parts artel.Parts
}

// A ToolSpec tells a model about a tool.
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

// ReasoningDone closes a block of reasoning: the ReasoningDeltas since the last
// one, of which there may be none. Opaque is the service's own state of it, such
// as a signature or encrypted content, to be sent back to the service unchanged
// and in its place among the parts; nil: there is none. A wing whose dialect has
// no such state does not need to send it.
type ReasoningDone struct{ Opaque json.RawMessage }

// CallDelta is one whole tool call. Its arguments are valid JSON, or a JSON
// string of what the model wrote where that was none.
type CallDelta artel.ToolCall

// Finish ends an answer.
type Finish struct {
	Reason StopReason
	Usage  artel.Usage // zero where the API reported none
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
	StopEnd     StopReason = "end"     // it was done
	StopTools   StopReason = "tools"   // it waits for tool results
	StopLength  StopReason = "length"  // the output limit
	StopRefusal StopReason = "refusal" // it, or a filter, declined
)

// A CallError has what is known about a failed call.
type CallError struct {
	Service    artel.ServiceID
	Status     int           // HTTP status; 0: no answer came
	Code       string        // the API's own code or type, may be empty
	Message    string        // the API's own words, shortened
	RetryAfter time.Duration // what the API asked for; 0: nothing
	Transient  bool          // the same call may succeed later
	Refusal    Refusal       // what the API had against the request, as far as it is known
}

// Error returns the API's own words.
func (e *CallError) Error() string {
	switch {
	case e.Message != "":
		return e.Message
	case e.Code != "":
		return e.Code
	}
	return "the model service did not answer"
}
