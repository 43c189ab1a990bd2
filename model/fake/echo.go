// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// Echo is the [Responder] that describes the request: a line for each message, and
// one for each piece of media with type, size and digest. Usage counts the words.
func Echo(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		usage := artel.Usage{Calls: 1}
		say := func(format string, args ...any) bool {
			usage.OutputTokens++
			return yield(model.TextDelta(fmt.Sprintf(format, args...)), nil)
		}
		if !say("received %d messages and %d tools for %s\n", len(r.Messages), len(r.Tools), r.Service.Model) {
			return
		}
		for i, m := range r.Messages {
			for _, media := range artel.MediaOf(m.Parts) {
				if media.Kind == artel.KindImage {
					usage.InputTokens += pictureTokens
				}
			}
			for _, line := range describe(m.Parts) {
				usage.InputTokens += int64(len(strings.Fields(line)))
				if !say("%d %s: %s\n", i+1, m.Role, line) {
					return
				}
			}
		}
		yield(model.Finish{Reason: model.StopEnd, Usage: usage}, nil)
	}
}

// pictureTokens is what a picture is billed: as much as one of about 1,100 pixels a side
// at Anthropic.
const pictureTokens = 1600

func describe(parts artel.Parts) []string {
	var out []string
	for _, p := range parts {
		switch p := p.(type) {
		case artel.Text:
			out = append(out, "text: "+artel.Shorten(p.Text, 200))
		case artel.Media:
			line := fmt.Sprintf("%s %s, %d bytes, %s", p.Kind, p.MediaType, p.Size, p.Ref.Digest)
			if p.Filename != "" {
				line += ", " + p.Filename
			}
			out = append(out, line)
		case artel.ToolCall:
			out = append(out, fmt.Sprintf("call %s: %s %s", p.ID, p.Name, artel.Shorten(string(p.Arguments), 200)))
		case artel.ToolResult:
			out = append(out, fmt.Sprintf("result of %s: %s", p.CallID, artel.Shorten(p.Content, 200)))
			out = append(out, describe(p.Parts)...)
		}
	}
	return out
}
