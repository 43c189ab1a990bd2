// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A Mode is a way to behave.
type Mode string

// The modes.
const (
	Well        Mode = ""             // answer
	RateLimit   Mode = "rate_limit"   // 429 with Retry-After
	ServerError Mode = "server_error" // 500
	Overloaded  Mode = "overloaded"   // 529 or 503, as the dialect says it
	BadRequest  Mode = "bad_request"  // 400 without a reason
	Hang        Mode = "hang"         // take the request and never answer, until the client goes
	HalfStream  Mode = "half_stream"  // begin to answer, then break the connection off
	SlowDrip    Mode = "slow_drip"    // answer one character after the other, with a pause before each
	StreamError Mode = "stream_error" // begin to answer, then tell an error inside the answer
	Garbage     Mode = "garbage"      // 200 with events that are no JSON
	WebPage     Mode = "web_page"     // 200 with HTML, as a wrong base URL gives
)

// Modes returns all modes.
func Modes() []Mode {
	return []Mode{Well, RateLimit, ServerError, Overloaded, BadRequest, Hang, HalfStream, SlowDrip, StreamError, Garbage, WebPage}
}

// An Oddity is something that the answers of one API have and those of others
// do not.
type Oddity string

// The oddities of Anthropic's API.
const (
	Thinking         Oddity = "thinking"          // a thought before the answer, which is signed
	RedactedThinking Oddity = "redacted_thinking" // a thought before the answer, of which nothing shows
	PauseTurn        Oddity = "pause_turn"        // a pause after half of the answer
)

// The oddities of Gemini's.
const (
	BlockedPrompt Oddity = "blocked_prompt" // no candidates, and a reason why the prompt was blocked
	NoCandidates  Oddity = "no_candidates"  // no candidates, and no reason
	MalformedCall Oddity = "malformed_call" // the model wrote a call that is none
	NoCallIDs     Oddity = "no_call_ids"    // calls have no ids, as those of older models
	Recitation    Oddity = "recitation"     // the answer was held back
)

// A Behavior says how a server answers requests that are valid. Its JSON is
// the body of POST /_fake/behave.
type Behavior struct {
	Mode       Mode `json:"mode"`
	RetryAfter int  `json:"retry_after,omitempty"` // of RateLimit, in seconds; 0: it does not say
	Times      int  `json:"times,omitempty"`       // requests that it holds for, then Well; 0: all

	Oddity Oddity `json:"oddity,omitempty"` // what is odd about the answers, in dialects that have it

	Refuses    []Refusal `json:"refuses,omitempty"`    // what is refused beside what the real API refuses
	ToolMedia  ToolMedia `json:"tool_media,omitempty"` // what becomes of media in the results of tools
	Compatible bool      `json:"compatible,omitempty"` // Chat Completions takes the reasoning of messages and the ids of media, as compatible servers do
	DropsMedia bool      `json:"blind,omitempty"`      // media are taken, and the model gets none
}

func (b Behavior) check(d dialect) error {
	if b.Oddity != "" && !slices.Contains(d.oddities, b.Oddity) {
		return fmt.Errorf("unknown oddity %q: want one of %q", b.Oddity, d.oddities)
	}
	if !slices.Contains(Modes(), b.Mode) {
		return fmt.Errorf("unknown mode %q: want one of %q", b.Mode, Modes())
	}
	for _, r := range b.Refuses {
		if !slices.Contains(Refusals(), r) {
			return fmt.Errorf("unknown refusal %q: want some of %q", r, Refusals())
		}
	}
	if all := []ToolMedia{ToolMediaRefused, ToolMediaSeen, ToolMediaLost, ToolMediaFlat, ToolMediaSplit}; !slices.Contains(all, b.ToolMedia) {
		return fmt.Errorf("unknown tool_media %q: want one of %q", b.ToolMedia, all)
	}
	if b.RetryAfter < 0 || b.Times < 0 {
		return fmt.Errorf("retry_after and times are not negative")
	}
	return nil
}

// status is that of the head of the answer; 0: there is none.
func (s *Server) status(b Behavior) int {
	switch b.Mode {
	case RateLimit:
		return s.dialect.problem(rateLimited, "").status
	case ServerError:
		return s.dialect.problem(broken, "").status
	case Overloaded:
		return s.dialect.problem(overloaded, "").status
	case BadRequest:
		return http.StatusBadRequest
	case Hang:
		return 0
	}
	return http.StatusOK
}

// before answers in the model's place, and reports whether it did.
func (s *Server) before(b Behavior, w http.ResponseWriter, r *http.Request) bool {
	switch b.Mode {
	case RateLimit:
		if b.RetryAfter > 0 && !s.dialect.waits {
			w.Header().Set("Retry-After", strconv.Itoa(b.RetryAfter))
		}
		refuse(w, s.dialect.problem(rateLimited, strconv.Itoa(b.RetryAfter)))
	case ServerError:
		refuse(w, s.dialect.problem(broken, ""))
	case Overloaded:
		refuse(w, s.dialect.problem(overloaded, ""))
	case BadRequest:
		refuse(w, s.dialect.problem(failure{status: http.StatusBadRequest}, "Bad request."))
	case Hang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // no answer, not even an empty one
	case Garbage:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"choices\":[{\"delta\":\n\ndata: \xff\xfe}{\n\n"))
	case WebPage:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>Welcome</title><p>Nothing to see here."))
	default:
		return false
	}
	return true
}

// alter changes what the model says.
func (s *Server) alter(b Behavior, deltas iter.Seq2[model.Delta, error], stream bool) iter.Seq2[model.Delta, error] {
	if b.Mode == SlowDrip {
		return slowly(deltas)
	}
	if b.Mode != StreamError && (b.Mode != HalfStream || !stream) {
		return deltas
	}
	return func(yield func(model.Delta, error) bool) {
		for d, err := range firstHalf(deltas) {
			if !yield(d, err) || err != nil {
				return
			}
		}
		if b.Mode == HalfStream {
			panic(http.ErrAbortHandler) // net/http's way to break a connection off
		}
		status := s.dialect.problem(overloaded, "").status
		yield(nil, &artel.Error{Kind: artel.Unavailable, Err: &model.CallError{Status: status, Message: "Overloaded"}})
	}
}

// dripPause is the pause before each character of a slow answer.
const dripPause = 10 * time.Millisecond

// drips yields texts in single characters, slowly.
func slowly(deltas iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range deltas {
			t, ok := d.(model.TextDelta)
			if !ok || err != nil {
				if !yield(d, err) {
					return
				}
				continue
			}
			for _, r := range string(t) {
				time.Sleep(dripPause)
				if !yield(model.TextDelta(string(r)), nil) {
					return
				}
			}
		}
	}
}

// firstHalf yields what comes before the end of an answer, texts by half.
func firstHalf(deltas iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range deltas {
			if _, ok := d.(model.Finish); ok {
				return
			}
			if t, ok := d.(model.TextDelta); ok {
				half := []rune(string(t))
				d = model.TextDelta(half[:(len(half)+1)/2])
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}
