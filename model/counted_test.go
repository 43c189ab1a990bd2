// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel/model"
)

func ofRatio(ratio float64) model.Service {
	s := model.Service{ID: "a", BaseURL: "http://a", Model: "m", Capabilities: model.TextOnly()}
	if ratio > 0 {
		s.Capabilities.TokenRatio = model.Fact[float64]{Value: ratio, Source: model.FromLearned}
	}
	return s
}

func TestCounted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ratio    float64
		counted  int
		reported int64
		want     float64 // 0: nothing is learned
	}{
		"the first call":            {0, 10_000, 11_000, 1.1},
		"a later call goes part":    {1.2, 12_000, 10_000, 1.15},
		"as counted":                {0, 10_000, 10_100, 0},
		"as corrected":              {1.2, 12_000, 12_100, 0},
		"too short to say anything": {0, 900, 1_800, 0},
		"nothing reported":          {0, 10_000, 0, 0},
		"reported at will":          {0, 10_000, 10, 0},
		"reported at will, large":   {0, 10_000, 100_000, 0},
	} {
		m, ok := ofRatio(tt.ratio).MeasureRatio(tt.counted, tt.reported)
		if ok != (tt.want > 0) || m.Ratio != tt.want {
			t.Errorf("%s: %v, %v; want %v", name, m.Ratio, ok, tt.want)
		}
		if ok && (m.Source != model.FromLearned || m.Endpoint != "http://a" || m.Model != "m") {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// TestCountedConverges: whatever the endpoint's vocabulary is, as long as it is
// one, counts come to be what it reports.
func TestCountedConverges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, s := marked(ofRatio(0))
		truth := rapid.Float64Range(0.55, 1.9).Draw(t, "truth")
		for range 40 {
			plain := rapid.IntRange(1_500, 100_000).Draw(t, "plain")
			ratio := max(s.Capabilities.TokenRatio.Value, 0)
			if ratio == 0 {
				ratio = 1
			}
			if m, ok := s.MeasureRatio(int(float64(plain)*ratio), int64(float64(plain)*truth)); ok {
				r.Learned().Add(m)
				s, _ = r.Lookup(s.ID)
			}
		}
		got := s.Capabilities.TokenRatio
		if got.Value == 0 {
			got.Value = 1
		} else if got.Source != model.FromLearned {
			t.Fatalf("%+v", got)
		}
		if math.Abs(got.Value/truth-1) > 0.1 {
			t.Fatalf("%v is learned, %v is true", got.Value, truth)
		}
	})
}

// TestRatioStandsBesideOtherMarks: what is learned about tokens neither goes
// with other marks nor takes them away.
func TestRatioStandsBesideOtherMarks(t *testing.T) {
	t.Parallel()
	limit := model.Mark{Limit: model.RefusedCount, Value: 3, Source: model.FromLearned}
	ratio := model.Mark{Ratio: 1.2, Source: model.FromLearned}
	image := model.Mark{Place: model.InUser, MediaType: "image/*", OK: true, Source: model.FromProbe}
	_, s := marked(ofRatio(0), ratio, limit, image, model.Mark{Ratio: 1.3, Source: model.FromLearned}, limit)
	if got := s.Capabilities.TokenRatio; got.Value != 1.3 || s.Capabilities.MaxImages.Value != 3 {
		t.Errorf("%+v, %+v", got, s.Capabilities.MaxImages)
	}
	_, s = marked(ofRatio(0), model.Mark{Ratio: 7, Source: model.FromLearned})
	if s.Capabilities.TokenRatio.Value != 0 {
		t.Errorf("a ratio out of bounds is kept: %+v", s.Capabilities.TokenRatio)
	}
}
