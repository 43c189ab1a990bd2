// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A Prefix has the hashes of the beginnings of a conversation that a client has sent as a whole, by
// which what is stored of it is found. They are made of what clients send back: roles, texts, calls,
// results and bytes of media, without reasoning, and of the texts of answers without their spaces.
type Prefix struct {
	sums []string // of the first n messages
	role []artel.Role
}

// NewPrefix returns that of messages without instructions.
func NewPrefix(messages []model.Message) Prefix {
	p := Prefix{sums: []string{""}}
	for _, m := range messages {
		p = p.with(m)
	}
	return p
}

// with returns p with another message.
func (p Prefix) with(m model.Message) Prefix {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", p.sums[len(p.sums)-1], m.Role)
	text := artel.TextOf(m.Parts)
	if m.Role == artel.RoleAssistant {
		text = strings.Join(strings.Fields(text), " ")
	}
	fmt.Fprintf(h, "%q\n", text)
	hashParts(h, m.Parts)
	return Prefix{append(p.sums[:len(p.sums):len(p.sums)], hex.EncodeToString(h.Sum(nil))), append(p.role[:len(p.role):len(p.role)], m.Role)}
}

func hashParts(h hash.Hash, parts artel.Parts) {
	for _, part := range parts {
		switch part := part.(type) {
		case artel.Media:
			fmt.Fprintf(h, "media %s\n", part.Ref.Digest)
		case artel.ToolCall:
			fmt.Fprintf(h, "call %q %q %s\n", part.ID, part.Name, canonical(part.Arguments))
		case artel.ToolResult:
			fmt.Fprintf(h, "result %q %q\n", part.CallID, part.Content)
			hashParts(h, part.Parts)
		}
	}
}

// canonical returns JSON with sorted keys and without spaces, or a text that is none as it is.
func canonical(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(b)
}

// A Said collects an answer as it is stored. The zero value is empty.
type Said struct {
	parts   artel.Parts
	service artel.ServiceID
	text    strings.Builder
	thought bool // text is reasoning
}

// Add takes the next delta of an answer of a service.
func (s *Said) Add(by artel.ServiceID, d model.Delta) {
	s.service = by
	switch d := d.(type) {
	case model.TextDelta:
		s.write(false, string(d))
	case model.ReasoningDelta:
		s.write(true, string(d))
	case model.ReasoningDone:
		if !s.thought {
			s.end(nil)
		}
		s.thought = true
		s.end(d.Opaque)
	case model.CallDelta:
		s.end(nil)
		s.parts = append(s.parts, artel.ToolCall(d))
	}
}

func (s *Said) write(thought bool, text string) {
	if s.thought != thought {
		s.end(nil)
	}
	s.thought = thought
	s.text.WriteString(text)
}

// end completes the current text. opaque is the state of reasoning.
func (s *Said) end(opaque json.RawMessage) {
	switch text := s.text.String(); {
	case s.thought && (text != "" || len(opaque) > 0):
		s.parts = append(s.parts, artel.Reasoning{Text: text, Opaque: opaque, Service: s.service})
	case !s.thought && text != "":
		s.parts = append(s.parts, artel.Text{Text: text})
	}
	s.text.Reset()
	s.thought = false
}

// Parts returns the answer.
func (s *Said) Parts() artel.Parts {
	s.end(nil)
	return s.parts
}

func (s *Said) message() model.Message {
	return model.Message{Role: artel.RoleAssistant, Parts: s.Parts()}
}

// notePrefix is the kind of the notes that say which message a conversation of a client ends with.
const notePrefix = "prefix"

// Remember keeps that the conversation of p ends with an answer, so that [Turns.Known] finds it.
func (ts *Turns) Remember(ctx context.Context, p Prefix, answer *Said, t Turn) error {
	all := p.with(answer.message())
	parts := ts.a.Parts()
	r, err := ts.a.Runs.Find(ctx, t.Run.ID)
	if err != nil {
		return err
	}
	return parts.Store.Update(context.WithoutCancel(ctx), artel.OwnerOf(ctx), func(tx store.Tx) error {
		id := notePrefix + "/" + all.sums[len(all.sums)-1]
		if _, err := tx.Notes.Get(id); err == nil { // it is the same conversation, as far as the client can tell
			return nil
		}
		return tx.Notes.Put(store.Note{
			ID: id, Conversation: r.Conversation, Run: r.ID, Message: r.Reply,
			Kind: notePrefix, Body: json.RawMessage("{}"), CreatedAt: parts.Now(),
		})
	})
}

// Known finds the longest beginning of a conversation that is stored: its last message, and the
// number of messages of p that it has; 0: none is stored.
func (ts *Turns) Known(ctx context.Context, p Prefix) (c artel.ConversationID, at artel.MessageID, n int, err error) {
	err = ts.a.Parts().Store.View(ctx, artel.OwnerOf(ctx), func(tx store.Tx) error {
		for k := len(p.role) - 1; k > 0; k-- { // at least one message is new
			if p.role[k-1] != artel.RoleAssistant {
				continue
			}
			note, err := tx.Notes.Get(notePrefix + "/" + p.sums[k])
			if err == nil {
				_, err = tx.Messages.Get(note.Message)
			}
			if err == nil {
				_, err = tx.Conversations.Get(note.Conversation)
			}
			if errors.Is(err, artel.NotFound) {
				continue
			}
			if err == nil {
				c, at, n = note.Conversation, note.Message, k
			}
			return err
		}
		return nil
	})
	return c, at, n, err
}
