// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// CallID fits ids that other services chose to at most limit bytes, always in
// the same way, so that call and result still agree.
func CallID(id artel.CallID, limit int) string {
	if n := len(id); n > 0 && n <= limit {
		return string(id)
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

// NewCallID names a call for servers that do not.
func NewCallID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return "call_" + hex.EncodeToString(b[:])
}

// SentArguments returns a call's arguments as a JSON object. What a model wrote
// where it should have written one is kept inside, for servers parse it.
func SentArguments(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return "{}"
	case raw[0] == '{' && json.Valid(raw):
		return string(raw)
	}
	var text any = string(raw)
	if s := ""; json.Unmarshal(raw, &s) == nil {
		text = s
	}
	wrapped, err := json.Marshal(map[string]any{"invalid_arguments": text})
	if err != nil { // of a string
		return "{}"
	}
	return string(wrapped)
}

// ReceivedArguments returns s if it is JSON, else s as a JSON string.
func ReceivedArguments(s string) json.RawMessage {
	switch {
	case strings.TrimSpace(s) == "":
		return json.RawMessage("{}")
	case json.Valid([]byte(s)):
		return json.RawMessage(s)
	}
	quoted, err := json.Marshal(s)
	if err != nil { // of a string
		return json.RawMessage("{}")
	}
	return quoted
}

// AskForJSON returns messages in which the word JSON occurs: OpenAI's APIs
// refuse to promise any JSON object to those who do not speak of it.
func AskForJSON(messages []model.Message) []model.Message {
	for _, m := range messages {
		for _, p := range m.Parts {
			text := ""
			switch p := p.(type) {
			case artel.Text:
				text = p.Text
			case artel.ToolResult:
				text = p.Content
			}
			if strings.Contains(strings.ToLower(text), "json") {
				return messages
			}
		}
	}
	ask := model.Message{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "Answer with a JSON object."}}}
	return append([]model.Message{ask}, messages...)
}
