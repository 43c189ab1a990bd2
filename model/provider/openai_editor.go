// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// OpenAIServer has the methods of an [Editor] that OpenAI's dialects share.
type OpenAIServer struct{}

// ModelBody implements [Server].
func (OpenAIServer) ModelBody(s model.Service) any {
	c := s.OnWire().Capabilities
	e := openAIModel{
		ID: string(s.ID), Object: "model", OwnedBy: "artel", Name: s.Name, ContextLength: c.ContextWindow.Value,
		Architecture: architecture{Output: []string{"text"}},
	}
	for _, in := range c.Input.Value {
		word := in
		if in == artel.CanVision {
			word = "image" // the usual name
		}
		e.Architecture.Input = append(e.Architecture.Input, word)
	}
	return e
}

// ModelsBody implements [Server].
func (s OpenAIServer) ModelsBody(all []model.Service) any {
	return map[string]any{"object": "list", "data": EachModel(all, s.ModelBody)}
}

// ErrorBody implements [AnswerWriter].
func (OpenAIServer) ErrorBody(f Fault) []byte {
	e := OpenAIError{Status: f.Status, Message: f.Message, Type: f.Kind}
	if e.Type == "" {
		e.Type = OpenAIErrorType(f.Status)
	}
	code := f.Code
	if f.Call != nil {
		code = OpenAICode(f.Call)
	}
	if code != "" {
		e.Code = &code
	}
	if f.Param != "" {
		e.Param = &f.Param
	}
	return e.MarshalBody()
}

// IsError implements [AnswerWriter].
func (OpenAIServer) IsError(body []byte) bool {
	return gjson.GetBytes(body, "error.message").Type == gjson.String
}

// KeepAlive implements [AnswerWriter]: a comment, because several libraries fail on the
// "keepalive" events that the API of Responses itself sends.
func (OpenAIServer) KeepAlive() []byte { return []byte(": keep-alive\n\n") }

// An openAIModel is an element of GET /v1/models of OpenAI, extended as
// OpenRouter does.
type openAIModel struct {
	ID            string       `json:"id"`
	Object        string       `json:"object"`
	Created       int64        `json:"created"` // unknown: 0
	OwnedBy       string       `json:"owned_by"`
	Name          string       `json:"name,omitempty"`
	ContextLength int          `json:"context_length,omitempty"`
	Architecture  architecture `json:"architecture"`
}

type architecture struct {
	Input  []artel.Capability `json:"input_modalities"`
	Output []string           `json:"output_modalities"`
}

// OpenAIRole returns the role of a message of OpenAI's dialects.
func OpenAIRole(role string) artel.Role {
	if role == "developer" {
		return artel.RoleSystem
	}
	return artel.Role(role)
}

// OpenAIFault returns an error of OpenAI's dialects as a [*Fault], and others unchanged.
func OpenAIFault(err error) error {
	if e, ok := errors.AsType[*OpenAIError](err); ok {
		f := &Fault{Status: e.Status, Message: e.Message, Kind: e.Type}
		if e.Code != nil {
			f.Code = *e.Code
		}
		if e.Param != nil {
			f.Param = *e.Param
		}
		return f
	}
	return err
}
