// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
)

// What a registry remembers of the requests before changes nothing in the next
// one: hash, manifest and segments are those of a registry that knows none.
func TestRememberedRequests(t *testing.T) {
	counter := token.NewCounter()
	fresh := func() *pipeline.Registry {
		r, err := pipeline.NewRegistry(counter, pipeline.BuiltIn()...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	remembers := fresh()
	tools := [][]model.ToolSpec{nil, {{Name: "f", Description: "does", Schema: json.RawMessage(`{"type":"object"}`)}}}
	rapid.Check(t, func(rt *rapid.T) {
		var history []artel.Message
		for turn := range rapid.IntRange(1, 6).Draw(rt, "turns") {
			for i := range rapid.IntRange(0, 40).Draw(rt, "more") {
				id := fmt.Sprintf("m%d-%d", turn, i)
				switch rapid.IntRange(0, 6).Draw(rt, "kind") {
				case 0:
					history = append(history, calls(id, "a"), answers(id+"r", "a", rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "result")))
				case 1:
					m := say(id, "assistant", "thought out")
					m.Parts = append(artel.Parts{artel.Reasoning{Text: "hm", Service: "bench", Opaque: json.RawMessage(`{"a":1}`)}}, m.Parts...)
					history = append(history, m)
				default:
					history = append(history, say(id, rapid.SampledFrom([]string{"user", "assistant"}).Draw(rt, "role"), rapid.SampledFrom([]string{"yes", "no", "foo", "\u2028<&>"}).Draw(rt, "text")))
				}
			}
			if len(history) > 0 && rapid.IntRange(0, 3).Draw(rt, "edit") == 0 { // what is in memory is written over, as a caller may
				i := rapid.IntRange(0, len(history)-1).Draw(rt, "which")
				history[i].Parts = slices.Clone(history[i].Parts)
				history[i].Parts[len(history[i].Parts)-1] = artel.Text{Text: "edited"}
			}
			in := input(service(0), history...)
			in.Service.Capabilities.TokenRatio.Value = rapid.SampledFrom([]float64{0, 2.5}).Draw(rt, "ratio")
			in.Agent.Prompt, in.Tools = rapid.SampledFrom([]string{"You lead.", "You follow."}).Draw(rt, "prompt"), rapid.SampledFrom(tools).Draw(rt, "tools")
			if rapid.Bool().Draw(rt, "rules") {
				in.Settings.Agent = []pipeline.Setting{{ID: pipeline.RegexProcessor, Config: json.RawMessage(`{"rules":[{"id":"r","find":"foo","replace":"bar"}]}`)}}
			}
			got, err1 := remembers.Build(rt.Context(), in)
			want, err2 := fresh().Build(rt.Context(), in)
			if err1 != nil || err2 != nil {
				rt.Fatal(err1, err2)
			}
			if got.Record.RequestHash != want.Record.RequestHash {
				rt.Fatalf("the hash is %s, and %s of a registry that remembers nothing", got.Record.RequestHash, want.Record.RequestHash)
			}
			if diff := cmp.Diff(want.Manifest, got.Manifest); diff != "" {
				rt.Fatalf("manifest:\n%s", diff)
			}
			if diff := cmp.Diff(want.Segments, got.Segments); diff != "" {
				rt.Fatalf("segments:\n%s", diff)
			}
			known, err1 := remembers.Count(got.Request)
			counted, err2 := fresh().Count(got.Request)
			if err1 != nil || err2 != nil || known != counted {
				rt.Fatalf("the request has %d tokens, and %d for a registry that remembers nothing: %v, %v", known, counted, err1, err2)
			}
		}
	})
}

// Neighbors are joined in memory in proportion to what they are together, not
// to the square of it.
func TestManyNeighbors(t *testing.T) {
	const n, text = 3000, "What is said here has two hundred characters, again and again. "
	history := make([]artel.Message, n)
	for i := range history {
		history[i] = say(fmt.Sprintf("m%04d", i), "user", strings.Repeat(text, 3))
	}
	r := builtIn(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out, err := r.Build(t.Context(), input(service(10_000_000), history...))
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	last := out.Request.Messages[len(out.Request.Messages)-1]
	if got := artel.TextOf(last.Parts); len(got) != n*len(text)*3+(n-1)*2 {
		t.Errorf("the message has %d bytes", len(got))
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 100*n*uint64(len(text))*3 {
		t.Errorf("a build of %d bytes took %d of memory", n*len(text)*3, took)
	}
}
