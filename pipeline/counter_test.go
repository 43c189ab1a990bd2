// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
)

// TestReportedTokensCorrectCounts: what a service reports is what its window is
// filled by, unless somebody names a vocabulary to count in.
func TestReportedTokensCorrectCounts(t *testing.T) {
	history := []artel.Message{say("1", "user", strings.Repeat("word ", 1_000))}
	total := func(ratio float64, config string) int {
		t.Helper()
		s := service(100_000)
		s.Capabilities.Tokenizer = model.Fact[string]{Value: token.O200k, Source: model.FromCatalog}
		s.Capabilities.TokenRatio = model.Fact[float64]{Value: ratio, Source: model.FromLearned}
		in := input(s, history...)
		if config != "" {
			in.Settings.Model = []pipeline.Setting{{ID: pipeline.TokenLimiter, Config: []byte(config)}}
		}
		out, err := builtIn(t).Build(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return out.Record.Tokens.Total
	}
	plain := total(0, "")
	if got := total(1.5, ""); got < plain*149/100 || got > plain*151/100+5 {
		t.Errorf("%d tokens at a ratio of 1.5, %d without", got, plain)
	}
	if got := total(1.5, `{"vocabulary":"o200k_base"}`); got != plain {
		t.Errorf("%d tokens in a vocabulary that was named, want %d", got, plain)
	}
}
