// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// models lists the services that the key may use, or describes one.
func (s *server) models(w http.ResponseWriter, r *http.Request, id string) {
	x := s.begin(w, r, spoken(r))
	x.finish(x.list(id))
}

func (x *exchange) list(id string) error {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		x.w.Header().Set("Allow", "GET, HEAD")
		return &fault{status: http.StatusMethodNotAllowed, message: "Not allowed to " + x.r.Method + " on " + x.r.URL.Path}
	}
	leave, err := x.admit()
	if err != nil {
		return err
	}
	defer leave()
	ctx := x.r.Context()
	if id != "" {
		for _, s := range x.app.Services(ctx, x.key) {
			if string(s.ID) == id {
				return x.reply(chatModel(s))
			}
		}
		return noModel(id)
	}
	entries := []modelEntry{}
	for _, s := range x.app.Services(ctx, x.key) {
		entries = append(entries, chatModel(s))
	}
	return x.reply(map[string]any{"object": "list", "data": entries})
}

func (x *exchange) reply(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return artel.Errorf(artel.Internal, "gateway", x.entry.Endpoint, "%w", err)
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.told = true
	n, err := x.w.Write(body)
	x.entry.BytesOut = int64(n)
	return clientGone(err)
}

// A modelEntry is an element of GET /v1/models of OpenAI, which says nothing of
// what a model takes; the rest says it as OpenRouter does.
type modelEntry struct {
	ID            string       `json:"id"`
	Object        string       `json:"object"`
	Created       int64        `json:"created"` // nobody knows: the epoch
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
			word = "image" // as everybody else calls it
		}
		e.Architecture.Input = append(e.Architecture.Input, word)
	}
	return e
}
