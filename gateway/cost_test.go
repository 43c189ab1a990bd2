// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"math"
	"testing"

	"github.com/artelhq/artel/model"
)

// TestCost: the log has what a forwarded and a translated request cost, streamed or
// whole; without a price the cost is unknown, not zero.
func TestCost(t *testing.T) {
	b := newBench(t, setup{services: func(s []model.Service) []model.Service {
		price := model.Fact[model.Price]{Value: model.Price{Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5}, Source: model.FromOperator}
		s[0].Capabilities.Price = price
		return s
	}})
	for _, dialect := range []string{"chat", "messages", "responses", "gemini"} {
		for _, stream := range []bool{true, false} {
			path, body := request(dialect, "chat", stream)
			if dialect == "chat" && stream {
				body = body[:len(body)-1] + `,"stream_options":{"include_usage":true}}`
			}
			if status, got := b.post(path, body); status != 200 {
				t.Fatalf("%s: %d %s", dialect, status, got)
			}
			u := b.entry().Usage
			want := (float64(u.InputTokens-u.CachedTokens)*2 + float64(u.CachedTokens)*0.2 + float64(u.OutputTokens)*10) / 1e6
			if u.InputTokens == 0 || u.OutputTokens == 0 || u.Cost.Calls != 1 || math.Abs(u.Cost.USD-want) > 1e-12 {
				t.Errorf("%s, stream %v: %+v, want $%v", dialect, stream, u, want)
			}
		}
	}
	path, body := request("chat", "text", false)
	if b.post(path, body); b.entry().Usage.Cost.Calls != 0 || b.entry().Usage.InputTokens == 0 {
		t.Errorf("without a price: %+v", b.entry().Usage)
	}
}
