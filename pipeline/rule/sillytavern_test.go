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
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/pipeline/rule"
)

// imported is the one rule of a script, with the fields that losses name.
func imported(t *testing.T, script string) (rule.Rule, []string) {
	t.Helper()
	c, losses, err := rule.FromSillyTavern([]byte(script), macro.FromSillyTavern)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Presets) != 1 || len(c.Presets[0].Rules) != 1 {
		t.Fatalf("rules: %+v", c)
	}
	var fields []string
	for _, l := range losses {
		fields = append(fields, l.Field)
	}
	return c.Presets[0].Rules[0], fields
}

func TestSillyTavernFields(t *testing.T) {
	no := false
	one, four := 1, 4
	for name, c := range map[string]struct {
		script string
		want   rule.Rule
		losses []string
	}{
		"everything": {
			`{"id":"8e","scriptName":"bold","findRegex":"/\\*(.+?)\\*/g","replaceString":"<b>$1</b>","trimStrings":["x"],"placement":[1,2],"disabled":false,"markdownOnly":true,"promptOnly":false,"runOnEdit":true,"substituteRegex":0,"minDepth":1,"maxDepth":4}`,
			rule.Rule{ID: "bold", Find: `/\*(.+?)\*/g`, Replace: "<b>$01</b>", Roles: []artel.Role{"user", "assistant"}, Depth: &rule.Depth{Min: &one, Max: &four}, Stages: []rule.Stage{rule.Display}, Trim: []string{"x"}},
			nil,
		},
		"both flags": {
			`{"findRegex":"a","placement":[2],"markdownOnly":true,"promptOnly":true,"minDepth":-1,"maxDepth":null}`,
			rule.Rule{ID: "script 1", Find: "/a/", Roles: []artel.Role{"assistant"}},
			nil,
		},
		"neither flag": {
			`{"findRegex":"a","placement":[2],"runOnEdit":true,"maxDepth":4}`,
			rule.Rule{ID: "script 1", Find: "/a/", Roles: []artel.Role{"assistant"}, Depth: &rule.Depth{Max: &four}},
			[]string{"promptOnly", "minDepth"},
		},
		"places that there are not": {
			`{"findRegex":"a","placement":[3,5,9],"promptOnly":true,"substituteRegex":2}`,
			rule.Rule{ID: "script 1", Find: "/a/", Stages: []rule.Stage{rule.Request}, Enabled: &no, Expand: rule.ExpandEscaped},
			[]string{"placement", "placement", "placement", "placement"},
		},
		"an older file": {
			`{"findRegex":"{{user}}:","replaceString":"<USER> $& $$ \\n","placement":[1],"promptOnly":true,"substituteRegex":true,"disabled":true}`,
			rule.Rule{ID: "script 1", Find: "/{{user}}:/", Replace: `{{user}} $$& $$$$ \\n`, Roles: []artel.Role{"user"}, Stages: []rule.Stage{rule.Request}, Enabled: &no, Expand: rule.ExpandRaw},
			nil,
		},
		"what is wrong": {
			`{"scriptName":"x","findRegex":"(a","replaceString":"$1 {{lastSwipeId}}","placement":"1","promptOnly":"yes","trimStrings":[1],"colour":"red","substituteRegex":7}`,
			rule.Rule{ID: "x", Find: "/(a/", Replace: " {{lastSwipeId}}", Enabled: &no},
			[]string{"trimStrings", "substituteRegex", "promptOnly", "promptOnly", "runOnEdit", "placement", "placement", "findRegex", "replaceString", "replaceString", "colour"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, losses := imported(t, c.script)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error("rule (-want +got):", diff)
			}
			if diff := cmp.Diff(c.losses, losses); diff != "" {
				t.Error("losses (-want +got):", diff)
			}
		})
	}
}

// What a script does there, the rule does here.
func TestSillyTavernMeaning(t *testing.T) {
	for name, c := range map[string]struct{ find, replace, trim, text, want string }{
		"the first match":        {"a", "b", ``, "aa", "ba"},
		"flags":                  {"/A/gi", "b", ``, "aa", "bb"},
		"flags that JS has not":  {"/a/y", "b", ``, "a /a/y", "a b"},
		"no lines":               {"/^a/g", "b", ``, "a\na", "b\na"},
		"match":                  {"a+", "[{{match}}$0]", ``, "aa", "[aaaa]"},
		"group by all digits":    {"(a)", "$1.$12.$01", ``, "a", "a..a"},
		"no template of JS":      {"(?:a)", "$& $$ $` $<x>", ``, "a", "$& $$ $` $<x>"},
		"names":                  {"(?<x>a)", "$<x>$<x>", ``, "a", "aa"},
		"backslashes":            {"a", `\n\t\\`, ``, "a", `\n\t\\`},
		"trim of groups":         {"(.*)=(.*)", "$2=$1", `"_"`, "_a_=b_", "b=a"},
		"trim of the whole":      {"(.*)=(.*)", "$0|$2", `"_"`, "_a_=b_", "a=b|b"},
		"trim of names":          {"(.*):.*", "$1", `"{{char}}"`, "Bob: x", ""},
		"macros":                 {"me", "{{user}} $1", ``, "me", "Ann "},
		"choices and dice":       {"me", "{{random:a,a}}{{roll:d1}}{{// x}}", ``, "me", "a1"},
		"trimmed macros":         {"(.*):.*", "$1", `"<CHAR>"`, "Bob: x", ""},
		"nothing in its place":   {"a", "", ``, "ba", "b"},
		"slashes in the pattern": {"/a/b/g", "c", ``, "a/b a/b", "c c"},
	} {
		t.Run(name, func(t *testing.T) {
			script, err := json.Marshal(map[string]any{
				"findRegex": c.find, "replaceString": c.replace, "trimStrings": json.RawMessage("[" + c.trim + "]"), "placement": []int{1}, "promptOnly": true,
			})
			if err != nil {
				t.Fatal(err)
			}
			config, _, err := rule.FromSillyTavern(script, macro.FromSillyTavern)
			if err != nil {
				t.Fatal(err)
			}
			m := macro.New(macro.Context{Values: map[string]string{"user": "Ann", "char": "Bob"}})
			out, err := rule.New().Compile(config).Apply(context.Background(), rule.Request, []rule.Text{user(c.text)},
				func(text string, escape func(string) string) (string, error) {
					r, err := m.ExpandInto(text, escape)
					return r.Text, err
				})
			if err != nil || out.Texts[0] != c.want || len(out.Problems) > 0 {
				t.Errorf("got %q, %v, %v; want %q; the rule is %+v", out.Texts[0], out.Problems, err, c.want, config.Presets[0].Rules[0])
			}
		})
	}
}

func TestSillyTavernFiles(t *testing.T) {
	const one = `{"findRegex":"a","scriptName":"n","placement":[1],"promptOnly":true}`
	for _, file := range []string{
		one, "[" + one + "]", `{"regex_scripts":[` + one + `]}`, `{"spec":"chara_card_v2","data":{"extensions":{"regex_scripts":[` + one + `]}}}`,
		`{"extension_settings":{"regex":[` + one + `]}}`, "\ufeff" + one,
	} {
		if _, losses := imported(t, file); len(losses) > 0 {
			t.Errorf("%s: %v", file, losses)
		}
	}
	c, losses, err := rule.FromSillyTavern([]byte("["+one+","+one+`,{"findRegex":"","scriptName":"empty"}]`), nil)
	if err != nil || len(c.Presets[0].Rules) != 2 || c.Presets[0].Rules[1].ID != "n (2)" || len(losses) != 1 || losses[0].Script != "empty" {
		t.Errorf("got %+v, %v, %v", c, losses, err)
	}
	for _, file := range []string{"", "x", "[1]", `{"name":"a card"}`, `[{}]`, `{"regex_scripts":{}}`} {
		if _, _, err := rule.FromSillyTavern([]byte(file), nil); !errors.Is(err, artel.Invalid) {
			t.Errorf("%q: %v", file, err)
		}
	}
	many := "[" + strings.Repeat(one+",", rule.MaxRules) + one + "]"
	if _, _, err := rule.FromSillyTavern([]byte(many), nil); !errors.Is(err, artel.TooLarge) {
		t.Error("too many scripts:", err)
	}
}

func FuzzFromSillyTavern(f *testing.F) {
	for _, s := range []string{
		`{"findRegex":"/a/gi","replaceString":"$1$0{{match}}$<a>\\","trimStrings":["x"],"placement":[1,2],"minDepth":1,"maxDepth":2}`,
		`[{"findRegex":"(?<a>b)"},{"scriptName":"","placement":[-1,99],"minDepth":1e300}]`, `{"data":{"extensions":{"regex_scripts":[]}}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if len(file) > 2000 {
			return
		}
		c, _, err := rule.FromSillyTavern([]byte(file), macro.FromSillyTavern)
		if err != nil {
			return
		}
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := rule.ParseConfig(raw)
		if err != nil {
			t.Fatalf("our own rules cannot be read: %v\n%s", err, raw)
		}
		if fmt.Sprint(len(again.Presets[0].Rules)) != fmt.Sprint(len(c.Presets[0].Rules)) {
			t.Fatal("rules are lost")
		}
	})
}
