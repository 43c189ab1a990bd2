// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"errors"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/pipeline/rule"
	"github.com/artelhq/artel/store"
)

// Displayed applies the rules of the stage display to the texts of messages: the
// rules of the conversation's agent and service, and of the user. branch is a part
// of the branch in its order, and behind the number of messages after it. branch
// itself, and the calls and results of tools, stay unchanged.
func (rs *Rules) Displayed(ctx context.Context, id artel.ConversationID, branch []artel.Message, behind int) ([]artel.Message, error) {
	set, values, err := rs.displayRules(ctx, id)
	if err != nil || set == nil || set.Empty(rule.Display) {
		return branch, err
	}
	var texts []rule.Text
	var at [][2]int
	for i, m := range branch {
		for j, p := range m.Parts {
			if t, ok := p.(artel.Text); ok {
				texts = append(texts, rule.Text{Text: t.Text, Role: m.Role, Depth: behind + len(branch) - 1 - i})
				at = append(at, [2]int{i, j})
			}
		}
	}
	x := macro.New(macro.Context{Values: values, Now: rs.config.Now(), Conversation: string(id)})
	out, err := set.Apply(ctx, rule.Display, texts, func(text string, escape func(string) string) (string, error) {
		r, err := x.ExpandInto(text, escape)
		return r.Text, err
	})
	if err != nil {
		return nil, err
	}
	for _, p := range out.Problems {
		rs.config.Logger.WarnContext(ctx, "a rule is skipped in what is shown", "conversation", id, "rule", artel.Shorten(p.Rule, 80), "because", p.Message)
	}
	shown := slices.Clone(branch)
	for k, place := range at {
		if m := &shown[place[0]]; out.Texts[k] != texts[k].Text {
			m.Parts = slices.Clone(m.Parts)
			m.Parts[place[1]] = artel.Text{Text: out.Texts[k]}
		}
	}
	return shown, nil
}

// displayRules returns the display rules of a conversation and the values of their
// macros. Invalid rules are skipped and logged.
func (rs *Rules) displayRules(ctx context.Context, id artel.ConversationID) (set *rule.Set, values map[string]string, err error) {
	err = rs.config.view(ctx, func(tx store.Tx) error {
		c, err := tx.Conversations.Get(id)
		if err != nil {
			return err
		}
		d, err := rs.config.agent(tx, c.Agent)
		if errors.Is(err, artel.Invalid) {
			d, err = agent.Definition{Name: c.Agent}, nil // it was deleted; its answers are still shown
		}
		if err != nil {
			return err
		}
		s, _, err := rs.config.chooser().Resolve(c.Service, d.Service)
		if err != nil {
			s = model.Service{} // unknown services have no rules
		}
		settings, err := rs.config.settings(tx, d, s)
		if err != nil {
			return err
		}
		user, _, err := stored[pipeline.Profile](tx, profileSettings)
		if err != nil {
			return err
		}
		layers, err := settings.Rules(user)
		if err != nil {
			rs.config.Logger.WarnContext(ctx, "rules are skipped in what is shown", "conversation", id, "err", err)
		}
		set = rs.config.Rules.Compile(layers...)
		values = map[string]string{
			"user": user.Called(), "persona": user.Persona, "char": string(d.Name), "description": d.Description,
			"modelId": s.Model, "profileId": string(s.ID), "profileName": s.Name, "provider": string(s.Dialect),
		}
		return nil
	})
	return set, values, err
}
