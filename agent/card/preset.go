// SPDX-License-Identifier: Apache-2.0

package card

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/pipeline"
)

// A promptOf is one prompt of a preset for chat completion.
type promptOf struct {
	Identifier string          `json:"identifier"`
	Name       string          `json:"name"`
	Role       artel.Role      `json:"role"`
	Content    string          `json:"content"`
	Marker     bool            `json:"marker"`
	Position   json.RawMessage `json:"injection_position"` // 1: among the messages
	Depth      *int            `json:"injection_depth"`
	Order      *int            `json:"injection_order"`
	Trigger    []string        `json:"injection_trigger"`
	Enabled    *bool           `json:"enabled"`
}

// An orderedPrompt is an entry of prompt_order.
type orderedPrompt struct {
	Identifier string `json:"identifier"`
	Enabled    bool   `json:"enabled"`
}

// maxPrompts bounds the prompts of a preset; an agent has fewer.
const maxPrompts = 1_000

// chatPreset converts a preset for chat completion: its prompts in their order
// become presets, its sampling that of the agent.
func chatPreset(f fields, name string) (Content, error) {
	c := Content{Kind: Preset, Format: "chat completion preset"}
	d := &c.Agent
	d.Name, d.Description = AgentName(name), "The preset "+artel.Shorten(name, 200)+" of SillyTavern."
	var prompts []promptOf
	if err := json.Unmarshal(f["prompts"], &prompts); err != nil {
		return c, artel.Errorf(artel.Invalid, "card.Read", "prompts", "%w", err)
	}
	order := c.order(f, prompts)
	if n := max(len(prompts), len(order)); n > maxPrompts {
		return c, artel.Errorf(artel.TooLarge, "card.Read", "prompts", "the preset has %d prompts, and at most %d are taken", n, maxPrompts)
	}
	size := 0 // an order may name a prompt several times
	for _, o := range order {
		i := slices.IndexFunc(prompts, func(p promptOf) bool { return p.Identifier == o.Identifier })
		if i < 0 {
			continue
		}
		if size += len(prompts[i].Content); size > MaxFile {
			return c, artel.Errorf(artel.TooLarge, "card.Read", "prompts", "the prompts in their order have more than the limit of %d MB", MaxFile>>20)
		}
		c.addPrompt(prompts[i], o.Enabled)
	}
	if d.Prompt == "" && len(d.Presets) == 0 {
		return c, artel.Errorf(artel.Invalid, "card.Read", "prompts", "the preset has no prompts")
	}
	c.sampling(f, "temperature")
	c.limits(f, "openai_max_context", "openai_max_tokens")
	c.rest(f, "prompts", "prompt_order")
	return c, c.check()
}

// order returns the order of prompts: that for all characters, otherwise the
// first, otherwise the order of the list.
func (c *Content) order(f fields, prompts []promptOf) []orderedPrompt {
	var lists []struct {
		Character json.RawMessage `json:"character_id"`
		Order     []orderedPrompt `json:"order"`
	}
	if json.Unmarshal(f["prompt_order"], &lists) == nil && len(lists) > 0 {
		best := lists[0].Order
		for _, l := range lists {
			if string(l.Character) == "100001" { // the one for all characters
				best = l.Order
			}
		}
		if len(lists) > 1 {
			c.lost("prompt_order", "the preset has %d orders, for several characters; one of them is taken", len(lists))
		}
		return best
	}
	out := make([]orderedPrompt, len(prompts))
	for i, p := range prompts {
		out[i] = orderedPrompt{p.Identifier, p.Enabled == nil || *p.Enabled}
	}
	return out
}

// markerText returns what stands at a marker of an order: a text or a slot.
func markerText(identifier string) (text string, slot pipeline.Slot, ok bool) {
	switch identifier {
	case "chatHistory":
		return "", pipeline.SlotHistory, true
	case "personaDescription":
		return "", pipeline.SlotUser, true
	case "charDescription":
		return "{{description}}", "", true
	case "charPersonality":
		return "{{personality}}", "", true
	case "scenario":
		return "{{scenario}}", "", true
	case "dialogueExamples":
		return "{{mesExamples}}", "", true
	}
	return "", "", false
}

// addPrompt appends a prompt. The first one that is on becomes the role prompt.
func (c *Content) addPrompt(p promptOf, enabled bool) {
	d := &c.Agent
	id := artel.Shorten(cmp.Or(p.Identifier, p.Name, "prompt "+strconv.Itoa(len(d.Presets)+1)), 100)
	title := cmp.Or(p.Name, id)
	for n, base := 2, id; slices.ContainsFunc(d.Presets, func(o pipeline.Preset) bool { return o.ID == id }); n++ {
		id = base + " (" + strconv.Itoa(n) + ")"
	}
	out := pipeline.Preset{ID: id}
	if !enabled {
		out.Enabled = new(bool)
	}
	if text, slot, ok := markerText(p.Identifier); ok {
		out.Text, out.Slot = text, slot
		d.Presets = append(d.Presets, out)
		return
	}
	if p.Identifier == "worldInfoBefore" || p.Identifier == "worldInfoAfter" {
		if enabled {
			c.lost(p.Identifier, "entries of world books stand before and after the role prompt here")
		}
		return
	}
	text := c.macros(title, p.Content)
	if text == "" {
		return
	}
	if len(p.Trigger) > 0 {
		c.lost(title, "it is for some kinds of requests there; here it is in every request")
	}
	inChat := string(p.Position) == "1" || string(p.Position) == `"1"`
	if p.Role != "" && p.Role != artel.RoleSystem {
		if out.Role = p.Role; !slices.Contains([]artel.Role{artel.RoleUser, artel.RoleAssistant}, p.Role) {
			c.lost(title, "the role %q is not known; it is system", artel.Shorten(string(p.Role), 40))
			out.Role = ""
		}
	}
	if d.Prompt == "" && len(d.Presets) == 0 && enabled && !inChat && out.Role == "" {
		d.Prompt = text
		return
	}
	out.Text = text
	if inChat {
		depth := 4
		if p.Depth != nil {
			depth = max(*p.Depth, 0)
		}
		out.Place = pipeline.Place{Depth: strconv.Itoa(depth)}
		if p.Order != nil && *p.Order != 100 {
			out.Place.Order = p.Order
		}
	}
	d.Presets = append(d.Presets, out)
}

// samplingPreset converts a preset of sampling for text completion.
func samplingPreset(f fields, name string) (Content, error) {
	c := Content{Kind: Preset, Format: "sampling preset"}
	c.Agent.Name, c.Agent.Description = AgentName(name), "The sampling of the preset "+artel.Shorten(name, 200)+" of SillyTavern."
	c.Agent.Prompt = defaultPrompt
	key := "temp"
	if f[key] == nil {
		key = "temperature"
	}
	c.sampling(f, key)
	c.limits(f, "max_length", "genamt")
	c.rest(f)
	return c, c.check()
}

// sampling reads the parameters that services take.
func (c *Content) sampling(f fields, temperature string) {
	s := &c.Agent.Sampling
	number := func(field string) *float64 {
		var x float64
		if f[field] == nil || json.Unmarshal(f[field], &x) != nil {
			return nil
		}
		delete(f, field)
		return &x
	}
	if s.Temperature = number(temperature); s.Temperature != nil && *s.Temperature > 2 {
		c.lost(temperature, "%v is more than services take; it is 2", *s.Temperature)
		*s.Temperature = 2
	}
	if s.TopP = number("top_p"); s.TopP != nil && *s.TopP == 1 {
		s.TopP = nil // the default
	}
	for _, field := range []string{"custom_stopping_strings", "stopping_strings"} {
		var stop []string
		if json.Unmarshal(f[field], &stop) == nil {
			s.Stop = append(s.Stop, stop...)
			delete(f, field)
		}
	}
	s.Stop = slices.DeleteFunc(s.Stop, func(t string) bool { return t == "" })
	given := len(s.Stop)
	s.Stop = slices.DeleteFunc(s.Stop, func(t string) bool { return len(t) > 1000 })
	if s.Stop = s.Stop[:min(len(s.Stop), 16)]; len(s.Stop) < given {
		c.lost("stopping_strings", "%d of the %d are left out: at most 16 of at most 1,000 bytes are taken", given-len(s.Stop), given)
	}
}

// limits reads the window and the reserve for the reply.
func (c *Content) limits(f fields, window, reply string) {
	number := func(field string) int {
		var x float64
		if json.Unmarshal(f[field], &x) != nil || x < 0 || x > 1e9 {
			return 0
		}
		delete(f, field)
		return int(x)
	}
	l := &c.Agent.Context
	l.MaxTokens = number(window)
	if n := number(reply); n > 0 && (l.MaxTokens == 0 || n < l.MaxTokens) {
		l.ReplyReserve = &n
	} else if n > 0 {
		c.lost(reply, "%d is not less than the window of %d tokens and does nothing", n, l.MaxTokens)
	}
}

// neutral reports whether a value of a field changes nothing.
func neutral(field string, raw json.RawMessage) bool {
	if empty(raw) {
		return true
	}
	switch field {
	case "rep_pen", "repetition_penalty", "typical_p", "tfs", "mirostat_tau", "mirostat_eta", "guidance_scale", "smoothing_curve", "n", "seed":
		s := string(raw)
		return s == "1" || s == "1.0" || s == "-1" || field == "mirostat_tau" || field == "mirostat_eta"
	}
	return false
}

// rest reports the fields that do nothing here.
func (c *Content) rest(f fields, read ...string) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !slices.Contains(read, name) && !neutral(name, f[name]) {
			c.lost(name, "%s has no counterpart here and does nothing", artel.Shorten(string(f[name]), 60))
		}
	}
}

func (c *Content) check() error {
	if flaws := c.Agent.Check(agent.Known{}); len(flaws) > 0 {
		return artel.Errorf(artel.Invalid, "card.Read", "file", "the preset cannot become an agent: %w", flaws)
	}
	return nil
}

// Merge puts what a preset sets in the place of that of another agent: the
// presets, the sampling and the limits of the context. A preset of sampling
// leaves the presets. The first prompt of the preset replaces the role prompt of a
// character, whose texts stand at their markers.
func Merge(into, preset agent.Definition) agent.Definition {
	if len(preset.Presets) > 0 {
		own := []pipeline.Preset{}
		if into.Character != (pipeline.Character{}) {
			into.Prompt = preset.Prompt
		} else if preset.Prompt != "" {
			own = append(own, pipeline.Preset{ID: "main", Text: preset.Prompt})
		}
		into.Presets = append(own, preset.Presets...)
	}
	into.Sampling = preset.Sampling
	if preset.Context.MaxTokens > 0 {
		into.Context.MaxTokens = preset.Context.MaxTokens
	}
	if preset.Context.ReplyReserve != nil {
		into.Context.ReplyReserve = preset.Context.ReplyReserve
	}
	return into
}
