// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"encoding/json"

	"github.com/artelhq/artel"
)

// Usage counts tokens.
type Usage struct {
	InputTokens         int64         `json:"input_tokens"`
	InputTokensDetails  InputDetails  `json:"input_tokens_details"`
	OutputTokens        int64         `json:"output_tokens"`
	OutputTokensDetails OutputDetails `json:"output_tokens_details"`
	TotalTokens         int64         `json:"total_tokens"`
}

// InputDetails counts the tokens of the input that were read from and written to
// the cache.
type InputDetails struct {
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	CachedTokens     int64 `json:"cached_tokens"`
}

// OutputDetails counts the tokens of the reasoning.
type OutputDetails struct {
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// ReadUsage reads the usage of an answer, a JSON object.
func ReadUsage(raw []byte) artel.Usage {
	var u Usage
	_ = json.Unmarshal(raw, &u) // servers report it in many forms: what is understood counts
	return u.neutral()
}

func (u Usage) neutral() artel.Usage {
	return artel.Usage{
		Calls: 1, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CachedTokens: u.InputTokensDetails.CachedTokens, StoredTokens: u.InputTokensDetails.CacheWriteTokens,
		ThoughtTokens: u.OutputTokensDetails.ReasoningTokens,
	}
}

func wireUsage(u artel.Usage) Usage {
	return Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, TotalTokens: u.InputTokens + u.OutputTokens,
		InputTokensDetails:  InputDetails{CachedTokens: u.CachedTokens, CacheWriteTokens: u.StoredTokens},
		OutputTokensDetails: OutputDetails{ReasoningTokens: u.ThoughtTokens},
	}
}
