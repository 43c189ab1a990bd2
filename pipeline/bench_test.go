// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/token"
)

// A build after one new message in a conversation of 10,000.
func BenchmarkBuild10000(b *testing.B) {
	words := strings.Repeat("the quick brown fox jumps over the lazy dog ", 12)
	history := make([]artel.Message, 10_000)
	for i := range history {
		role := "user"
		if i%2 == 0 {
			role = "assistant"
		}
		history[i] = say(fmt.Sprintf("m%d", i), role, fmt.Sprintf("%d %s", i, words))
		if i > 0 {
			history[i].Parent = history[i-1].ID
		}
	}
	for _, c := range []struct {
		name, vocabulary string
		window           int
	}{{"characters", token.Characters, 0}, {"o200k", token.O200k, 0}, {"o200k window 32k", token.O200k, 32_000}} {
		b.Run(c.name, func(b *testing.B) {
			s := service(c.window)
			s.Capabilities.Tokenizer = model.Fact[string]{Value: c.vocabulary, Source: model.FromOperator}
			in := input(s, history...)
			r := builtIn(b)
			if _, err := r.Build(b.Context(), in); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := r.Build(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
