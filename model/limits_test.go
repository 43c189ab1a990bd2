// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/artelhq/artel/model"
)

func TestHolding(t *testing.T) {
	side := func(s model.Service, pictures int) int { return s.ForPictures(pictures).Capabilities.MaxSide.Value }
	s := model.Service{Dialect: model.Anthropic}
	if few, many := side(s, 20), side(s, 21); few != 8000 || many != 2000 {
		t.Errorf("sides are %d and %d", few, many)
	}
	s.Capabilities.MaxSide = model.Fact[int]{Value: 1500, Source: model.FromLearned}
	if side(s, 30) != 1500 {
		t.Error("a lower limit was raised")
	}
	s.Capabilities.MaxSide = model.Fact[int]{Value: 0, Source: model.FromOperator}
	if side(s, 30) != 0 {
		t.Error("the operator said that there is no limit")
	}
	if side(model.Service{Dialect: model.Gemini}, 30) != 0 {
		t.Error("Gemini has none")
	}
}
