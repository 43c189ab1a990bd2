// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/dlclark/regexp2/v2"
)

// A javascriptCase is what node makes of a text; a nil want says that it
// refuses the pattern. scripts/regexes writes them.
type javascriptCase struct {
	pattern, flags, replace, text string
	want                          *string
}

func javascriptCases(t testing.TB) []javascriptCase {
	raw, err := os.ReadFile("testdata/javascript.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][5]*string
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	cases := make([]javascriptCase, len(rows))
	for i, r := range rows {
		cases[i] = javascriptCase{*r[0], *r[1], *r[2], *r[3], r[4]}
	}
	return cases
}

func never(int) error { return nil }

// unlimited lifts the time limit of the backtracking engine, which an ordinary
// search exceeds on a busy machine.
func unlimited(p *pattern) *pattern {
	back := p.back[0]
	p.back = []func() (*regexp2.Regexp, error){func() (*regexp2.Regexp, error) {
		re, err := back()
		if err == nil {
			re.MatchTimeout = regexp2.DefaultMatchTimeout
		}
		return re, err
	}}
	return p
}

// Every pattern gives what it gives in JavaScript, on the engine that it gets
// and, where that is the linear one, on the other one too.
func TestJavaScript(t *testing.T) {
	linear := 0
	for _, c := range javascriptCases(t) {
		wanted, named := groupsIn(c.replace)
		p, err := compile(c.pattern, c.flags, wanted, named)
		if (err != nil) != (c.want == nil) {
			t.Errorf("/%s/%s: %v, node says valid: %t", c.pattern, c.flags, err, c.want != nil)
			continue
		}
		if err != nil {
			continue
		}
		r := replacement{pattern: unlimited(p), template: parseTemplate(c.replace, nil, p.groups, len(p.names) > 0)}
		got, _, err := r.apply(c.text, never)
		if err != nil || got != *c.want {
			t.Errorf("/%s/%s by %q on %q: %q, %v; want %q (linear: %t)", c.pattern, c.flags, c.replace, c.text, got, err, *c.want, p.linear != nil)
		}
		if p.linear == nil {
			continue
		}
		if linear++; p.flags.ignoreCase && p.need.fold && linear%4 > 0 {
			continue // each takes the other engine tens of milliseconds to prepare
		}
		if got, _, err = r.applyBack(c.text, never); err != nil || got != *c.want {
			t.Errorf("/%s/%s by %q on %q, backtracking: %q, %v; want %q", c.pattern, c.flags, c.replace, c.text, got, err, *c.want)
		}
	}
	if linear < 500 {
		t.Errorf("only %d patterns have a linear form", linear)
	}
}
