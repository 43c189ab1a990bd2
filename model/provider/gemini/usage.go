// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"

	"github.com/artelhq/artel"
)

// Usage counts tokens. CandidatesTokenCount excludes thoughts.
type Usage struct {
	PromptTokenCount        int64 `json:"promptTokenCount"`
	CandidatesTokenCount    int64 `json:"candidatesTokenCount,omitempty"`
	TotalTokenCount         int64 `json:"totalTokenCount"`
	CachedContentTokenCount int64 `json:"cachedContentTokenCount,omitempty"`
	ThoughtsTokenCount      int64 `json:"thoughtsTokenCount,omitempty"`
	ToolUsePromptTokenCount int64 `json:"toolUsePromptTokenCount,omitempty"`
}

// ReadUsage reads the usageMetadata of an answer, a JSON object.
func ReadUsage(raw []byte) artel.Usage {
	var u Usage
	_ = json.Unmarshal(raw, &u) // servers report it in many forms: what is understood counts
	return u.neutral()
}

func (u Usage) neutral() artel.Usage {
	return artel.Usage{
		Calls: 1, InputTokens: u.PromptTokenCount + u.ToolUsePromptTokenCount, OutputTokens: u.CandidatesTokenCount + u.ThoughtsTokenCount,
		CachedTokens: u.CachedContentTokenCount, ThoughtTokens: u.ThoughtsTokenCount,
	}
}

func wireUsage(u artel.Usage) *Usage {
	return &Usage{
		PromptTokenCount: u.InputTokens, CandidatesTokenCount: u.OutputTokens - u.ThoughtTokens, ThoughtsTokenCount: u.ThoughtTokens,
		CachedContentTokenCount: u.CachedTokens, TotalTokenCount: u.InputTokens + u.OutputTokens,
	}
}
