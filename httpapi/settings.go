// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/pipeline"
)

func profileView(p settings.Profile) ProfileView {
	out := ProfileView{Name: p.Name, Persona: p.Persona, Language: p.Language}
	if len(p.Rules) > 0 {
		out.Rules = p.Rules
	}
	return out
}

func (f *server) settings() {
	register(f, f.op(http.MethodGet, "/me/profile", "read-profile", "Read what you have said about yourself", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*revised[ProfileView], error) {
			p, err := f.app.Profiles.Find(ctx)
			return answerRevision(p.Revision, profileView(p), err)
		})
	register(f, f.op(http.MethodPut, "/me/profile", "save-profile", "Say about yourself what every context is built with", http.StatusOK),
		func(ctx context.Context, in *struct {
			SettingMatch
			Body ProfileView
		},
		) (*revised[ProfileView], error) {
			n, err := in.revision()
			if err != nil {
				return nil, err
			}
			p := pipeline.Profile{Name: in.Body.Name, Persona: in.Body.Persona, Language: in.Body.Language}
			if in.Body.Rules != nil {
				if p.Rules, err = json.Marshal(in.Body.Rules); err != nil {
					return nil, err
				}
			}
			saved, err := f.app.Profiles.Set(ctx, p, n)
			return answerRevision(saved.Revision, profileView(saved), err)
		})

	register(f, f.op(http.MethodGet, "/settings", "export-settings", "Export all that you have set as one file", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*tagged[settings.SettingsFile], error) {
			return answerTagged(f.app.Profiles.Export(ctx))
		})
	register(f, f.op(http.MethodPost, "/settings/compare", "compare-settings", "Say what an import of a file would change, and change nothing", http.StatusOK),
		func(ctx context.Context, in *struct{ Body json.RawMessage }) (*body[SettingsReport], error) {
			file, err := settings.ParseSettingsFile(in.Body)
			if err != nil {
				return nil, err
			}
			r, err := f.app.Profiles.Compare(ctx, file)
			return &body[SettingsReport]{settingsReport(r)}, err
		})
	register(f, f.op(http.MethodPut, "/settings", "import-settings", "Put the settings of a file in the place of all that you have set", http.StatusOK),
		func(ctx context.Context, in *struct {
			SettingMatch
			Body json.RawMessage
		},
		) (*tagged[settings.SettingsFile], error) {
			file, err := settings.ParseSettingsFile(in.Body)
			if err != nil {
				return nil, err
			}
			tag := strings.Trim(strings.TrimSpace(in.IfMatch), `"`)
			if tag == "*" {
				tag = ""
			}
			return answerTagged(f.app.Profiles.Import(ctx, file, tag))
		})
}

// A SettingsReport lists what an import of a file of settings would change.
type SettingsReport struct {
	ETag    string           `json:"etag" doc:"of the settings that it was compared with, for If-Match of the import"`
	Changes []SettingsChange `json:"changes"`
}

// A SettingsChange is one setting that differs.
type SettingsChange struct {
	Area      string          `json:"area" enum:"profile,order,service,agent"`
	Name      string          `json:"name,omitempty" doc:"of the service or agent, or the part of the profile: name, persona, language or rules"`
	Processor string          `json:"processor,omitempty" doc:"that is set; absent: the level has no list, or an empty one, before or after"`
	Change    string          `json:"change" enum:"added,removed,changed"`
	Was       json.RawMessage `json:"was,omitempty"`
	Is        json.RawMessage `json:"is,omitempty"`
	Unknown   bool            `json:"unknown,omitempty" doc:"it names an unknown service, agent or processor: it would be stored without effect"`
}

func settingsReport(r settings.SettingsReport) SettingsReport {
	out := SettingsReport{ETag: `"` + r.Tag + `"`, Changes: make([]SettingsChange, len(r.Changes))}
	for i, c := range r.Changes {
		out.Changes[i] = SettingsChange{string(c.Area), c.Name, c.Processor, string(c.Change), c.Was, c.Is, c.Unknown}
	}
	return out
}

// A tagged answer has an ETag of its content.
type tagged[T any] struct {
	ETag string `header:"ETag" doc:"for If-Match"`
	Body T
}

func answerTagged(file settings.SettingsFile, err error) (*tagged[settings.SettingsFile], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[settings.SettingsFile]{`"` + file.Tag() + `"`, file}, nil
}
