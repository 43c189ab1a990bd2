// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

func parsePriced(t interface{ Fatalf(string, ...any) }, fields map[string]any) (model.Service, []string) {
	entry := map[string]any{"id": "a", "baseURL": "https://api.openai.com/v1", "model": "gpt-5"}
	for k, v := range fields {
		entry[k] = v
	}
	services, findings := model.ParseServices([]any{entry}, "test", func(string) string { return "" })
	if len(services) != 1 {
		t.Fatalf("%d services", len(services))
	}
	return services[0], findings[0].Warnings()
}

func TestPrices(t *testing.T) {
	call := artel.Usage{Calls: 1, InputTokens: 1_000_000, OutputTokens: 100_000, CachedTokens: 400_000}
	for _, tt := range []struct {
		name   string
		fields map[string]any
		want   artel.Cost
		warns  int
	}{
		{"the maker's list", nil, artel.Cost{USD: 0.6*1.25 + 0.4*0.125 + 0.1*10, Calls: 1}, 0},
		{"the operator's", map[string]any{"price": map[string]any{"input": 1, "output": 2.5, "cache_read": 0}}, artel.Cost{USD: 0.6 + 0.25, Calls: 1}, 0},
		{"free", map[string]any{"price": map[string]any{"input": 0, "output": 0}}, artel.Cost{Calls: 1}, 0},
		{"the cache costs as much", map[string]any{"price": map[string]any{"input": 1, "output": 0}}, artel.Cost{USD: 1, Calls: 1}, 0},
		{"elsewhere nobody knows it", map[string]any{"baseURL": "http://127.0.0.1:8000/v1"}, artel.Cost{}, 0},
		{"half a price is none", map[string]any{"baseURL": "http://127.0.0.1:8000/v1", "price": map[string]any{"input": 1}}, artel.Cost{}, 1},
		{"negative", map[string]any{"baseURL": "http://127.0.0.1:8000/v1", "price": map[string]any{"input": -1, "output": 1}}, artel.Cost{}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, warnings := parsePriced(t, tt.fields)
			got := s.Cost(call)
			if got.Calls != tt.want.Calls || math.Abs(got.USD-tt.want.USD) > 1e-9 || len(warnings) != tt.warns {
				t.Errorf("%+v, want %+v; %q", got, tt.want, warnings)
			}
		})
	}
	s, _ := parsePriced(t, nil)
	if got := s.Cost(artel.Usage{Calls: 1}); got != (artel.Cost{}) {
		t.Errorf("a call of which nothing is reported costs %+v; want unknown", got)
	}
}

// The cost of a run is known of as many calls as have a price, and never falls.
func TestCostsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sum artel.Usage
		priced := 0
		for range rapid.IntRange(0, 20).Draw(t, "calls") {
			s, _ := parsePriced(t, map[string]any{"baseURL": rapid.SampledFrom([]string{"https://api.openai.com/v1", "http://10.0.0.1/v1"}).Draw(t, "base")})
			u := artel.Usage{Calls: 1, InputTokens: rapid.Int64Range(0, 1e6).Draw(t, "in"), OutputTokens: rapid.Int64Range(0, 1e5).Draw(t, "out")}
			u.CachedTokens = rapid.Int64Range(0, u.InputTokens).Draw(t, "cached")
			if u.Cost = s.Cost(u); u.Cost.Calls == 1 {
				priced++
			}
			before := sum.Cost.USD
			if sum = sum.Add(u); sum.Cost.USD < before {
				t.Fatalf("the cost fell from %v to %v", before, sum.Cost.USD)
			}
		}
		if sum.Cost.Calls != priced || sum.Cost.Calls > sum.Calls {
			t.Fatalf("%+v, %d calls have a price", sum, priced)
		}
	})
}
