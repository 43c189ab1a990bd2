// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// One engine works for what is sent and for what is shown; what is stored
// stays.
func TestDisplayed(t *testing.T) {
	l := &listener{answer: func(int, *model.Request) []model.Delta {
		return []model.Delta{model.TextDelta("<think>hm</think>Yes, Ann.")}
	}}
	b := newBench(t, provide(l.generate), func(c *app.Config) {
		c.Options.Context.Settings.Deployment = []pipeline.Setting{{ID: pipeline.RegexProcessor, Config: json.RawMessage(
			`{"rules":[{"find":"<think>.*?</think>","roles":["assistant"]},{"find":"two","replace":"2","stages":["request"]}]}`)}}
	})
	_, err := b.Profiles.Set(apptest.Context(t), pipeline.Profile{Name: "Ada", Rules: json.RawMessage(
		`{"rules":[{"find":"Ann","replace":"{{user}}","stages":["display"]},{"find":"$(?![^])","replace":"!","depth":{"max":0}},{"id":"bad","find":"("}]}`)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := b.conversation()
	b.ask(c, "one")
	b.ask(c, "two")
	stored := b.messages(c)
	texts := func(ms []artel.Message) (out []string) {
		for _, m := range ms {
			out = append(out, artel.TextOf(m.Parts))
		}
		return out
	}
	shown, err := b.Rules.Displayed(apptest.Context(t), c, stored, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "Yes, Ada.", "two", "Yes, Ada.!"}, texts(shown)); diff != "" {
		t.Error("shown (-want +got):", diff)
	}
	if shown, err = b.Rules.Displayed(apptest.Context(t), c, stored[:2], 2); err != nil || texts(shown)[1] != "Yes, Ada." {
		t.Errorf("the older ones: %q, %v", texts(shown), err)
	}
	if got := texts(b.messages(c)); got[1] != "<think>hm</think>Yes, Ann." {
		t.Errorf("stored is %q", got)
	}
	sent := wire(t, l.requests[1])
	if !strings.Contains(sent, "Yes, Ann.") || strings.Contains(sent, "think>") || !strings.Contains(sent, "2!") {
		t.Error("sent is", sent)
	}
	if said := b.log.String(); !strings.Contains(said, "bad") {
		t.Error("nobody is told of the rule that cannot be used:", said)
	}
}
