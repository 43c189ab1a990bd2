// SPDX-License-Identifier: Apache-2.0

package toolindex

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// An Index ranks tools. It is immutable and safe for concurrent use.
type Index struct {
	tools    []Tool
	byName   map[string]int
	postings map[string][]posting // by term, in the order of the tools
	lengths  []float64            // weighted numbers of terms
	mean     float64
	sorted   []string // all terms
}

type posting struct {
	tool   int
	weight float64 // occurrences, weighted by field
}

// The weights of the fields. A word of a name says more about a tool than one of a
// description of an argument.
const (
	nameWeight     = 4
	aboutWeight    = 1
	argumentWeight = 1.5
	detailWeight   = 0.4
)

// The bounds of what is read of one tool.
const (
	maxDescription = 16 << 10 // bytes
	maxDepth       = 8        // of a schema
	maxArguments   = 400
)

// New makes an index of tools. Of tools with the same name, the first is kept.
func New(tools []Tool) *Index {
	x := &Index{byName: map[string]int{}, postings: map[string][]posting{}}
	for _, t := range tools {
		if _, taken := x.byName[t.Name]; taken {
			continue
		}
		x.byName[t.Name] = len(x.tools)
		x.add(len(x.tools), t)
		x.tools = append(x.tools, t)
	}
	if len(x.tools) > 0 {
		x.mean /= float64(len(x.tools))
	}
	x.sorted = slices.Sorted(maps.Keys(x.postings))
	return x
}

func (x *Index) add(at int, t Tool) {
	weights := map[string]float64{}
	count := func(text string, weight float64) {
		for _, term := range terms(text) {
			weights[term] += weight
		}
	}
	count(t.Name, nameWeight)
	count(clip(t.Description, maxDescription), aboutWeight)
	left := maxArguments
	arguments(t.Schema, maxDepth, &left, func(name, about string) {
		count(name, argumentWeight)
		count(clip(about, maxDescription/16), detailWeight)
	})
	length := 0.0
	for _, term := range slices.Sorted(maps.Keys(weights)) {
		x.postings[term] = append(x.postings[term], posting{at, weights[term]})
		length += weights[term]
	}
	x.lengths = append(x.lengths, length)
	x.mean += length
}

func clip(s string, n int) string { return s[:min(len(s), n)] }

// arguments visits the properties of a schema, in the order of their names.
func arguments(schema json.RawMessage, depth int, left *int, visit func(name, about string)) {
	if depth == 0 || len(schema) == 0 || schema[0] != '{' {
		return
	}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Items      json.RawMessage            `json:"items"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if *left == 0 {
			return
		}
		*left--
		var p struct {
			Description string `json:"description"`
		}
		_ = json.Unmarshal(s.Properties[name], &p) // a property that is no object has no description
		visit(name, p.Description)
		arguments(s.Properties[name], depth-1, left, visit)
	}
	arguments(s.Items, depth-1, left, visit)
}

// Len returns the number of tools.
func (x *Index) Len() int { return len(x.tools) }

// Get returns the tool of that name.
func (x *Index) Get(name string) (Tool, bool) {
	at, ok := x.byName[name]
	if !ok {
		return Tool{}, false
	}
	return x.tools[at], true
}

// Find returns at most n tools that match words of the query, the best first. Tools whose
// names the query contains as a whole come before all others. It ranks by BM25.
func (x *Index) Find(query string, n int) []Tool {
	scores := map[int]float64{}
	for _, word := range strings.FieldsFunc(clip(query, maxQuery), func(r rune) bool { return strings.ContainsRune(" \t\r\n,;\"'`()", r) }) {
		if at, ok := x.byName[word]; ok {
			scores[at] += exact
		}
	}
	seen := map[string]bool{}
	for _, term := range terms(clip(query, maxQuery)) {
		if !seen[term] {
			seen[term] = true
			x.score(term, 1, scores)
			for _, near := range x.near(term) {
				x.score(near, 0.5, scores)
			}
		}
	}
	found := slices.SortedFunc(maps.Keys(scores), func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	found = found[:min(max(n, 0), len(found))]
	out := make([]Tool, 0, len(found))
	for _, at := range found {
		out = append(out, x.tools[at])
	}
	return out
}

const (
	exact    = 1e6     // the score of a name
	maxQuery = 2 << 10 // bytes
)

// The usual parameters of BM25.
const (
	saturation = 1.2
	byLength   = 0.75
)

func (x *Index) score(term string, share float64, scores map[int]float64) {
	postings := x.postings[term]
	if len(postings) == 0 {
		return
	}
	have := float64(len(postings))
	idf := math.Log(1 + (float64(len(x.tools))-have+0.5)/(have+0.5))
	for _, p := range postings {
		norm := saturation * (1 - byLength + byLength*x.lengths[p.tool]/x.mean)
		scores[p.tool] += share * idf * p.weight * (saturation + 1) / (p.weight + norm)
	}
}

// minStart is how many bytes the start of a longer term has.
const minStart = 4

// near returns the longer terms that begin with term, such as "repository" for "repo".
func (x *Index) near(term string) []string {
	if len(term) < minStart || term[0] >= 0x80 {
		return nil
	}
	at, ok := slices.BinarySearch(x.sorted, term)
	if ok {
		at++
	}
	end := at
	for end < len(x.sorted) && strings.HasPrefix(x.sorted[end], term) {
		end++
	}
	return x.sorted[at:end]
}
