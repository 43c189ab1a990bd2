// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/pipeline"
)

// A ProcessorView is an element of GET /pipeline.
type ProcessorView struct {
	ID             string           `json:"id"`
	Name           string           `json:"name"`
	Description    string           `json:"description"`
	Icon           string           `json:"icon,omitempty"`
	Origin         string           `json:"origin,omitempty" doc:"of a plugin: the program or the address that it is"`
	Priority       int              `json:"priority"`
	Group          string           `json:"group,omitempty" doc:"an id by which settings name it together with others"`
	Core           bool             `json:"core"`
	Required       bool             `json:"required" doc:"its failure fails the build"`
	Always         bool             `json:"always" doc:"it cannot be disabled"`
	DefaultEnabled bool             `json:"default_enabled"`
	Movable        bool             `json:"movable" doc:"people may order it"`
	Fields         []pipeline.Field `json:"fields"`
	Levels         ProcessorLevels  `json:"levels" doc:"what each level says"`
	pipeline.Resolved
}

// ProcessorLevels are the settings of a processor at each level; absent: none.
type ProcessorLevels struct {
	Deployment *pipeline.Setting `json:"deployment,omitempty"`
	Model      *pipeline.Setting `json:"model,omitempty"`
	Agent      *pipeline.Setting `json:"agent,omitempty"`
}

// A PipelineView is the answer of GET /pipeline.
type PipelineView struct {
	Agent   artel.AgentName `json:"agent"`
	Service artel.ServiceID `json:"service"`
	Items   []ProcessorView `json:"items" doc:"in the order in which they run"`
	Unknown []UnknownView   `json:"unknown" doc:"settings that name no processor: they do nothing"`
}

// An UnknownView is a setting of an unknown or removed processor.
type UnknownView struct {
	Level pipeline.SettingLevel `json:"level" enum:"deployment,model,agent"`
	pipeline.Setting
}

// UnknownViews converts settings of unknown processors.
func UnknownViews(list []settings.UnknownSetting) []UnknownView {
	out := make([]UnknownView, len(list))
	for i, s := range list {
		out[i] = UnknownView{s.Level, s.Setting}
	}
	return out
}

// ProcessorViews converts processors.
func ProcessorViews(list []settings.ProcessorState) []ProcessorView {
	out := make([]ProcessorView, len(list))
	for i, p := range list {
		out[i] = ProcessorView{
			ID: p.ID, Name: p.Name, Description: p.Description, Icon: p.Icon, Origin: p.Origin, Priority: p.Priority, Group: p.Group, Core: p.Core,
			Required: p.Required, Always: p.Always, DefaultEnabled: !p.DefaultOff, Movable: p.Movable(), Fields: p.Fields,
			Levels: ProcessorLevels{p.Deployment, p.Model, p.Agent}, Resolved: p.Resolved,
		}
		if out[i].Fields == nil {
			out[i].Fields = []pipeline.Field{}
		}
	}
	return out
}

// A LevelView is the settings of one service or agent.
type LevelView struct {
	Items []pipeline.Setting `json:"items"`
	Set   bool               `json:"set" doc:"by a person; else they are those of the file"`
}

// NewLevel is the body of PUT …/processors.
type NewLevel struct {
	Items []pipeline.Setting `json:"items" maxItems:"200" doc:"replaces the whole list"`
}

// An OrderView is the order of the movable processors.
type OrderView struct {
	Items []string `json:"items" maxItems:"200" doc:"ids; what is not named stays where it is"`
}

// A ProfileView is the profile of the user.
type ProfileView struct {
	Name     string `json:"name,omitempty"`
	Persona  string `json:"persona,omitempty"`
	Language string `json:"language,omitempty" doc:"a BCP 47 tag"`
	Rules    any    `json:"rules,omitempty" doc:"a configuration of the regex-processor"`
}

// A SettingMatch names the revision that a write replaces.
type SettingMatch struct {
	IfMatch string `header:"If-Match" maxLength:"100" doc:"the ETag that was read; absent or *: whatever is there. Another one is answered with 412"`
}

func (h SettingMatch) revision() (int, error) {
	s := strings.Trim(strings.TrimSpace(h.IfMatch), `"`)
	if s == "" || s == "*" {
		return settings.AnyRevision, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, newProblem(http.StatusBadRequest, "malformed", `If-Match is not a revision in quotes, such as "3"`)
	}
	return n, nil
}

// A revised answer has the revision of its content.
type revised[T any] struct {
	ETag string `header:"ETag" doc:"the revision, for If-Match"`
	Body T
}

func answerRevision[T any](revision int, v T, err error) (*revised[T], error) {
	if err != nil {
		return nil, err
	}
	return &revised[T]{`"` + strconv.Itoa(revision) + `"`, v}, nil
}

func answerLevel(l settings.Level, err error) (*revised[LevelView], error) {
	if l.Settings == nil {
		l.Settings = []pipeline.Setting{}
	}
	return answerRevision(l.Revision, LevelView{l.Settings, l.Set}, err)
}

func answerOrder(o settings.Order, err error) (*revised[OrderView], error) {
	if o.IDs == nil {
		o.IDs = []string{}
	}
	return answerRevision(o.Revision, OrderView{o.IDs}, err)
}

func (f *server) pipeline() {
	register(f, f.op(http.MethodGet, "/pipeline", "list-processors", "List the processors of contexts, with their fields, what each level says and which one holds", http.StatusOK),
		func(ctx context.Context, in *struct {
			Agent   string `query:"agent" maxLength:"256" doc:"absent: the lead"`
			Service string `query:"service" maxLength:"256" doc:"absent: that of the agent, else the default"`
		},
		) (*body[PipelineView], error) {
			o, err := f.app.Pipeline.Overview(ctx, artel.AgentName(in.Agent), artel.ServiceID(in.Service))
			return answer(PipelineView{o.AgentName, o.Service.ID, ProcessorViews(o.Processors), UnknownViews(o.Unknown)}, err)
		})
	f.levelSettings("/services/{id}/processors", "service", func(id string) settings.LevelAt { return settings.LevelAt{Service: artel.ServiceID(id)} })
	f.levelSettings("/agents/{id}/processors", "agent", func(id string) settings.LevelAt { return settings.LevelAt{Agent: artel.AgentName(id)} })
	f.order()
	f.builds()
}

// A NamePath names a service or an agent.
type NamePath struct {
	ID string `path:"id" maxLength:"256"`
}

// levelSettings registers the operations on the settings at a level.
func (f *server) levelSettings(path, what string, at func(id string) settings.LevelAt) {
	register(f, f.op(http.MethodGet, path, "read-"+what+"-processors", "Read the settings of processors at the level of the "+what, http.StatusOK),
		func(ctx context.Context, in *NamePath) (*revised[LevelView], error) {
			return answerLevel(f.app.Pipeline.Level(ctx, at(in.ID)))
		})
	register(f, f.op(http.MethodPut, path, "save-"+what+"-processors", "Replace the settings of processors at the level of the "+what, http.StatusOK),
		func(ctx context.Context, in *struct {
			NamePath
			SettingMatch
			Body NewLevel
		},
		) (*revised[LevelView], error) {
			n, err := in.revision()
			if err != nil {
				return nil, err
			}
			if in.Body.Items == nil {
				in.Body.Items = []pipeline.Setting{}
			}
			return answerLevel(f.app.Pipeline.SetLevel(ctx, at(in.ID), in.Body.Items, n))
		})
	register(f, f.op(http.MethodDelete, path, "reset-"+what+"-processors", "Reset the settings at the level of the "+what+" to what the file says", http.StatusOK),
		func(ctx context.Context, in *struct {
			NamePath
			SettingMatch
		},
		) (*revised[LevelView], error) {
			n, err := in.revision()
			if err != nil {
				return nil, err
			}
			return answerLevel(f.app.Pipeline.SetLevel(ctx, at(in.ID), nil, n))
		})
}

func (f *server) order() {
	const path = "/pipeline/order"
	register(f, f.op(http.MethodGet, path, "read-order", "Read the order of formatters and plugins", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*revised[OrderView], error) {
			return answerOrder(f.app.Pipeline.Order(ctx))
		})
	register(f, f.op(http.MethodPut, path, "save-order", "Replace the order of formatters and plugins", http.StatusOK),
		func(ctx context.Context, in *struct {
			SettingMatch
			Body OrderView
		},
		) (*revised[OrderView], error) {
			n, err := in.revision()
			if err != nil {
				return nil, err
			}
			if in.Body.Items == nil {
				in.Body.Items = []string{}
			}
			return answerOrder(f.app.Pipeline.SetOrder(ctx, in.Body.Items, n))
		})
	register(f, f.op(http.MethodDelete, path, "reset-order", "Reset the order to that of the deployment", http.StatusOK),
		func(ctx context.Context, in *struct{ SettingMatch }) (*revised[OrderView], error) {
			n, err := in.revision()
			if err != nil {
				return nil, err
			}
			return answerOrder(f.app.Pipeline.SetOrder(ctx, nil, n))
		})
}
