// SPDX-License-Identifier: Apache-2.0

package phrase_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/internal/phrase"
)

// declared returns the keys in keys.go.
func declared(t *testing.T) []string {
	t.Helper()
	source, err := os.ReadFile("keys.go")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range regexp.MustCompile(`"([a-z0-9_.]+)"`).FindAllStringSubmatch(string(source), -1) {
		keys = append(keys, m[1])
	}
	slices.Sort(keys)
	return keys
}

// texts returns the texts of a language by key; a text with forms has several.
func texts(t *testing.T, l phrase.Locale) map[string]map[string]string {
	t.Helper()
	data, err := os.ReadFile(string(l) + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n  \""); n != len(raw) {
		t.Errorf("%s.json has %d entries with %d different keys", l, n, len(raw))
	}
	out := map[string]map[string]string{}
	for k, v := range raw {
		switch v := v.(type) {
		case string:
			out[k] = map[string]string{"other": v}
		case map[string]any:
			out[k] = map[string]string{}
			for form, text := range v {
				if form != "one" && form != "other" {
					t.Errorf("%s: %s: form %q: want one or other", l, k, form)
				}
				out[k][form] = text.(string)
			}
		}
	}
	return out
}

var variable = regexp.MustCompile(`\{\{\.([A-Z][A-Za-z]*)\}\}`)

func variables(text string) []string {
	var names []string
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestEveryKeyIsInEveryLanguageAndNoOther(t *testing.T) {
	english := slices.Sorted(maps.Keys(texts(t, phrase.English)))
	if diff := cmp.Diff(english, slices.Sorted(maps.Keys(texts(t, phrase.Chinese)))); diff != "" {
		t.Errorf("zh.json has other keys (-en +zh):\n%s", diff)
	}
	constants := slices.DeleteFunc(english, func(k string) bool { return strings.Contains(k, "/") }) // media types have none
	if diff := cmp.Diff(constants, declared(t)); diff != "" {
		t.Errorf("keys.go differs from en.json, run go generate (-en +keys):\n%s", diff)
	}
}

func TestLanguagesHaveTheSameVariables(t *testing.T) {
	zh := texts(t, phrase.Chinese)
	for key, forms := range texts(t, phrase.English) {
		want := variables(forms["other"])
		for _, all := range []map[string]string{forms, zh[key]} {
			for form, text := range all {
				if diff := cmp.Diff(want, variables(text)); diff != "" {
					t.Errorf("%s, form %s: variables differ:\n%s", key, form, diff)
				}
				if rest := variable.ReplaceAllString(text, ""); strings.Contains(rest, "{{") || strings.Contains(rest, "}}") {
					t.Errorf("%s: more than plain variables: %q", key, text)
				}
			}
		}
		if _, singular := forms["one"]; singular && !slices.Contains(want, "Count") {
			t.Errorf("%s has a singular but no variable Count to choose it", key)
		}
	}
}

func TestSayFillsEveryText(t *testing.T) {
	for _, l := range phrase.Locales() {
		for key, forms := range texts(t, l) {
			args := map[string]any{}
			for _, v := range variables(forms["other"]) {
				args[v] = "<" + v + " & {{.Name}}>"
			}
			want := variable.ReplaceAllStringFunc(forms["other"], func(m string) string {
				return args[m[3:len(m)-2]].(string)
			})
			if got := l.Say(phrase.Key(key), args); got != want {
				t.Errorf("%s: %s: got %q, want %q", l, key, got, want)
			}
		}
	}
}

func TestSayNeverFails(t *testing.T) {
	if got := phrase.English.Say("no.such.key", nil); got != "no.such.key" {
		t.Errorf("a missing key is said as %q", got)
	}
	if got := phrase.Locale("tlh").Say(phrase.PageSend, nil); got != "Send" {
		t.Errorf("an unknown locale says %q", got)
	}
	if got := phrase.Locale("").Say(phrase.RouteContent, nil); !strings.HasPrefix(got, "artifact content") {
		t.Errorf("missing arguments: %q", got)
	}
}

func TestSayChoosesTheForm(t *testing.T) {
	for _, c := range []struct {
		l    phrase.Locale
		n    any
		want string
	}{
		{phrase.English, 0, "0 artifacts in this conversation:"},
		{phrase.English, 1, "1 artifact in this conversation:"},
		{phrase.English, int64(1), "1 artifact in this conversation:"},
		{phrase.English, 2, "2 artifacts in this conversation:"},
		{phrase.Chinese, 1, "本对话中有 1 个工件:"},
		{phrase.English, "many", "many artifacts in this conversation:"},
	} {
		if got := c.l.Say(phrase.ReminderInventory, map[string]any{"Count": c.n}); got != c.want {
			t.Errorf("%s, %v: got %q, want %q", c.l, c.n, got, c.want)
		}
	}
	// A text without a singular is said as it is.
	if got := phrase.English.Say(phrase.ReminderMore, map[string]any{"Count": 1}); got != "1 more, use list_artifacts" {
		t.Errorf("got %q", got)
	}
}

func TestSayIsConcurrent(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, l := range phrase.Locales() {
				l.Say(phrase.RouteDescribed, map[string]any{"Name": "a"})
			}
		})
	}
	wg.Wait()
}

func TestParseLocale(t *testing.T) {
	for s, want := range map[string]phrase.Locale{
		"":                              phrase.English,
		"en":                            phrase.English,
		"en-GB":                         phrase.English,
		"zh":                            phrase.Chinese,
		"ZH-cn":                         phrase.Chinese,
		"zh_CN.UTF-8":                   phrase.Chinese,
		"zh-Hans-CN":                    phrase.Chinese,
		"zh-TW":                         phrase.Chinese,
		"zh-CN,zh;q=0.9,en;q=0.8":       phrase.Chinese,
		"en-US,en;q=0.9,zh-CN;q=0.8":    phrase.English,
		"en;q=0.2, zh;q=0.9":            phrase.Chinese,
		"fr-FR, zh;q=0.4":               phrase.Chinese,
		"fr":                            phrase.English,
		"*":                             phrase.English,
		"C":                             phrase.English,
		"C.UTF-8":                       phrase.English,
		"zh;q=abc":                      phrase.English,
		"\x00\xff":                      phrase.English,
		strings.Repeat("zh,", 100_000):  phrase.English,
		strings.Repeat("a-", 100) + "z": phrase.English,
	} {
		if got := phrase.ParseLocale(s); got != want {
			t.Errorf("%.40q: got %s, want %s", s, got, want)
		}
	}
}

func FuzzParseLocale(f *testing.F) {
	f.Add("zh-CN,zh;q=0.9")
	f.Fuzz(func(t *testing.T, s string) {
		if l := phrase.ParseLocale(s); !slices.Contains(phrase.Locales(), l) {
			t.Errorf("%q gives %q", s, l)
		}
	})
}

func TestTypeName(t *testing.T) {
	for _, c := range []struct{ mediaType, en, zh string }{
		{"image/jpeg", "JPEG image", "JPEG 图片"},
		{"image/png", "PNG image", "PNG 图片"},
		{"image/gif", "GIF image", "GIF 图片"},
		{"image/webp", "WebP image", "WebP 图片"},
		{"image/bmp", "BMP image", "BMP 图片"},
		{"image/tiff", "TIFF image", "TIFF 图片"},
		{"image/svg+xml", "SVG image", "SVG 图片"},
		{"application/pdf", "PDF document", "PDF 文档"},
		{"application/msword", "Word document", "Word 文档"},
		{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "Word document", "Word 文档"},
		{"application/vnd.ms-excel", "Excel spreadsheet", "Excel 表格"},
		{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "Excel spreadsheet", "Excel 表格"},
		{"application/vnd.ms-powerpoint", "PowerPoint presentation", "PowerPoint 演示"},
		{"application/vnd.openxmlformats-officedocument.presentationml.presentation", "PowerPoint presentation", "PowerPoint 演示"},
		{"audio/mpeg", "MP3 audio", "MP3 音频"},
		{"audio/mp3", "MP3 audio", "MP3 音频"},
		{"audio/wav", "WAV audio", "WAV 音频"},
		{"audio/ogg", "OGG audio", "OGG 音频"},
		{"video/mp4", "MP4 video", "MP4 视频"},
		{"video/webm", "WebM video", "WebM 视频"},
		{"video/quicktime", "QuickTime video", "QuickTime 视频"},
		{"application/zip", "ZIP archive", "ZIP 压缩包"},
		{"application/x-rar-compressed", "RAR archive", "RAR 压缩包"},
		{"application/octet-stream", "binary file", "二进制文件"},
		{"", "binary file", "二进制文件"},
		{"image/avif", "image/avif", "image/avif"},
	} {
		if got := phrase.English.TypeName(c.mediaType); got != c.en {
			t.Errorf("%s: got %q, want %q", c.mediaType, got, c.en)
		}
		if got := phrase.Chinese.TypeName(c.mediaType); got != c.zh {
			t.Errorf("%s: got %q, want %q", c.mediaType, got, c.zh)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		-1: "0 B", 0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KB", 2439: "2.4 KB",
		1_258_291: "1.2 MB", 1<<20 - 1: "1.0 MB", 1<<20 - 60: "1023.9 KB", 200 << 20: "200.0 MB",
		1<<30 - 1: "1.0 GB", 1<<63 - 1: "8.0 EB",
	} {
		if got := phrase.Size(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func BenchmarkSay(b *testing.B) {
	args := map[string]any{"Name": "a.png", "Ref": "artifact:a", "Type": "PNG image", "Size": "1.2 MB"}
	for b.Loop() {
		phrase.English.Say(phrase.RouteDescribed, args)
	}
}

// TestOneWordInChinese: Chinese texts have one word for a thing, and address users as "你".
func TestOneWordInChinese(t *testing.T) {
	t.Parallel()
	for key, forms := range texts(t, phrase.Chinese) {
		for _, text := range forms {
			for instead, want := range map[string]string{"您": "你", "产物": "工件", "会话": "对话", "访客": "只读用户"} {
				if strings.Contains(text, instead) {
					t.Errorf("%s says %s, not %s: %s", key, instead, want, text)
				}
			}
		}
	}
}
