// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"encoding/json"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel/pipeline/token"
)

// TestEstimates holds estimates to what the tokenizers said of texts that the
// factors do not come from; the packages of npm are those that [token.Known]
// names.
func TestEstimates(t *testing.T) {
	src, err := os.ReadFile("testdata/estimates.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Kind, Text string
		Tokens     map[string]int
	}
	if err := json.Unmarshal(src, &rows); err != nil {
		t.Fatal(err)
	}
	c := token.NewCounter()
	for _, v := range token.Known() {
		if v.Exact {
			if v.Error != 0 {
				t.Errorf("%s is exact, with an error of %v", v.Name, v.Error)
			}
			continue
		}
		sum := 0.0
		for _, row := range rows {
			want := row.Tokens[v.Name]
			n, err := c.Count(v.Name, row.Text)
			if err != nil || want == 0 {
				t.Fatalf("%s, %s: %v; the text has %d", v.Name, row.Kind, err, want)
			}
			off := float64(n)/float64(want) - 1
			sum += max(off, -off)
			if off < -0.15 || off > 0.15 {
				t.Errorf("%s, %s: %d tokens, really %d (%+.0f %%)", v.Name, row.Kind, n, want, 100*off)
			}
		}
		if mean := sum / float64(len(rows)); mean > v.Error+0.03 || v.Error <= 0 || v.Source == "" {
			t.Errorf("%s: off by %.3f on average, and %.3f is said (%s)", v.Name, mean, v.Error, v.Source)
		}
	}
}

// TestEstimatesAreSane: every text has a token, and no more than its base could
// make of it at the largest factor.
func TestEstimatesAreSane(t *testing.T) {
	c := token.NewCounter()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		v := rapid.SampledFrom(token.Known()).Draw(t, "vocabulary").Name
		n, err := c.Count(v, text)
		if err != nil || (n == 0) != (text == "") || n > 4*len(text) {
			t.Fatalf("Count(%s, %q) = %d, %v", v, text, n, err)
		}
	})
}
