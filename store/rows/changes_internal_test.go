// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
)

// What encodeChanges writes, encoding/json and decodeChanges read as it was.
func TestEncodeChanges(t *testing.T) {
	text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("\"\\\n\r\t\x00\x1f\x7f<>&/\u2028é中🧵"))))
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) artel.Change {
			return artel.Change{
				Layer: rapid.SampledFrom([]artel.Layer{"", artel.LayerExact}).Draw(t, "layer"),
				Start: rapid.Int().Draw(t, "start"), End: rapid.Int().Draw(t, "end"), Old: text.Draw(t, "old"), New: text.Draw(t, "new"),
			}
		}), 0, 3).Draw(t, "changes")
		got := []artel.Change{}
		s := encodeChanges(want)
		if err := json.Unmarshal([]byte(s), &got); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s, diff)
		}
		got, err := (&versionRow{changes: &s}).decodeChanges()
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("decodeChanges: %s (-want +got):\n%s", s, diff)
		}
	})
}

// FuzzDecodeChanges compares decodeChanges with encoding/json.
func FuzzDecodeChanges(f *testing.F) {
	for _, s := range []string{
		`[]`, `[{"start":1,"end":2,"old":"a","new":"b\n\"\\"}]`, `[{"layer":"exact","start":0,"end":0,"old":"","new":"é"},{"start":3,"end":12,"old":"x","new":""}]`,
		`null`, `[{}]`, `[ ]`, `[]]`, `[{"start":01,"end":2,"old":"a","new":"b"}]`, `[{"start":-1,"end":1e3,"old":"a","new":"b"}]`,
		`[{"start":1,"end":2,"old":"\u001f<\ud800","new":"\t"}]`, "[{\"start\":1,\"end\":2,\"old\":\"\n\",\"new\":\"\xff\"}]",
		`[{"start":9223372036854775807,"end":999999999999999999,"old":"a","new":"b"}]`, `[{"start":99999999999999999999,"end":2,"old":"a","new":"b"}]`,
		`[{"start":1,"end":2,"old":"a","new":"b"},]`, `[{"start":1,"end":2,"old":"a","new":"b","new":"c"}]`, `[{"start":1,"end":2,"old":"a","new":"b`, `[{"start":1,"end":2,"old":"a","new":"\`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want []artel.Change
		wantErr := json.Unmarshal([]byte(s), &want)
		got, err := (&versionRow{changes: &s}).decodeChanges()
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: got %v, want %v", s, err, wantErr)
		}
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Errorf("%q (-want +got):\n%s", s, diff)
		}
	})
}
