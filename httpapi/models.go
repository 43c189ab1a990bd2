// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
)

// A ServiceView is a configured model endpoint as clients see it: never with
// its key. Sources says where each fact was learnt.
type ServiceView struct {
	ID            artel.ServiceID           `json:"id"`
	Name          string                    `json:"name"`
	Dialect       string                    `json:"dialect"`
	Model         string                    `json:"model"`
	Callable      bool                      `json:"callable"` // false: it serves for routing only
	Default       bool                      `json:"default,omitempty"`
	Demo          bool                      `json:"demo,omitempty"` // its answers are scripted
	Input         []artel.Capability        `json:"input"`
	Accepts       []string                  `json:"accepts,omitempty"`
	ContextWindow int                       `json:"context_window,omitempty"` // tokens
	MaxOutput     int                       `json:"max_output,omitempty"`     // tokens
	Tags          []string                  `json:"tags,omitempty"`
	Problem       string                    `json:"problem,omitempty"` // why it cannot be called, though it was meant to be
	Origin        string                    `json:"origin"`
	Sources       map[string]app.Provenance `json:"sources"`
}

// ServiceViewOf shapes a service; def is the default one's id.
func ServiceViewOf(s app.Service, def artel.ServiceID) ServiceView {
	c := s.Capabilities
	v := ServiceView{
		ID: s.ID, Name: s.Name, Dialect: string(s.Dialect), Model: s.Model, Callable: s.Callable(), Default: s.ID == def,
		Demo: s.Demo(), Input: c.Input.Value, Accepts: c.Accepts.Value,
		ContextWindow: c.ContextWindow.Value, MaxOutput: c.MaxOutput.Value, Tags: s.Tags, Problem: s.Problem, Origin: s.Origin,
		Sources: map[string]app.Provenance{},
	}
	note := func(name string, p app.Provenance) {
		if p != "" {
			v.Sources[name] = p
		}
	}
	note("input", c.Input.Source)
	note("accepts", c.Accepts.Source)
	note("context_window", c.ContextWindow.Source)
	note("max_output", c.MaxOutput.Source)
	return v
}

func (f *face) models() {
	register(f, f.op(http.MethodGet, "/findings", "list-findings", "List where models were looked for and what came of it, in codes and values", http.StatusOK),
		func(ctx context.Context, _ *none) (*body[List[app.Finding]], error) {
			return answer(listOf(f.app.Models.Findings(ctx), ""), nil)
		})
	register(f, f.op(http.MethodGet, "/services", "list-services", "List the services with what is known of them and from where", http.StatusOK),
		func(ctx context.Context, _ *none) (*body[List[ServiceView]], error) {
			def := f.app.Models.Default(ctx).ID
			var items []ServiceView
			for _, s := range f.app.Models.Services(ctx) {
				items = append(items, ServiceViewOf(s, def))
			}
			return answer(listOf(items, ""), nil)
		})
}
