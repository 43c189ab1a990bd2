// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/lore"
)

// The ids of the messages that the injection assembler adds.
const (
	RolePromptID = "artel:role-prompt"
	ReminderID   = "artel:reminder"
)

const (
	defaultPlan    = 16_000 // characters of the task plan
	defaultPreview = 200    // characters of each artifact in the inventory
)

func injectionAssembler() Processor {
	return Processor{
		ID:          InjectionAssembler,
		Name:        "Injection assembler",
		Description: "Adds the agent's preset messages around and inside the history, and the reminder of plan, artifacts and time.",
		Priority:    PriorityInjection,
		Icon:        "📌",
		Core:        true, Required: true, Always: true,
		Fields: []Field{
			{Key: "plan_limit", Label: "Longest task plan, in characters; 0: no limit", Type: FieldNumber, Default: defaultPlan, Range: From(0)},
			{Key: "preview", Label: "Characters of each artifact in the inventory", Type: FieldNumber, Default: defaultPreview, Range: From(0)},
		},
		Process: inject,
	}
}

type injection struct {
	PlanLimit int `json:"plan_limit"`
	Preview   int `json:"preview"`
}

func inject(ctx context.Context, d *Draft) error {
	conf := injection{defaultPlan, defaultPreview}
	if err := d.Config(&conf); err != nil {
		return err
	}
	if err := CheckPresets(d.Agent.Presets); err != nil {
		return err
	}
	reminder, err := d.reminder(ctx, conf)
	if err != nil {
		return err
	}
	prompts := d.prompts()
	entries, _ := Value[[]loreEntry](d)
	own := len(prompts)
	for _, e := range entries {
		prompts = append(prompts, e.prompt)
	}
	if err := d.expand(prompts); err != nil {
		return err
	}
	role := prompts[0]
	before, after, deep := placeLore(entries, prompts[own:])
	prompts = append(prompts[1:own:own], deep...)
	var system artel.Parts
	if strings.TrimSpace(role.Text) != "" {
		system = append(system, artel.Text{Text: role.Text})
	}
	if strings.TrimSpace(d.Instructions) != "" {
		system = append(system, artel.Text{Text: d.Instructions})
	}
	if reminder != "" && d.Placement == PlaceSystem {
		system = append(system, artel.Text{Text: reminder})
		role.stability, reminder = Turn, ""
	}
	first := before
	if len(system) > 0 {
		first = append(first, Message{
			ID: RolePromptID, Role: artel.RoleSystem, Parts: system, Agent: d.Agent.Name,
			Origin: OriginPreset, Stability: role.stability,
		})
	}
	d.Messages = assemble(d, append(first, after...), prompts, d.Messages)
	d.remind(reminder)
	return nil
}

// placeLore returns the messages of the entries of world books around the role
// prompt, and the prompts at depths. The prompts are those of the entries, with
// their macros expanded.
func placeLore(entries []loreEntry, prompts []prompt) (before, after []Message, deep []prompt) {
	for i, p := range prompts {
		p.stability = p.stability.Least(entries[i].stability)
		switch {
		case strings.TrimSpace(p.Text) == "":
		case entries[i].where == lore.AtDepth:
			deep = append(deep, p)
		case entries[i].where == lore.AfterPrompt:
			after = append(after, p.message(OriginLore))
		default:
			before = append(before, p.message(OriginLore))
		}
	}
	return before, after, deep
}

// remind adds the reminder at the end. It becomes a part of the newest message
// if that is the user's, because most APIs want user and assistant to
// alternate.
func (d *Draft) remind(reminder string) {
	if reminder == "" {
		return
	}
	if n := len(d.Messages); n > 0 && d.Messages[n-1].Role == artel.RoleUser && d.Messages[n-1].Origin == OriginHistory {
		m := &d.Messages[n-1]
		m.Parts = append(slices.Clip(m.Parts), artel.Text{Text: reminder})
		m.Stability = Turn
		return
	}
	d.Messages = append(d.Messages, Message{
		ID: ReminderID, Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: reminder}},
		Origin: OriginReminder, Stability: Turn,
	})
}

// prompts returns the role prompt and the presets that take part, in the order
// of the agent's list, in which their macros are expanded.
func (d *Draft) prompts() []prompt {
	all := []prompt{{Preset: Preset{ID: RolePromptID, Text: d.Agent.Prompt}, stability: Static}}
	for i, p := range d.Agent.Presets {
		if !p.enabled() || !p.When.holds(d.Service) {
			continue
		}
		x := prompt{Preset: p, position: i, order: defaultOrder, stability: Static}
		x.ID = cmp.Or(p.ID, fmt.Sprintf("preset-%d", i+1))
		if p.Place.Order != nil {
			x.order = *p.Place.Order
		}
		all = append(all, x)
	}
	return all
}
