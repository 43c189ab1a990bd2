// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
)

// TestPacked is internal: rows are seen by the store alone.
func TestPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "messages")
		loader := pipeline.Step{ID: pipeline.SessionLoader}
		want := made{Record: pipeline.Record{Processors: []pipeline.Step{{ID: "first"}}}}
		want.Recipe.Head = pipeline.Head{Service: "s", Model: "m"}
		want.Recipe.Messages = []pipeline.Ingredient{}
		for i := range n {
			x := pipeline.Ingredient{
				ID: fmt.Sprintf("m%d", i), Role: rapid.SampledFrom(stretchRoles[:]).Draw(t, "role"), Origin: pipeline.OriginHistory,
				Stability: pipeline.Session, Stored: true, Bytes: rapid.IntRange(1, 9).Draw(t, "bytes"), Tokens: i,
			}
			kind := rapid.IntRange(0, 30).Draw(t, "kind")
			if kind != 4 {
				loader.Added = append(loader.Added, x.ID)
			}
			switch kind {
			case 0:
				x.Origin = pipeline.OriginPreset
			case 1:
				x.Stored, x.Digest = false, "sha256:00"
			case 2:
				x.MergedFrom = []string{"a", "b"}
			case 3:
				continue // loaded, and not sent
			case 5:
				x.Stability = pipeline.Turn
			case 6:
				x.Role = "narrator"
			}
			want.Recipe.Messages = append(want.Recipe.Messages, x)
		}
		want.Processors = append(want.Processors, loader)
		if rapid.Bool().Draw(t, "moved") && len(want.Recipe.Messages) > 9 {
			ms := want.Recipe.Messages
			ms[0], ms[len(ms)-1] = ms[len(ms)-1], ms[0]
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got made
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%v of %s", err, data)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-kept +read):\n%s", diff)
		}
	})
}

// TestPackedBefore reads rows that were written with all messages in full.
func TestPackedBefore(t *testing.T) {
	var got made
	row := `{"processors":[{"id":"session-loader","added":["m1"],"tokens_before":0,"tokens_after":1,"ms":0}],"tokens":{"fixed":0,"history":1,"total":1,"budget":0},
		"recipe":{"head":{"service":"s","dialect":"openai","model":"m"},"messages":[{"id":"m1","role":"user","origin":"history","stability":"session","stored":true,"bytes":3,"tokens":1}]}}`
	if err := json.Unmarshal([]byte(row), &got); err != nil {
		t.Fatal(err)
	}
	want := pipeline.Ingredient{ID: "m1", Role: artel.RoleUser, Origin: pipeline.OriginHistory, Stability: pipeline.Session, Stored: true, Bytes: 3, Tokens: 1}
	if diff := cmp.Diff([]pipeline.Ingredient{want}, got.Recipe.Messages); diff != "" || got.Recipe.Head.Model != "m" {
		t.Errorf("%s", diff)
	}
}

// TestPackedDamaged refuses columns that do not belong together.
func TestPackedDamaged(t *testing.T) {
	for _, s := range []string{
		`{"at":1,"from":0,"roles":"u","bytes":[1],"tokens":[1]}`,
		`{"at":0,"from":1,"roles":"u","bytes":[1],"tokens":[1]}`,
		`{"at":0,"from":-1,"roles":"u","bytes":[1],"tokens":[1]}`,
		`{"at":0,"from":0,"roles":"u","bytes":[],"tokens":[1]}`,
		`{"at":0,"from":0,"roles":"x","bytes":[1],"tokens":[1]}`,
	} {
		var got made
		if err := json.Unmarshal([]byte(`{"processors":[{"id":"session-loader","added":["m"]}],"recipe":{"head":{},"messages":[],"stretches":[`+s+`]}}`), &got); err == nil {
			t.Errorf("%s was read as %+v", s, got.Recipe.Messages)
		}
	}
}
