// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// anyValue draws what a decoder may give for a key, sound or not.
func anyValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "flag")
		case 2:
			return rapid.Float64().Draw(t, "number")
		case 3:
			return rapid.Uint64().Draw(t, "whole")
		case 4, 5:
			return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"vision", "text", "image/*", "gpt-4o", "openai", "url", "litellm", "http://127.0.0.1:1", "a"})).Draw(t, "text")
		case 6, 7:
			if depth > 0 {
				return rapid.SliceOfN(anyValue(depth-1), 0, 4).Draw(t, "list")
			}
		default:
			if depth > 0 {
				return anyEntry(depth-1).Draw(t, "object")
			}
		}
		return "x"
	})
}

func anyEntry(depth int) *rapid.Generator[map[string]any] {
	key := rapid.SampledFrom([]string{
		"id", "name", "baseURL", "model", "apiKey", "dialect", "capabilities", "input", "output", "accepts", "limits", "item_bytes", "request_bytes", "side", "images",
		"pages", "placement", "tool_image", "tool_file", "user_after_tool", "transport", "context_window", "max_output", "maxTokens", "tokenizer", "timeout",
		"maxConcurrentRequests", "discovery", "capabilityTags", "fallbacks", "nonsense", "",
		"quirks", "takes", "output_limit", "tool_lists", "no_usage", "call_ids", "audio_as_url", "no_urls", "media_ids", "reasoning",
	})
	return rapid.MapOfN(key, anyValue(depth), 0, 12)
}

// TestBrokenEntriesDegrade: whatever stands in the entries of services, nothing
// fails, every service takes text, and what is not known is not taken (INV-5).
func TestBrokenEntriesDegrade(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var entries []any
		for range rapid.IntRange(0, 4).Draw(rt, "entries") {
			if rapid.IntRange(0, 5).Draw(rt, "no object") == 0 {
				entries = append(entries, anyValue(1).Draw(rt, "value"))
				continue
			}
			e := anyEntry(2).Draw(rt, "entry")
			if rapid.Bool().Draw(rt, "named") {
				e["id"] = rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "id")
			}
			entries = append(entries, e)
		}
		services, findings := model.ParseServices(entries, "f", noEnv)
		if len(findings) != len(entries) {
			rt.Fatalf("%d findings for %d entries", len(findings), len(entries))
		}
		r := model.NewRegistry(services, artel.ServiceID(rapid.String().Draw(rt, "default")))
		for _, s := range r.All() {
			for _, c := range []model.Capabilities{s.Capabilities, s.OnWire().Capabilities, s.Lowered(nil).Capabilities} {
				if len(c.Input.Value) == 0 || !c.Takes(artel.CanText, "text/plain") {
					rt.Fatalf("%s does not take text: %+v", s.ID, c)
				}
				for _, n := range []int64{c.MaxItemBytes.Value, c.MaxRequestBytes.Value, int64(c.MaxSide.Value), int64(c.MaxImages.Value), int64(c.MaxPages.Value), int64(c.ContextWindow.Value)} {
					if n < 0 {
						rt.Fatalf("%s has a negative limit: %+v", s.ID, c)
					}
				}
			}
			_ = s.Capabilities.ToolTakes("image/png")
		}
		for _, need := range []artel.Capability{artel.CanVision, artel.CanFile, "smell"} {
			r.Suggest(need, "image/png")
		}
		for _, f := range findings {
			f.Warnings()
		}
	})
}
