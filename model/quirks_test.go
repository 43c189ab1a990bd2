// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// spelled is how people call a media type; types with one name are one.
func spelled(mediaType string) string {
	switch mediaType {
	case "image/webp":
		return "WebP"
	case "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return "WAV"
	case "audio/mpeg":
		return "MP3"
	case "audio/mp4":
		return "M4A"
	case "video/quicktime":
		return "MOV"
	case "video/webm":
		return "WebM"
	}
	_, minor, _ := strings.Cut(mediaType, "/")
	return strings.ToUpper(minor)
}

// TestQuirksAreDocumented compares every row with its line for people.
func TestQuirksAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/dialects.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "|---|---|---|---|---|---|\n")
	var lines []string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	for i, q := range model.AllQuirks() {
		takes := "the dialect's"
		if q.Takes != nil {
			var names []string
			for _, mediaType := range q.Takes {
				names = append(names, spelled(mediaType))
			}
			takes = strings.Join(slices.Compact(names), ", ")
		}
		if takes == "" {
			takes = "text alone"
		}
		lists := "never"
		if q.ToolLists {
			lists = "if the model takes them"
		}
		replay := string(q.Reasoning)
		if replay == "" {
			replay = "nothing"
		}
		var besides []string
		for _, b := range []struct {
			is   bool
			says string
		}{
			{q.NoURLs, "fetches no pictures"},
			{q.MediaIDs, "an id with each picture"},
			{q.AudioAsURL, "sound as a data URL"},
			{q.NoUserAfterTool, "a sentence between a result and the user"},
			{q.NoUsage, "usage is not asked for"},
			{q.CallIDs == 9, "ids of 9 letters"},
		} {
			if b.is {
				besides = append(besides, b.says)
			}
		}
		more := " "
		if len(besides) > 0 {
			more = " " + strings.Join(besides, "; ") + " "
		}
		want := "| " + strings.Join([]string{q.Name, takes, "`" + q.OutputLimit + "`", lists, replay}, " | ") + " |" + more + "|"
		if i >= len(lines) || lines[i] != want {
			t.Errorf("docs/dialects.md should say\n%s", want)
		}
	}
	if len(lines) != len(model.AllQuirks()) {
		t.Errorf("there are %d lines for %d rows", len(lines), len(model.AllQuirks()))
	}
}

// TestQuirksOnWire: what a server has no place for is not accepted, and what
// it has beyond the dialect is.
func TestQuirksOnWire(t *testing.T) {
	t.Parallel()
	all := model.Capabilities{Input: model.Fact[[]artel.Capability]{
		Value: []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile, artel.CanAudio, artel.CanVideo}, Source: model.FromOperator,
	}}
	for name, c := range map[string]struct {
		service model.Service
		admits  map[string]bool
	}{
		"OpenRouter":           {model.Service{Dialect: model.OpenAI, BaseURL: "https://openrouter.ai/api/v1"}, map[string]bool{"video/mp4": true, "application/pdf": true, "application/zip": false}},
		"DeepSeek":             {model.Service{Dialect: model.OpenAI, BaseURL: "https://api.deepseek.com/v1"}, map[string]bool{"image/png": false, "application/pdf": false}},
		"Ollama":               {model.Service{Dialect: model.OpenAI, BaseURL: "http://127.0.0.1:11434/v1", Server: model.OllamaServer}, map[string]bool{"image/png": true, "image/gif": false, "application/pdf": false}},
		"another":              {model.Service{Dialect: model.OpenAI, BaseURL: "https://notdeepseek.com/v1"}, map[string]bool{"image/png": true, "video/mp4": false}},
		"a second endpoint":    {model.Service{Dialect: model.OpenAI, BaseURL: "https://openrouter.ai/api/v1", Carries: []string{"image/png"}}, map[string]bool{"image/png": true, "video/mp4": false}},
		"a dialect of its own": {model.Service{Dialect: model.OpenAIResponses, BaseURL: "https://openrouter.ai/api/v1"}, map[string]bool{"image/png": true, "video/mp4": false}},
	} {
		c.service.Capabilities = all
		for mediaType, want := range c.admits {
			if got := c.service.OnWire().Capabilities.Admits(mediaType); got != want {
				t.Errorf("%s: %s is admitted: %t", name, mediaType, got)
			}
		}
	}
}

// TestQuirksOfAddresses finds the row of a vendor by the host name of the address,
// however it is written.
func TestQuirksOfAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://api.mistral.ai/v1":              "Mistral",
		"HTTPS://API.Mistral.AI:443/v1":          "Mistral",
		"https://eu.api.mistral.ai?x=://":        "Mistral",
		"https://user:word@api.mistral.ai#x":     "Mistral",
		"https://me.openai.azure.com/openai":     "OpenAI",
		"https://api.mistral.ai.example.org/v1":  "any other",
		"https://example.org/api.mistral.ai":     "any other",
		"https://example.org?@api.mistral.ai":    "any other",
		"https://notapi.mistral.ai":              "any other",
		"http://[::1]:11434/v1":                  "any other",
		"http://[fe80::1%25api.mistral.ai]:1/v1": "any other",
		"api.mistral.ai":                         "any other",
		"":                                       "any other",
	} {
		if got := (model.Service{BaseURL: address}).Quirks().Name; got != want {
			t.Errorf("%q: %s, want %s", address, got, want)
		}
	}
}
