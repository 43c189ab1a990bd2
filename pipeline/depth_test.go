// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDepths(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want []int
	}{
		{"0", 3, []int{0}},
		{"3", 3, []int{3}},
		{"9", 3, []int{9}},
		{"1,5", 9, []int{5, 1}},
		{" 1 , 5 ", 9, []int{5, 1}},
		{"5,1,5,1", 9, []int{5, 1}},
		{"10~5", 24, []int{20, 15, 10}},
		{"10~5", 25, []int{25, 20, 15, 10}},
		{"10 ~ 5", 12, []int{10}},
		{"10~5", 3, []int{10}},
		{"2~0", 9, []int{2}},
		{"0~1", 3, []int{3, 2, 1, 0}},
		{"1~2,3", 6, []int{5, 3, 1}},
		{"x,2,,3y,-1,1.5,+4,~3,3~,1~2~3", 9, []int{2}},
		{"", 9, nil},
		{" , ", 9, nil},
		{"٣", 9, nil},
		{"99999999999999999999", 9, []int{1<<31 - 1}},
		{"99999999999999999999~1", 9, []int{1<<31 - 1}},
		{"1~99999999999999999999", 9, []int{1}},
	} {
		if diff := cmp.Diff(c.want, parseDepths(c.text, c.n)); diff != "" {
			t.Errorf("%q of %d (-want +got):\n%s", c.text, c.n, diff)
		}
	}
}

func FuzzParseDepths(f *testing.F) {
	for _, s := range []string{"3", "1,5", "10~5", "0~1", "2~0", "x", "99999999999999999999~99999999999999999999", "1~2~3", ",,~"} {
		f.Add(s, 12)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = max(0, n) % 1000
		got := parseDepths(s, n)
		for i, d := range got {
			if d < 0 || i > 0 && d >= got[i-1] {
				t.Fatalf("%q: %v", s, got)
			}
		}
		if again := parseDepths(s+","+s, n); !slices.Equal(got, again) {
			t.Fatalf("%q twice: %v and %v", s, got, again)
		}
	})
}
