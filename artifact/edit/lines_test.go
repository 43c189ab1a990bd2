// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel/artifact/edit"
)

func TestLines(t *testing.T) {
	for text, want := range map[string][]string{
		"":                 nil,
		"\n":               {""},
		"a":                {"a"},
		"a\n":              {"a"},
		"a\r\nb":           {"a", "b"},
		"a\rb\n\n":         {"a\rb", ""},
		"a\r":              {"a\r"},
		"\u2028\f\v\u0085": {"\u2028\f\v\u0085"},
	} {
		var got []string
		for n, line := range edit.Lines(text).All() {
			if got = append(got, line); n != len(got) {
				t.Errorf("%q: line %d is numbered %d", text, len(got), n)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		if n := edit.Lines(text).Count(); n != len(want) {
			t.Errorf("%q: counts %d lines, has %d", text, n, len(want))
		}
	}
}

func TestSlice(t *testing.T) {
	const text = "a\r\nb\n\nd"
	for _, tt := range []struct {
		first, last int
		want        string
	}{
		{1, 1, "a\r\n"}, {2, 3, "b\n\n"}, {4, 4, "d"}, {4, 99, "d"}, {-3, 1, "a\r\n"}, {5, 9, ""}, {3, 2, ""}, {0, 0, ""}, {1, 4, text},
	} {
		if got := edit.Lines(text).Slice(tt.first, tt.last); got != tt.want {
			t.Errorf("%d to %d: %q, want %q", tt.first, tt.last, got, tt.want)
		}
	}
}

func TestSlicesJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := edit.Lines(rapid.StringOf(rapid.SampledFrom([]rune("a\r\n\n"))).Draw(t, "text"))
		var joined strings.Builder
		for n := 1; n <= l.Count(); n++ {
			line := l.Slice(n, n)
			if line == "" {
				t.Fatalf("line %d of %d is missing", n, l.Count())
			}
			joined.WriteString(line)
		}
		if joined.String() != string(l) {
			t.Fatalf("lines join to %q", joined.String())
		}
	})
}
