// SPDX-License-Identifier: Apache-2.0

package model_test

import (
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
