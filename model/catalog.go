// SPDX-License-Identifier: Apache-2.0

package model

import (
	_ "embed" // the tables
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/artelhq/artel"
)

// models has a line for each model, sorted by name; scripts/catalog generates it.
//
//go:embed catalog/models.txt
var models string

// families has facts about model families; see its head.
//
//go:embed catalog/families.txt
var families string

// Catalog returns the facts of the built-in tables about a model, which have the
// lowest priority; none if its name is unknown.
//
// The name may have a maker ("openai/gpt-4o"), a variant ("gpt-4o:free"), the
// region and version of Bedrock ("us.anthropic.claude-sonnet-4-5-v1:0"), and a
// release ("gpt-4o-2024-11-20"); a row with the exact release wins. The facts of a
// name without a row that matches a family have the source [FromFamily] instead
// of [FromCatalog].
//
// The tables are embedded text and searched in place, so that nothing is parsed
// at the start.
func Catalog(name string) Capabilities {
	names, maker := spellings(name)
	if len(names) == 0 {
		return TextOnly()
	}
	for _, n := range names {
		if r, ok := find(n, maker); ok {
			return describe(r.name, FromCatalog, r)
		}
	}
	for _, n := range names {
		base := releases().ReplaceAllString(n, "")
		if r, ok := newest(base, maker); ok {
			return describe(base, FromCatalog, r)
		}
	}
	return describe(names[len(names)-1], FromFamily, catalogRow{})
}

// releases finds the date, number or channel that APIs append to a name.
var releases = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{3,4}|latest|(preview|exp)(-\d{2}-(\d{2}|\d{4}))?)$`)
})

// spellings returns the forms of a name to look up, and its maker or "".
func spellings(id string) (names []string, maker string) {
	name := strings.ToLower(strings.TrimSpace(id))
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		maker, name = path.Base(name[:i]), name[i+1:]
	}
	add := func(n string) {
		if n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	add(name)
	plain, _, _ := strings.Cut(name, ":")
	add(plain)
	// Bedrock: region, maker, name, version.
	if i := strings.LastIndex(plain, "anthropic."); i >= 0 {
		plain = plain[i+len("anthropic."):]
	}
	if i := strings.LastIndex(plain, "-v"); i > 0 && isDigits(plain[i+2:]) {
		plain = plain[:i]
	}
	add(strings.TrimSuffix(plain, ".gguf"))
	return names, maker
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// A catalogRow is a line of models; its zero value has no facts.
type catalogRow struct {
	name, maker, input     string
	window, output, images int
	request                int64
	price                  Fact[Price]
}

// find returns the row of a name, preferably that of the maker.
func find(name, maker string) (found catalogRow, ok bool) {
	for line := range linesFrom(name + "\t") {
		r := parseRow(line)
		if r.name != name {
			break
		}
		if !ok || r.maker == maker {
			found, ok = r, true
		}
	}
	return found, ok
}

// newest returns the row of a name, or that of its last release.
func newest(name, maker string) (catalogRow, bool) {
	if r, ok := find(name, maker); ok {
		return r, true
	}
	var last catalogRow
	for line := range linesFrom(name + "-") {
		r := parseRow(line)
		if !strings.HasPrefix(r.name, name+"-") {
			break
		}
		if releases().ReplaceAllString(r.name, "") == name {
			last = r
		}
	}
	return last, last.name != ""
}

// linesFrom yields the lines of models that are not less than key.
func linesFrom(key string) func(yield func(string) bool) {
	low, high := 0, len(models)
	for low < high {
		begin := strings.LastIndexByte(models[:(low+high)/2], '\n') + 1
		if line := lineAt(begin); line < key {
			low = begin + len(line) + 1
		} else {
			high = begin
		}
	}
	return func(yield func(string) bool) {
		for at := min(low, len(models)); at < len(models); {
			line := lineAt(at)
			if !yield(line) {
				return
			}
			at += len(line) + 1
		}
	}
}

func lineAt(begin int) string {
	line, _, _ := strings.Cut(models[begin:], "\n")
	return line
}

func parseRow(line string) catalogRow {
	f := strings.Split(line, "\t")
	if len(f) != 8 {
		return catalogRow{}
	}
	r := catalogRow{name: f[0], maker: f[1], input: f[2]}
	r.window, _ = strconv.Atoi(f[3])
	r.output, _ = strconv.Atoi(f[4])
	r.request, _ = strconv.ParseInt(f[5], 10, 64)
	r.images, _ = strconv.Atoi(f[6])
	if p := strings.Split(f[7], "/"); len(p) == 4 {
		var n [4]float64
		for i := range p {
			n[i], _ = strconv.ParseFloat(p[i], 64)
		}
		r.price = known(FromCatalog, Price{n[0], n[1], n[2], n[3]})
	}
	return r
}

// describe combines the row of a model with the families that match its name.
func describe(name string, from Provenance, r catalogRow) Capabilities {
	said := map[string]string{}
	for line := range strings.Lines(families) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if fits, err := path.Match(fields[0], name); err != nil || !fits {
			continue
		}
		for _, f := range fields[1:] {
			key, value, _ := strings.Cut(f, "=")
			if _, before := said[key]; !before {
				said[key] = value
			}
		}
	}
	input := r.input
	if _, other := said["other"]; other && r.name == "" {
		return TextOnly()
	}
	if input == "" {
		input = said["input"]
	} else if is, ok := said["is"]; ok {
		input = is
	}
	if strings.Contains(input, "v") && r.input != "" {
		input += said["also"]
	}
	c := TextOnly()
	if input != "" {
		c.Input = known(from, inputsOf(map[artel.Capability]bool{
			artel.CanVision: strings.Contains(input, "v"),
			artel.CanFile:   strings.Contains(input, "f"),
			artel.CanAudio:  strings.Contains(input, "a"),
			artel.CanVideo:  strings.Contains(input, "w"),
		}))
	}
	if v := said["accepts"]; v != "" && input != "" && input != "t" {
		c.Accepts = known(from, strings.Split(v, ","))
	}
	if v := said["tokenizer"]; v != "" {
		c.Tokenizer = known(from, v)
	}
	if v := said["user_after_tool"]; v != "" {
		c.UserAfterTool = known(from, v == "true")
	}
	number := func(row int64, key string) int64 {
		if row > 0 {
			return row
		}
		n, _ := strconv.ParseInt(said[key], 10, 64)
		return n
	}
	stated(&c.ContextWindow, from, number(int64(r.window), "window"))
	stated(&c.MaxOutput, from, number(int64(r.output), "output"))
	c.Price = r.price
	if len(c.Input.Value) > 1 {
		stated(&c.MaxItemBytes, from, number(0, "item"))
		stated(&c.MaxRequestBytes, from, number(r.request, "request"))
	}
	if c.Has(artel.CanVision) {
		stated(&c.MaxSide, from, number(0, "side"))
		stated(&c.MaxImages, from, number(int64(r.images), "images"))
		stated(&c.Many, from, number(0, "many"))
		stated(&c.MaxSideOfMany, from, number(0, "side_of_many"))
	}
	if c.Has(artel.CanFile) {
		stated(&c.MaxPages, from, number(0, "pages"))
	}
	return c
}

// stated sets a fact if n is positive.
func stated[T int | int64](fact *Fact[T], from Provenance, n int64) {
	if n > 0 {
		*fact = known(from, T(n))
	}
}
