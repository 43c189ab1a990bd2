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
	"net/http"
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
	Reasoning Reasoning
	Extras    Extras
	// Dropped are the fields of a client's request that have no place here. The
	// decoders of the dialects fill it.
	Dropped []Drop
	// Names are the media sent as a name instead of their bytes; nil: none. Providers
	// fill it.
	Names map[artel.Digest]Name
	// OnNames is called before each call with the media sent by name, which may be
	// none, if the provider supports names; may be nil.
	OnNames func(map[artel.Digest]Name)
	// OnDrop is called by providers while they write the request, for each field
	// that the service does not take; its error ends the call. It may be called
	// again for another attempt. May be nil.
	OnDrop func(Drop) error
	// Whole says that the reader takes the answer as a whole. A [Caller] then holds its
	// deltas back until the end, and asks again if it breaks off.
	Whole bool
	Cache CacheTime // how long the service caches the request
	// Header holds fields of a client's header that the service gets; may be nil.
	Header http.Header
	// OnTry is called by a [Caller] when an attempt begins; may be nil.
	OnTry func()
	// OnActivity is called by providers when bytes of the answer arrive, also those
	// without a delta (pings, hidden reasoning); a [Caller] sets it. May be nil.
	OnActivity func()

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
	Mode     ChoiceMode `json:"mode,omitempty"`
	Name     string     `json:"name,omitempty"`       // of ChooseNamed
	OneByOne bool       `json:"one_by_one,omitempty"` // at most one call in an answer
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
	JSON   bool            `json:"json,omitempty"`   // a JSON object, at least
	Schema json.RawMessage `json:"schema,omitempty"` // a JSON Schema of the answer; implies JSON; absent: any object
	Name   string          `json:"name,omitempty"`   // of the schema; may be empty
	Strict bool            `json:"strict,omitempty"` // the API is to enforce the schema
}

// Sampling holds sampling parameters. Absent ones have the API's default.
type Sampling struct {
	Temperature      *float64 `json:"temperature,omitempty"`
	TopP             *float64 `json:"top_p,omitempty"`
	TopK             *int     `json:"top_k,omitempty"`
	Seed             *int64   `json:"seed,omitempty"`
	FrequencyPenalty *float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty  *float64 `json:"presence_penalty,omitempty"`
	Stop             []string `json:"stop,omitempty"` // texts that end the answer
}

// Reasoning says how much a model thinks before it answers. The zero value leaves
// it to the API.
type Reasoning struct {
	Effort  Effort `json:"effort,omitempty"`  // how much, in words
	Budget  int    `json:"budget,omitempty"`  // tokens at most; 0: not said
	Summary string `json:"summary,omitempty"` // how detailed a summary is to be: auto, concise or detailed; may be empty
	Show    bool   `json:"show,omitempty"`    // the client asked to read the reasoning
}

// An Effort is a degree of reasoning. Dialects without a degree use the nearest.
type Effort string

// The efforts, from the lowest; the empty one is the API's default.
const (
	EffortNone    Effort = "none"
	EffortMinimal Effort = "minimal"
	EffortLow     Effort = "low"
	EffortMedium  Effort = "medium"
	EffortHigh    Effort = "high"
	EffortXHigh   Effort = "xhigh"
	EffortMax     Effort = "max"
)

// Efforts returns the efforts from the lowest to the highest.
func Efforts() []Effort {
	return []Effort{EffortNone, EffortMinimal, EffortLow, EffortMedium, EffortHigh, EffortXHigh, EffortMax}
}

// Extras are wishes of a client that do not change what a request asks.
type Extras struct {
	User      string `json:"user,omitempty"`      // an id of the client's user
	SafetyID  string `json:"safety_id,omitempty"` // an id of the client's user, for the service's abuse checks
	Tier      string `json:"tier,omitempty"`      // the service tier, in the words of OpenAI: auto, default, flex, priority
	CacheKey  string `json:"cache_key,omitempty"` // names requests that share a prefix
	Verbosity string `json:"verbosity,omitempty"` // low, medium or high
}

// A CacheTime says how long a service keeps the beginning of a request in its cache.
// Only Anthropic's API asks for it; others decide themselves.
type CacheTime string

// The times.
const (
	CacheMinutes CacheTime = ""    // five minutes
	CacheHour    CacheTime = "1h"  // an hour, which costs more to write
	CacheOff     CacheTime = "off" // nothing is written to the cache
)

// A Drop is a field of a request that does not reach the service.
type Drop struct {
	Field  string // such as top_k, or tools.web_search for a tool
	Reason DropReason
}

// A DropReason says why a field does not reach a service.
type DropReason string

// The reasons.
const (
	DialectLacks  DropReason = "dialect_lacks"  // the service's API has no such field
	ModelLacks    DropReason = "model_lacks"    // the model does not take it
	NotTranslated DropReason = "not_translated" // only services of the client's dialect take it
	TooMany       DropReason = "too_many"       // more than the API takes; the first ones are sent
	OutOfRange    DropReason = "out_of_range"   // the nearest value that the API takes is sent
	NotEnforced   DropReason = "not_enforced"   // the model reads it, but the API does not enforce it
	InConflict    DropReason = "in_conflict"    // the API refuses it beside another field
)

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
	Schema      json.RawMessage `json:"parameters"`       // a JSON Schema of type object
	Strict      bool            `json:"strict,omitempty"` // the API is to enforce the schema
}

// A Delta is one piece of a streamed answer: [TextDelta], [ReasoningDelta],
// [ReasoningDone], [CallPiece], [CallDelta] or [Finish].
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

// CallPiece is a piece of the arguments of a tool call that the model is still
// writing. The first piece of a call may have no text; a [CallDelta] with the same
// id ends the call and repeats all its arguments. Pieces of several calls may
// alternate. Providers may omit pieces, and readers may ignore them.
type CallPiece struct {
	ID   artel.CallID
	Name string
	Text string // JSON, to append to the arguments
}

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
func (CallPiece) delta()      {}
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

	// Dialect, Header and Body are those of the error response, for clients of the
	// same dialect: the fields of the header that they act on, and the JSON, both
	// without keys. They are empty if there was no such response.
	Dialect Dialect
	Header  http.Header
	Body    []byte
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
