// SPDX-License-Identifier: Apache-2.0

package rule_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/pipeline/rule"
)

// apply runs rules, written as JSON, over one text.
func apply(t testing.TB, config string, x rule.Text, stage rule.Stage) rule.Outcome {
	t.Helper()
	c, err := rule.ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	m := macro.New(macro.Context{Values: map[string]string{"user": "Ann", "char": "$1 (x)", "persona": `\n$&{{user}}`}})
	expand := func(text string, escape func(string) string) (string, error) {
		r, err := m.ExpandInto(text, escape)
		return r.Text, err
	}
	out, err := rule.New().Compile(c).Apply(context.Background(), stage, []rule.Text{x}, expand)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func user(text string) rule.Text { return rule.Text{Text: text, Role: artel.RoleUser, Depth: -1} }

func TestApply(t *testing.T) {
	for name, c := range map[string]struct {
		rules string // what stands in "rules"
		text  string
		want  string
	}{
		"all places, the plain form":     {`{"find":"a","replace":"b"}`, "a\na", "b\nb"},
		"lines, the plain form":          {`{"find":"^a$","replace":"b"}`, "a\na", "b\nb"},
		"the first place, with slashes":  {`{"find":"/a/","replace":"b"}`, "aa", "ba"},
		"no lines, with slashes":         {`{"find":"/^a/g","replace":"b"}`, "a\na", "b\na"},
		"flags of the slashes":           {`{"find":"/A/gi","replace":"b"}`, "aa", "bb"},
		"flags win over slashes":         {`{"find":"/a/gi","flags":"i","replace":"b"}`, "AA", "bA"},
		"flags win over none":            {`{"find":"a","flags":"i","replace":"b"}`, "Aa", "ba"},
		"slashes inside":                 {`{"find":"/a/b/g","replace":"x"}`, "a/b a/b", "x x"},
		"another letter: all is pattern": {`{"find":"/a/x","replace":"y"}`, "/a/x /a/x", "y y"},
		"a path":                         {`{"find":"/usr/bin","replace":"y"}`, "/usr/bin", "y"},
		"two slashes":                    {`{"find":"//","replace":"#"}`, "// x", "# x"},
		"groups":                         {`{"find":"(\\w)(\\w)","replace":"$2$1$3$0$10"}`, "ab", "ba$3$0a0"},
		"named":                          {`{"find":"(?<y>\\d+)-(?<m>\\d+)","replace":"$<m>/$<y>$<none>"}`, "2025-11", "11/2025"},
		"no names":                       {`{"find":"a","replace":"$<m>"}`, "a", "$<m>"},
		"around":                         {"{\"find\":\"b\",\"replace\":\"[$`|$&|$'|$$]\"}", "abc", "a[a|b|c|$]c"},
		"escapes":                        {`{"find":"a","replace":"\\n\\t\\\\n\\x"}`, "a", "\n\t\\n\\x"},
		"nothing set":                    {`{"find":"(a)|(b)","replace":"[$1$2]"}`, "ab", "[a][b]"},
		"what a loop forgets":            {`{"find":"(?:(a)|b)+","replace":"[$1]"}`, "ab", "[]"},
		"look behind":                    {`{"find":"(?<=\\$)\\d+","replace":"N"}`, "$10 10", "$N 10"},
		"back reference":                 {`{"find":"(\\w)\\1","replace":"$1"}`, "aabb", "ab"},
		"trim":                           {`{"find":"(.*)=(.*)","replace":"$2,$1,$&","trim":["x","{{user}}"]}`, "axb=xAnn", ",ab,axb=xAnn"},
		"trim, back tracking":            {`{"find":"(?=.)(.*)=(.*)","replace":"$2,$1,$&","trim":["x","{{user}}"]}`, "axb=xAnn", ",ab,axb=xAnn"},
		"macros in replace":              {`{"find":"me","replace":"{{user}}"}`, "me", "Ann"},
		"values are literal":             {`{"find":"(m)e","replace":"{{char}} {{persona}} $1"}`, "me", `$1 (x) \n$&{{user}} m`},
		"values do not join":             {`{"find":"(m)e","replace":"${{repeat::1::1}} $1{{repeat::0::1}}"}`, "me", "$1 m0"},
		"captured text is no macro":      {`{"find":"\\((.*)\\)","replace":"$1"}`, "({{user}})", "{{user}}"},
		"unknown macros stay":            {`{"find":"a","replace":"{{nope}}"}`, "a", "{{nope}}"},
		"macros in find, not asked for":  {`{"find":"{{user}}","replace":"x"}`, "Ann {{user}}", "Ann x"},
		"macros in find, raw":            {`{"find":"{{user}}|{{char}}","replace":"x","expand":"raw"}`, "Ann {{user}}", "x {{user}}"},
		"macros in find, escaped":        {`{"find":"{{char}}","replace":"x","expand":"escaped"}`, "$1 (x) 1 x", "x 1 x"},
		"by order":                       {`{"find":"a","replace":"b","order":2},{"find":"b","replace":"c","order":1}`, "ab", "bc"},
		"by place":                       {`{"find":"a","replace":"b"},{"find":"b","replace":"c"}`, "ab", "cc"},
		"disabled":                       {`{"find":"a","replace":"b","enabled":false}`, "a", "a"},
		"roles":                          {`{"find":"a","replace":"b","roles":["assistant","tool"]}`, "a", "a"},
		"the other stage":                {`{"find":"a","replace":"b","stages":["display"]}`, "a", "a"},
		"both stages":                    {`{"find":"a","replace":"b","stages":["display","request"]}`, "a", "b"},
		"a text may become empty":        {`{"find":"[^]+"}`, "a\nb", ""},
		"units of UTF-16":                {`{"find":"/^.$/","replace":"x"}`, "😀", "😀"},
		"characters":                     {`{"find":"/^.$/u","replace":"x"}`, "😀", "x"},
		"a text with what is two units":  {`{"find":"\"([^\"]*)\"","replace":"“$1”"}`, `"😀" "b"`, "“😀” “b”"},
		"white space as in JavaScript":   {`{"find":"\\s+","replace":"_"}`, "a\u00a0\u3000\ufeffb", "a_b"},
		"ends of lines as in JavaScript": {`{"find":".+","replace":"x"}`, "a\rb\u2028c", "x\rx\u2028x"},
		"cases as in JavaScript":         {`{"find":"/k|\u017f/gi","replace":"x"}`, "kK\u212as\u017f", "xx\u212asx"},
		"empty matches after others":     {`{"find":"a*","replace":"x"}`, "baaac", "xbxxcx"},
		"an open repetition":             {`{"find":"(a+)+$","replace":"x"}`, strings.Repeat("a", 28) + "!", strings.Repeat("a", 28) + "!"},
		"sticky":                         {`{"find":"/a/gy","replace":"x"}`, "aaba", "xxba"},
	} {
		t.Run(name, func(t *testing.T) {
			out := apply(t, `{"rules":[`+c.rules+`]}`, user(c.text), rule.Request)
			if out.Texts[0] != c.want || len(out.Problems) > 0 {
				t.Errorf("got %q, %v; want %q", out.Texts[0], out.Problems, c.want)
			}
			if len(out.Applied[0]) == 0 && out.Texts[0] != c.text {
				t.Error("it changed, and no rule says so")
			}
		})
	}
}

// Each rule adds its letter, so that the text shows who ran and when.
func TestOrder(t *testing.T) {
	letter := func(id string, order int) string {
		return fmt.Sprintf(`{"id":%q,"find":"$(?![^])","replace":%q,"order":%d}`, id, id, order)
	}
	deployment := `{"rules":[` + letter("a", 0) + `],"presets":[{"priority":200,"rules":[` + letter("z", -9) + `]},{"priority":100,"order":5,"rules":[` + letter("f", -3) + `]}]}`
	agent := `{"presets":[
		{"name":"p","rules":[` + letter("c", 9) + "," + letter("b", 1) + `]},
		{"name":"q","rules":[` + letter("d", 0) + `]},
		{"name":"off","enabled":false,"rules":[` + letter("x", 0) + `]},
		{"name":"early","priority":50,"rules":[` + letter("0", 99) + `]}]}`
	user := `{"rules":[` + letter("e", -5) + `]}`
	var layers []rule.Config
	for _, raw := range []string{deployment, agent, user} {
		c, err := rule.ParseConfig([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, c)
	}
	out, err := rule.New().Compile(layers...).Apply(context.Background(), rule.Request, []rule.Text{{Text: ":"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := ":0abcdefz"; out.Texts[0] != want {
		t.Errorf("they ran as %q, want %q; %v", out.Texts[0], want, out.Problems)
	}
	if diff := cmp.Diff(strings.Split("0abcdefz", ""), out.Applied[0]); diff != "" {
		t.Error("applied (-want +got):", diff)
	}
}

func TestDepth(t *testing.T) {
	const config = `{"rules":[
		{"id":"new","find":"x","replace":"n","depth":{"max":0}},
		{"id":"old","find":"x","replace":"o","depth":{"min":2}},
		{"id":"far","find":"o","replace":"O","depth":{"min":3,"max":3}},
		{"id":"all","find":"-","replace":"+","depth":{}}]}`
	c, err := rule.ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	var texts []rule.Text
	for depth := 4; depth >= -1; depth-- {
		texts = append(texts, rule.Text{Text: "x-", Role: artel.RoleUser, Depth: depth})
	}
	out, err := rule.New().Compile(c).Apply(context.Background(), rule.Request, texts, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"o+", "O+", "o+", "x+", "n+", "n+"}, out.Texts); diff != "" {
		t.Error("from depth 4 to 0, then without one (-want +got):", diff)
	}
}

func TestProblems(t *testing.T) {
	long := strings.Repeat("a", rule.MaxFind+1)
	for name, c := range map[string]struct{ bad, want string }{
		"a pattern":           {`{"id":"bad","find":"("}`, "not valid"},
		"no pattern":          {`{"id":"bad","find":""}`, "find is empty"},
		"another engine's":    {`{"id":"bad","find":"(?i)a"}`, "a group that JavaScript does not have"},
		"a long one":          {`{"id":"bad","find":"` + long + `"}`, "10001 bytes; a pattern may have 10000"},
		"flags":               {`{"id":"bad","find":"a","flags":"gx"}`, `the flags "gx" are not valid`},
		"flags twice":         {`{"id":"bad","find":"/a/gg"}`, `the flags "gg" are not valid`},
		"a role":              {`{"id":"bad","find":"a","roles":["robot"]}`, `"robot" is no role`},
		"a stage":             {`{"id":"bad","find":"a","stages":["later"]}`, `"later" is no stage`},
		"an expansion":        {`{"id":"bad","find":"a","expand":"some"}`, `expand is "some"`},
		"depths":              {`{"id":"bad","find":"a","depth":{"min":2,"max":1}}`, "from 2 to 1"},
		"a long replacement":  {`{"id":"bad","find":"a","replace":"` + strings.Repeat("a", rule.MaxReplace+1) + `"}`, "it may have 100000"},
		"no character":        {`{"id":"bad","find":"a","replace":"\ufdd0"}`, "no characters"},
		"too deep":            {`{"id":"bad","find":"a","replace":"` + strings.Repeat("{{repeat::", 40) + strings.Repeat("::1}}", 40) + `"}`, "nested deeper"},
		"a pattern of macros": {`{"id":"bad","find":"{{char}}(","expand":"raw"}`, "not valid"},
		"wide classes":        {`{"id":"bad","find":"/(?=x)` + strings.Repeat(".", 60) + `/i"}`, "more than 50 classes"},
		"too much text":       {`{"id":"bad","find":"x","replace":"` + strings.Repeat("$&$&$&$&$&$&$&$&$&$&", 4900) + "$`$'" + `"}`, "more than 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			out := apply(t, `{"rules":[{"find":"a","replace":"b"},`+c.bad+`,{"find":"c","replace":"d"}]}`, user("ac"+strings.Repeat("x", 1000)), rule.Request)
			if len(out.Problems) != 1 || out.Problems[0].Rule != "bad" || !strings.Contains(out.Problems[0].Message, c.want) {
				t.Errorf("problems: %v, want one with %q", out.Problems, c.want)
			}
			if !strings.HasPrefix(out.Texts[0], "bd") {
				t.Error("the other rules did not run:", out.Texts[0][:2])
			}
		})
	}
	for _, bad := range []string{`{"rules":[{"find":"a","sticky":true}]}`, `{"rules":{}}`, `[]`, `{`} {
		if _, err := rule.ParseConfig([]byte(bad)); !errors.Is(err, artel.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestNames(t *testing.T) {
	out := apply(t, `{"rules":[{"find":"a"},{"find":"b","id":"mine"}],"presets":[{"rules":[]},{"name":"p","rules":[{"find":"c"},{"find":"("}]}]}`, user("abc"), rule.Request)
	if diff := cmp.Diff([]string{"rules[0]", "mine", "presets[1].rules[0]"}, out.Applied[0]); diff != "" {
		t.Error("applied (-want +got):", diff)
	}
	if len(out.Problems) != 1 || out.Problems[0].Rule != "presets[1].rules[1]" {
		t.Error("problems:", out.Problems)
	}
}

// A pattern that would run for hours is stopped and left out of all texts; the
// others run. What is known of it is remembered.
func TestCatastrophe(t *testing.T) {
	bad, err := rule.ParseConfig([]byte(`{"rules":[{"find":"o","replace":"0"},{"id":"slow","find":"(a+)+b","replace":"x"},{"find":"!","replace":"?"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	// RE2 takes that one in linear time, this one not.
	slow, err := rule.ParseConfig([]byte(`{"rules":[{"find":"o","replace":"0"},{"id":"slow","find":"(?=a)(a+)+b","replace":"x"},{"find":"!","replace":"?"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	texts := []rule.Text{user("aaab"), user("b" + strings.Repeat("a", 40) + "o!"), user("aaab")}
	e := rule.New()
	out, err := e.Compile(bad).Apply(context.Background(), rule.Request, texts, nil)
	if want := []string{"x", "b" + strings.Repeat("a", 40) + "0?", "x"}; err != nil || len(out.Problems) > 0 || !cmp.Equal(out.Texts, want) {
		t.Errorf("got %q, %v, %v", out.Texts, out.Problems, err)
	}
	for range 2 {
		out, err = e.Compile(slow).Apply(context.Background(), rule.Request, texts, nil)
		if want := []string{"aaab", "b" + strings.Repeat("a", 40) + "0?", "aaab"}; err != nil || !cmp.Equal(out.Texts, want) {
			t.Errorf("got %q, %v", out.Texts, err)
		}
		if len(out.Problems) != 1 || out.Problems[0].Rule != "slow" || !strings.Contains(out.Problems[0].Message, "took longer than 50ms") {
			t.Error("problems:", out.Problems)
		}
	}
}

func TestCanceled(t *testing.T) {
	c, err := rule.ParseConfig([]byte(`{"rules":[{"find":"a"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := rule.New().Compile(c).Apply(ctx, rule.Request, []rule.Text{user("a")}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// patterns draws patterns out of which many have a linear form.
func patterns() *rapid.Generator[string] {
	atom := rapid.SampledFrom([]string{"a", "b", "ab", ".", "[ab]", "[^a]", `\w`, `\b`, "^", "$", "(a)", "(?:a|b)", "(a|(b))", "é", "k", `\s`, "(?=a)", `\n`})
	suffix := rapid.SampledFrom([]string{"", "", "*", "+", "?", "*?", "{2}", "|", "{1,2}?"})
	return rapid.Map(rapid.SliceOfN(rapid.Map(rapid.SliceOfN(rapid.OneOf(atom, suffix), 2, 2), func(s []string) string { return s[0] + s[1] }), 1, 5),
		func(s []string) string { return strings.Join(s, "") })
}

// A text that matches nothing is as it was, the stages give the same, and what
// is remembered is what was found out.
func TestStagesAndCache(t *testing.T) {
	e := rule.New()
	rapid.Check(t, func(t *rapid.T) {
		c := rule.Config{}
		for range rapid.IntRange(1, 4).Draw(t, "rules") {
			c.Rules = append(c.Rules, rule.Rule{
				Find: patterns().Draw(t, "find"), Flags: rapid.SampledFrom([]string{"", "g", "gs", "gu"}).Draw(t, "flags"),
				Replace: rapid.SampledFrom([]string{"", "<$1>", "$&a", "b"}).Draw(t, "replace"),
			})
		}
		text := rapid.StringOf(rapid.SampledFrom([]rune("aabk \né😀\r"))).Draw(t, "text")
		var first rule.Outcome
		for i, stage := range []rule.Stage{rule.Request, rule.Display, rule.Request} {
			engine := e
			if i == 0 {
				engine = rule.New()
			}
			out, err := engine.Compile(c).Apply(context.Background(), stage, []rule.Text{user(text), user(text)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if out.Texts[0] != out.Texts[1] || len(out.Applied[0]) == 0 && out.Texts[0] != text {
				t.Fatalf("%q became %q", text, out.Texts)
			}
			if i == 0 {
				first = out
			} else if diff := cmp.Diff(first, out); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func FuzzApply(f *testing.F) {
	for _, s := range [][3]string{
		{"a", "b", "abc"},
		{"/(\\w+): (.*)/gm", "$2$1$<x>$$", "a: b"},
		{"(?<=a)b|(c)\\1", "$&", "abcc"},
		{"[^\\]\\w-]{2,3}?", "\\n{{user}}", "--"},
		{"/\\p{L}|[\\ud83d]/gu", "", "😀é"},
		{"(?<n>a)|\\k<n>", "$<n>", "aa"},
		{"(a*)*|(?!b)", "$1", "aab"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, find, replace, text string) {
		if len(find)+len(replace)+len(text) > 2000 {
			return
		}
		out, err := rule.New().Compile(rule.Config{Rules: []rule.Rule{{Find: find, Replace: replace}}}).
			Apply(context.Background(), rule.Request, []rule.Text{user(text)}, nil)
		if err != nil || len(out.Problems) > 1 {
			t.Fatal(out.Problems, err)
		}
		if len(out.Applied[0]) == 0 && out.Texts[0] != text {
			t.Fatalf("%q became %q without a rule", text, out.Texts[0])
		}
	})
}

func TestJSON(t *testing.T) {
	const full = `{"rules":[{"id":"r","find":"a","flags":"g","replace":"b","roles":["user"],"depth":{"min":0,"max":2},"stages":["request"],"order":3,"enabled":true,"trim":["x"],"expand":"raw"}],"presets":[{"name":"p","priority":1,"order":2,"enabled":false,"rules":[{"find":"c"}]}]}`
	c, err := rule.ParseConfig([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(c)
	if err != nil || string(raw) != full {
		t.Errorf("got %s, %v", raw, err)
	}
}

// The time of all rules together is bounded, too: of many that are each just
// fast enough, the one that was running when it is over is stopped and named,
// and what is left out is left out of every text.
func TestCatastropheOfMany(t *testing.T) {
	var c rule.Config
	for i := range 100 {
		c.Rules = append(c.Rules, rule.Rule{ID: fmt.Sprint("slow", i), Find: `(?=a)(a+)+b` + strings.Repeat("c?", i)})
	}
	c.Rules = append(c.Rules, rule.Rule{ID: "last", Find: "!", Replace: "?"})
	text := strings.Repeat("a", 40) + "!"
	out, err := rule.New().Compile(c).Apply(context.Background(), rule.Request, []rule.Text{user(text), user("b!")}, nil)
	if err != nil || !cmp.Equal(out.Texts, []string{strings.Repeat("a", 40) + "?", "b?"}) {
		t.Errorf("got %q, %v", out.Texts, err)
	}
	if len(out.Problems) != 100 {
		t.Errorf("%d rules are reported", len(out.Problems))
	}
	whole := 0
	for _, p := range out.Problems {
		if strings.Contains(p.Message, "all rules took longer than 3s together") {
			whole++
		}
	}
	if whole == 0 {
		t.Error("no rule was stopped for the sake of all")
	}
}

// TestDefaults: a rule that says nothing but what to find is for all roles and
// both stages, runs with the others of its order in their places, and expands
// no macros in its pattern; a set of rules has the priority 100 and the order 0.
func TestDefaults(t *testing.T) {
	for _, role := range []artel.Role{artel.RoleSystem, artel.RoleUser, artel.RoleAssistant, artel.RoleTool} {
		for _, stage := range []rule.Stage{rule.Request, rule.Display} {
			out := apply(t, `{"rules":[{"find":"a"}]}`, rule.Text{Text: "abc", Role: role, Depth: 7}, stage)
			if out.Texts[0] != "bc" {
				t.Errorf("%s, %s: %q", role, stage, out.Texts[0])
			}
		}
	}
	for config, want := range map[string]string{
		`{"presets":[{"rules":[{"find":"$(?![^])","replace":"1"}]},{"priority":100,"rules":[{"find":"$(?![^])","replace":"2"}]}]}`:                                                                                                                                              "12",
		`{"presets":[{"priority":100,"order":0,"rules":[{"find":"$(?![^])","replace":"1"}]},{"rules":[{"find":"$(?![^])","replace":"2"}]}]}`:                                                                                                                                    "12",
		`{"presets":[{"priority":99,"rules":[{"find":"$(?![^])","replace":"1"}]}],"rules":[{"find":"$(?![^])","replace":"2"}]}`:                                                                                                                                                 "12",
		`{"presets":[{"rules":[{"find":"$(?![^])","replace":"2"}]}],"rules":[{"find":"$(?![^])","replace":"1"}]}`:                                                                                                                                                               "12",
		`{"presets":[{"order":-1,"rules":[{"find":"$(?![^])","replace":"1"}]},{"order":0,"rules":[{"find":"$(?![^])","replace":"3"}]},{"rules":[{"order":0,"find":"$(?![^])","replace":"5"},{"find":"$(?![^])","replace":"6"},{"order":-1,"find":"$(?![^])","replace":"4"}]}]}`: "13456",
	} {
		if out := apply(t, config, user(""), rule.Request); out.Texts[0] != want {
			t.Errorf("%s: they ran as %q, want %q", config, out.Texts[0], want)
		}
	}
}
