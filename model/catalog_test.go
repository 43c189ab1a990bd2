// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"bufio"
	"bytes"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

func TestCatalog(t *testing.T) {
	t.Parallel()
	const row, guess = model.FromCatalog, model.FromFamily
	for _, tt := range []struct {
		name   string
		window int
		takes  string // "" beside text
		from   model.Provenance
	}{
		// OpenAI: exact, in other letters, with maker, with release, with variant.
		{"gpt-4o", 128_000, "vision file", row},
		{"GPT-4o", 128_000, "vision file", row},
		{"openai/gpt-4o-2024-11-20", 128_000, "vision file", row},
		{"openai/gpt-4o:extended", 128_000, "vision file", row},
		{"gpt-4.1-mini-2025-04-14", 1_047_576, "vision file", row},
		{"gpt-5-mini", 400_000, "vision file", row},
		{"gpt-4-0613", 8_192, "", row},
		{"gpt-3.5-turbo", 16_385, "", row},
		{"o3-mini", 200_000, "", row},
		{"o4-mini", 200_000, "vision file", row},
		{"gpt-audio", 128_000, "audio", row},
		{"gpt-4o-audio-preview", 128_000, "audio", guess},
		{"gpt-9-nova", 0, "vision file", guess},
		{"gpt-oss-120b", 131_072, "", row},
		// Anthropic: hyphens and points, releases, Bedrock, Vertex.
		{"claude-opus-4-1-20250805", 200_000, "vision file", row},
		{"claude-sonnet-4-5", 200_000, "vision file", row},
		{"anthropic/claude-sonnet-4-5@20250929", 200_000, "vision file", row},
		{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, "vision file", row},
		{"claude-3-5-sonnet-latest", 200_000, "vision file", row},
		{"anthropic/claude-opus-4.5", 200_000, "vision file", row},
		{"claude-opus-5", 1_000_000, "vision file", row},
		{"claude-haiku-12", 0, "vision file", guess},
		// Google.
		{"gemini-2.5-flash-preview-05-20", 1_048_576, "vision file audio video", row},
		{"gemini-2.0-flash-001", 1_048_576, "vision file audio video", row},
		{"google/gemini-2.5-pro", 1_048_576, "vision file audio video", row},
		{"gemini-3.8-flash", 1_048_576, "vision file audio video", row},
		{"gemini-77-pro", 0, "vision file audio video", guess},
		{"gemma-4-31b-it", 262_144, "vision", row},
		// Others who make models.
		{"mistral-large-latest", 262_144, "vision", row},
		{"devstral-2512", 262_144, "", row},
		{"voxtral-small-latest", 32_768, "audio", row},
		{"pixtral-12b", 128_000, "vision", row},
		{"deepseek/deepseek-v4-pro", 1_000_000, "", row},
		{"grok-4.5", 500_000, "vision", row},
		{"kimi-k2.6", 262_144, "vision", row},
		{"z-ai/glm-4.7", 204_800, "", row},
		{"MiniMax-M2.7", 204_800, "", row},
		{"llama-3.3-70b-instruct", 128_000, "", row},
		// What runs on machines of one's own.
		{"llava:13b", 0, "vision", guess},
		{"llama3.2-vision:11b", 0, "vision", guess},
		{"models/Qwen2.5-VL-7B-Instruct-Q4_K_M.gguf", 0, "vision", guess},
	} {
		c := model.Catalog(tt.name)
		var takes []string
		for _, can := range c.Input.Value[1:] {
			takes = append(takes, string(can))
		}
		if from := c.Input.Source; from != tt.from || c.ContextWindow.Value != tt.window || strings.Join(takes, " ") != tt.takes {
			t.Errorf("%s: %q with a window of %d from %q", tt.name, takes, c.ContextWindow.Value, from)
		}
	}
	for _, name := range []string{
		"", "/", ":", "my-gpt-4o", "qwen2.5", "nobody-knows-me", "gpt-4o-mini-tts", "gpt-4o-realtime-preview", "gpt-6-image", "text-embedding-3-small", "whisper-1",
	} {
		c := model.Catalog(name)
		c.Tokenizer = model.Fact[string]{} // families have one, whatever else is known
		if diff := cmp.Diff(model.TextOnly(), c); diff != "" {
			t.Errorf("%q is in the catalog: %s", name, diff)
		}
	}
}

// TestCatalogLimits: what vendors document beside windows.
func TestCatalogLimits(t *testing.T) {
	t.Parallel()
	claude := model.Catalog("claude-sonnet-4-5")
	if claude.MaxRequestBytes.Value != 32<<20 || claude.MaxSide.Value != 8000 || claude.MaxImages.Value != 100 || claude.MaxPages.Value != 100 ||
		claude.MaxItemBytes.Value*4/3 != 10<<20 || !claude.Admits("application/pdf") || claude.Admits("image/bmp") {
		t.Errorf("%+v", claude)
	}
	if long := model.Catalog("claude-opus-5"); long.MaxImages.Value != 600 || long.MaxPages.Value != 600 {
		t.Errorf("%+v", long)
	}
	if gpt := model.Catalog("gpt-4o"); gpt.MaxImages.Value != 1500 || gpt.Tokenizer.Value != "o200k_base" || gpt.MaxItemBytes.Value != 50<<20 {
		t.Errorf("%+v", gpt)
	}
	for name, want := range map[string]string{
		"gpt-5.2": "o200k_base", "gpt-4": "cl100k_base", "claude-opus-5": "claude", "gemini-2.5-pro": "gemini", "gemma-3-27b-it": "gemini",
		"llama3.2-vision:11b": "llama3", "meta-llama/llama-2-7b-chat": "llama2", "mixtral-8x7b": "mistral_v1", "mistral-large-latest": "mistral",
		"qwen2.5": "qwen", "deepseek/deepseek-v4-pro": "deepseek", "nobody-knows-me": "",
	} {
		if got := model.Catalog(name).Tokenizer.Value; got != want {
			t.Errorf("the vocabulary of %s is %q, want %q", name, got, want)
		}
	}
	if m := model.Catalog("mistral-small-latest"); !m.NeedsFiller() {
		t.Errorf("%+v", m)
	}
	if g := model.Catalog("gemini-2.5-pro"); !g.Admits("image/heic") || !g.Admits("audio/ogg") || g.NeedsFiller() {
		t.Errorf("%+v", g)
	}
	if o := model.Catalog("o3-mini"); o.MaxImages.Value != 0 || o.MaxSide.Source != "" || o.Accepts.Value != nil {
		t.Errorf("limits of pictures for a model that takes none: %+v", o)
	}
}

// TestCatalogTables holds the tables to what is said at their heads: every row
// can be found, under every spelling, and every line of families is read.
func TestCatalogTables(t *testing.T) {
	t.Parallel()
	rows := tableLines(t, "catalog/models.txt")
	if len(rows) < 500 {
		t.Errorf("%d models", len(rows))
	}
	nameOf := func(line string) string { name, _, _ := strings.Cut(line, "\t"); return name }
	if !slices.IsSortedFunc(rows, func(a, b string) int { return strings.Compare(nameOf(a), nameOf(b)) }) {
		t.Error("models.txt is not sorted")
	}
	for _, line := range rows {
		f := strings.Split(line, "\t")
		if len(f) != 8 || strings.Trim(f[2], "tvfaw") != "" || !strings.HasPrefix(f[2], "t") {
			t.Fatalf("%q", line)
		}
		for _, name := range []string{f[0], f[1] + "/" + f[0], strings.ToUpper(f[0])} {
			if c := model.Catalog(name); c.Input.Source != model.FromCatalog || c.ContextWindow.Value == 0 {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if c := model.Catalog(f[1] + "/" + f[0]); strings.Contains(f[2], "v") && !c.Has(artel.CanVision) {
			t.Errorf("%s of %s: %+v", f[0], f[1], c)
		}
	}
	keys := strings.Fields("input is also accepts tokenizer window output item request side images many side_of_many pages user_after_tool other")
	for _, line := range tableLines(t, "catalog/families.txt") {
		fields := strings.Fields(line)
		if _, err := path.Match(fields[0], ""); err != nil || len(fields) < 2 {
			t.Errorf("%q: %v", line, err)
		}
		for _, f := range fields[1:] {
			if key, value, ok := strings.Cut(f, "="); !ok || value == "" || !slices.Contains(keys, key) {
				t.Errorf("%q: %q says nothing", line, f)
			}
		}
	}
	size := 0
	for _, name := range []string{"catalog/models.txt", "catalog/families.txt"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += int(info.Size())
	}
	if size > 150<<10 {
		t.Errorf("the tables have %d bytes", size)
	}
}

func tableLines(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		if line := s.Text(); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// TestCatalogOfAnyName: whatever the name, text is taken, and the same name
// says the same.
func TestCatalogOfAnyName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`(openai/|us\.anthropic\.)?(gpt-|claude-|gemini-)[0-9a-z.:@/*\[-]{0,12}`)).Draw(rt, "name")
		c := model.Catalog(name)
		if len(c.Input.Value) == 0 || c.Input.Value[0] != artel.CanText || !cmp.Equal(c, model.Catalog(name)) {
			rt.Fatalf("%q: %+v", name, c)
		}
	})
}

func BenchmarkCatalog(b *testing.B) {
	for _, name := range []string{"gpt-4o", "anthropic/claude-sonnet-4-5@20250929", "nobody-knows-me"} {
		b.Run(path.Base(name), func(b *testing.B) {
			for b.Loop() {
				model.Catalog(name)
			}
		})
	}
}
