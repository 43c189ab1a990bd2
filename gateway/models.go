// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// serveModels lists the services that the key may use, or describes one.
func (s *server) serveModels(w http.ResponseWriter, r *http.Request, d dialect, id string) {
	x := s.newExchange(w, r, d)
	x.finish(x.listModels(id))
}

func (x *exchange) listModels(id string) error {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		x.w.Header().Set("Allow", "GET, HEAD")
		return notAllowed(x.r)
	}
	leave, err := x.admit()
	if err != nil {
		return err
	}
	defer leave()
	all := x.gw.backend.Services(x.r.Context(), x.key)
	if id != "" {
		for _, s := range all {
			if string(s.ID) == id {
				return x.writeJSON(describeModel(x.d, s))
			}
		}
		return modelNotFound(id)
	}
	entries := make([]any, 0, len(all))
	for _, s := range all {
		entries = append(entries, describeModel(x.d, s))
	}
	return x.writeJSON(modelList(x.d, all, entries))
}

// A modelEntry is an element of GET /v1/models of OpenAI, extended as
// OpenRouter does.
type modelEntry struct {
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

func chatModel(s model.Service) modelEntry {
	c := s.OnWire().Capabilities
	e := modelEntry{
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

// describeModel describes a service as a dialect describes models.
func describeModel(d dialect, s model.Service) any {
	switch d.name() {
	case model.Anthropic:
		return anthropicModel(s)
	case model.Gemini:
		return geminiModel(s)
	}
	return chatModel(s)
}

// modelList returns the list of entries in the format of a dialect.
func modelList(d dialect, all []model.Service, entries []any) any {
	switch d.name() {
	case model.Anthropic:
		out := map[string]any{"data": entries, "has_more": false, "first_id": nil, "last_id": nil}
		if n := len(all); n > 0 {
			out["first_id"], out["last_id"] = all[0].ID, all[n-1].ID
		}
		return out
	case model.Gemini:
		return map[string]any{"models": entries}
	}
	return map[string]any{"object": "list", "data": entries}
}

// anthropicModel is an element of GET /v1/models of Anthropic.
func anthropicModel(s model.Service) any {
	c := s.OnWire().Capabilities
	supports := func(yes bool) map[string]bool { return map[string]bool{"supported": yes} }
	out := map[string]any{
		"type": "model", "id": s.ID, "display_name": s.Name, "created_at": "1970-01-01T00:00:00Z", // unknown
		"capabilities": map[string]any{
			"image_input": supports(c.Takes(artel.CanVision, "image/png")), "pdf_input": supports(c.Takes(artel.CanFile, "application/pdf")),
		},
	}
	if n := c.ContextWindow.Value; n > 0 {
		out["max_input_tokens"] = n
	}
	if n := c.MaxOutput.Value; n > 0 {
		out["max_tokens"] = n
	}
	return out
}

// geminiModel is an element of GET /v1beta/models of Gemini.
func geminiModel(s model.Service) any {
	c := s.OnWire().Capabilities
	return map[string]any{
		"name": "models/" + string(s.ID), "baseModelId": s.ID, "version": "1", "displayName": s.Name, "description": s.Description,
		"inputTokenLimit": c.ContextWindow.Value, "outputTokenLimit": c.MaxOutput.Value,
		"supportedGenerationMethods": []string{"generateContent", "countTokens"},
	}
}
