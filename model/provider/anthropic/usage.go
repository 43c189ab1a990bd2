// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"

	"github.com/artelhq/artel"
)

// Usage counts tokens. InputTokens were neither read from the cache nor written to
// it.
type Usage struct {
	InputTokens              int64          `json:"input_tokens"`
	CacheCreationInputTokens int64          `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int64          `json:"cache_read_input_tokens"`
	OutputTokens             int64          `json:"output_tokens"`
	OutputTokensDetails      *OutputDetails `json:"output_tokens_details,omitempty"`
}

// OutputDetails counts the tokens of the reasoning.
type OutputDetails struct {
	ThinkingTokens int64 `json:"thinking_tokens"`
}

// ReadUsage reads the usage of an answer or an event, a JSON object; before is what
// earlier events of the answer said.
func ReadUsage(raw []byte, before artel.Usage) artel.Usage {
	u := wireUsage(before)
	u.take(raw)
	return u.neutral()
}

// take reads counts, a JSON object. They are cumulative: absent ones keep the values
// of the beginning of the message.
func (u *Usage) take(raw json.RawMessage) {
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, u) // servers report it in many forms: what is understood counts
	}
}

// neutral counts all input as InputTokens, as the other dialects do.
func (u Usage) neutral() artel.Usage {
	out := artel.Usage{
		Calls: 1, InputTokens: u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens,
		OutputTokens: u.OutputTokens, CachedTokens: u.CacheReadInputTokens, StoredTokens: u.CacheCreationInputTokens,
	}
	if u.OutputTokensDetails != nil {
		out.ThoughtTokens = u.OutputTokensDetails.ThinkingTokens
	}
	return out
}

func wireUsage(u artel.Usage) Usage {
	out := Usage{
		InputTokens:              max(u.InputTokens-u.CachedTokens-u.StoredTokens, 0),
		CacheCreationInputTokens: u.StoredTokens, CacheReadInputTokens: u.CachedTokens, OutputTokens: u.OutputTokens,
	}
	if u.ThoughtTokens > 0 {
		out.OutputTokensDetails = &OutputDetails{u.ThoughtTokens}
	}
	return out
}
