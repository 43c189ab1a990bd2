// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/store"
)

// An EventWriter appends payloads to the logs of conversations. Tool arguments
// longer than Limit bytes are shortened; the message has all of them.
type EventWriter struct {
	Log   *event.Log
	Limit int // 0: [tool.DefaultShownBytes]
	Now   func() time.Time
}

// Append writes payloads to the log of c inside the caller's transaction. from
// has their run, agent and thread.
func (w EventWriter) Append(tx store.Tx, c artel.ConversationID, from artel.Event, payloads ...artel.Payload) error {
	events := make([]artel.Event, len(payloads))
	for i, p := range payloads {
		e, err := artel.NewEvent(from.Run, from.Agent, w.Now(), w.shown(p))
		if err != nil {
			return err
		}
		e.Within = from.Within
		events[i] = e
	}
	_, err := w.Log.AppendTx(tx, c, events...)
	return err
}

// shown returns a payload as the log has it: arguments of tools that
// are longer than events are to be are cut, since the message and the artifact
// have all of them.
func (w EventWriter) shown(p artel.Payload) artel.Payload {
	limit := cmp.Or(w.Limit, tool.DefaultShownBytes)
	switch p := p.(type) {
	case artel.ToolStarted:
		p.Arguments = shortened(p.Arguments, limit)
		return p
	case artel.MessageCompleted:
		var parts artel.Parts
		for i, part := range p.Message.Parts {
			if c, ok := part.(artel.ToolCall); ok && len(c.Arguments) > limit {
				if parts == nil {
					parts = append(parts, p.Message.Parts...)
				}
				c.Arguments = shortened(c.Arguments, limit)
				parts[i] = c
			}
		}
		if parts != nil {
			p.Message.Parts = parts
		}
		return p
	}
	return p
}

// shortened cuts the long texts in arguments that are longer than limit.
func shortened(args json.RawMessage, limit int) json.RawMessage {
	if len(args) <= limit {
		return args
	}
	var v any
	decoder := json.NewDecoder(bytes.NewReader(args))
	decoder.UseNumber() // large numbers stay exact
	if decoder.Decode(&v) == nil {
		if b, err := json.Marshal(cutTexts(v)); err == nil && len(b) <= limit {
			return b
		}
	}
	b, err := json.Marshal(map[string]any{"omitted_bytes": len(args)})
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// cutLength is how much of a long text an event shows, in characters.
const cutLength = 1000

func cutTexts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = cutTexts(x)
		}
	case []any:
		for i, x := range v {
			v[i] = cutTexts(x)
		}
	case string:
		if n := utf8.RuneCountInString(v); n > 2*cutLength {
			return string([]rune(v)[:cutLength]) + "… [" + strconv.Itoa(n) + " characters]"
		}
	}
	return v
}
