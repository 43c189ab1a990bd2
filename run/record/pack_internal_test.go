// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
)

// sampleMade has n messages as they come and go, with the first k dropped.
func sampleMade(t *rapid.T, n, k int) Content {
	loads := pipeline.Step{ID: pipeline.SessionLoader}
	m := Content{Record: pipeline.Record{Processors: []pipeline.Step{{ID: "first"}}}}
	m.Manifest.Head = pipeline.Head{Service: "s", Model: "m"}
	m.Manifest.Messages = []pipeline.ManifestMessage{}
	odd := rapid.SampledFrom([]int{8, 30, 1000}).Draw(t, "one of so many is odd")
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for i := range n {
		x := pipeline.ManifestMessage{
			ID: fmt.Sprintf("m%d", i), Role: packedRoles[i%len(packedRoles)], Origin: pipeline.OriginHistory,
			Stability: pipeline.Session, Stored: true, Bytes: i % 7, Tokens: i,
		}
		kind := rnd.IntN(odd)
		if kind != 4 {
			loads.Added = append(loads.Added, x.ID)
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
		if i >= k {
			m.Manifest.Messages = append(m.Manifest.Messages, x)
		}
	}
	m.Processors = append(m.Processors, loads)
	return m
}

// TestPacked is internal: rows are seen by the store alone.
func TestPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 40, 900}).Draw(t, "messages")
		want := sampleMade(t, n, rapid.IntRange(0, n).Draw(t, "dropped"))
		if ms := want.Manifest.Messages; rapid.Bool().Draw(t, "moved") && len(ms) > 9 {
			ms[0], ms[len(ms)-1] = ms[len(ms)-1], ms[0]
		}
		kept := map[artel.Digest][]byte{}
		segments := func(want []artel.Digest) (map[artel.Digest][]byte, error) { return kept, nil }
		var before map[string]*keptBlock
		for range 2 { // the second time with the blocks of the first
			row, blocks, err := pack(want, before)
			if err != nil {
				t.Fatal(err)
			}
			if before != nil && !cmp.Equal(before, blocks, cmp.AllowUnexported(keptBlock{})) {
				t.Fatal("the blocks are not those that were known")
			}
			for _, b := range blocks {
				kept[b.segment.Digest] = b.segment.Body
			}
			got, err := unpack(row, segments)
			if err != nil {
				t.Fatalf("%v of %s", err, row)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-kept +read):\n%s", diff)
			}
			before = blocks
		}
	})
}

// TestPackedShares wants the row of a long conversation to be about as short as
// that of a shorter one, also when its beginning is dropped.
func TestPackedShares(t *testing.T) {
	longest := func(n, dropped int, known map[string]*keptBlock) (int, int, map[string]*keptBlock) {
		m := Content{Record: pipeline.Record{Processors: []pipeline.Step{{ID: pipeline.SessionLoader}}}}
		for i := dropped; i < n; i++ {
			x := pipeline.ManifestMessage{ID: fmt.Sprintf("msg_%020d", i*i), Role: artel.RoleUser, Origin: pipeline.OriginHistory, Stability: pipeline.Session, Stored: true, Bytes: 400}
			m.Processors[0].Added, m.Manifest.Messages = append(m.Processors[0].Added, x.ID), append(m.Manifest.Messages, x)
		}
		row, blocks, err := pack(m, known)
		if err != nil {
			t.Fatal(err)
		}
		fresh := 0
		for id, b := range blocks {
			if known[id] != b {
				fresh++
			}
		}
		return len(row), fresh, blocks
	}
	_, _, known := longest(10_000, 0, nil)
	if len(known) < 20 {
		t.Errorf("%d blocks of 10,000 messages", len(known))
	}
	for _, dropped := range []int{0, 2, 4_321} {
		if row, fresh, _ := longest(10_002, dropped, known); row > 120_000 || fresh > 2 {
			t.Errorf("one turn later with %d dropped: a row of %d bytes and %d blocks that were not there", dropped, row, fresh)
		}
	}
}

// TestPackedDamaged refuses columns that do not belong together.
func TestPackedDamaged(t *testing.T) {
	for _, s := range []string{
		`{"at":1,"block":{"ids":["m"],"roles":"u","bytes":[1],"tokens":[1]}}`,
		`{"at":-2,"block":{"ids":["m"],"roles":"u","bytes":[1],"tokens":[1]}}`,
		`{"at":0,"block":{"ids":["m"],"roles":"u","bytes":[],"tokens":[1]}}`,
		`{"at":0,"block":{"ids":["m"],"roles":"u","bytes":[1],"tokens":[]}}`,
		`{"at":0,"block":{"ids":["m"],"bytes":[1],"tokens":[1]}}`,
		`{"at":0,"block":{"ids":["m"],"roles":"x","bytes":[1],"tokens":[1]}}`,
		`{"at":0,"digest":"sha256:gone"}`,
		`{"at":0}`,
	} {
		row := []byte(`{"processors":[{"id":"session-loader"}],"recipe":{"head":{},"messages":[],"pieces":[` + s + `]}}`)
		if got, err := unpack(row, func([]artel.Digest) (map[artel.Digest][]byte, error) { return nil, nil }); err == nil {
			t.Errorf("%s was read as %+v", s, slices.Clone(got.Manifest.Messages))
		}
	}
}
