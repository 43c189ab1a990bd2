// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A run whose service is "auto" gets one when it starts: of the callable services
// those that lack least of what its message needs, and of these those that lack
// least of what the branch needs (see [model.Suitable]). If several are left and a
// selector is configured, a model picks one before the first call.

// shortlist finds the services that suit a message on its branch.
func (x *execution) shortlist(tx store.Tx, m artel.Message) error {
	before, err := x.branches.find(tx, m.Conversation, m.Parent)
	if err != nil {
		return err
	}
	media := artel.MediaOf(m.Parts)
	list := model.Suitable(x.config.chooser().Automatic(), media, before.media)
	if len(list) == 0 {
		return artel.Errorf(artel.Invalid, "run.Runs", string(model.AutoService), "no service can be called")
	}
	x.selection = &selection{list: list, media: media, text: artel.TextOf(m.Parts)}
	x.service = list[0]
	return nil
}

// A selection has the services among which one is chosen.
type selection struct {
	list  []model.Service // in their order
	media []artel.Media   // of the message
	text  string
}

// needs returns the capabilities that the media need, each once.
func (s *selection) needs() []artel.Capability {
	needs := []artel.Capability{}
	for _, m := range s.media {
		if n := m.Kind.Needs(); n != artel.CanText && !slices.Contains(needs, n) {
			needs = append(needs, n)
		}
	}
	return needs
}

// selectedFrom is how many code points of a message the selector receives.
const selectedFrom = 2000

// chooseService makes the choice and stores its event. If the selector fails, the
// first service is chosen.
func (x *execution) chooseService(ctx context.Context) error {
	s := x.selection
	if s == nil {
		return nil
	}
	x.selection = nil
	chosen := artel.ServiceChosen{By: artel.ChosenByOrder, Candidates: make([]artel.ServiceID, len(s.list)), Needs: s.needs()}
	for i, c := range s.list {
		chosen.Candidates[i] = c.ID
	}
	var usage artel.Usage
	if id := x.config.Background.Selector; id != "" && len(s.list) > 1 {
		picked, took, err := x.askSelector(ctx, id, s)
		if ctx.Err() != nil {
			x.run.Usage = x.run.Usage.Add(took)
			return artel.Errorf(artel.Canceled, "run.Runs", string(x.run.ID), "%w", context.Cause(ctx))
		}
		usage, chosen.Selector = took, id
		if err != nil {
			chosen.Problem = artel.Shorten(scrub.Line(err.Error()), 300)
			x.config.Logger.WarnContext(ctx, "a selector picked no service; the first is taken", "run", x.run.ID, "selector", id, "err", err)
		} else {
			x.service, chosen.By = picked, artel.ChosenBySelector
		}
	}
	chosen.Service, chosen.Model, chosen.Demo = x.service.ID, x.service.Model, x.service.Demo()
	x.run.Service = x.service.ID
	x.run.Usage = x.run.Usage.Add(usage)
	payloads := []artel.Payload{chosen}
	if usage.Calls > 0 {
		payloads = append(payloads, artel.UsageReported{Service: x.config.Background.Selector, Purpose: artel.CallSelects, Usage: usage})
	}
	err := x.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
		if err := x.write(tx, payloads...); err != nil {
			return err
		}
		return tx.Runs.Update(x.run)
	})
	if err == nil {
		x.config.notifier().Notify(x.run.Conversation)
	}
	return err
}

// askSelector asks the selector for one of the services.
func (x *execution) askSelector(ctx context.Context, id artel.ServiceID, s *selection) (model.Service, artel.Usage, error) {
	selector, err := x.config.chooser().Callable(id)
	if err != nil {
		return model.Service{}, artel.Usage{}, err
	}
	var list strings.Builder
	for _, c := range s.list {
		words := make([]string, 0, len(c.Capabilities.Input.Value))
		for _, w := range c.Capabilities.Input.Value {
			words = append(words, string(w))
		}
		fmt.Fprintf(&list, "- %s: takes %s", c.ID, strings.Join(words, ", "))
		if len(c.Tags) > 0 {
			list.WriteString("; " + strings.Join(c.Tags, ", "))
		}
		if c.Description != "" {
			list.WriteString("; " + strings.Join(strings.Fields(c.Description), " "))
		}
		list.WriteString("\n")
	}
	text := artel.Beginning(s.text, selectedFrom)
	for _, m := range s.media {
		text += fmt.Sprintf("\n[%s, %d bytes]", m.MediaType, m.Size)
	}
	instruction := x.config.Locale.Say(phrase.SelectorAsk, map[string]any{"Services": strings.TrimSpace(list.String())})
	said, usage, err := x.config.ask(ctx, selector.OnWire(), instruction, text)
	if err != nil {
		return model.Service{}, usage, err
	}
	picked, err := s.serviceIn(said)
	return picked, usage, err
}

// serviceIn returns the service that an answer names: the answer is its id, or
// has that id, and no other, as a word.
func (s *selection) serviceIn(said string) (model.Service, error) {
	said = strings.Trim(said, " \t\r\n\"'`*.")
	for _, c := range s.list {
		if string(c.ID) == said {
			return c, nil
		}
	}
	words := strings.FieldsFunc(said, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`*,;:()[]{}，。；：“”", r) })
	var found []model.Service
	for _, c := range s.list {
		if slices.ContainsFunc(words, func(w string) bool { return strings.TrimRight(w, ".") == string(c.ID) }) {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		return model.Service{}, errors.New("the answer does not name exactly one service: " + artel.Shorten(scrub.Line(said), 100))
	}
	return found[0], nil
}

// Fallback implements [agent.Host]. It returns the next service that the run has
// not tried: those that the agent names, then those that its service names.
// Unknown services and those that cannot be called are skipped.
func (x *execution) Fallback(ctx context.Context, failed model.Service) (agent.Fallback, bool) {
	if !slices.Contains(x.tried, failed.ID) {
		x.tried = append(x.tried, failed.ID)
	}
	if x.others == nil {
		x.others = slices.Concat(x.agent.Fallbacks, x.service.Fallbacks)
	}
	for _, id := range x.others {
		s, err := x.config.chooser().Callable(id)
		if err != nil || slices.Contains(x.tried, id) {
			continue
		}
		s = s.OnWire()
		out := agent.Fallback{Service: s, Target: TargetOf(x.config.Services, x.config.Renditions, s)}
		definition := x.agent
		err = x.config.Store.View(ctx, x.owner, func(tx store.Tx) (err error) {
			built, err := x.config.buildInput(tx, x.owner, x.run.Conversation, &definition, s, x.clock)
			if err != nil {
				return err
			}
			path, err := tx.Messages.Path(x.run.Conversation, x.run.Message, 0)
			if err != nil {
				return err
			}
			before := x.buildInput
			x.buildInput = built
			x.buildInput.At = before.At
			if err := x.loadVariables(tx, path[:max(0, len(path)-1)]); err != nil {
				x.buildInput = before
				return err
			}
			out.Context = x.buildInput
			return nil
		})
		if err != nil {
			x.config.Logger.WarnContext(ctx, "a run could not continue with another service", "run", x.run.ID, "service", id, "err", err)
			continue
		}
		x.config.Logger.WarnContext(ctx, "a run continues with another service", "run", x.run.ID, "from", failed.ID, "to", id)
		x.tried = append(x.tried, id)
		x.service = s
		return out, true
	}
	return agent.Fallback{}, false
}
