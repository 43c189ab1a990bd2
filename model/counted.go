// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"

	"github.com/artelhq/artel"
)

// How far a count may be off by what is learned, and what is learned from.
const (
	leastRatio = 0.5
	mostRatio  = 2.0

	leastCounted = 1000 // tokens; what an API puts around every message is too much of less
	ratioStep    = 0.25 // of the way from what is known to what a call has shown
	ratioMatters = 0.02 // smaller changes are not worth a write
)

// MeasureRatio compares what the text of a request was counted to have, corrected
// by the ratio that s has, with the tokens that the API reported of it. It
// returns a mark about the ratio, where that is not what s has already. What is
// reported of a short text says nothing, nor does what is off by more than a
// vocabulary can be: some servers report what they like.
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

// mostTokens is more than any call takes.
const mostTokens = 1_000_000_000

// believable is what a call took as an API has reported it, without what cannot
// be: counts below zero or beyond all windows, and parts that are more than the
// whole. Limits on tokens and cost are held by it.
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
