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

// Usage is the usage of an answer or of a conversation.
type Usage struct {
	artel.Usage
	Message artel.MessageID // the answer
	Model   string
	URL     string // of a conversation: posts a compaction
}

// Tokens is the sum of input and output.
func (u Usage) Tokens() int64 { return u.InputTokens + u.OutputTokens }

// Money is the known cost; "": unknown. An unknown cost is never shown as zero.
func (u Usage) Money() string {
	switch usd := u.Cost.USD; {
	case u.Cost.Calls == 0 && u.Calls > 0:
		return ""
	case usd == 0:
		return "$0"
	case usd > 0 && usd < 0.0001:
		return "< $0.0001"
	case usd < 1:
		return "$" + strconv.FormatFloat(usd, 'f', 4, 64)
	default:
		return "$" + strconv.FormatFloat(usd, 'f', 2, 64)
	}
}

// Unknown is the number of calls with unknown cost.
func (u Usage) Unknown() int { return max(0, u.Calls-u.Cost.Calls) }

// runUsage is the usage of a finished run.
func (v view) runUsage(ctx context.Context, m artel.MessageID, service artel.ServiceID, u artel.Usage) *Usage {
	out := Usage{Usage: u, Message: m, Model: string(service)}
	for _, s := range v.app.Models.Services(ctx) {
		if s.ID == service {
			out.Model = cmp.Or(s.Name, out.Model)
		}
	}
	return &out
}

// total is the usage of the conversation.
func (v view) total(ctx context.Context) (Usage, error) {
	u, err := v.app.Conversations.Usage(ctx, v.conversation)
	return Usage{Usage: u, URL: conversationURL(v.conversation) + "/compact"}, err
}

// usageNow renders the usage of the conversation.
func (s *stream) usageNow(ctx context.Context, out *bytes.Buffer) error {
	u, err := s.total(ctx)
	if err != nil {
		return err
	}
	return s.put(out, "total", u)
}

// compact starts a compaction on request of the user.
func (ui *handler) compact(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxField)
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	if err == nil {
		_, err = ui.app.Runs.Compact(r.Context(), id, r.PostFormValue("focus"))
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.accepted(w, r, id)
}
