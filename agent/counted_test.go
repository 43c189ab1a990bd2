// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// TestCountsAreCompared: what the API reports of a text corrects how texts are
// counted for its service.
func TestCountsAreCompared(t *testing.T) {
	reported := model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 6_000, OutputTokens: 1}}
	for name, tt := range map[string]struct {
		parts artel.Parts
		want  int
	}{
		"text":  {artel.Parts{artel.Text{Text: strings.Repeat("word ", 5_000)}}, 1},
		"short": {artel.Parts{artel.Text{Text: "word"}}, 0},
		"a description of media": {artel.Parts{artel.Text{Text: strings.Repeat("word ", 5_000)}, artel.Media{
			Ref: artel.BlobRef(artel.NewDigest([32]byte{1})), Kind: artel.KindImage, MediaType: "image/png", Width: 10, Height: 10, Size: 10,
		}}, 1},
	} {
		b := newBench(t, []turn{{say("done"), reported}})
		b.in.Service.BaseURL = "http://scripted"
		b.in.History[0].Parts = tt.parts
		var marks []model.Mark
		b.host.learn = func(m []model.Mark) { marks = append(marks, m...) }
		for _, err := range b.engine.Run(t.Context(), b.in) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if len(marks) != tt.want {
			t.Fatalf("%s: %+v", name, marks)
		}
		for _, m := range marks {
			if m.Ratio < 1.05 || m.Ratio > 1.2 || m.Endpoint != "http://scripted" {
				t.Errorf("%s: %+v", name, m)
			}
		}
	}
}
