// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

func each(deltas []model.Delta) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// TestInOrder interleaves calls, texts and pieces in any way: the pieces of a call
// come in one run that its whole ends, and nothing else is lost or changes its order.
func TestInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rest, ends := map[artel.CallID][]model.Delta{}, map[artel.CallID]bool{}
		for _, id := range []artel.CallID{"a", "b", "c"} {
			for range rapid.IntRange(0, 3).Draw(t, "pieces of "+string(id)) {
				rest[id] = append(rest[id], model.CallPiece{ID: id, Name: "f", Text: "{}"})
			}
			if len(rest[id]) == 0 || rapid.IntRange(0, 9).Draw(t, "ends "+string(id)) > 0 {
				rest[id] = append(rest[id], model.CallDelta{ID: id, Name: "f", Arguments: json.RawMessage("{}")})
				ends[id] = true
			}
		}
		var deltas []model.Delta
		said := ""
		for len(rest["a"])+len(rest["b"])+len(rest["c"]) > 0 {
			id := rapid.SampledFrom([]artel.CallID{"", "a", "b", "c"}).Draw(t, "next")
			if id == "" {
				text := rapid.StringN(1, 3, -1).Draw(t, "text")
				said += text
				deltas = append(deltas, model.TextDelta(text))
			} else if list := rest[id]; len(list) > 0 {
				deltas, rest[id] = append(deltas, list[0]), list[1:]
			}
		}
		deltas = append(deltas, model.Finish{Reason: model.StopTools})

		open, got, ended := artel.CallID(""), "", map[artel.CallID]int{}
		var last model.Delta
		for d := range provider.InOrder(each(deltas)) {
			switch d := d.(type) {
			case model.TextDelta:
				got += string(d)
				if open != "" && ends[open] {
					t.Fatalf("text within call %s", open)
				}
				open = "" // of a call that was cut off
			case model.CallPiece:
				if open != d.ID && ends[open] {
					t.Fatalf("a piece of %s within %s", d.ID, open)
				}
				open = d.ID
			case model.CallDelta:
				if open != d.ID && ends[open] {
					t.Fatalf("call %s within %s", d.ID, open)
				}
				open = ""
				ended[d.ID]++
			case model.Finish:
				open = ""
			}
			last = d
		}
		if _, ok := last.(model.Finish); !ok {
			t.Fatalf("the last is %T", last)
		}
		for _, d := range deltas {
			if c, ok := d.(model.CallDelta); ok && ended[c.ID] != 1 {
				t.Fatalf("call %s came %d times", c.ID, ended[c.ID])
			}
		}
		if got != said {
			t.Fatalf("said %q, want %q", got, said)
		}
	})
}

func TestRest(t *testing.T) {
	for _, c := range [][3]string{{`{"a":1}`, `{"a"`, `:1}`}, {`{"a":1}`, "", `{"a":1}`}, {`{"a": 1}`, `{"a":1}`, ""}} {
		if got := provider.Rest(c[0], c[1]); got != c[2] {
			t.Errorf("the rest of %s after %s is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// TestWithoutPieces keeps everything else, and the error.
func TestWithoutPieces(t *testing.T) {
	broken := errors.New("broken")
	var seen strings.Builder
	for d, err := range provider.WithoutPieces(func(yield func(model.Delta, error) bool) {
		_ = yield(model.TextDelta("a"), nil) && yield(model.CallPiece{ID: "c"}, nil) && yield(nil, broken)
	}) {
		if text, ok := d.(model.TextDelta); ok {
			seen.WriteString(string(text))
		} else if !errors.Is(err, broken) {
			t.Errorf("%T, %v", d, err)
		} else {
			seen.WriteString("!")
		}
	}
	if seen.String() != "a!" {
		t.Errorf("%q", seen.String())
	}
}
