// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Rough sizes in tokens, for what a request may cost at most.
const (
	bytesPerToken  = 3   // of JSON in any script
	bytesPerOutput = 150 // of an answer, most of them the frame of its events
	tokensPerImage = 1600
	tokensPerPage  = 3000 // of a PDF, with its picture
)

// A bound says how the cost of a request is bounded.
type bound int

const (
	byLimit   bound = iota // by the limit of the output, which can be lowered
	byRequest              // by the request as it is
	byNothing              // it begins work of any amount
)

// charge admits the call of a request that is not decoded; x.settle gives the charge
// back. It returns the text, with a lower limit of the output if it has one and less is left.
func (x *exchange) charge(s *model.Service, text string, media []model.PlacedMedia, by bound) (string, error) {
	x.settle()
	x.started, x.entry.Usage = false, artel.Usage{}
	call := model.PaidCall{Service: s, Input: int64(len(text)/bytesPerToken + 1)}
	for _, m := range media {
		call.Input += int64(tokensPerImage + tokensPerPage*m.Media.Pages)
	}
	limit := outputLimit(s, text)
	call.Output, call.Answers, call.Least, call.Fixed = limit.value, limit.answers, limit.thinking+1, by != byLimit
	call.Unbounded = by == byNothing || limit.background
	charge, err := x.gw.backend.Charge(x.r.Context(), call)
	if err != nil {
		return "", err
	}
	x.charged, x.paid = charge.End, call
	if charge.MaxOutput > 0 {
		text = limit.lowered(text, charge.MaxOutput)
	}
	return text, nil
}

// settle gives the charge of the last call back, with what it has used. It is called
// before the end of the answer is passed on.
func (x *exchange) settle() {
	if x.charged == nil {
		return
	}
	end, u := x.charged, x.entry.Usage
	x.charged = nil
	if x.started && !model.Reported(u) { // a stream that broke off, or a service that does not report it
		u = artel.Usage{Estimated: true, InputTokens: x.paid.Input, OutputTokens: x.w.count() / bytesPerOutput}
	}
	end(model.Spent{Usage: u, Started: x.started})
}

// maxAnswers bounds the answers of one request that are reserved for; no service gives
// as many.
const maxAnswers = 1 << 20

// An outputLimits is what a request says of how long its answers may be, and how many
// there are. Services differ in which of two members of one name they read, and which of
// two limits, so the most generous counts, and all are lowered.
type outputLimits struct {
	name     string // of a member that is added if there is none
	in       string // the object that it belongs to; "": the request itself
	value    int64  // 0: it does not say
	thinking int64  // tokens of the answer that are reserved for reasoning
	answers  int64

	background bool // the answer is written after the call, and its usage is not seen

	at    []provider.Span // values of members that limit the output
	empty []int           // behind the opening brackets of the objects without one
}

// outputLimit reads the limits of the output in the JSON of a request.
func outputLimit(s *model.Service, text string) outputLimits {
	f := outputLimits{name: "max_tokens", answers: 1}
	limits := []string{"max_tokens"}
	switch s.Dialect {
	case model.OpenAI:
		limits = []string{"max_completion_tokens", "max_tokens"}
		if s.Quirks().OutputLimit == "max_completion_tokens" {
			f.name = "max_completion_tokens"
		}
	case model.OpenAIResponses:
		f.name, limits = "max_output_tokens", []string{"max_output_tokens"}
	case model.Gemini:
		f.name, f.in, limits = "maxOutputTokens", "generationConfig", []string{"maxOutputTokens", "max_output_tokens"}
	}
	root := gjson.Parse(text)
	if f.in == "" {
		f.read(root, limits)
	}
	answers, prompts := f.answers, int64(1)
	root.ForEach(func(key, value gjson.Result) bool {
		switch key.String() {
		case "generationConfig", "generation_config":
			if f.in != "" && value.IsObject() {
				f.read(value, limits)
			}
		case "thinking": // of Anthropic
			f.thinking = max(f.thinking, value.Get("budget_tokens").Int())
		case "background": // of Responses
			f.background = f.background || value.Bool()
		case "best_of": // of Completions, as are several prompts
			answers = max(answers, value.Int())
		case "prompt":
			if value.IsArray() && value.Get("0").Type != gjson.Number { // otherwise it is one, of tokens
				prompts = max(prompts, value.Get("#").Int())
			}
		}
		return true
	})
	f.answers = min(max(f.answers, answers), maxAnswers) * min(prompts, maxAnswers)
	return f
}

// read adds what an object says.
func (f *outputLimits) read(object gjson.Result, limits []string) {
	found := false
	object.ForEach(func(key, value gjson.Result) bool {
		switch name := key.String(); {
		case slices.Contains(limits, name):
			found = true
			f.value = max(f.value, value.Int()) // some services read numbers in texts
			f.at = append(f.at, provider.SpanOf(value))
		case name == "n", name == "candidateCount", name == "candidate_count":
			f.answers = max(f.answers, value.Int())
		case name == "thinkingConfig", name == "thinking_config":
			f.thinking = max(f.thinking, value.Get("thinkingBudget").Int(), value.Get("thinking_budget").Int())
		}
		return true
	})
	if !found {
		f.empty = append(f.empty, object.Index+strings.IndexByte(object.Raw, '{')+1)
	}
}

// lowered returns the text with another limit.
func (f outputLimits) lowered(text string, n int) string {
	number := strconv.Itoa(n)
	edits := make([]provider.Edit, 0, len(f.at)+len(f.empty))
	for _, at := range f.at {
		edits = append(edits, provider.Edit{Span: at, With: number})
	}
	member := provider.QuoteJSON(f.name) + ":" + number
	if len(f.at) == 0 && len(f.empty) == 0 { // the object is missing
		member, f.empty = provider.QuoteJSON(f.in)+":{"+member+"}", []int{strings.IndexByte(text, '{') + 1}
	}
	for _, at := range f.empty {
		with := member
		if !strings.HasPrefix(strings.TrimLeft(text[at:], " \t\r\n"), "}") {
			with += ","
		}
		edits = append(edits, provider.Edit{Span: provider.Span{From: at, To: at}, With: with})
	}
	return provider.ApplyEdits(text, edits)
}

// paidMedia are the media that a request has for what it may cost.
func paidMedia(r *model.Request) []model.PlacedMedia {
	if r == nil || len(r.Messages) == 0 {
		return nil
	}
	return model.MediaIn(r)
}
