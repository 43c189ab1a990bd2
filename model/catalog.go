// SPDX-License-Identifier: Apache-2.0

package model

import (
	"regexp"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// A family is what the models behind one API take.
type family struct {
	input     []artel.Capability
	accepts   []string // nil: not restricted
	tokenizer string   // "": not public
}

// A catalogRow is one model. A name that ends in "*" stands for all names that
// begin so.
type catalogRow struct {
	name           string
	family         *family
	window, output int // tokens; 0: not known
}

// catalog returns the built-in table: what is commonly known of current
// models, after the providers' public documentation. Some windows and outputs
// were compared with charmbracelet/catwalk and models.dev, the rest was not. It
// is the weakest source of all: whatever an operator or an endpoint says wins.
func catalog() []catalogRow {
	var (
		webImages = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}
		pdf       = "application/pdf"
		seeing    = []artel.Capability{artel.CanText, artel.CanVision}
		reading   = []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile}
		textOnly  = []artel.Capability{artel.CanText}

		// Chat Completions takes PDF as its only file type.
		gpt      = &family{reading, append(slices.Clone(webImages), pdf), "o200k_base"}
		gptText  = &family{textOnly, nil, "o200k_base"}
		gptVoice = &family{[]artel.Capability{artel.CanText, artel.CanAudio}, []string{"audio/wav", "audio/mpeg"}, "o200k_base"}
		gpt4     = &family{textOnly, nil, "cl100k_base"}
		gpt4Eyes = &family{seeing, webImages, "cl100k_base"}
		claude   = &family{reading, append(slices.Clone(webImages), pdf), ""}
		gemini   = &family{
			[]artel.Capability{artel.CanText, artel.CanVision, artel.CanFile, artel.CanAudio, artel.CanVideo},
			[]string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "audio/*", "video/*", pdf},
			"",
		}
		openText = &family{textOnly, nil, ""}
		openEyes = &family{seeing, nil, ""}
		openHarm = &family{textOnly, nil, "o200k_base"}
	)
	return []catalogRow{
		{"gpt-5.4", gpt, 1_050_000, 128_000},
		{"gpt-5.2", gpt, 400_000, 128_000},
		{"gpt-5.1", gpt, 400_000, 128_000},
		{"gpt-5", gpt, 400_000, 128_000},
		{"gpt-5-mini", gpt, 400_000, 128_000},
		{"gpt-5-nano", gpt, 400_000, 128_000},
		{"gpt-4.1", gpt, 1_047_576, 32_768},
		{"gpt-4.1-mini", gpt, 1_047_576, 32_768},
		{"gpt-4.1-nano", gpt, 1_047_576, 32_768},
		{"gpt-4o", gpt, 128_000, 16_384},
		{"gpt-4o-mini", gpt, 128_000, 16_384},
		{"chatgpt-4o", gpt, 128_000, 16_384},
		{"gpt-4o-audio", gptVoice, 128_000, 16_384},
		{"gpt-4o-mini-audio", gptVoice, 128_000, 16_384},
		{"gpt-4-turbo", gpt4Eyes, 128_000, 4_096},
		{"gpt-4", gpt4, 8_192, 8_192},
		{"gpt-3.5-turbo", gpt4, 16_385, 4_096},
		{"o4-mini", gpt, 200_000, 100_000},
		{"o3", gpt, 200_000, 100_000},
		{"o3-mini", gptText, 200_000, 100_000},
		{"o1", gpt, 200_000, 100_000},

		{"claude-fable-5-1", claude, 1_000_000, 128_000},
		{"claude-fable-5", claude, 1_000_000, 128_000},
		{"claude-opus-5", claude, 1_000_000, 128_000},
		{"claude-opus-4-8", claude, 1_000_000, 128_000},
		{"claude-opus-4-7", claude, 1_000_000, 128_000},
		{"claude-opus-4-6", claude, 200_000, 128_000},
		{"claude-opus-4-5", claude, 200_000, 64_000},
		{"claude-opus-4-1", claude, 200_000, 32_000},
		{"claude-opus-4", claude, 200_000, 32_000},
		{"claude-sonnet-5", claude, 1_000_000, 128_000},
		{"claude-sonnet-4-6", claude, 200_000, 128_000},
		{"claude-sonnet-4-5", claude, 200_000, 64_000},
		{"claude-sonnet-4", claude, 200_000, 64_000},
		{"claude-3-7-sonnet", claude, 200_000, 64_000},
		{"claude-3-5-sonnet", claude, 200_000, 8_192},
		{"claude-haiku-4-5", claude, 200_000, 64_000},
		{"claude-3-5-haiku", claude, 200_000, 8_192},

		{"gemini-3.8-flash", gemini, 1_048_576, 65_536},
		{"gemini-3.7-flash", gemini, 1_048_576, 65_536},
		{"gemini-3.6-flash", gemini, 1_048_576, 65_536},
		{"gemini-3.5-flash", gemini, 1_048_576, 65_536},
		{"gemini-3.5-flash-lite", gemini, 1_048_576, 65_536},
		{"gemini-3.1-pro", gemini, 1_048_576, 65_536},
		{"gemini-3.1-flash-lite", gemini, 1_048_576, 65_536},
		{"gemini-3-pro", gemini, 1_048_576, 65_536},
		{"gemini-3-flash", gemini, 1_048_576, 65_536},
		{"gemini-2.5-pro", gemini, 1_048_576, 65_536},
		{"gemini-2.5-flash", gemini, 1_048_576, 65_536},
		{"gemini-2.5-flash-lite", gemini, 1_048_576, 65_536},
		{"gemini-2.0-flash", gemini, 1_048_576, 8_192},

		// Windows of open models are settings of the server that runs them.
		{"gpt-oss-*", openHarm, 0, 0},
		{"gpt-oss:*", openHarm, 0, 0},
		{"llava*", openEyes, 0, 0},
		{"llama-3.2-11b-vision*", openEyes, 0, 0},
		{"llama-3.2-90b-vision*", openEyes, 0, 0},
		{"llama3.2-vision*", openEyes, 0, 0},
		{"llama-4-*", openEyes, 0, 0},
		{"llama4*", openEyes, 0, 0},
		{"pixtral-*", openEyes, 0, 0},
		{"qwen2-vl*", openEyes, 0, 0},
		{"qwen2.5-vl*", openEyes, 0, 0},
		{"qwen2.5vl*", openEyes, 0, 0},
		{"qwen3-vl*", openEyes, 0, 0},
		{"minicpm-v*", openEyes, 0, 0},
		{"deepseek-chat", openText, 0, 0},
		{"deepseek-reasoner", openText, 0, 0},
	}
}

// A release is the date, number or channel that APIs append to a model's name.
var release = regexp.MustCompile(`[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{3,4}|latest|(preview|exp)(-\d{2}-\d{2,4})?)$`)

// Catalog returns what the built-in table knows about a model: nothing, where
// the name is not in it. The name may carry a maker before a slash and a
// release at the end ("openai/gpt-4o-2024-11-20").
func Catalog(name string) Capabilities {
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	rows := catalog()
	for _, n := range []string{name, release.ReplaceAllString(name, "")} {
		if i := slices.IndexFunc(rows, func(r catalogRow) bool { return r.matches(n) }); i >= 0 {
			return rows[i].capabilities()
		}
	}
	return TextOnly()
}

func (r catalogRow) matches(name string) bool {
	if prefix, open := strings.CutSuffix(r.name, "*"); open {
		return strings.HasPrefix(name, prefix)
	}
	return name == r.name
}

func (r catalogRow) capabilities() Capabilities {
	c := TextOnly()
	c.Input = known(FromCatalog, slices.Clone(r.family.input))
	if r.family.accepts != nil {
		c.Accepts = known(FromCatalog, slices.Clone(r.family.accepts))
	}
	if r.family.tokenizer != "" {
		c.Tokenizer = known(FromCatalog, r.family.tokenizer)
	}
	if r.window > 0 {
		c.ContextWindow = known(FromCatalog, r.window)
	}
	if r.output > 0 {
		c.MaxOutput = known(FromCatalog, r.output)
	}
	return c
}
