// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"math"
	"slices"
	"strings"
)

// parseDepths reads the depths that s asks for in a history of n messages: 0
// is after the newest, 1 before it, and what is larger than n is beyond the
// oldest. They are separated by commas: "N" is one, "S~I" is S and, up to n,
// every I further. White space around numbers means nothing; what is neither
// form is left out. Every depth comes once, the deepest first.
func parseDepths(s string, n int) []int {
	var out []int
	for item := range strings.SplitSeq(s, ",") {
		first, step, repeated := strings.Cut(item, "~")
		start, ok := parseDepth(first)
		if !ok {
			continue
		}
		interval := 0
		if repeated {
			if interval, ok = parseDepth(step); !ok {
				continue
			}
		}
		out = append(out, start)
		if interval == 0 {
			continue
		}
		for start <= n-interval {
			start += interval
			out = append(out, start)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return slices.Compact(out)
}

// parseDepth reads a number without a sign. One that is too large for any
// history is as good as the largest.
func parseDepth(s string) (int, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if n = n*10 + int(s[i]-'0'); n > math.MaxInt32 {
			n = math.MaxInt32
		}
	}
	return n, true
}
