// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"slices"
	"testing"

	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
)

// TestNoLimitIsSaid tells a limit that somebody says is not there from one of
// zero, and from one that nobody knows.
func TestNoLimitIsSaid(t *testing.T) {
	s := model.Service{ID: "a", Capabilities: model.TextOnly()}
	s.Capabilities.MaxImages = model.Fact[int]{Value: 20, Source: model.FromOperator}
	s.Capabilities.MaxSide.Source = model.FromOperator
	s.Capabilities.MaxItemBytes.Source = model.FromOperator
	c := choice(s, nil, phrase.English)
	got := map[phrase.Key]string{}
	for _, f := range c.Facts {
		got[f.Name] = f.Value
	}
	for name, want := range map[phrase.Key]string{phrase.PageFactImages: "20", phrase.PageFactSide: "no limit", phrase.PageFactItem: "no limit", phrase.PageFactPages: ""} {
		if got[name] != want || (want == "") != slices.Contains(c.Unknown, name) {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
}
