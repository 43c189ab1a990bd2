// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// A Mode is a way to behave.
type Mode string

// The modes.
const (
	Well        Mode = ""             // answer normally
	RateLimit   Mode = "rate_limit"   // 429 with Retry-After
	ServerError Mode = "server_error" // 500
	Overloaded  Mode = "overloaded"   // 529 or 503, depending on the dialect
	BadRequest  Mode = "bad_request"  // 400 without a reason
	Hang        Mode = "hang"         // accept the request and never answer, until the client leaves
	HalfStream  Mode = "half_stream"  // break the connection in the middle of the answer
	SlowDrip    Mode = "slow_drip"    // answer in single characters, with a pause before each
	StreamError Mode = "stream_error" // report an error in the middle of the answer
	Garbage     Mode = "garbage"      // 200 with events that are not JSON
	WebPage     Mode = "web_page"     // 200 with HTML, as behind a wrong base URL
)

// Modes returns all modes.
func Modes() []Mode {
	return []Mode{Well, RateLimit, ServerError, Overloaded, BadRequest, Hang, HalfStream, SlowDrip, StreamError, Garbage, WebPage}
}

// An Oddity is a peculiarity of the answers of one API.
type Oddity string

// The oddities of Anthropic's API.
const (
	Thinking         Oddity = "thinking"          // a signed thought before the answer
	RedactedThinking Oddity = "redacted_thinking" // an encrypted thought before the answer
	PauseTurn        Oddity = "pause_turn"        // a pause after half of the answer
)

// The oddities of Gemini's.
const (
	BlockedPrompt Oddity = "blocked_prompt" // no candidates, and a block reason
	NoCandidates  Oddity = "no_candidates"  // no candidates and no reason
	MalformedCall Oddity = "malformed_call" // the model wrote a malformed call
	NoCallIDs     Oddity = "no_call_ids"    // calls have no ids, as of older models
	Recitation    Oddity = "recitation"     // the answer was withheld
)

// A Behavior says how a server answers valid requests. Its JSON is the body of POST
// /_fake/behave.
type Behavior struct {
	Mode       Mode `json:"mode"`
	RetryAfter int  `json:"retry_after,omitempty"` // of RateLimit, in seconds; 0: not sent
	Times      int  `json:"times,omitempty"`       // number of requests, then Well; 0: all

	Oddity Oddity `json:"oddity,omitempty"` // of the answers, if the dialect has it

	Refuses    []Refusal `json:"refuses,omitempty"`    // beyond the rules of the real API
	ToolMedia  ToolMedia `json:"tool_media,omitempty"` // treatment of media in the results of tools
	Compatible bool      `json:"compatible,omitempty"` // Chat Completions accepts reasoning in messages and media ids, as compatible servers do
	DropsMedia bool      `json:"blind,omitempty"`      // media are accepted, but the model does not see them
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

// status is the status of the response; 0: there is none.
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

// before writes the response of modes without the model, and reports whether it
// did.
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

// alter changes the deltas of the model.
func (s *Server) alter(b Behavior, deltas iter.Seq2[model.Delta, error], stream bool) iter.Seq2[model.Delta, error] {
	if stream {
		deltas = inPieces(deltas)
	}
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
			panic(http.ErrAbortHandler) // net/http breaks the connection
		}
		status := s.dialect.problem(overloaded, "").status
		yield(nil, &artel.Error{Kind: artel.Unavailable, Err: &model.CallError{Status: status, Message: "Overloaded"}})
	}
}

// dripPause is the pause before each character of a slow answer.
const dripPause = 10 * time.Millisecond

// slowly yields texts and the arguments of calls in single characters with pauses.
func slowly(deltas iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range deltas {
			text, piece := "", func(string) model.Delta { return d }
			switch d := d.(type) {
			case model.TextDelta:
				text, piece = string(d), func(s string) model.Delta { return model.TextDelta(s) }
			case model.CallPiece:
				text, piece = d.Text, func(s string) model.Delta { return model.CallPiece{ID: d.ID, Name: d.Name, Text: s} }
			}
			if text == "" && !yield(d, err) {
				return
			}
			for _, r := range text {
				time.Sleep(dripPause)
				if !yield(piece(string(r)), nil) {
					return
				}
			}
		}
	}
}

// inPieces yields the arguments of each call in two pieces before the call, as real
// APIs send them in fragments, so that a client that does not join them fails. A call
// with state stays whole, because the state stands at its beginning.
func inPieces(deltas iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range deltas {
			if c, ok := d.(model.CallDelta); ok && c.Opaque == nil {
				text := provider.SentArguments(c.Arguments)
				cut := len(text) / 2
				for cut > 0 && !utf8.RuneStart(text[cut]) {
					cut--
				}
				for _, piece := range []string{text[:cut], text[cut:]} {
					if !yield(model.CallPiece{ID: c.ID, Name: c.Name, Text: piece}, nil) {
						return
					}
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// firstHalf yields an answer without its end, and the first half of each text.
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
