// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// TestCarriedInEveryDialect: a service that takes no media in the results of
// tools gets them behind these, legally, and one that takes none at all gets
// words in their place. The same request gives the same bytes.
func TestCarriedInEveryDialect(t *testing.T) {
	yes := model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile}, Source: model.FromOperator}
	for _, blind := range []bool{false, true} {
		b := newBench(t, setup{services: func(all []model.Service) []model.Service {
			for i := range all {
				c := model.TextOnly()
				if !blind {
					c.Input = yes
				}
				c.ToolImage = model.Fact[bool]{Source: model.FromOperator}
				c.ToolFile = c.ToolImage
				all[i].Capabilities = c
				if all[i].ID == "gemini" {
					all[i].Model = "gemini-2.5-test"
				}
			}
			return all
		}})
		b.upstream = http.HandlerFunc(apis)
		png := picture(8, 11)
		image := fmt.Sprintf("image image/png, %d bytes", len(png))
		for _, in := range speeches() {
			for _, out := range speeches() {
				what := fmt.Sprintf("%s to %s, blind %v", in.name, out.name, blind)
				sent := in.body(out.service, false, speechContent{text: "hello", picture: encoded(png), tool: "a chart of numbers"})
				status, body := b.post(in.path(out.service, false), sent, in.header...)
				said := strings.NewReplacer(`\n`, "\n", `\"`, `"`).Replace(body)
				if status != 200 || !strings.Contains(said, "result of call_1: a chart of numbers") {
					t.Errorf("%s: %d %s\nit got %s", what, status, body, b.last())
					continue
				}
				switch {
				case blind && (strings.Contains(b.last(), encoded(png)[:60]) || !strings.Contains(b.last(), "[cannot read]")):
					t.Errorf("%s: it got %s", what, b.last())
				case !blind && (!strings.Contains(said, image) || !strings.Contains(said, "from tool call call_1") || strings.Count(b.last(), encoded(png)) != 1):
					t.Errorf("%s: %s\nit got %s", what, body, b.last())
				}
				if !blind && !has(b.did(), "carried") || blind && !has(b.did(), "described") {
					t.Errorf("%s: did %v", what, b.did())
				}
				first := b.last()
				if b.post(in.path(out.service, false), sent, in.header...); b.last() != first {
					t.Errorf("%s: the second time it got\n%s\nand the first\n%s", what, b.last(), first)
				}
			}
		}
	}
}
