// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"

	"github.com/artelhq/artel"
)

// Usage counts tokens.
type Usage struct {
	PromptTokens            int64              `json:"prompt_tokens"`
	CompletionTokens        int64              `json:"completion_tokens"`
	TotalTokens             int64              `json:"total_tokens"`
	PromptTokensDetails     *PromptDetails     `json:"prompt_tokens_details,omitempty"`
	CompletionTokensDetails *CompletionDetails `json:"completion_tokens_details,omitempty"`

	// Not of OpenAI: the cached tokens of DeepSeek.
	PromptCacheHitTokens int64 `json:"prompt_cache_hit_tokens,omitempty"`
}

// PromptDetails counts the tokens of the prompt that were read from and written to
// the cache.
type PromptDetails struct {
	CachedTokens     int64 `json:"cached_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
}

// CompletionDetails counts the tokens of the reasoning.
type CompletionDetails struct {
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// ReadUsage reads the usage of an answer, a JSON object.
func ReadUsage(raw []byte) artel.Usage {
	var u Usage
	_ = json.Unmarshal(raw, &u) // servers report it in many forms: what is understood counts
	return u.neutral()
}

func (u Usage) neutral() artel.Usage {
	out := artel.Usage{Calls: 1, InputTokens: u.PromptTokens, OutputTokens: u.CompletionTokens, CachedTokens: u.PromptCacheHitTokens}
	if d := u.PromptTokensDetails; d != nil {
		out.CachedTokens, out.StoredTokens = max(d.CachedTokens, out.CachedTokens), d.CacheWriteTokens
	}
	if d := u.CompletionTokensDetails; d != nil {
		out.ThoughtTokens = d.ReasoningTokens
	}
	return out
}

func wireUsage(u artel.Usage) *Usage {
	return &Usage{
		PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, TotalTokens: u.InputTokens + u.OutputTokens,
		PromptTokensDetails:     &PromptDetails{CachedTokens: u.CachedTokens, CacheWriteTokens: u.StoredTokens},
		CompletionTokensDetails: &CompletionDetails{ReasoningTokens: u.ThoughtTokens},
	}
}
