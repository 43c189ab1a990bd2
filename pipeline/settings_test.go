// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
)

// noop is a processor with a field of every type.
func noop(id string, priority int, change func(*pipeline.Processor)) pipeline.Processor {
	most := 9.0
	p := pipeline.Processor{
		ID: id, Name: id, Priority: priority, Process: func(context.Context, *pipeline.Draft) error { return nil },
		Fields: []pipeline.Field{
			{Key: "text", Label: "Text", Type: pipeline.FieldText, Default: "a"},
			{Key: "area", Label: "Area", Type: pipeline.FieldTextarea},
			{Key: "number", Label: "Number", Type: pipeline.FieldNumber, Range: &pipeline.Range{Min: 1, Max: &most, Whole: true}},
			{Key: "flag", Label: "Flag", Type: pipeline.FieldBoolean},
			{Key: "choice", Label: "Choice", Type: pipeline.FieldSelect, Options: []string{"x", "y"}},
			{Key: "names", Label: "Names", Type: pipeline.FieldList},
			{Key: "any", Label: "Any", Type: pipeline.FieldJSON, Check: func(v json.RawMessage) error {
				if string(v) == `"bad"` {
					return errors.New("want something better")
				}
				return nil
			}},
		},
	}
	if change != nil {
		change(&p)
	}
	return p
}

func grouped(p *pipeline.Processor) { p.Group, p.Core = pipeline.MessageFormatters, true }

func TestLevels(t *testing.T) {
	on, off := true, false
	p := noop("p", 500, nil)
	set := func(enabled *bool, config string) []pipeline.Setting {
		return []pipeline.Setting{{ID: "p", Enabled: enabled, Config: json.RawMessage(config)}}
	}
	for _, c := range []struct {
		name string
		in   pipeline.Settings
		want pipeline.Resolved
	}{
		{"nobody", pipeline.Settings{}, pipeline.Resolved{Enabled: true, EnabledBy: "default", Winner: "default"}},
		{"only the model", pipeline.Settings{Model: set(&off, `{"text":"m"}`)}, pipeline.Resolved{EnabledBy: "model", Winner: "model", Config: json.RawMessage(`{"text":"m"}`)}},
		{"only the agent", pipeline.Settings{Agent: set(&off, `{"text":"a"}`)}, pipeline.Resolved{EnabledBy: "agent", Winner: "agent", Config: json.RawMessage(`{"text":"a"}`)}},
		{
			"both: the agent's whole",
			pipeline.Settings{Model: set(&off, `{"text":"m","flag":true}`), Agent: set(&on, `{"text":"a"}`)},
			pipeline.Resolved{Enabled: true, EnabledBy: "agent", Winner: "agent", Config: json.RawMessage(`{"text":"a"}`)},
		},
		{
			"both: without config, the defaults",
			pipeline.Settings{Model: set(&off, `{"text":"m"}`), Agent: set(nil, "")},
			pipeline.Resolved{Enabled: true, EnabledBy: "default", Winner: "agent"},
		},
		{
			"the deployment's stays where nobody says else",
			pipeline.Settings{Deployment: set(&off, `{"text":"d","flag":true}`), Model: set(nil, `{"text":"m"}`)},
			pipeline.Resolved{EnabledBy: "deployment", Winner: "model", Config: json.RawMessage(`{"flag":true,"text":"m"}`)},
		},
		{
			"null is the default",
			pipeline.Settings{Deployment: set(nil, `{"text":"d"}`), Agent: set(nil, `{"text":null}`)},
			pipeline.Resolved{Enabled: true, EnabledBy: "default", Winner: "agent"},
		},
		{
			"what is disabled stays disabled",
			pipeline.Settings{Disabled: []string{"p"}, Agent: set(&on, "")},
			pipeline.Resolved{Disabled: true, EnabledBy: "deployment", Winner: "agent"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.in.Resolve(p), cmpopts.IgnoreUnexported(pipeline.Resolved{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGroups(t *testing.T) {
	off := false
	other := noop("q", 600, func(p *pipeline.Processor) { grouped(p); p.Fields = p.Fields[:1] })
	s := pipeline.Settings{Agent: []pipeline.Setting{
		{ID: pipeline.MessageFormatters, Enabled: &off, Config: json.RawMessage(`{"text":"all","flag":true}`)},
		{ID: "p", Config: json.RawMessage(`{"text":"own"}`)},
	}}
	if got := s.Resolve(noop("p", 500, grouped)); !got.Enabled || string(got.Config) != `{"text":"own"}` {
		t.Errorf("the entry of the processor: %+v", got)
	}
	if got := s.Resolve(other); got.Enabled || string(got.Config) != `{"text":"all"}` {
		t.Errorf("the entry of the group: %+v", got)
	}
	r := registryOf(t, noop("p", 500, grouped), other)
	if unknown, err := r.Processors().Check(s.Agent); err != nil || len(unknown) > 0 {
		t.Errorf("a field that only one of the group has: %v %v", unknown, err)
	}
}

func registryOf(t *testing.T, ps ...pipeline.Processor) *pipeline.Registry {
	t.Helper()
	r, err := pipeline.NewRegistry(nil, ps...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheck(t *testing.T) {
	off := false
	r := registryOf(t, noop("p", 500, nil), noop("core", 100, func(p *pipeline.Processor) { p.Always = true }))
	for config, want := range map[string]string{
		`{"text":"s","area":"s","number":3,"flag":true,"choice":"y","names":["a"],"any":{"b":[1]}}`: "",
		``: "", `{}`: "", `null`: "want a JSON object", `[]`: "want a JSON object", `{"text":"a"} 1`: "something follows",
		`{"text":"a","text":"b"}`: "occurs twice", `{"txt":"a"}`: "known fields: text, area",
		`{"text":1}`: "config.text: want a string", `{"area":[]}`: "want a string", `{"number":"3"}`: "want a number",
		`{"number":1.5}`: "not a whole number", `{"number":0}`: "want 1 to 9", `{"number":10}`: "want 1 to 9", `{"flag":"yes"}`: "true or false",
		`{"choice":"z"}`: "want one of x, y", `{"names":"a"}`: "list of strings", `{"names":["a",null]}`: "list of strings", `{"names":[1]}`: "list of strings",
		`{"any":"bad"}`: "want something better", `{"text":null,"number":null}`: "",
	} {
		_, err := r.Processors().Check([]pipeline.Setting{{ID: "p", Config: json.RawMessage(config)}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || artel.KindOf(err) != artel.Invalid) {
			t.Errorf("%s: got %v, want %q", config, err, want)
		}
	}
	for _, c := range []struct {
		settings []pipeline.Setting
		want     string
	}{
		{[]pipeline.Setting{{ID: "core", Enabled: &off}}, "cannot be disabled"},
		{[]pipeline.Setting{{ID: "p"}, {ID: "p"}}, "named twice"},
		{[]pipeline.Setting{{}}, "id of a processor is missing"},
	} {
		if _, err := r.Processors().Check(c.settings); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if unknown, err := r.Processors().Check([]pipeline.Setting{{ID: "plugin"}}); err != nil || !slices.Equal(unknown, []string{"plugin"}) {
		t.Errorf("unknown: %v %v", unknown, err)
	}
	if _, err := r.Processors().CheckDisabled([]string{"core"}); err == nil {
		t.Error("a processor that runs always was disabled")
	}
}

func TestBadFieldsAreNotRegistered(t *testing.T) {
	for name, f := range map[string]pipeline.Field{
		"no type": {Key: "a", Label: "A"}, "no label": {Key: "a", Type: pipeline.FieldText},
		"no options":  {Key: "a", Label: "A", Type: pipeline.FieldSelect},
		"bad default": {Key: "a", Label: "A", Type: pipeline.FieldNumber, Default: "x"},
		"twice":       {Key: "text", Label: "A", Type: pipeline.FieldText},
	} {
		p := noop("p", 1, func(p *pipeline.Processor) { p.Fields = append(p.Fields, f) })
		if _, err := pipeline.NewRegistry(nil, p); artel.KindOf(err) != artel.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only formatters and plugins can be ordered; what the order does not name
// keeps its place, so that it means the same after a release that adds one.
func TestOrder(t *testing.T) {
	var ran []string
	make := func(id string, priority int, change func(*pipeline.Processor)) pipeline.Processor {
		p := noop(id, priority, change)
		p.Process = func(context.Context, *pipeline.Draft) error {
			ran = append(ran, id)
			return nil
		}
		return p
	}
	core := func(p *pipeline.Processor) { p.Core = true }
	r := registryOf(t, make("load", 100, core), make("early", 300, nil), make("f1", 500, grouped), make("f2", 600, grouped), make("new", 650, grouped), make("plugin", 900, nil),
		make(pipeline.AssetResolver, pipeline.PriorityAssetResolver, core))
	order := []string{"plugin", "gone", "f2", "f1", "load", pipeline.AssetResolver, "early"}
	if _, err := r.Build(t.Context(), pipeline.Input{Settings: pipeline.Settings{Order: order}}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"load", "early", "plugin", "f2", "new", "f1", pipeline.AssetResolver}; !slices.Equal(ran, want) {
		t.Errorf("got %v, want %v", ran, want)
	}
	for _, id := range []string{"load", "early", pipeline.AssetResolver} {
		if _, err := r.Processors().CheckOrder([]string{id}); artel.KindOf(err) != artel.Invalid {
			t.Errorf("%s was ordered: %v", id, err)
		}
	}
	if unknown, err := r.Processors().CheckOrder([]string{"f2", "gone", "f1"}); err != nil || !slices.Equal(unknown, []string{"gone"}) {
		t.Errorf("got %v %v", unknown, err)
	}
	if _, err := r.Processors().CheckOrder([]string{"f2", "f2"}); err == nil {
		t.Error("an order with a processor twice was taken")
	}
}

func TestUntil(t *testing.T) {
	r := builtIn(t, noop("extra", 350, func(p *pipeline.Processor) { p.DefaultOff = true }))
	in := input(service(0), say("1", "user", "a"))
	in.Until = "extra"
	got, err := r.Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	steps := got.Record.Processors
	if steps[len(steps)-1].ID != "extra" || len(steps) < 3 {
		t.Errorf("it ran %+v", steps)
	}
	in.Until = "nothing"
	if _, err := r.Build(t.Context(), in); artel.KindOf(err) != artel.Invalid {
		t.Errorf("an unknown processor: %v", err)
	}
}

// What another release configured is told of and does nothing.
func TestUnknownFieldsDoNothing(t *testing.T) {
	in := input(service(0), say("1", "user", "a"))
	in.Settings.Model = []pipeline.Setting{{ID: pipeline.TokenLimiter, Config: json.RawMessage(`{"of_old":1}`)}}
	r := build(t, in)
	for _, s := range r.Record.Processors {
		if s.ID == pipeline.TokenLimiter && (len(s.Logs) != 1 || s.Settings != pipeline.ByModel) {
			t.Errorf("got %+v", s)
		}
	}
}

func TestStabilityIsKept(t *testing.T) {
	add := func(class pipeline.Stability, origin pipeline.Origin, at int) pipeline.Processor {
		return pipeline.Processor{
			ID: "p", Priority: pipeline.PriorityPlugin, Adds: pipeline.Session, Required: true,
			Process: func(_ context.Context, d *pipeline.Draft) error {
				d.Messages = slices.Insert(slices.Clone(d.Messages), at, pipeline.Message{ID: "x", Role: artel.RoleUser, Origin: origin, Stability: class})
				return nil
			},
		}
	}
	for _, c := range []struct {
		p  pipeline.Processor
		ok bool
	}{
		{add(pipeline.Static, pipeline.OriginPreset, 0), true},
		{add(pipeline.Session, pipeline.OriginPreset, 1), true},
		{add(pipeline.Turn, pipeline.OriginPreset, 1), false},
		{add("", pipeline.OriginPreset, 1), false},
		{add(pipeline.Session, pipeline.OriginReminder, 0), false},
	} {
		_, err := builtIn(t, c.p).Build(t.Context(), input(service(0), say("1", "user", "a")))
		if c.ok != (err == nil) || !c.ok && artel.KindOf(err) != artel.Internal {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if got := pipeline.Static.Least(pipeline.Session); got != pipeline.Session {
		t.Errorf("got %s", got)
	}
	if got := pipeline.Session.Least(""); got != pipeline.Turn {
		t.Errorf("got %s", got)
	}
}
