// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/token"
)

// TestImages holds images to the examples of the vendors' documentation, where
// there are any, and to its formulas elsewhere.
func TestImages(t *testing.T) {
	for _, tt := range []struct {
		model, dialect string
		w, h           int
		want           int
	}{
		{"gpt-4o", "openai", 1024, 1024, 765},
		{"gpt-4o", "openai", 2048, 4096, 1105},
		{"openai/gpt-4o-2024-11-20", "openai", 128, 64, 255},
		{"gpt-4o-mini", "openai", 128, 64, 8500},
		{"o3", "openai-responses", 128, 64, 225},
		{"gpt-4.1", "openai", 1024, 1024, 765},
		{"gpt-4.1-mini", "openai", 1024, 1024, 1659}, // 1,024 patches by 1.62
		{"gpt-4.1-mini", "openai", 1800, 2400, 2353}, // 1,452 patches
		{"gpt-4.1-nano", "openai", 1024, 1024, 2520}, // by 2.46
		{"o4-mini", "openai", 32, 32, 2},             // by 1.72
		{"gpt-5", "openai-responses", 1024, 1024, 630},
		{"gpt-5.1", "openai-responses", 1024, 1024, 630},
		{"gpt-5-mini", "openai", 1024, 1024, 1659},
		{"gpt-5.4-mini", "openai", 1024, 1024, 1659},
		{"gpt-5.2", "openai", 1024, 1024, 1229},
		{"gpt-5.4", "openai", 4000, 4000, 3000},
		{"somebody's", "openai", 0, 0, 765},

		{"claude-sonnet-4-5", "anthropic", 200, 200, 54},
		{"claude-sonnet-4-5", "anthropic", 1000, 1000, 1334},
		{"claude-3-5-sonnet-20241022", "anthropic", 1092, 1092, 1590},
		{"claude-sonnet-4-20250514", "anthropic", 4000, 3000, 1600},
		{"anthropic/claude-opus-4.6", "openai", 2000, 2000, 1600},
		{"claude-opus-4-7", "anthropic", 1800, 1800, 4320},
		{"us.anthropic.claude-opus-5-v1:0", "anthropic", 8000, 6000, 4784},
		{"claude-fable-1", "anthropic", 1800, 1800, 4320},
		{"proxy", "anthropic", 1000, 1000, 1334},

		{"gemini-2.5-pro", "gemini", 384, 384, 258},
		{"gemini-2.5-pro", "gemini", 385, 10, 258},
		{"gemini-2.5-flash", "openai", 960, 540, 516},
		{"gemini-3-pro-preview", "gemini", 100, 100, 1120},
		{"gemma-3-27b-it", "openai", 2000, 2000, 256},
		{"tuned", "gemini", 769, 769, 1032},

		{"qwen2.5-vl-72b-instruct", "openai", 1008, 1008, 1298},
		{"qwen3-vl-plus", "openai", 1024, 1024, 1026},
		{"qwen-vl-max", "openai", 1024, 1024, 1026},
		{"qwen3-vl-plus", "openai", 10, 10, 6},
		{"qwen3-vl-plus", "openai", 20_000, 20_000, 16_386},
		{"pixtral-12b-2409", "openai", 1024, 1024, 4160},
		{"pixtral-12b-2409", "openai", 2048, 2048, 4160},
		{"mistral-medium-latest", "openai", 1540, 1540, 3080},
		{"llama-3.2-90b-vision-instruct", "openai", 560, 560, 1601},
		{"llama3.2-vision:11b", "openai", 3000, 3000, 6404},
		{"meta-llama/llama-4-scout", "openai", 336, 336, 290},
		{"grok-4", "openai", 448, 896, 768},
		{"grok-4", "openai", 4000, 4000, 1792},
	} {
		m := artel.Media{Kind: artel.KindImage, Width: tt.w, Height: tt.h, Size: 1 << 20}
		if got := token.Media(tt.model, tt.dialect, m); got != tt.want {
			t.Errorf("%s over %s, %d × %d: %d, want %d", tt.model, tt.dialect, tt.w, tt.h, got, tt.want)
		}
	}
}

func TestOtherMedia(t *testing.T) {
	for _, tt := range []struct {
		model, dialect string
		m              artel.Media
		want           int
	}{
		{"claude-sonnet-4-5", "anthropic", artel.Media{Kind: artel.KindDocument, Pages: 3}, 6750},
		{"claude-sonnet-4-5", "anthropic", artel.Media{Kind: artel.KindDocument, Size: 250_000}, 6750},
		{"gemini-2.5-pro", "gemini", artel.Media{Kind: artel.KindDocument, Pages: 10}, 2580},
		{"gemini-3-pro", "gemini", artel.Media{Kind: artel.KindDocument, Pages: 10}, 5600},
		{"gpt-4o", "openai", artel.Media{Kind: artel.KindDocument, Pages: 1}, 1365},
		{"gemini-2.5-pro", "gemini", artel.Media{Kind: artel.KindAudio, Duration: 60}, 1920},
		{"gemini-2.5-pro", "gemini", artel.Media{Kind: artel.KindAudio, Size: 16_000 * 10}, 320},
		{"gpt-4o-audio-preview", "openai", artel.Media{Kind: artel.KindAudio, Duration: 60}, 600},
		{"voxtral-small-latest", "openai", artel.Media{Kind: artel.KindAudio, Duration: 30}, 375},
		{"gemini-2.5-pro", "gemini", artel.Media{Kind: artel.KindVideo, Duration: 10}, 2630},
		{"gemini-3-pro", "gemini", artel.Media{Kind: artel.KindVideo, Duration: 10}, 1020},
		{"gpt-4o", "openai", artel.Media{Kind: artel.KindText, Size: 400}, 100},
	} {
		if got := token.Media(tt.model, tt.dialect, tt.m); got != tt.want {
			t.Errorf("%s, %s: %d, want %d", tt.model, tt.m.Kind, got, tt.want)
		}
	}
}

// TestMediaAreSane: every part costs something that is no more than a million
// tokens, and a larger image never much less than a smaller one.
func TestMediaAreSane(t *testing.T) {
	kinds := []artel.MediaKind{artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindDocument, artel.KindArchive, artel.KindOther}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`(a/)?(gpt-|claude-(opus|sonnet)-|gemini-|qwen|llama-?|grok-|pixtral-|o)[0-9.-]{0,6}(-mini|-nano|-vl)?`)).Draw(t, "name")
		dialect := rapid.SampledFrom([]string{"openai", "openai-responses", "anthropic", "gemini", "demo"}).Draw(t, "dialect")
		m := artel.Media{
			Kind:  rapid.SampledFrom(kinds).Draw(t, "kind"),
			Width: rapid.IntRange(0, 10_000).Draw(t, "w"), Height: rapid.IntRange(0, 10_000).Draw(t, "h"),
			Pages: rapid.IntRange(0, 100).Draw(t, "pages"), Duration: float64(rapid.IntRange(1, 600).Draw(t, "duration")), Size: 1000,
		}
		n := token.Media(name, dialect, m)
		if n < 1 || n > 1_000_000 {
			t.Fatalf("%q, %+v: %d tokens", name, m, n)
		}
	})
}
