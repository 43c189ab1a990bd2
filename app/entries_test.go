// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/lore"
)

// A level is set entry by entry, and one that comes to say what the file says
// is the file's again.
func TestEntries(t *testing.T) {
	yes, no := true, false
	separator := json.RawMessage(`{"separator": "\n"}`)
	b := newBench(t, nil, func(c *app.Config) {
		agents, err := agent.Shipped()
		if err != nil {
			t.Fatal(err)
		}
		agents[0].Processors = []pipeline.Setting{{ID: pipeline.MergeRoles, Enabled: &no, Config: separator}}
		c.Agents = agents
	})
	at, p := settings.LevelAt{Agent: "lead_agent"}, b.Pipeline
	level := func(l settings.Level, err error) settings.Level {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := level(p.SetEntry(apptest.Context(t), at, pipeline.Setting{ID: pipeline.ConvertSystem, Enabled: &yes}, 0))
	want := []pipeline.Setting{{ID: pipeline.MergeRoles, Enabled: &no, Config: separator}, {ID: pipeline.ConvertSystem, Enabled: &yes}}
	if diff := cmp.Diff(want, l.Settings, cmp.Comparer(sameJSON)); diff != "" || !l.Set || len(l.File) != 1 {
		t.Fatalf("%+v\n%s", l, diff)
	}
	if _, err := p.SetEntry(apptest.Context(t), at, pipeline.Setting{ID: pipeline.ConvertSystem}, 0); artel.CodeOf(err) != app.CodeStale {
		t.Errorf("another revision: %v", err)
	}
	if _, err := p.SetEntry(apptest.Context(t), at, pipeline.Setting{ID: pipeline.SessionLoader, Enabled: &no}, l.Revision); !errors.Is(err, artel.Invalid) {
		t.Errorf("what cannot be disabled: %v", err)
	}
	l = level(p.DropEntry(apptest.Context(t), at, pipeline.MergeRoles, l.Revision))
	if len(l.Settings) != 1 || l.Settings[0].ID != pipeline.ConvertSystem {
		t.Errorf("after dropping: %+v", l)
	}
	l = level(p.ResetEntry(apptest.Context(t), at, pipeline.MergeRoles, settings.AnyRevision))
	l = level(p.ResetEntry(apptest.Context(t), at, pipeline.ConvertSystem, l.Revision))
	if l.Set || l.Revision != 0 || len(l.Settings) != 1 {
		t.Errorf("all is as in the file, and the file does not hold: %+v", l)
	}
	if l = level(p.ResetEntry(apptest.Context(t), at, pipeline.ConvertSystem, 0)); l.Set {
		t.Errorf("nothing to reset: %+v", l)
	}
	if _, err := p.SetEntry(apptest.Context(t), settings.LevelAt{Service: "nobody"}, pipeline.Setting{ID: "x"}, 0); !errors.Is(err, artel.NotFound) {
		t.Errorf("nobody's level: %v", err)
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return (len(a) == 0) == (len(b) == 0) && (len(a) == 0 || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y))
}

// Somebody who sets something for an agent begins with what the model has,
// whose place it takes, and with no field that the processor lacks.
func TestBegin(t *testing.T) {
	b := newBench(t, nil)
	o, err := b.Pipeline.Overview(apptest.Context(t), "", "")
	if err != nil {
		t.Fatal(err)
	}
	group := pipeline.Setting{ID: pipeline.MessageFormatters, Config: json.RawMessage(`{"separator":"-","fillers":{"user":"go"}}`)}
	if _, err := b.Pipeline.SetEntry(apptest.Context(t), settings.LevelAt{Service: o.Service.ID}, group, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Pipeline.SetEntry(apptest.Context(t), settings.LevelAt{Service: o.Service.ID}, pipeline.Setting{ID: "gone"}, 1); err != nil {
		t.Fatal(err)
	}
	if o, err = b.Pipeline.Overview(apptest.Context(t), "", ""); err != nil {
		t.Fatal(err)
	}
	for _, level := range []pipeline.SettingLevel{pipeline.ByModel, pipeline.ByAgent} {
		if got := o.Begin(pipeline.MergeRoles, level); got.ID != pipeline.MergeRoles || string(got.Config) != `{"separator":"-"}` {
			t.Errorf("%s begins with %s %s", level, got.ID, got.Config)
		}
	}
	if got := o.Begin(pipeline.RegexProcessor, pipeline.ByAgent); got.Config != nil || got.Enabled != nil {
		t.Errorf("from nothing: %+v", got)
	}
	if len(o.Unknown) != 1 || o.Unknown[0].ID != "gone" || o.Unknown[0].Level != pipeline.ByModel {
		t.Errorf("unknown: %+v", o.Unknown)
	}
}

// A processor moves among those that can be ordered; names of another start
// are kept.
func TestMove(t *testing.T) {
	b := newBench(t, nil)
	if _, err := b.Pipeline.SetOrder(apptest.Context(t), []string{"gone", pipeline.FirstUser, pipeline.MergeSystem}, 0); err != nil {
		t.Fatal(err)
	}
	o, err := b.Pipeline.Move(apptest.Context(t), pipeline.ConvertSystem, 99, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{pipeline.FirstUser, pipeline.MergeRoles, pipeline.EnsureAlternation, pipeline.MergeSystem, pipeline.ConvertSystem, "gone"}
	if diff := cmp.Diff(want, o.IDs); diff != "" {
		t.Error(diff)
	}
	if _, err := b.Pipeline.Move(apptest.Context(t), pipeline.TokenLimiter, 0, settings.AnyRevision); !errors.Is(err, artel.Invalid) {
		t.Errorf("a fixed place: %v", err)
	}
}

// An import says before what it will change; that is what it changes.
func TestCompareSettings(t *testing.T) {
	b := newBench(t, nil)
	ctx := apptest.Context(t)
	if _, err := b.Profiles.Set(ctx, pipeline.Profile{Name: "Ada", Persona: "curious"}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Pipeline.SetOrder(ctx, []string{pipeline.FirstUser}, 0); err != nil {
		t.Fatal(err)
	}
	f, err := settings.ParseSettingsFile([]byte(`{"artel_settings": 1, "profile": {"name": "Ada L.", "language": "zh", "persona": "curious"},
		"services": {"nobody": [{"id": "merge-roles", "enabled": false}]}, "agents": {"lead_agent": [{"id": "gone"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Profiles.Compare(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	want := []settings.SettingsChange{
		{Area: settings.AreaProfile, Name: "name", Change: settings.Changed, Was: raw(`"Ada"`), Is: raw(`"Ada L."`)},
		{Area: settings.AreaProfile, Name: "language", Change: settings.Added, Is: raw(`"zh"`)},
		{Area: settings.AreaOrder, Change: settings.Removed, Was: raw(`["first-user"]`)},
		{Area: settings.AreaService, Name: "nobody", Processor: "merge-roles", Change: settings.Added, Is: raw(`{"enabled":false}`), Unknown: true},
		{Area: settings.AreaAgent, Name: "lead_agent", Processor: "gone", Change: settings.Added, Is: raw(`{}`), Unknown: true},
	}
	if diff := cmp.Diff(want, r.Changes); diff != "" {
		t.Error(diff)
	}
	if _, err := b.Books.Save(ctx, lore.Book{Name: "Harbour"}, 0); err != nil {
		t.Fatal(err)
	}
	after, err := b.Profiles.Import(ctx, f, r.Tag)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Books.Find(ctx, "Harbour"); err != nil {
		t.Errorf("a world book, which is not part of the file: %v", err)
	}
	if again, err := b.Profiles.Compare(ctx, after); err != nil || len(again.Changes) > 0 {
		t.Errorf("afterwards there is something to change: %+v, %v", again, err)
	}
	if _, err := b.Profiles.Import(ctx, f, r.Tag); artel.CodeOf(err) != app.CodeStale {
		t.Errorf("the settings of before: %v", err)
	}
	if _, err := b.Profiles.Compare(ctx, settings.SettingsFile{Version: 1, Profile: &pipeline.Profile{Language: "no language"}}); !errors.Is(err, artel.Invalid) {
		t.Errorf("a file that cannot be imported: %v", err)
	}
}
