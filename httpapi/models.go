// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
)

// A ServiceView is a configured model endpoint as clients see it: never with
// its key. Sources says who stated each fact,
// under its name here, inner names after a point.
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
	Refuses       []string                  `json:"refuses,omitempty"` // media types that were seen to be refused
	Limits        ServiceLimits             `json:"limits"`
	Placement     ServicePlacement          `json:"placement"`
	Transport     []app.Transport           `json:"transport,omitempty"`
	Tokenizer     string                    `json:"tokenizer,omitempty"`
	ContextWindow int                       `json:"context_window,omitempty"` // tokens
	MaxOutput     int                       `json:"max_output,omitempty"`     // tokens
	Tags          []string                  `json:"tags,omitempty"`
	Problem       string                    `json:"problem,omitempty"` // why it cannot be called, though it was meant to be
	Origin        string                    `json:"origin"`
	Sources       map[string]app.Provenance `json:"sources"`
}

// ServiceLimits are the limits of a service; 0: none is known.
type ServiceLimits struct {
	ItemBytes    int64 `json:"item_bytes,omitempty"`    // of a media part, before it is encoded
	RequestBytes int64 `json:"request_bytes,omitempty"` // of a whole request
	Side         int   `json:"side,omitempty"`          // pixels along the longer side of an image
	Images       int   `json:"images,omitempty"`        // in a request
	Pages        int   `json:"pages,omitempty"`         // of a PDF
}

// ServicePlacement says where media may stand; absent: nobody knows.
type ServicePlacement struct {
	ToolImage     *bool `json:"tool_image,omitempty"`      // images in tool results
	ToolFile      *bool `json:"tool_file,omitempty"`       // other media in tool results
	UserAfterTool *bool `json:"user_after_tool,omitempty"` // a user message after a tool result
}

// stated returns what somebody said, nil where nobody did.
func stated(f app.Stated) *bool {
	if f.Source == "" {
		return nil
	}
	return &f.Value
}

// ServiceViewOf shapes a service; def is the default one's id.
func ServiceViewOf(s app.Service, def artel.ServiceID) ServiceView {
	c := s.Capabilities
	v := ServiceView{
		ID: s.ID, Name: s.Name, Dialect: string(s.Dialect), Model: s.Model, Callable: s.Callable(), Default: s.ID == def,
		Demo: s.Demo(), Input: c.Input.Value, Accepts: c.Accepts.Value, Refuses: c.Refuses.Value,
		Limits: ServiceLimits{
			ItemBytes: c.MaxItemBytes.Value, RequestBytes: c.MaxRequestBytes.Value,
			Side: c.MaxSide.Value, Images: c.MaxImages.Value, Pages: c.MaxPages.Value,
		},
		Placement: ServicePlacement{stated(c.ToolImage), stated(c.ToolFile), stated(c.UserAfterTool)},
		Transport: c.Transport.Value, Tokenizer: c.Tokenizer.Value,
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
	note("refuses", c.Refuses.Source)
	note("limits.item_bytes", c.MaxItemBytes.Source)
	note("limits.request_bytes", c.MaxRequestBytes.Source)
	note("limits.side", c.MaxSide.Source)
	note("limits.images", c.MaxImages.Source)
	note("limits.pages", c.MaxPages.Source)
	note("placement.tool_image", c.ToolImage.Source)
	note("placement.tool_file", c.ToolFile.Source)
	note("placement.user_after_tool", c.UserAfterTool.Source)
	note("transport", c.Transport.Source)
	note("tokenizer", c.Tokenizer.Source)
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
