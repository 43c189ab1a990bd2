// SPDX-License-Identifier: Apache-2.0

package card_test

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/card"
)

var update = flag.Bool("update", false, "write the expected agents anew")

// pngWith is a picture with text chunks.
func pngWith(chunks ...[]byte) []byte {
	out := []byte("\x89PNG\r\n\x1a\n")
	out = append(out, chunk("IHDR", "\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00")...)
	for _, c := range chunks {
		out = append(out, c...)
	}
	return append(out, chunk("IEND", "")...)
}

func chunk(kind, data string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func packed(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

const small = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Bo","description":"d","first_mes":"Hi"}}`

const smallV3 = `{"spec":"chara_card_v3","spec_version":"3.0","data":{"name":"Bo 3","description":"d","first_mes":"Hi"}}`

func TestContainers(t *testing.T) {
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range map[string]string{
		"card.json":      `{"spec":"chara_card_v3","data":{"name":"Zip","description":"d","assets":[{"type":"icon","uri":"embeded://assets/a.png","name":"main","ext":"png"},{"type":"background","uri":"embeded://b.png","name":"b"}]}}`,
		"assets/a.png":   "picture",
		"assets/big.bin": strings.Repeat("x", 1000),
	} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(text))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		raw     []byte
		agent   artel.AgentName
		picture string
	}{
		"tEXt":            {pngWith(chunk("tEXt", "chara\x00"+encoded(small))), "Bo", "\x89PNG"},
		"the newer":       {pngWith(chunk("tEXt", "ccv3\x00"+encoded(smallV3)), chunk("tEXt", "chara\x00"+encoded(small))), "Bo_3", "\x89PNG"},
		"zTXt":            {pngWith(chunk("zTXt", "chara\x00\x00"+packed(encoded(small)))), "Bo", "\x89PNG"},
		"iTXt":            {pngWith(chunk("iTXt", "Chara\x00\x00\x00en\x00x\x00"+encoded(small))), "Bo", "\x89PNG"},
		"iTXt compressed": {pngWith(chunk("iTXt", "chara\x00\x01\x00\x00\x00"+packed(encoded(small)))), "Bo", "\x89PNG"},
		"not encoded":     {pngWith(chunk("tEXt", "chara\x00"+small)), "Bo", "\x89PNG"},
		"other texts":     {pngWith(chunk("tEXt", "Comment\x00x"), chunk("zTXt", "x"), chunk("tEXt", "chara\x00"+encoded(small))), "Bo", "\x89PNG"},
		"JSON":            {[]byte("\ufeff " + small), "Bo", ""},
		"CHARX":           {archive.Bytes(), "Zip", "picture"},
		"version 1":       {[]byte(`{"name":"One","description":"d","personality":"p","scenario":"s","first_mes":"Hi {{user}}","mes_example":"<START>\nx"}`), "One", ""},
		"older":           {[]byte(`{"char_name":"Old","char_persona":"d","char_greeting":"Hi"}`), "Old", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := card.Read(c.raw, "file.png")
			if err != nil || got.Kind != card.Character || got.Agent.Name != c.agent || !strings.HasPrefix(string(got.Picture), c.picture) {
				t.Errorf("got %+v, %v", got, err)
			}
			if !card.Known(c.raw) {
				t.Error("its beginning is not known")
			}
		})
	}
	bomb := pngWith(chunk("zTXt", "chara\x00\x00"+packed(strings.Repeat("A", 40<<20))))
	for name, raw := range map[string][]byte{
		"nothing": {}, "text": []byte("hello"), "other JSON": []byte(`{"a":1}`), "a list": []byte(`[1]`), "no card": pngWith(), "cut off": pngWith(chunk("tEXt", "chara\x00"+encoded(small)))[:60],
		"no base64": pngWith(chunk("tEXt", "chara\x00???")), "no JSON in it": pngWith(chunk("tEXt", "chara\x00"+encoded("x"))), "damaged zTXt": pngWith(chunk("zTXt", "chara\x00\x00zzz")),
		"a bomb": bomb, "damaged zip": []byte("PK\x03\x04xxxx"), "another zip": archive.Bytes()[:30], "no name": []byte(`{"spec":"chara_card_v2","data":{}}`),
	} {
		if _, err := card.Read(raw, "x"); artel.KindOf(err) != artel.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := card.Read(make([]byte, card.MaxFile+1), "x"); !errors.Is(err, artel.TooLarge) {
		t.Errorf("a large file: %v", err)
	}
	if _, err := card.Read([]byte(`{"input_sequence":"x"}`), "x"); !errors.Is(err, artel.Unsupported) {
		t.Errorf("a template: %v", err)
	}
}

// TestCostOfHostileFiles: the work for a file grows with its size, and not with its
// square. A test of these takes minutes otherwise, or all memory.
func TestCostOfHostileFiles(t *testing.T) {
	read := func(text string) card.Content {
		t.Helper()
		c, err := card.Read([]byte(text), "x")
		if err != nil && artel.KindOf(err) != artel.Invalid && artel.KindOf(err) != artel.TooLarge {
			t.Fatal(err)
		}
		return c
	}
	head := `{"spec":"chara_card_v2","data":{"name":"a",`
	read(head + `"system_prompt":"` + strings.Repeat("{{original}}", 100_000) + `"}}`)
	if c := read(head + `"mes_example":"` + strings.Repeat("<START>", 100_000) + `x<start> y"}}`); c.Agent.Character.Examples != "x\n\ny" {
		t.Errorf("examples are %q", c.Agent.Character.Examples)
	}
	if c := read(head + `"system_prompt":"İ {{ORIGINAL}} {{original}}"}}`); strings.Count(c.Agent.Prompt, "Write {{char}}'s next reply") != 2 {
		t.Errorf("the prompt is %q", c.Agent.Prompt)
	}
	var prompts []string
	for i := range 50_000 {
		prompts = append(prompts, fmt.Sprintf(`{"identifier":"%s%d","content":"x"}`, strings.Repeat("a", 100), i))
	}
	read(`{"prompt_order":[],"prompts":[` + strings.Join(prompts, ",") + `]}`)
	order := strings.Repeat(`{"identifier":"a","enabled":true},`, 999) + `{"identifier":"a","enabled":true}`
	large := `{"prompts":[{"identifier":"a","content":"` + strings.Repeat("x", 10<<20) + `"}],"prompt_order":[{"order":[` + order + `]}]}`
	if _, err := card.Read([]byte(large), "x"); !errors.Is(err, artel.TooLarge) {
		t.Errorf("a large prompt a thousand times: %v", err)
	}
	bomb := packed(strings.Repeat("A", 30<<20))
	chunks := make([][]byte, 1_000)
	for i := range chunks {
		chunks[i] = chunk("zTXt", "chara\x00\x00"+bomb)
	}
	read(string(pngWith(append(chunks, chunk("tEXt", "chara\x00"+encoded(small)))...)))
}

// The agents of testdata are what its cards and presets become.
func TestRead(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.Contains(f.Name(), ".want.") || f.IsDir() {
			continue
		}
		raw, err := os.ReadFile("testdata/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		c, err := card.Read(raw, f.Name())
		if err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		if flaws := c.Agent.Check(agent.Known{}); c.Kind != card.Book && c.Kind != card.Rules && len(flaws) > 0 {
			t.Errorf("%s: %v", f.Name(), flaws)
		}
		got, err := json.MarshalIndent(c, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		path := "testdata/" + strings.Replace(f.Name(), ".json", ".want.json", 1)
		if *update {
			if err := os.WriteFile(path, append(got, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name(), diff)
		}
	}
}

// A preset of sampling leaves the prompts of the agent that it is put into.
func TestMerge(t *testing.T) {
	read := func(name string) agent.Definition {
		raw, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := card.Read(raw, name)
		if err != nil {
			t.Fatal(err)
		}
		return c.Agent
	}
	into := agent.Definition{Name: "a", Prompt: "You are.", Presets: read("chatpreset.json").Presets[:1]}
	if got := card.Merge(into, read("sampling.json")); got.Sampling.Temperature == nil || len(got.Presets) != 1 || got.Prompt != "You are." || got.Name != "a" {
		t.Errorf("got %+v", got)
	}
	if got := card.Merge(into, read("chatpreset.json")); got.Presets[0].ID != "main" || len(got.Presets) < 4 || got.Prompt != "You are." || len(got.Check(agent.Known{})) > 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAgentName(t *testing.T) {
	for title, want := range map[string]artel.AgentName{
		"Aqua Blue": "Aqua_Blue", " a/b\n c ": "a_b_c", "": "character", "...": "character", "爱丽丝": "爱丽丝", strings.Repeat("é", 80): artel.AgentName(strings.Repeat("é", 50)),
	} {
		if got := card.AgentName(title); got != want {
			t.Errorf("%q: %q", title, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(pngWith(chunk("tEXt", "chara\x00"+encoded(small))))
	f.Add(pngWith(chunk("zTXt", "ccv3\x00\x00"+packed(encoded(smallV3)))))
	f.Add([]byte(small))
	files, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if raw, err := os.ReadFile("testdata/" + file.Name()); err == nil && !file.IsDir() {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := card.Read(raw, "file")
		if err != nil {
			if k := artel.KindOf(err); k != artel.Invalid && k != artel.TooLarge && k != artel.Unsupported {
				t.Fatalf("an error of kind %s: %v", k, err)
			}
			return
		}
		if c.Kind == card.Character || c.Kind == card.Preset {
			if flaws := c.Agent.Check(agent.Known{}); len(flaws) > 0 {
				t.Fatalf("the agent is refused: %v", flaws)
			}
			again, err := agent.Read("x.md", c.Agent.Markdown())
			if err != nil || again.Name != c.Agent.Name || len(again.Greetings) != len(c.Agent.Greetings) {
				t.Fatalf("the agent's file cannot be read: %v\n%s", err, c.Agent.Markdown())
			}
		}
		if c.Book != nil {
			if err := c.Book.Check(); err != nil {
				t.Fatalf("the book is refused: %v", err)
			}
		}
	})
}
