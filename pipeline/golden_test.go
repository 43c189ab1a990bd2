// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGoldenRecord holds the form of records, the order of processors and the
// canonical form of requests to what was kept. A change there makes prompt
// caches cold and old records unreadable, so it should be meant.
func TestGoldenRecord(t *testing.T) {
	w := newWorld(t)
	shot := w.upload("shot.png", picture(t))
	note := w.upload("note.txt", []byte("one < two\n"))
	w.create("task_plan", "- [x] one\n- [ ] two")
	in := input(
		service(4000, artel.CanVision),
		say("m1", "user", strings.Repeat("old ", 700)),
		artel.Message{ID: "m2", Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "See **this**."}, shot.MediaPart(), note.MediaPart()}},
		calls("m3", "c1"), answers("m4", "c1", "found"),
		with(say("m5", "assistant", "hidden"), func(m *artel.Message) { m.Muted = true }),
		say("m6", "user", "And now?"),
	)
	in.Agent.Prompt, in.Now, in.Sources = "You are {{char}}.", now, w.files
	in.Agent.Presets = []pipeline.Preset{{ID: "note", Text: "Be brief.", Place: pipeline.Place{Depth: "1"}}}
	in.Settings = pipeline.Settings{
		Deployment: []pipeline.Setting{{ID: pipeline.InjectionAssembler, Config: json.RawMessage(`{"preview":5}`)}},
		Model:      []pipeline.Setting{{ID: pipeline.TokenLimiter, Config: json.RawMessage(`{"reply_reserve":500}`)}},
		Agent:      []pipeline.Setting{tenRules(), {ID: "unknown"}},
	}
	r := build(t, in)
	for i := range r.Record.Processors {
		r.Record.Processors[i].Millis = 0
	}
	got, err := json.MarshalIndent(struct {
		Record pipeline.Record   `json:"record"`
		Recipe pipeline.Manifest `json:"recipe"`
	}{r.Record, r.Manifest}, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", "record.json")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("the record is another one; -update writes it anew (-want +got):\n%s", cmp.Diff(string(want), string(got)))
	}
}
