// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// Version is the version of drafts and answers of this release.
const Version = 1

// A Draft is the input of a program: the request after the preceding
// processors.
type Draft struct {
	Version      int                  `json:"version"`
	Processor    string               `json:"processor"` // the plugin's id
	Options      json.RawMessage      `json:"options,omitempty"`
	Conversation artel.ConversationID `json:"conversation_id,omitempty"`
	Agent        Agent                `json:"agent"`
	Service      Service              `json:"service"`
	User         User                 `json:"user"`
	Locale       phrase.Locale        `json:"locale,omitempty"`
	Now          time.Time            `json:"now,omitzero"`
	Board        Board                `json:"board,omitempty"`
	Messages     []Message            `json:"messages"`
}

// A Board holds values that processors of one build share, any JSON by name. An
// [Answer] sets values, and removes those that it sets to null. Processors in Go
// read it with [pipeline.Value] and replace it with [pipeline.Set]; they do not
// write into it. It is neither stored nor sent to the model.
type Board map[string]json.RawMessage

// The limits of a [Board].
const (
	maxBoardKey  = 100     // bytes of a name
	maxBoardKeys = 1000    // values
	maxBoard     = 1 << 20 // bytes of names and values
)

// with returns the board with the changes of an answer.
func (b Board) with(changes Board) (Board, error) {
	out := maps.Clone(b)
	if out == nil {
		out = Board{}
	}
	for key, value := range changes {
		if key == "" || len(key) > maxBoardKey {
			return nil, refuse("board: a name has 1 to %d bytes, and %q has %d", maxBoardKey, artel.Shorten(key, 40), len(key))
		}
		if string(value) == "null" || value == nil {
			delete(out, key)
		} else {
			out[key] = value
		}
	}
	size := 0
	for key, value := range out {
		size += len(key) + len(value)
	}
	if len(out) > maxBoardKeys || size > maxBoard {
		return nil, refuse("board: it would hold %d values of %d bytes together, and it holds at most %d of %d; remove some by setting them to null", len(out), size, maxBoardKeys, maxBoard)
	}
	return out, nil
}

// An Agent is the agent that answers.
type Agent struct {
	Name        artel.AgentName `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
}

// A Service is the destination of the request.
type Service struct {
	ID            artel.ServiceID    `json:"id,omitempty"`
	Name          string             `json:"name,omitempty"`
	Dialect       model.Dialect      `json:"dialect,omitempty"`
	Model         string             `json:"model,omitempty"`
	Capabilities  []artel.Capability `json:"capabilities"`
	ContextWindow int                `json:"context_window,omitempty"` // tokens; 0: not known
}

// A User is a user's profile.
type User struct {
	Name     string `json:"name,omitempty"`
	Persona  string `json:"persona,omitempty"`
	Language string `json:"language,omitempty"`
}

// A Message is a message of a draft. Media are refs. Opaque state of a service
// is left out and marked by Opaque.
type Message struct {
	ID        string             `json:"id"`
	Role      artel.Role         `json:"role"`
	Parts     artel.Parts        `json:"parts"`
	Agent     artel.AgentName    `json:"agent,omitempty"`
	Origin    pipeline.Origin    `json:"origin"`
	Stability pipeline.Stability `json:"stability"`
	Opaque    bool               `json:"opaque,omitempty"` // the message can be removed, but not changed
}

func draftOf(id string, options json.RawMessage, d *pipeline.Draft) Draft {
	out := Draft{
		Version: Version, Processor: id, Options: options, Conversation: d.Conversation,
		Agent: Agent{d.Agent.Name, d.Agent.Description},
		Service: Service{
			ID: d.Service.ID, Name: d.Service.Name, Dialect: d.Service.Dialect, Model: d.Service.Model,
			Capabilities: d.Service.Capabilities.Input.Value, ContextWindow: d.Service.Capabilities.ContextWindow.Value,
		},
		User:   User{d.User.Name, d.User.Persona, d.User.Language},
		Locale: d.Locale, Now: d.Now, Messages: make([]Message, len(d.Messages)),
	}
	if out.Service.Capabilities == nil {
		out.Service.Capabilities = []artel.Capability{artel.CanText}
	}
	out.Board, _ = pipeline.Value[Board](d)
	for i, m := range d.Messages {
		parts, opaque := withoutOpaque(m.Parts)
		out.Messages[i] = Message{ID: m.ID, Role: m.Role, Parts: parts, Agent: m.Agent, Origin: m.Origin, Stability: m.Stability, Opaque: opaque}
	}
	return out
}

// withoutOpaque returns the parts without opaque state of a service, and
// whether there was any.
func withoutOpaque(ps artel.Parts) (out artel.Parts, opaque bool) {
	out = make(artel.Parts, len(ps))
	for i, p := range ps {
		switch p := p.(type) {
		case artel.Reasoning:
			opaque = opaque || p.Opaque != nil
			p.Opaque = nil
			out[i] = p
		case artel.ToolCall:
			opaque = opaque || p.Opaque != nil
			p.Opaque = nil
			out[i] = p
		case artel.ToolResult:
			p.Parts, _ = withoutOpaque(p.Parts)
			out[i] = p
		default:
			out[i] = p
		}
	}
	return out, opaque
}
