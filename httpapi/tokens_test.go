// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestCountTokens(t *testing.T) {
	b := newBench(t, writes)
	for _, tt := range []struct {
		text, vocabulary string
		want             float64
	}{
		{"", "o200k_base", 0},
		{"hello world", "o200k_base", 2},
		{"hello world", "cl100k_base", 2},
		{"你好, 世界", "characters", 6},
		{"hello world", "claude", 3},
		{strings.Repeat("a ", 1<<20), "o200k_base", 1<<20 + 1},
	} {
		m := b.object(b.do("POST", "/tokens/count", fmt.Sprintf(`{"text":%q,"vocabulary":%q}`, tt.text, tt.vocabulary)), 200)
		has(t, "a count", m, "tokens", "")
		if m["tokens"] != tt.want {
			t.Errorf("%s, %.20q: %v tokens, want %v", tt.vocabulary, tt.text, m["tokens"], tt.want)
		}
	}
	if m := b.object(b.do("POST", "/tokens/count", `{"text":"hello world"}`), 200); m["tokens"] != 2.0 {
		t.Errorf("without a vocabulary: %v", m)
	}
	p := b.problem(b.do("POST", "/tokens/count", `{"text":"a","vocabulary":"p50k"}`), 422, "invalid")
	if detail, _ := p["detail"].(string); !strings.Contains(detail, "cl100k_base") {
		t.Errorf("the vocabularies are not named: %v", p)
	}
	b.problem(b.do("POST", "/tokens/count", `{"vocabulary":"o200k_base"}`), 422, "invalid")
	b.problem(b.do("POST", "/tokens/count", `{"text":"\ud800","vocabulary":"o200k_base"}`), 400, "malformed")
}

// TestVocabularies: whatever is listed is counted in.
func TestVocabularies(t *testing.T) {
	b := newBench(t, writes)
	exact := 0
	for _, item := range b.object(b.do("GET", "/tokens/vocabularies", nil), 200)["items"].([]any) {
		m := item.(map[string]any)
		has(t, "a vocabulary", m, "name exact source", "error")
		if m["exact"] == true {
			exact++
		} else if m["error"].(float64) <= 0 {
			t.Errorf("the error of %v is not said", m["name"])
		}
		b.object(b.do("POST", "/tokens/count", fmt.Sprintf(`{"text":"a","vocabulary":%q}`, m["name"])), 200)
	}
	if exact != 3 {
		t.Errorf("%d are exact", exact)
	}
}
