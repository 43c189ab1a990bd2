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
)

// CallID returns id if it has 1 to limit bytes, or a hash of it. The result is
// always the same, so that calls and results still match.
func CallID(id artel.CallID, limit int) string {
	if n := len(id); n > 0 && n <= limit {
		return string(id)
	}
	return HashID("call_", id)
}

// HashID returns an id made of a hash of id, always the same one.
func HashID(prefix string, id artel.CallID) string {
	sum := sha256.Sum256([]byte(id))
	return prefix + hex.EncodeToString(sum[:12])
}

// NewCallID returns a random id for a call that its server gave none.
func NewCallID(prefix string) artel.CallID {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return artel.CallID(prefix + hex.EncodeToString(b[:]))
}

// ErrorText returns the text of a result for APIs that cannot mark it as an error: it
// says that the call failed, if nothing in its first words does.
func ErrorText(r artel.ToolResult) string {
	switch head := strings.ToLower(artel.Shorten(r.Content, 200)); {
	case !r.IsError, strings.Contains(head, "error"), strings.Contains(head, "fail"):
		return r.Content
	case strings.TrimSpace(r.Content) == "" && len(r.Parts) == 0:
		return "Error: the tool failed and returned no text."
	}
	return "Error: " + r.Content
}

// SplitParts returns the texts and the media among parts.
func SplitParts(parts artel.Parts) (texts []string, media artel.Parts) {
	for _, p := range parts {
		switch p := p.(type) {
		case artel.Text:
			texts = append(texts, p.Text)
		case artel.Media:
			media = append(media, p)
		}
	}
	return texts, media
}

// SentArguments returns the arguments of a call as a JSON object. Arguments that are
// none are wrapped in one as "invalid_arguments", because servers parse them.
func SentArguments(raw json.RawMessage) string {
	return string(ArgumentsObject(raw, json.Marshal))
}

// ArgumentsObject is [SentArguments] with a choice of how invalid arguments are
// written.
func ArgumentsObject(raw json.RawMessage, marshal func(any) ([]byte, error)) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return json.RawMessage("{}")
	case raw[0] == '{' && json.Valid(raw):
		return raw
	}
	var text any = string(raw)
	if s := ""; json.Unmarshal(raw, &s) == nil {
		text = s
	}
	wrapped, err := marshal(map[string]any{"invalid_arguments": text})
	if err != nil { // of a string
		return json.RawMessage("{}")
	}
	return wrapped
}

// ReceivedArguments returns s if it is JSON, or s as a JSON string. Empty arguments
// become {}.
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
