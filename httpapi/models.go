// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/probe"
)

// A ServiceView is a configured model endpoint without its key. Sources has the
// origin of each fact under its JSON name, nested names joined by a dot.
type ServiceView struct {
	ID            artel.ServiceID             `json:"id"`
	Name          string                      `json:"name"`
	Dialect       string                      `json:"dialect"`
	Model         string                      `json:"model"`
	Callable      bool                        `json:"callable"` // false: only for routing
	Default       bool                        `json:"default,omitempty"`
	Demo          bool                        `json:"demo,omitempty"` // its answers are scripted
	Input         []artel.Capability          `json:"input"`
	Accepts       []string                    `json:"accepts,omitempty"`
	Refuses       []string                    `json:"refuses,omitempty"` // media types that were refused
	Limits        ServiceLimits               `json:"limits"`
	Placement     ServicePlacement            `json:"placement"`
	Transport     []model.Transport           `json:"transport,omitempty"`
	Tokenizer     string                      `json:"tokenizer,omitempty"`
	TokenRatio    float64                     `json:"token_ratio,omitempty" doc:"how many tokens it reports for each that is counted, where that was learned; counts are corrected by it"`
	ContextWindow int                         `json:"context_window,omitempty"` // tokens
	MaxOutput     int                         `json:"max_output,omitempty"`     // tokens
	Tags          []string                    `json:"tags,omitempty"`
	Problem       string                      `json:"problem,omitempty"` // why it cannot be called
	Origin        string                      `json:"origin"`
	Sources       map[string]model.Provenance `json:"sources"`
	Marks         []ServiceMark               `json:"marks,omitempty"` // what was tried out and learned from refusals, oldest first
	ReadOnly      bool                        `json:"read_only" doc:"it comes from artel.yaml, the environment or this machine, and can only be changed there"`
	Entry         string                      `json:"entry,omitempty" doc:"the id of the entry that an administrator added"`
	APIKey        any                         `json:"apiKey,omitempty" doc:"of that entry, as {set, ends_with}"`
	Disabled      bool                        `json:"disabled,omitempty"`
}

// ServiceLimits are the limits of a service; 0: unknown, or without limit if
// sources has the limit.
type ServiceLimits struct {
	ItemBytes    int64 `json:"item_bytes,omitempty"`    // of a media part, before it is encoded
	RequestBytes int64 `json:"request_bytes,omitempty"` // of a whole request
	Side         int   `json:"side,omitempty"`          // pixels along the longer side of an image
	Images       int   `json:"images,omitempty"`        // in a request
	Many         int   `json:"many,omitempty"`          // images in a request above which side_of_many holds
	SideOfMany   int   `json:"side_of_many,omitempty"`  // pixels along the longer side of each of many images
	Pages        int   `json:"pages,omitempty"`         // of a PDF
}

// ServicePlacement says where media may be; absent: unknown.
type ServicePlacement struct {
	ToolImage     *bool `json:"tool_image,omitempty"`      // images in tool results
	ToolFile      *bool `json:"tool_file,omitempty"`       // other media in tool results
	UserAfterTool *bool `json:"user_after_tool,omitempty"` // a user message after a tool result
}

// A ServiceMark is a fact learned from an exchange with a service: a type of
// media is accepted or refused in a place, certain bytes are refused, or the
// value of a limit.
type ServiceMark struct {
	ID        string           `json:"id" doc:"names it among the marks of its service"`
	Dialect   model.Dialect    `json:"dialect,omitempty" doc:"in which it was observed; absent: all"`
	Seen      int              `json:"seen,omitempty" doc:"refused requests that showed it; absent of what was tried out"`
	Applies   bool             `json:"applies" doc:"it is used: it was tried out, or a second request has confirmed it"`
	Place     model.Place      `json:"place,omitempty" doc:"user, tool, or after_tool; absent: of a limit"`
	MediaType string           `json:"media_type,omitempty"`
	Digest    artel.Digest     `json:"digest,omitempty"` // the bytes that it is about; absent: all of the type
	Field     string           `json:"field,omitempty" doc:"of requests, which the model does not take, such as temperature"`
	Limit     string           `json:"limit,omitempty" doc:"images, side, pages, item_bytes, or request_bytes"`
	Value     int64            `json:"value,omitempty"` // of limit
	OK        bool             `json:"ok"`              // taken and understood; never of a limit
	Source    model.Provenance `json:"source" doc:"probe or learned"`
	At        time.Time        `json:"at"`
	Until     time.Time        `json:"until"` // it is forgotten then
	Evidence  string           `json:"evidence,omitempty"`
}

func marksOf(marks []model.Mark) []ServiceMark {
	var out []ServiceMark
	for _, m := range marks {
		if m.Ratio > 0 {
			continue // it is a fact of its own
		}
		out = append(out, ServiceMark{
			ID: m.Key(), Dialect: m.Dialect, Seen: m.Seen, Applies: m.Applies(),
			Place: m.Place, MediaType: m.MediaType, Digest: m.Digest, Field: m.Field, Limit: string(m.Limit), Value: m.Value,
			OK: m.OK, Source: m.Source, At: m.At, Until: m.Until, Evidence: m.Evidence,
		})
	}
	return out
}

// optional returns the value of a fact, nil if it is unknown.
func optional(f model.Fact[bool]) *bool {
	if f.Source == "" {
		return nil
	}
	return &f.Value
}

// ServiceViewOf converts a service and its marks; def is the id of the default
// service.
func ServiceViewOf(s model.Service, marks []model.Mark, def artel.ServiceID) ServiceView {
	c := s.Capabilities
	v := ServiceView{
		ID: s.ID, Name: s.Name, Dialect: string(s.Dialect), Model: s.Model, Callable: s.Callable(), Default: s.ID == def,
		Demo: s.Demo(), Input: c.Input.Value, Accepts: c.Accepts.Value, Refuses: c.Refuses.Value,
		Limits: ServiceLimits{
			ItemBytes: c.MaxItemBytes.Value, RequestBytes: c.MaxRequestBytes.Value,
			Side: c.MaxSide.Value, Images: c.MaxImages.Value, Many: c.Many.Value, SideOfMany: c.MaxSideOfMany.Value, Pages: c.MaxPages.Value,
		},
		Placement: ServicePlacement{optional(c.ToolImage), optional(c.ToolFile), optional(c.UserAfterTool)},
		Transport: c.Transport.Value, Tokenizer: c.Tokenizer.Value, TokenRatio: c.TokenRatio.Value,
		ContextWindow: c.ContextWindow.Value, MaxOutput: c.MaxOutput.Value, Tags: s.Tags, Problem: s.Problem, Origin: s.Origin,
		Sources: map[string]model.Provenance{}, Marks: marksOf(marks), ReadOnly: s.Origin != entries.Origin,
	}
	note := func(name string, p model.Provenance) {
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
	note("limits.many", c.Many.Source)
	note("limits.side_of_many", c.MaxSideOfMany.Source)
	note("limits.pages", c.MaxPages.Source)
	note("placement.tool_image", c.ToolImage.Source)
	note("placement.tool_file", c.ToolFile.Source)
	note("placement.user_after_tool", c.UserAfterTool.Source)
	note("transport", c.Transport.Source)
	note("tokenizer", c.Tokenizer.Source)
	note("token_ratio", c.TokenRatio.Source)
	note("context_window", c.ContextWindow.Source)
	note("max_output", c.MaxOutput.Source)
	return v
}

// A ProbeView is the result of a probe and the service with what was learned.
type ProbeView struct {
	Service ServiceView    `json:"service"`
	Calls   int            `json:"calls"` // model calls that were made
	Results []probe.Result `json:"results"`
}

type serviceInput struct {
	ID artel.ServiceID `path:"id" maxLength:"256"`
}

func (f *server) serviceViews(ctx context.Context) []ServiceView {
	def := f.app.Models.Preferred(ctx)
	var items []ServiceView
	for _, s := range f.app.Models.Services(ctx) {
		items = append(items, ServiceViewOf(s, f.app.Models.Marks(ctx, s.ID), def))
	}
	return items
}

func (f *server) models() {
	register(f, f.op(http.MethodGet, "/findings", "list-findings", "List where models were looked for and what came of it, in codes and values", http.StatusOK),
		func(ctx context.Context, _ *none) (*body[List[model.Finding]], error) {
			found, err := f.app.Models.Findings(ctx)
			return answer(listOf(found, ""), err)
		})
	register(f, f.op(http.MethodPost, "/services/reload", "reload-services",
		"Read anew which services are configured; when that fails, they stay as they were", http.StatusOK),
		func(ctx context.Context, _ *none) (*body[List[ServiceView]], error) {
			if err := f.app.Models.Reload(ctx); err != nil {
				return nil, err
			}
			return answer(listOf(f.serviceViews(ctx), ""), nil)
		})
	register(f, f.op(http.MethodPost, "/services/{id}/probe", "probe-service",
		"Try out what a service takes: up to 6 small model calls, at its price, whose results are kept", http.StatusOK),
		func(ctx context.Context, in *serviceInput) (*body[ProbeView], error) {
			report, err := f.app.Models.Probe(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			v := ProbeView{Calls: report.Calls, Results: report.Results}
			for _, s := range f.app.Models.Services(ctx) {
				if s.ID == in.ID {
					v.Service = ServiceViewOf(s, f.app.Models.Marks(ctx, s.ID), f.app.Models.Preferred(ctx))
				}
			}
			return answer(v, nil)
		})
	register(f, f.op(http.MethodDelete, "/services/{id}/marks", "forget-marks", "Forget what was tried out with a service and learned from its refusals", http.StatusNoContent),
		func(ctx context.Context, in *serviceInput) (*none, error) {
			return nil, f.app.Models.Forget(ctx, in.ID, "")
		})
	register(f, f.op(http.MethodDelete, "/services/{id}/marks/{mark}", "forget-mark", "Forget one thing that was tried out or learned", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			ID   artel.ServiceID `path:"id" maxLength:"256"`
			Mark string          `path:"mark" maxLength:"64"`
		},
		) (*none, error) {
			return nil, f.app.Models.Forget(ctx, in.ID, in.Mark)
		})
	register(f, f.op(http.MethodGet, "/services", "list-services", "List the services with what is known of them and from where", http.StatusOK),
		func(ctx context.Context, _ *none) (*body[List[ServiceView]], error) {
			all, err := f.withStored(ctx, f.serviceViews(ctx))
			return answer(listOf(all, ""), err)
		})
}
