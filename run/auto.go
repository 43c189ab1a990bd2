// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A run whose service is "auto" gets one by rule when it begins: of those that
// can be called, the ones that take most of what its message holds, and of these
// the ones that take most of what the branch holds. Where several are left and
// there is a selector, a model picks one of them before the first call.

// shortlist finds the services that suit a message behind parent.
func (x *execution) shortlist(tx store.Tx, m artel.Message) error {
	var earlier []artel.Media
	if m.Parent != "" {
		path, err := tx.Messages.Path(m.Conversation, m.Parent, 0)
		if err != nil {
			return err
		}
		for _, before := range path {
			if !before.Muted {
				earlier = append(earlier, artel.MediaOf(before.Parts)...)
			}
		}
	}
	media := artel.MediaOf(m.Parts)
	list := model.Suitable(x.runs.config.chooser().Automatic(), media, earlier)
	if len(list) == 0 {
		return artel.Errorf(artel.Invalid, "app.Runs", string(model.AutoService), "there is no service that can be called")
	}
	x.selection = &selection{list: list, media: media, text: artel.TextOf(m.Parts)}
	x.service = list[0]
	return nil
}

// A selection is what a service is chosen of.
type selection struct {
	list  []model.Service // in their order
	media []artel.Media   // of the message
	text  string
}

// needs are the capabilities that the media want, each once.
func (s *selection) needs() []artel.Capability {
	needs := []artel.Capability{}
	for _, m := range s.media {
		if n := m.Kind.Needs(); n != artel.CanText && !slices.Contains(needs, n) {
			needs = append(needs, n)
		}
	}
	return needs
}

// selectedFrom is how many code points of a message the selector is told.
const selectedFrom = 2000

// elect makes the choice, and tells it. A selector that fails leaves the choice
// to the order.
func (x *execution) elect(ctx context.Context) error {
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
	if id := x.runs.config.Errands.Selector; id != "" && len(s.list) > 1 {
		picked, took, err := x.selected(ctx, id, s)
		if ctx.Err() != nil {
			return artel.Errorf(artel.Canceled, "app.Runs", string(x.run.ID), "%w", context.Cause(ctx))
		}
		usage, chosen.Selector = took, id
		if err != nil {
			chosen.Problem = artel.Shorten(scrub.Line(err.Error()), 300)
			x.runs.config.Logger.Warn("a selector picked no service; the first is taken", "run", x.run.ID, "selector", id, "err", err)
		} else {
			x.service, chosen.By = picked, artel.ChosenBySelector
		}
	}
	chosen.Service, chosen.Model, chosen.Demo = x.service.ID, x.service.Model, x.service.Demo()
	x.run.Service = x.service.ID
	x.run.Usage = x.run.Usage.Add(usage)
	told := []artel.Payload{chosen}
	if usage.Calls > 0 {
		told = append(told, artel.UsageReported{Service: x.runs.config.Errands.Selector, Usage: usage})
	}
	err := x.runs.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
		if err := x.write(tx, told...); err != nil {
			return err
		}
		return tx.Runs.Update(x.run)
	})
	if err == nil {
		x.runs.config.notifier().Notify(x.run.Conversation)
	}
	return err
}

// selected asks the selector.
func (x *execution) selected(ctx context.Context, id artel.ServiceID, s *selection) (model.Service, artel.Usage, error) {
	selector, err := x.runs.config.chooser().Callable(id)
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
	instruction := x.runs.config.Locale.Say(phrase.SelectorAsk, map[string]any{"Services": strings.TrimSpace(list.String())})
	said, usage, err := x.runs.config.errand(ctx, selector.OnWire(), instruction, text)
	if err != nil {
		return model.Service{}, usage, err
	}
	picked, err := s.named(said)
	return picked, usage, err
}

// named is the one service that an answer names: it is its id, or has that as a
// word, and no other's.
func (s *selection) named(said string) (model.Service, error) {
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
		return model.Service{}, errors.New("its answer names no one of the services: " + artel.Shorten(scrub.Line(said), 100))
	}
	return found[0], nil
}
