// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline/macro"
)

// A Character is what an agent plays: the values of macros. Every field may be
// empty. The macros user and char are expanded in all fields.
type Character struct {
	Name        string `json:"name,omitempty" yaml:"name"` // of the macro char; "": the agent's name
	Description string `json:"description,omitempty" yaml:"description"`
	Personality string `json:"personality,omitempty" yaml:"personality"`
	Scenario    string `json:"scenario,omitempty" yaml:"scenario"`
	Examples    string `json:"examples,omitempty" yaml:"examples"` // of messages
	Version     string `json:"version,omitempty" yaml:"version"`
}

const maxCharacter = 1 << 20 // bytes of all fields

// Check refuses (kind Invalid, TooLarge) characters that cannot be used.
func (c Character) Check() error {
	const op = "pipeline.Character"
	size := 0
	for _, s := range []string{c.Name, c.Description, c.Personality, c.Scenario, c.Examples, c.Version} {
		if size += len(s); !utf8.ValidString(s) {
			return artel.Errorf(artel.Invalid, op, "character", "a text is no UTF-8")
		}
	}
	switch {
	case utf8.RuneCountInString(c.Name) > 200 || strings.ContainsAny(c.Name, "\n\r"):
		return artel.Errorf(artel.Invalid, op, "character.name", "a name is one line of at most 200 characters")
	case size > maxCharacter:
		return artel.Errorf(artel.TooLarge, op, "character", "the texts have %d bytes, and at most %d are taken", size, maxCharacter)
	}
	return nil
}

// Values returns the values of the macros about an agent's character, for a user
// of this name.
func (a Agent) Values(user string) map[string]string {
	c := a.Character
	if c == (Character{}) {
		return map[string]string{"char": string(a.Name), "description": a.Description}
	}
	out := map[string]string{
		"char": string(a.Name), "description": c.Description, "personality": c.Personality, "scenario": c.Scenario, "mesExamples": c.Examples, "agentVersion": c.Version,
	}
	if c.Name != "" {
		out["char"] = c.Name
	}
	if c.Description == "" {
		out["description"] = a.Description
	}
	names := map[string]string{"char": out["char"], "user": user}
	for key, text := range out {
		out[key] = ExpandNames(text, names)
	}
	return out
}

// ExpandNames expands the macros user and char in a text; other macros stay.
func ExpandNames(text string, names map[string]string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	pairs := make([]string, 0, 8)
	for _, name := range []string{"user", "char"} {
		for _, written := range []string{name, strings.ToUpper(name[:1]) + name[1:], strings.ToUpper(name)} {
			pairs = append(pairs, "{{"+written+"}}", names[name])
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// ExpandGreeting expands the macros of a first message, for a user of this name.
// Macros about messages and tools are empty.
func (a Agent) ExpandGreeting(text string, user Profile, c macro.Context) (string, error) {
	c.Values = a.Values(user.Called())
	c.Values["user"], c.Values["persona"] = user.Called(), user.Persona
	r, err := macro.New(c).Expand(text)
	return r.Text, err
}

// Sampling holds the settings of the answers: sampling and reasoning. Absent ones
// have the default of the service.
type Sampling struct {
	Temperature *float64 `json:"temperature,omitempty" yaml:"temperature"`
	TopP        *float64 `json:"top_p,omitempty" yaml:"top_p"`
	Stop        []string `json:"stop,omitempty" yaml:"stop"` // texts that end the answer

	Reasoning model.Effort `json:"reasoning,omitempty" yaml:"reasoning"` // how much the model reasons
}

// IsZero reports whether nothing is set.
func (s Sampling) IsZero() bool {
	return s.Temperature == nil && s.TopP == nil && len(s.Stop) == 0 && s.Reasoning == ""
}

// Check refuses (kind Invalid) values that no service takes.
func (s Sampling) Check() error {
	wrong := func(field string, v any, want string) error {
		return artel.Errorf(artel.Invalid, "pipeline.Sampling", "sampling."+field, "%v is not %s", v, want)
	}
	switch {
	case s.Temperature != nil && !(*s.Temperature >= 0 && *s.Temperature <= 2):
		return wrong("temperature", *s.Temperature, "from 0 to 2")
	case s.TopP != nil && !(*s.TopP >= 0 && *s.TopP <= 1):
		return wrong("top_p", *s.TopP, "from 0 to 1")
	case len(s.Stop) > 16:
		return wrong("stop", fmt.Sprint(len(s.Stop), " texts"), "at most 16 texts")
	}
	if efforts := model.Efforts(); s.Reasoning != "" && !slices.Contains(efforts, s.Reasoning) {
		return wrong("reasoning", string(s.Reasoning), fmt.Sprintf("one of %s", efforts))
	}
	for _, t := range s.Stop {
		if t == "" || len(t) > 1000 {
			return wrong("stop", fmt.Sprintf("%q", artel.Shorten(t, 40)), "a text of 1 to 1000 bytes")
		}
	}
	return nil
}

func (s Sampling) model() model.Sampling {
	return model.Sampling{Temperature: s.Temperature, TopP: s.TopP, Stop: s.Stop}
}

// reasoning returns how much the model reasons; its text is kept.
func (s Sampling) reasoning() model.Reasoning {
	return model.Reasoning{Effort: s.Reasoning, Show: true}
}

// samplingOf returns the sampling of a request; nil: none.
func samplingOf(r *model.Request) *Sampling {
	s := r.Sampling
	if out := (Sampling{s.Temperature, s.TopP, s.Stop, r.Reasoning.Effort}); !out.IsZero() {
		return &out
	}
	return nil
}
