// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/artelhq/artel"
)

// Usage is what an answer took, or a conversation.
type Usage struct {
	artel.Usage
	Message artel.MessageID // the answer
	Model   string
	URL     string // of a conversation: where it is compacted
}

// Tokens is how many there were, both ways.
func (u Usage) Tokens() int64 { return u.InputTokens + u.OutputTokens }

// Money is what is known of the cost; "": nothing is. What is not known is
// never nothing.
func (u Usage) Money() string {
	switch usd := u.Cost.USD; {
	case u.Cost.Calls == 0:
		return ""
	case usd > 0 && usd < 0.0001:
		return "< $0.0001"
	case usd < 1:
		return "$" + strconv.FormatFloat(usd, 'f', 4, 64)
	default:
		return "$" + strconv.FormatFloat(usd, 'f', 2, 64)
	}
}

// Unknown is of how many calls the cost is not known.
func (u Usage) Unknown() int { return max(0, u.Calls-u.Cost.Calls) }

// took is what a run that has ended took.
func (v view) took(ctx context.Context, m artel.MessageID, service artel.ServiceID, u artel.Usage) *Usage {
	out := Usage{Usage: u, Message: m, Model: string(service)}
	for _, s := range v.app.Models.Services(ctx) {
		if s.ID == service {
			out.Model = cmp.Or(s.Name, out.Model)
		}
	}
	return &out
}

// total is what the conversation took so far.
func (v view) total(ctx context.Context) (Usage, error) {
	u, err := v.app.Conversations.Usage(ctx, v.conversation)
	return Usage{Usage: u, URL: conversationURL(v.conversation) + "/compact"}, err
}

// usageNow tells what the conversation took so far.
func (s *stream) usageNow(ctx context.Context, out *bytes.Buffer) error {
	u, err := s.total(ctx)
	if err != nil {
		return err
	}
	return s.put(out, "total", u)
}

// compact sums up a conversation because somebody wants that.
func (ui *face) compact(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	if err == nil {
		_, err = ui.app.Runs.Compact(r.Context(), id)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.told(w, r, id)
}
