// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"net/url"
	"slices"

	"github.com/artelhq/artel"
)

// A Price is in US dollars per million tokens.
type Price struct {
	Input      float64 // of the request
	Output     float64 // of the answer, reasoning included
	CacheRead  float64 // of input tokens read from the provider's cache
	CacheWrite float64 // of input tokens written to it
}

// Cost returns the cost of one call with usage u. It is unknown without a price of
// the service or without reported usage. The demo costs nothing, unless it has a
// price.
func (s Service) Cost(u artel.Usage) artel.Cost {
	if s.Demo() && s.Capabilities.Price.Source == FromNothing {
		return artel.Cost{Calls: 1}
	}
	if s.Capabilities.Price.Source == FromNothing || u.InputTokens == 0 && u.OutputTokens == 0 {
		return artel.Cost{}
	}
	p := s.Capabilities.Price.Value
	plain := max(0, u.InputTokens-u.CachedTokens-u.StoredTokens)
	sum := float64(plain)*p.Input + float64(u.CachedTokens)*p.CacheRead + float64(u.StoredTokens)*p.CacheWrite + float64(u.OutputTokens)*p.Output
	return artel.Cost{USD: sum / 1e6, Calls: 1}
}

// Priced reports whether calls of s have a known cost. Those of scripted services
// cost nothing.
func (s Service) Priced() bool { return s.Demo() || s.Capabilities.Price.Source != FromNothing }

// Reported reports whether a provider has reported the usage of a call.
func Reported(u artel.Usage) bool { return u.InputTokens > 0 || u.OutputTokens > 0 }

// listPriced reports whether the catalog's prices apply to a base URL. Elsewhere
// the same model has another price, or none on the operator's own machine.
func listPriced(base string) bool {
	u, err := url.Parse(base)
	return err == nil && slices.Contains([]string{
		"api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "api.mistral.ai", "api.deepseek.com",
		"api.x.ai", "api.moonshot.ai", "api.z.ai", "api.minimax.io",
	}, u.Hostname())
}

// Bounds on learned token ratios.
const (
	leastRatio = 0.5
	mostRatio  = 2.0

	leastCounted = 1000 // tokens; in shorter requests the API's overhead per message dominates
	ratioStep    = 0.25 // weight of a new measurement
	ratioMatters = 0.02 // smaller changes are not stored
)

// MeasureRatio compares the counted tokens of a request, corrected by the ratio of s,
// with the tokens that the API reported. It returns a mark with the new ratio if
// it differs enough. Short requests and implausible reports are ignored.
func (s Service) MeasureRatio(counted int, reported int64) (Mark, bool) {
	known := s.Capabilities.TokenRatio
	before := known.Value
	if before <= 0 {
		before = 1
	}
	plain := float64(counted) / before
	if plain < leastCounted || reported <= 0 {
		return Mark{}, false
	}
	ratio := float64(reported) / plain
	if ratio < leastRatio || ratio > mostRatio {
		return Mark{}, false
	}
	if known.Value > 0 {
		ratio = before + (ratio-before)*ratioStep
	}
	if math.Abs(ratio/before-1) < ratioMatters {
		return Mark{}, false
	}
	return s.mark(Mark{Ratio: math.Round(ratio*1000) / 1000, Source: FromLearned}), true
}

// mostTokens exceeds the tokens of any call.
const mostTokens = 1_000_000_000

// plausible corrects reported usage, because limits on tokens and cost depend on it:
// negative and huge counts become 0, and parts are at most the whole.
func plausible(u artel.Usage) artel.Usage {
	count := func(n, most int64) int64 {
		if n < 0 || n > mostTokens {
			return 0
		}
		return min(n, most)
	}
	u.InputTokens, u.OutputTokens = count(u.InputTokens, mostTokens), count(u.OutputTokens, mostTokens)
	u.CachedTokens = count(u.CachedTokens, u.InputTokens)
	u.StoredTokens = count(u.StoredTokens, u.InputTokens-u.CachedTokens)
	u.ThoughtTokens = count(u.ThoughtTokens, u.OutputTokens)
	return u
}

// SetPrice says where the price of a service is set, for errors.
const SetPrice = "an administrator sets it on the page /services (Edit, Prices), with artel services set ID --price-input … --price-output …, " +
	"or as price: {input: …, output: …} in its entry in artel.yaml, in dollars per million tokens (0 if it costs nothing)"

// UnpricedError says that a limit of the cost cannot be kept on a service without a
// known price.
func UnpricedError(limit string, s Service) error {
	return fmt.Errorf("%s limits the cost in dollars, and the price of the service %s is not known; "+SetPrice, limit, s.ID)
}
