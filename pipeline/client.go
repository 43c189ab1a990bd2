// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"reflect"

	"github.com/artelhq/artel/model"
)

// ClientSettings are those of a request that a client of the gateway has sent. What is set takes
// precedence over the agent's.
type ClientSettings struct {
	Choice    model.ToolChoice `json:"choice,omitzero"`
	Format    model.Format     `json:"format,omitzero"`
	Sampling  model.Sampling   `json:"sampling,omitzero"`
	Reasoning model.Reasoning  `json:"reasoning,omitzero"`
	Extras    model.Extras     `json:"extras,omitzero"`
	MaxOutput int              `json:"max_output,omitempty"` // tokens of the answer; 0: the API's default
}

// SettingsOf returns the settings of a request.
func SettingsOf(r *model.Request) ClientSettings {
	return ClientSettings{Choice: r.Choice, Format: r.Format, Sampling: r.Sampling, Reasoning: r.Reasoning, Extras: r.Extras, MaxOutput: r.MaxOutput}
}

// recorded returns c for a record; nil if nothing is set.
func (c *ClientSettings) recorded() *ClientSettings {
	if c == nil || reflect.ValueOf(*c).IsZero() {
		return nil
	}
	return c
}

// apply changes the settings of a request.
func (c *ClientSettings) apply(r *model.Request) {
	if c == nil {
		return
	}
	r.Choice, r.Format, r.Extras = c.Choice, c.Format, c.Extras
	r.MaxOutput = cmp.Or(c.MaxOutput, r.MaxOutput)
	if c.Reasoning != (model.Reasoning{}) {
		r.Reasoning = c.Reasoning
	}
	s, from := &r.Sampling, c.Sampling
	s.Temperature, s.TopP, s.TopK, s.Seed = cmp.Or(from.Temperature, s.Temperature), cmp.Or(from.TopP, s.TopP), cmp.Or(from.TopK, s.TopK), cmp.Or(from.Seed, s.Seed)
	s.FrequencyPenalty, s.PresencePenalty = cmp.Or(from.FrequencyPenalty, s.FrequencyPenalty), cmp.Or(from.PresencePenalty, s.PresencePenalty)
	if len(from.Stop) > 0 {
		s.Stop = from.Stop
	}
}
