// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/provider"
)

// SignaturePrefix begins the signature of a thinking block that an [Answer] wrote
// for reasoning without a signature of this dialect. No service accepts it as its
// own.
const SignaturePrefix = "artel."

// The state of reasoning is the unchanged block, except that the text of a thinking
// block is in [artel.Reasoning].Text:
//
//	{"type":"thinking","signature":"…"}
//	{"type":"redacted_thinking","data":"…"}
//	{"type":"server_tool_use",…}, and other blocks of tools at the service
//
// The state of a call is its caller: {"caller":…}, {"toolset_name":…}.

// state is the state of reasoning, as far as it is read.
type state struct {
	Type      string  `json:"type"`
	Signature *string `json:"signature,omitempty"`
	Data      *string `json:"data,omitempty"`
	ID        string  `json:"id,omitempty"`
	ToolUseID string  `json:"tool_use_id,omitempty"`
}

// thinkingState is the state of a thinking block; nil without a signature.
func thinkingState(signature string) json.RawMessage {
	if signature == "" {
		return nil
	}
	return provider.MustMarshal(state{Type: "thinking", Signature: &signature})
}

// readState returns opaque as state of this dialect, if it is.
func readState(opaque json.RawMessage) (s state, ok bool) {
	if json.Unmarshal(opaque, &s) != nil {
		return s, false
	}
	switch {
	case s.Type == "thinking":
		return s, s.Signature != nil && *s.Signature != ""
	case s.Type == "redacted_thinking":
		return s, s.Data != nil && *s.Data != ""
	}
	return s, ofService(s.Type)
}

// foreignState is the state of reasoning inside a signature.
type foreignState struct {
	Service artel.ServiceID `json:"s,omitempty"`
	Opaque  json.RawMessage `json:"o,omitempty"`
}

// wrap returns a signature that contains state of another dialect.
func wrap(service artel.ServiceID, opaque json.RawMessage) string {
	return SignaturePrefix + base64.RawURLEncoding.EncodeToString(provider.MustMarshal(foreignState{service, opaque}))
}

// reasoningOf returns the reasoning of a thinking block.
func reasoningOf(b Block) artel.Reasoning {
	if b.Type == "redacted_thinking" {
		return artel.Reasoning{Opaque: provider.MustMarshal(state{Type: b.Type, Data: &b.Data})}
	}
	rest, ok := strings.CutPrefix(b.Signature, SignaturePrefix)
	if !ok {
		return artel.Reasoning{Text: b.Thinking, Opaque: thinkingState(b.Signature)}
	}
	var f foreignState
	if data, err := base64.RawURLEncoding.DecodeString(rest); err != nil || json.Unmarshal(data, &f) != nil {
		return artel.Reasoning{Text: b.Thinking}
	}
	if string(f.Opaque) == "null" {
		f.Opaque = nil
	}
	return artel.Reasoning{Text: b.Thinking, Opaque: f.Opaque, Service: f.Service}
}

// caller is the state of a tool_use block.
type caller struct {
	Caller      json.RawMessage `json:"caller,omitempty"`
	ToolsetName string          `json:"toolset_name,omitempty"`
}

func (b Block) caller() json.RawMessage {
	var by struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(b.Caller, &by) // other JSON names no caller
	if by.Type == "" || by.Type == "direct" {
		b.Caller = nil // the model itself, as usual
	}
	if b.Caller == nil && b.ToolsetName == "" {
		return nil
	}
	return provider.MustMarshal(caller{b.Caller, b.ToolsetName})
}

// setCaller restores the state of a call.
func (b *Block) setCaller(opaque json.RawMessage) {
	var c caller
	if len(opaque) > 0 && json.Unmarshal(opaque, &c) == nil {
		b.Caller, b.ToolsetName = c.Caller, c.ToolsetName
	}
}
