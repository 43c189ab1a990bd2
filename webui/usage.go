// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/phrase"
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

// compacted shows what came of summing up.
func (s *stream) compacted(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.CompactionCompleted](e)
	if err != nil {
		return err
	}
	status, err := s.status(ctx)
	if err != nil {
		return err
	}
	if err := s.put(out, "status", status); err != nil {
		return err
	}
	if p.Message == nil {
		why := ""
		if p.Error != nil {
			why = p.Error.Message
		}
		return s.put(out, "toast", Toast{ID: "toast-compaction", Text: s.locale.Say(phrase.PageCompactionFailed, map[string]any{"Reason": why}), Bad: true})
	}
	m := s.message(*p.Message)
	m.Into = s.into(e)
	if e.Within == "" {
		if on, err := s.shows(ctx, m.ID); err != nil || !on {
			return err
		}
		s.leaf = m.ID
	}
	return s.put(out, "message", m)
}

// serviceChanged says that another model goes on.
func (s *stream) serviceChanged(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.ServiceChanged](e)
	if err != nil {
		return err
	}
	text := s.locale.Say(phrase.PageServiceChanged, map[string]any{
		"From": s.took(ctx, "", p.From, artel.Usage{}).Model, "To": s.took(ctx, "", p.To, artel.Usage{}).Model, "Reason": p.Reason,
	})
	return s.put(out, "toast", Toast{ID: "toast-service", Text: text})
}
