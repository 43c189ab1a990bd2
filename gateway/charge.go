// SPDX-License-Identifier: Apache-2.0

package gateway

import (
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

// charge admits the call of a request that is not decoded; x.settle gives the charge
// back. It returns the text with a lower limit of the output if less is left, unless
// it is fixed.
func (x *exchange) charge(s *model.Service, text string, media []model.PlacedMedia, fixed bool) (string, error) {
	x.settle()
	x.started, x.entry.Usage = false, artel.Usage{}
	call := model.PaidCall{Service: *s, Input: int64(len(text)/bytesPerToken + 1)}
	for _, m := range media {
		call.Input += int64(tokensPerImage + tokensPerPage*m.Media.Pages)
	}
	limit := outputLimit(s, text)
	call.Output, call.Least, call.Fixed = limit.value, limit.thinking+1, fixed
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

// An outputField is where a request says how long its answer may be.
type outputField struct {
	object   string // the path of the object that has the field; "": the request itself
	name     string // of the field
	value    int64  // 0: it does not say
	thinking int64  // tokens of the answer that are reserved for reasoning
	at       provider.Span
}

// outputLimit finds the limit of the output in the JSON of a request.
func outputLimit(s *model.Service, text string) outputField {
	f := outputField{name: "max_tokens"}
	var names []string
	switch s.Dialect {
	case model.OpenAI:
		names = []string{"max_completion_tokens", "max_tokens"}
		if s.Quirks().OutputLimit == "max_completion_tokens" {
			f.name = "max_completion_tokens"
		}
	case model.OpenAIResponses:
		f.name = "max_output_tokens"
	case model.Anthropic:
		f.thinking = gjson.Get(text, "thinking.budget_tokens").Int()
	case model.Gemini:
		f.object, f.name = "generationConfig", "maxOutputTokens"
		if gjson.Get(text, "generation_config").IsObject() {
			f.object = "generation_config"
		}
		names = []string{f.object + ".maxOutputTokens", f.object + ".max_output_tokens"}
		f.thinking = max(0, gjson.Get(text, f.object+".thinkingConfig.thinkingBudget").Int())
	}
	if names == nil {
		names = []string{f.name}
	}
	for _, name := range names {
		if v := gjson.Get(text, name); v.Type == gjson.Number && v.Index > 0 {
			f.value, f.at = max(0, v.Int()), provider.Span{From: v.Index, To: v.Index + len(v.Raw)}
			break
		}
	}
	return f
}

// lowered returns the text with another limit.
func (f outputField) lowered(text string, n int) string {
	number := strconv.Itoa(n)
	if f.at.To > 0 {
		return provider.ApplyEdits(text, []provider.Edit{{Span: f.at, With: number}})
	}
	member := provider.QuoteJSON(f.name) + ":" + number
	in, object := 0, text
	if f.object != "" {
		if v := gjson.Get(text, f.object); v.IsObject() && v.Index > 0 {
			in, object = v.Index, v.Raw
		} else {
			member = provider.QuoteJSON(f.object) + ":{" + member + "}"
		}
	}
	open := strings.IndexByte(object, '{')
	if open < 0 {
		return text
	}
	if rest := strings.TrimLeft(object[open+1:], " \t\r\n"); !strings.HasPrefix(rest, "}") {
		member += ","
	}
	at := in + open + 1
	return text[:at] + member + text[at:]
}

// paidMedia are the media that a request has for what it may cost.
func paidMedia(r *model.Request) []model.PlacedMedia {
	if r == nil || len(r.Messages) == 0 {
		return nil
	}
	return model.MediaIn(r)
}
