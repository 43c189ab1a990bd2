// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestInputReader cuts the arguments of a custom tool anywhere: the pieces have the
// text, and each one what it completes.
func TestInputReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text")
		whole, err := json.Marshal(map[string]string{"input": want})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(whole, &struct {
			Input *string `json:"input"`
		}{&want}); err != nil {
			t.Fatal(err)
		}
		var r InputReader
		got := ""
		for rest := string(whole); rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			for n < len(rest) && !utf8.RuneStart(rest[n]) { // pieces are whole characters
				n++
			}
			got += r.Read(rest[:n])
			rest = rest[n:]
		}
		if got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
	for _, s := range []string{`{"input":"\ud83d\ude00"}`, `{"input":"\udc00a\n"}`, `{"input":"\ud800x"}`, `{"other":1}`, `{"input":"a`, ` { "input" : "a\nb" }`, `{}`} {
		for cut := range s {
			var r InputReader
			got := r.Read(s[:cut])
			got += r.Read(s[cut:])
			var v struct{ Input string }
			if json.Unmarshal([]byte(s), &v) == nil && got != v.Input {
				t.Errorf("%s cut at %d: %q", s, cut, got)
			}
		}
	}
}
