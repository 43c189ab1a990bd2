// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/rule"
	"github.com/artelhq/artel/run"
)

func oneRule(id, find, replace string) rule.Config {
	return rule.Config{Rules: []rule.Rule{{ID: id, Find: find, Replace: replace}}}
}

// Rules are kept at each level beside what else is set there, and what is tried
// out is what is sent.
func TestRulebook(t *testing.T) {
	l := &listener{}
	b := newBench(t, provide(l.generate), func(c *app.Config) {
		c.Options.Context.Settings.Deployment = []pipeline.Setting{{ID: pipeline.RegexProcessor, Config: json.RawMessage(`{"rules":[{"id":"house","find":"x","replace":"xH"}]}`)}}
	})
	ctx := apptest.Context(t)
	service := string(model.DemoService().ID)
	if _, err := b.Pipeline.SetLevel(ctx, settings.LevelAt{Service: artel.ServiceID(service)}, []pipeline.Setting{{ID: pipeline.TokenLimiter, Config: json.RawMessage(`{"keep_chars":5}`)}}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Profiles.Set(ctx, pipeline.Profile{Name: "Ann"}, 0); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		place settings.RulePlace
		rules rule.Config
	}{
		{settings.RulePlace{Level: settings.RulesOfService, ID: service}, oneRule("service", "x", "xS")},
		{settings.RulePlace{Level: settings.RulesOfUser}, oneRule("mine", "H", "H{{user}}")},
	} {
		now, err := b.Rules.Layer(ctx, x.place)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Rules.Set(ctx, x.place, x.rules, now.Revision); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Rules.Set(ctx, x.place, x.rules, now.Revision); artel.CodeOf(err) != app.CodeStale {
			t.Errorf("%v over an old revision: %v", x.place, err)
		}
	}
	sent := func() string {
		t.Helper()
		b.ended(b.send(b.conversation(), run.Input{Text: "x"}))
		request := l.requests[len(l.requests)-1]
		for _, m := range request.Messages {
			if m.Role == artel.RoleUser {
				text, _, _ := strings.Cut(artel.TextOf(m.Parts), "\n")
				return text
			}
		}
		return ""
	}
	tried := func(layers ...settings.RuleLayer) settings.Tried {
		t.Helper()
		got, err := b.Rules.Try(ctx, settings.Trial{Text: "x", Layers: layers})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := tried()
	if want := sent(); got.Text != "xSHAnn" || want != got.Text {
		t.Errorf("tried %q, sent %q", got.Text, want)
	}
	var names []string
	for _, s := range got.Steps {
		names = append(names, string(got.Layers[s.Where.Layer].Level)+":"+s.Name)
	}
	if want := []string{"deployment:house", "service:service", "user:mine"}; !slices.Equal(names, want) {
		t.Errorf("ran %q, want %q", names, want)
	}
	if level, err := b.Pipeline.Level(ctx, settings.LevelAt{Service: artel.ServiceID(service)}); err != nil || len(level.Settings) != 2 || level.Settings[0].ID != pipeline.TokenLimiter {
		t.Errorf("beside the rules stands %+v, %v", level, err)
	}
	if p, err := b.Profiles.Find(ctx); err != nil || p.Name != "Ann" {
		t.Errorf("the profile became %+v, %v", p, err)
	}

	// A draft takes the place of what is kept, and keeps nothing.
	got = tried(settings.RuleLayer{RulePlace: settings.RulePlace{Level: settings.RulesOfAgent, ID: "lead_agent"}, Config: oneRule("draft", "x", "xA")})
	if got.Text != "xAHAnn" || tried().Text != "xSHAnn" {
		t.Errorf("with a draft %q, and without it %q", got.Text, tried().Text)
	}

	// An agent's rules take the place of the service's, until there are none.
	agent := settings.RulePlace{Level: settings.RulesOfAgent, ID: string(got.Agent)}
	now, err := b.Rules.Layer(ctx, agent)
	if err == nil {
		now, err = b.Rules.Set(ctx, agent, oneRule("agent", "x", "xA"), now.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := tried(); got.Text != "xAHAnn" || !got.Layers[1].Replaced || sent() != got.Text {
		t.Errorf("with rules of the agent %q", got.Text)
	}
	if _, err := b.Rules.Set(ctx, agent, rule.Config{}, now.Revision); err != nil {
		t.Fatal(err)
	}
	if got := tried(); got.Text != "xSHAnn" || got.Layers[1].Replaced {
		t.Errorf("without them %q", got.Text)
	}
}

func TestRulesRefused(t *testing.T) {
	b := newBench(t, nil)
	ctx := apptest.Context(t)
	for want, place := range map[artel.Kind]settings.RulePlace{
		artel.Denied:   {Level: settings.RulesOfDeployment},
		artel.NotFound: {Level: settings.RulesOfAgent, ID: "nobody"},
	} {
		if _, err := b.Rules.Set(ctx, place, oneRule("a", "a", ""), 0); artel.KindOf(err) != want {
			t.Errorf("%v: %v", place, err)
		}
	}
	for _, level := range []settings.RuleLevel{settings.RulesOfService, "junk"} {
		if _, err := b.Rules.Layer(ctx, settings.RulePlace{Level: level, ID: "none"}); artel.KindOf(err) != artel.NotFound {
			t.Errorf("%s: %v", level, err)
		}
	}
	if _, err := b.Rules.Try(ctx, settings.Trial{Text: strings.Repeat("x", 1<<20)}); artel.KindOf(err) != artel.TooLarge {
		t.Error("a long text:", err)
	}
	if _, err := b.Rules.Try(ctx, settings.Trial{Agent: "nobody"}); err == nil {
		t.Error("an agent that is not there")
	}
}

// Every macro has an example that expands.
func TestKnownMacros(t *testing.T) {
	b := newBench(t, nil)
	values, err := b.Rules.MacroValues(apptest.Context(t), "", "")
	if err != nil || values["char"] == "" || values["modelName"] == "" {
		t.Fatal(values, err)
	}
	for _, m := range settings.KnownMacros(values, time.Now()) {
		if strings.HasPrefix(m.Gives, "{{") {
			t.Errorf("%s stays as it is", m.Example)
		}
	}
}
