// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"slices"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// What the dialect cannot carry is not accepted on the wire, and what the
// operator excludes stays out.
func TestOnWire(t *testing.T) {
	t.Parallel()
	file := model.Capabilities{Input: model.Fact[[]artel.Capability]{
		Value: []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile}, Source: model.FromOperator,
	}}
	narrow := file
	narrow.Accepts = model.Fact[[]string]{Value: []string{"image/*", "application/zip"}, Source: model.FromOperator}
	for _, c := range []struct {
		name    string
		service model.Service
		admits  map[string]bool
	}{
		{"any file", model.Service{Dialect: model.OpenAI, Capabilities: file}, map[string]bool{
			"application/pdf": true, "image/png": true, "image/bmp": false, "application/zip": false, "audio/mpeg": true, "video/mp4": false,
		}},
		{"by the operator", model.Service{Dialect: model.OpenAI, Capabilities: narrow}, map[string]bool{
			"application/pdf": false, "image/png": true, "image/bmp": false, "application/zip": false,
		}},
		{"Gemini", model.Service{Dialect: model.Gemini, Capabilities: file}, map[string]bool{
			"application/pdf": true, "image/heic": true, "image/gif": false, "image/bmp": false, "application/zip": false, "audio/ogg": true, "video/mp4": true,
		}},
		{"Messages", model.Service{Dialect: model.Anthropic, Capabilities: file}, map[string]bool{
			"application/pdf": true, "image/webp": true, "image/heic": false, "audio/mpeg": false, "text/csv": false,
		}},
		{"the demo", model.Service{Dialect: model.Demo, Capabilities: file}, map[string]bool{"application/zip": true}},
	} {
		for mediaType, want := range c.admits {
			if got := c.service.OnWire().Capabilities.Admits(mediaType); got != want {
				t.Errorf("%s: %s is admitted: %t", c.name, mediaType, got)
			}
		}
		if !c.service.Capabilities.Admits("image/bmp") && c.name != "the demo" && c.service.Capabilities.Accepts.Value == nil {
			t.Errorf("%s: OnWire changed the service itself", c.name)
		}
	}
}

// Where a request has many images, the limit on their sides is another one,
// but never a larger one.
func TestAmong(t *testing.T) {
	t.Parallel()
	of := func(side, many, ofMany int) (c model.Capabilities) {
		c.MaxSide.Value, c.Many.Value, c.MaxSideOfMany.Value = side, many, ofMany
		return c
	}
	for _, c := range []struct{ side, many, ofMany, images, want int }{
		{8000, 20, 2000, 20, 8000}, {8000, 20, 2000, 21, 2000}, {0, 20, 2000, 21, 2000}, {1000, 20, 2000, 21, 1000}, {8000, 0, 2000, 21, 8000}, {8000, 20, 0, 21, 8000},
	} {
		if got := of(c.side, c.many, c.ofMany).ForImages(c.images).MaxSide.Value; got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
	claude := model.Catalog("claude-sonnet-5")
	if now := claude.ForImages(21); claude.MaxSide.Value != 8000 || now.MaxSide != (model.Fact[int]{Value: 2000, Source: claude.MaxSide.Source}) {
		t.Errorf("of Claude: %+v, among many %+v", claude.MaxSide, now.MaxSide)
	}
}

// TestOnWireLeavesItsService: services are shared, so what can be sent is computed
// without a change to the lists of the service.
func TestOnWireLeavesItsService(t *testing.T) {
	s := model.Service{Dialect: model.OpenAI, QuirkSettings: model.QuirkSettings{Takes: model.Fact[[]string]{Source: model.FromOperator, Value: []string{"image/png", "image/webp", "image/jpeg"}}}}
	s.Capabilities.Accepts = model.Fact[[]string]{Value: []string{"image/png", "image/jpeg"}, Source: model.FromOperator}
	s.OnWire()
	if got := s.QuirkSettings.Takes.Value; !slices.Equal(got, []string{"image/png", "image/webp", "image/jpeg"}) {
		t.Errorf("it takes %q afterwards", got)
	}
}
