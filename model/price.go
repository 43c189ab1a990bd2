// SPDX-License-Identifier: Apache-2.0

package model

import (
	"net/url"
	"slices"

	"github.com/artelhq/artel"
)

// A Price is what a model takes, in US dollars for a million tokens.
type Price struct {
	Input      float64 // of the request
	Output     float64 // of the answer, reasoning included
	CacheRead  float64 // of the part of the request that came from the provider's cache
	CacheWrite float64 // of the part of the request that was written to it
}

// Cost is the price of one call that took u: unknown where nobody has stated
// the service's price, or the API has not said what the call took.
func (s Service) Cost(u artel.Usage) artel.Cost {
	if s.Capabilities.Price.Source == FromNothing || u.InputTokens == 0 && u.OutputTokens == 0 {
		return artel.Cost{}
	}
	p := s.Capabilities.Price.Value
	plain := max(0, u.InputTokens-u.CachedTokens-u.StoredTokens)
	sum := float64(plain)*p.Input + float64(u.CachedTokens)*p.CacheRead + float64(u.StoredTokens)*p.CacheWrite + float64(u.OutputTokens)*p.Output
	return artel.Cost{USD: sum / 1e6, Calls: 1}
}

// listPriced reports whether a base URL is that of an API whose list of prices
// the catalog has: the same model costs something else elsewhere, and nothing
// on a machine of one's own.
func listPriced(base string) bool {
	u, err := url.Parse(base)
	return err == nil && slices.Contains([]string{
		"api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "api.mistral.ai", "api.deepseek.com",
		"api.x.ai", "api.moonshot.ai", "api.z.ai", "api.minimax.io",
	}, u.Hostname())
}
