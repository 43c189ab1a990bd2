// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
)

// A SettingsReport lists what the import of a file changes.
type SettingsReport struct {
	Changes []SettingsChange
	Tag     string // of the settings that are compared with, for [Profiles.Import]
}

// A SettingsChange is one setting that differs.
type SettingsChange struct {
	Area      SettingsArea
	Name      string // of the service or agent; of the part of the profile: name, persona, language or rules
	Processor string // that is set; "": the level has no list, or an empty one, before or after
	Change    Change // Added, Removed or Changed
	Was, Is   json.RawMessage
	Unknown   bool // it names a service, agent or processor that is unknown here: it is stored without effect
}

// A SettingsArea is a part of a file of settings.
type SettingsArea string

// The areas.
const (
	AreaProfile SettingsArea = "profile"
	AreaOrder   SettingsArea = "order"
	AreaService SettingsArea = "service"
	AreaAgent   SettingsArea = "agent"
)

// Compare returns what the import of a file would change. It refuses what
// [Profiles.Import] refuses.
func (ps *Profiles) Compare(ctx context.Context, f SettingsFile) (SettingsReport, error) {
	if _, err := ps.values(f); err != nil {
		return SettingsReport{}, err
	}
	now, err := ps.Export(ctx)
	if err != nil {
		return SettingsReport{}, err
	}
	names, err := (&Pipeline{ps.config}).Agents(ctx)
	if err != nil {
		return SettingsReport{}, err
	}
	r := CompareSettings(now, f)
	for i, c := range r.Changes {
		r.Changes[i].Unknown = c.Change != Removed && ps.unknown(c, names)
	}
	return r, nil
}

// unknown reports whether a change names an unknown service, agent or processor.
func (ps *Profiles) unknown(c SettingsChange, agents []artel.AgentName) bool {
	switch c.Area {
	case AreaService:
		if _, ok := ps.config.Services.Lookup(artel.ServiceID(c.Name)); !ok {
			return true
		}
	case AreaAgent:
		if !slices.Contains(agents, artel.AgentName(c.Name)) {
			return true
		}
	}
	return c.Processor != "" && !slices.ContainsFunc(ps.config.Pipeline.Processors(), func(p pipeline.Processor) bool {
		return p.ID == c.Processor || p.Group == c.Processor
	})
}

// CompareSettings returns the differences between two files in a fixed order. None
// is Unknown.
func CompareSettings(before, after SettingsFile) SettingsReport {
	r := SettingsReport{Tag: before.Tag()}
	var was, is pipeline.Profile
	if before.Profile != nil {
		was = *before.Profile
	}
	if after.Profile != nil {
		is = *after.Profile
	}
	r.add(AreaProfile, "name", "", jsonText(was.Name), jsonText(is.Name))
	r.add(AreaProfile, "persona", "", jsonText(was.Persona), jsonText(is.Persona))
	r.add(AreaProfile, "language", "", jsonText(was.Language), jsonText(is.Language))
	r.add(AreaProfile, "rules", "", was.Rules, is.Rules)
	r.add(AreaOrder, "", "", jsonIDs(before.Order), jsonIDs(after.Order))
	addLevels(&r, AreaService, before.Services, after.Services)
	addLevels(&r, AreaAgent, before.Agents, after.Agents)
	return r
}

func addLevels[K ~string](r *SettingsReport, area SettingsArea, before, after map[K][]pipeline.Setting) {
	names := slices.Collect(maps.Keys(before))
	for n := range after {
		if _, ok := before[n]; !ok {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		was, hadList := before[n]
		is, hasList := after[n]
		if hadList != hasList && len(was)+len(is) == 0 { // an empty list replaces that of a file, too
			r.add(area, string(n), "", noneIn(hadList), noneIn(hasList))
		}
		for _, id := range idsOf(was, is) {
			r.add(area, string(n), id, settingIn(was, id), settingIn(is, id))
		}
	}
}

func (r *SettingsReport) add(area SettingsArea, name, processor string, was, is json.RawMessage) {
	c := SettingsChange{Area: area, Name: name, Processor: processor, Was: was, Is: is, Change: Changed}
	switch {
	case bytes.Equal(canonical(was), canonical(is)):
		return
	case len(was) == 0:
		c.Change = Added
	case len(is) == 0:
		c.Change = Removed
	}
	r.Changes = append(r.Changes, c)
}

// idsOf returns the ids of the lists, sorted and each once.
func idsOf(lists ...[]pipeline.Setting) (out []string) {
	for _, l := range lists {
		for _, s := range l {
			out = append(out, s.ID)
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return slices.Compact(out)
}

// settingIn returns the setting of an id as JSON without the id; nil: none.
func settingIn(settings []pipeline.Setting, id string) json.RawMessage {
	for _, s := range settings {
		if s.ID == id {
			s.Config = canonical(s.Config)
			if strings.TrimSpace(string(s.Config)) == "null" {
				s.Config = nil
			}
			return jsonOf(struct {
				Enabled *bool           `json:"enabled,omitempty"`
				Config  json.RawMessage `json:"config,omitempty"`
			}{s.Enabled, s.Config})
		}
	}
	return nil
}

func noneIn(there bool) json.RawMessage {
	if there {
		return json.RawMessage("[]")
	}
	return nil
}

func jsonText(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return jsonOf(s)
}

func jsonIDs(ids []string) json.RawMessage {
	if ids == nil {
		return nil
	}
	return jsonOf(ids)
}

func jsonOf(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // what came out of a file of settings can be written
	}
	return b
}

// A Change is what became of a setting.
type Change string

// The changes.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"
)
