// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/phrase"
	"github.com/artelhq/artel/sse"
)

const heartbeat = 15 * time.Second

// live streams fragments: unnamed frames whose id is the number of the event
// that they show, and whose data is HTML.
func (ui *face) live(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	if err == nil {
		_, err = ui.app.Conversations.Find(r.Context(), id)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if n, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		after = n
	}
	out, err := sse.NewWriter(w)
	if err != nil {
		return
	}
	s := &stream{face: ui, conversation: id, locale: locale(r), cards: map[artel.CallID]Call{}}
	for e, err := range ui.app.Events.Follow(r.Context(), id, artel.Seq(max(after, 0)), heartbeat) {
		if err == nil {
			err = s.send(r.Context(), out, e)
		}
		if err != nil {
			if r.Context().Err() == nil && artel.KindOf(err) != artel.Canceled {
				ui.o.Log.Error("a page's stream ended", "conversation", id, "err", err)
			}
			return // the browser connects again with what it has
		}
	}
}

// send shows one event; one that changes nothing on the page only moves its
// number on.
func (s *stream) send(ctx context.Context, out *sse.Writer, e artel.Event) error {
	if e.Type == "" {
		return out.KeepAlive()
	}
	var html bytes.Buffer
	if err := s.fragments(ctx, &html, e); err != nil {
		return err
	}
	frame := sse.Event{Data: html.String()}
	if e.Seq > 0 {
		frame.ID = strconv.FormatInt(int64(e.Seq), 10)
	}
	return out.Send(frame)
}

// A stream renders one browser's fragments.
type stream struct {
	*face
	conversation artel.ConversationID
	locale       phrase.Locale

	writing artel.MessageID // whose text so far is
	text    strings.Builder
	cards   map[artel.CallID]Call
}

func (s *stream) render(out *bytes.Buffer, name string, data any) error {
	return s.pages[s.locale]().ExecuteTemplate(out, name, data)
}

// fragments renders what an event changes on the page.
func (s *stream) fragments(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	switch e.Type {
	case artel.EventRunStarted:
		return s.render(out, "status", Status{Run: e.Run, Active: true})
	case artel.EventUserInput:
		p, err := payload[artel.UserInput](e)
		if err != nil {
			return err
		}
		if err := s.render(out, "message", messageOf(s.conversation, p.Message)); err != nil {
			return err
		}
		return s.panelNow(ctx, out) // the files that it brought
	case artel.EventMessageDelta:
		p, err := payload[artel.MessageDelta](e)
		if err != nil {
			return err
		}
		if p.Reset || p.Message != s.writing {
			s.writing = p.Message
			s.text.Reset()
		}
		s.text.WriteString(p.Text)
		return s.render(out, "message", Message{
			ID: p.Message, Role: artel.RoleAssistant, Writing: true, Body: markdown(s.conversation, s.text.String()),
		})
	case artel.EventMessageCompleted:
		p, err := payload[artel.MessageCompleted](e)
		if err != nil {
			return err
		}
		m := messageOf(s.conversation, p.Message)
		m.Partial = p.Partial
		for _, c := range m.Calls {
			s.cards[c.ID] = c
		}
		return s.render(out, "message", m)
	case artel.EventToolStarted:
		p, err := payload[artel.ToolStarted](e)
		if err != nil {
			return err
		}
		s.cards[p.Call] = callOf(p.Call, p.Name, p.Arguments)
		return s.render(out, "call", s.cards[p.Call])
	case artel.EventToolCompleted:
		return s.toolCompleted(ctx, out, e)
	case artel.EventArtifactCreated, artel.EventArtifactUpdated:
		return s.panelNow(ctx, out)
	case artel.EventRunFinished:
		return s.runFinished(ctx, out, e)
	}
	return nil
}

func (s *stream) toolCompleted(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.ToolCompleted](e)
	if err != nil {
		return err
	}
	card, ok := s.cards[p.Call]
	if !ok {
		// The browser connected after the call; its card is on the page already.
		if card, err = s.recall(ctx, p); err != nil {
			return err
		}
	}
	for _, part := range p.Message.Parts {
		if res, ok := part.(artel.ToolResult); ok {
			card.finish(res)
		}
	}
	delete(s.cards, p.Call)
	return s.render(out, "call", card)
}

// recall makes the card of a call out of the messages before its result.
func (s *stream) recall(ctx context.Context, p artel.ToolCompleted) (Call, error) {
	branch, err := s.app.Conversations.Branch(ctx, s.conversation, p.Message.Parent)
	if err != nil {
		return Call{}, err
	}
	for _, m := range slices.Backward(branch) {
		for _, part := range m.Parts {
			if c, ok := part.(artel.ToolCall); ok && c.ID == p.Call {
				return callOf(c.ID, c.Name, c.Arguments), nil
			}
		}
	}
	return callOf(p.Call, p.Name, json.RawMessage("{}")), nil
}

func (s *stream) runFinished(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.RunFinished](e)
	if err != nil {
		return err
	}
	if err := s.render(out, "status", Status{Run: e.Run}); err != nil {
		return err
	}
	if p.Error != nil {
		if err := s.render(out, "notice", Notice{ID: e.Run, Text: p.Error.Message}); err != nil {
			return err
		}
	}
	return s.panelNow(ctx, out)
}

func (s *stream) panelNow(ctx context.Context, out *bytes.Buffer) error {
	p, err := s.panel(ctx, s.conversation, s.locale)
	if err != nil {
		return err
	}
	return s.render(out, "panel", p)
}

func payload[P artel.Payload](e artel.Event) (P, error) {
	var p P
	err := json.Unmarshal(e.Data, &p)
	return p, err
}
