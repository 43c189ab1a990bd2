// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/artelhq/artel"
)

// MeasureUnseen finds a service that accepts pictures in the results of tools and does
// not show them to its model: some drop them, others give the model their base64 as
// text. The input tokens that an answer was billed (reported) show both. text
// is the request, whose media are ignored; sent are the media that were sent; count
// counts the tokens of a request for the service of text.
//
// It returns a mark against pictures in results, after which they are sent in a message
// behind the results. It returns none if pictures are elsewhere too, if the text is so
// long that the error of its count hides them, or if the operator or a probe has already
// said what the service does.
func MeasureUnseen(text *Request, sent []PlacedMedia, count func(*Request) (int, error), reported int64) (Mark, bool) {
	s := text.Service
	if known := s.Capabilities.ToolImage.Source; known == FromOperator || known == FromProbe || reported <= 0 || len(sent) == 0 {
		return Mark{}, false
	}
	pictures := &Request{Service: s}
	encoded := 0.0
	seen := map[artel.Digest]bool{}
	for _, m := range sent {
		if m.Place != InTool || m.Kind != artel.KindImage {
			return Mark{}, false
		}
		if !seen[m.Ref.Digest] { // requests hold the same media once
			seen[m.Ref.Digest] = true
			pictures.Messages = append(pictures.Messages, Message{Role: artel.RoleUser, Parts: artel.Parts{m.Media}})
			encoded += float64(m.Size) * 4 / 3
		}
	}
	ofText, err := count(withoutMedia(text))
	if err != nil {
		return Mark{}, false
	}
	ofPictures, err := count(pictures)
	if err != nil {
		return Mark{}, false
	}
	// Counts of text are estimates, and APIs bill a few tokens for each message. Pictures
	// may cost a quarter of what is expected, and base64 at least a token for four
	// characters.
	slack := 50 + float64(ofText)*textError
	least, asText := float64(ofPictures)/4, encoded/4
	how := ""
	switch bill := float64(reported) - float64(ofText); {
	case bill <= slack && least > 2*slack:
		how = "the pictures in the results of tools were not billed"
	case bill >= asText-slack && asText > 4*(float64(ofPictures)+slack):
		how = "the pictures in the results of tools were billed as text"
	default:
		return Mark{}, false
	}
	return s.mark(Mark{
		Place: InTool, MediaType: "image/*", Source: FromLearned,
		Evidence: fmt.Sprintf("%s: %d input tokens; the text has about %d, the pictures have about %d", how, reported, ofText, ofPictures),
	}), true
}

// textError is the part of a count of text that may be wrong.
const textError = 0.25

// withoutMedia returns a copy of r without its media.
func withoutMedia(r *Request) *Request {
	out := *r
	out.Messages = make([]Message, len(r.Messages))
	for i, m := range r.Messages {
		out.Messages[i] = Message{Role: m.Role, Parts: partsWithoutMedia(m.Parts)}
	}
	return &out
}

func partsWithoutMedia(parts artel.Parts) artel.Parts {
	var out artel.Parts
	for _, p := range parts {
		switch p := p.(type) {
		case artel.Media:
		case artel.ToolResult:
			p.Parts = partsWithoutMedia(p.Parts)
			out = append(out, p)
		default:
			out = append(out, p)
		}
	}
	return out
}
