// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func drawnPattern(t *rapid.T) string {
	atom := rapid.SampledFrom([]string{"a", "b", "ab", "A", ".", "[ab]", "[^a]", `\w`, `\b`, `\B`, "^", "$", "(a)", "(?:a|b)", "(a|(b))", "(a(b)?)", "é", "k", `\s`, "(?=a)", "(?<=b)", "(?!k)", `\n`, "“", "😀", `\d`, "[a-c“]", `\1`})
	suffix := rapid.SampledFrom([]string{"", "", "", "*", "+", "?", "*?", "+?", "{2}", "|", "{1,2}?"})
	var b strings.Builder
	for range rapid.IntRange(1, 6).Draw(t, "parts") {
		b.WriteString(atom.Draw(t, "atom") + suffix.Draw(t, "suffix"))
	}
	return b.String()
}

// Both engines make the same of every text that the linear one takes, and no
// text is passed over in which there is something to find.
func TestEnginesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source, flags := drawnPattern(t), rapid.SampledFrom([]string{"g", "gm", "", "gs", "gu", "gms", "m"}).Draw(t, "flags")
		const replace = "<$1|$2|$&>"
		wanted, named := groupsIn(replace)
		p, err := compile(source, flags, wanted, named)
		if err != nil {
			return // node refuses it too
		}
		r := replacement{pattern: unlimited(p), template: parseTemplate(replace, nil, p.groups, len(p.names) > 0)}
		for range 5 {
			text := rapid.StringOfN(rapid.SampledFrom([]rune("aabbcAk1 \n\ré“😀\u2028")), 0, 20, -1).Draw(t, "text")
			want, n, err := r.applyBack(text, never)
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 && !p.need.canMatch(text) {
				t.Fatalf("/%s/%s finds something in %q, which is passed over", source, flags, text)
			}
			if p.linear == nil || !p.linear.takes(text) {
				continue
			}
			p.linear.chunk = rapid.IntRange(1, 3).Draw(t, "chunk")
			if got, m, err := r.applyLinear(text, never); err != nil || got != want || m != n {
				t.Fatalf("/%s/%s on %q: %q, %v; the other engine makes %q", source, flags, text, got, err, want)
			}
		}
	})
}
