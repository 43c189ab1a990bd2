// SPDX-License-Identifier: Apache-2.0

package elicit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel/agent/elicit"
)

const all = `{"type":"object","properties":{
	"name":{"type":"string","title":"Your name","minLength":2,"maxLength":5,"pattern":"^[a-z]+$"},
	"mail":{"type":"string","format":"email"},
	"site":{"type":"string","format":"uri"},
	"day":{"type":"string","format":"date"},
	"at":{"type":"string","format":"date-time"},
	"count":{"type":"integer","minimum":1,"maximum":3,"default":2},
	"share":{"type":"number"},
	"gift":{"type":"boolean","default":true},
	"size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}],"default":"l"},
	"old":{"type":"string","enum":["a","b"],"enumNames":["Ann","Bob"]},
	"extras":{"type":"array","minItems":1,"maxItems":2,"items":{"anyOf":[{"const":"x","title":"X"},{"const":"y","title":"Y"},{"const":"z","title":"Z"}]},"default":["x"]}
},"required":["name","extras"]}`

func TestForm(t *testing.T) {
	f, err := elicit.Parse(json.RawMessage(all))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, field := range f.Fields {
		names = append(names, field.Name)
	}
	if got := strings.Join(names, " "); got != "name mail site day at count share gift size old extras" {
		t.Errorf("the fields are %s", got)
	}
	if o := f.Fields[9].Options[1]; o.Value != "b" || o.Label() != "Bob" || f.Fields[8].Options[0].Title != "Small" || f.Fields[5].Default != 2.0 {
		t.Errorf("got %+v", f.Fields)
	}
	written := map[string][]string{
		"name": {"anna"}, "mail": {"a@b.example"}, "site": {"https://b.example/"}, "day": {"2026-01-31"}, "at": {"2026-01-31T10:00"},
		"count": {"3"}, "share": {"0.5"}, "gift": {"true"}, "size": {"s"}, "old": {""}, "extras": {"x", "z"},
	}
	answer := f.Read(func(name string) []string { return written[name] })
	if m := f.Check(answer); m != nil || fmt.Sprint(answer) != "map[at:2026-01-31T10:00:00Z count:3 day:2026-01-31 extras:[x z] gift:true mail:a@b.example name:anna share:0.5 site:https://b.example/ size:s]" {
		t.Errorf("got %v, %v", answer, m)
	}
	for field, bad := range map[string]map[any]elicit.Code{
		"name": {"a": elicit.Short, "abcdef": elicit.Long, "ABC": elicit.Pattern, 3.0: elicit.Wrong, nil: elicit.Missing},
		"mail": {"x": elicit.Format, "A <a@b.example>": elicit.Format}, "site": {"b.example": elicit.Format}, "day": {"1.2.2026": elicit.Format}, "at": {"now": elicit.Format},
		"count": {0.0: elicit.Small, 4.0: elicit.Large, 1.5: elicit.Wrong, "2": elicit.Wrong}, "gift": {"yes": elicit.Wrong}, "size": {"m": elicit.NoSuch},
		"more": {"x": elicit.Unknown},
	} {
		for v, want := range bad {
			answer := map[string]any{"name": "anna", "extras": []any{"x"}, field: v}
			if m := f.Check(answer); len(m) != 1 || m[0].Code != want || m[0].Field != field || m[0].Error() == "" {
				t.Errorf("%s %v: got %v, want %s", field, v, m, want)
			}
		}
	}
	for want, list := range map[elicit.Code][]any{elicit.Few: {}, elicit.Many: {"x", "y", "z"}, elicit.NoSuch: {"x", "x"}} {
		if m := f.Check(map[string]any{"name": "anna", "extras": list}); len(m) != 1 || m[0].Code != want {
			t.Errorf("%v: got %v, want %s", list, m, want)
		}
	}
}

func TestFormRefuses(t *testing.T) {
	many := `{"properties":{` + strings.TrimSuffix(strings.Repeat(`"%d":{"type":"string"},`, 51), ",") + `}}`
	numbers := make([]any, 51)
	for i := range numbers {
		numbers[i] = i
	}
	for _, s := range []string{
		`[]`, `{"type":"array"}`, `{"properties":{"a":{"type":"object"}}}`, `{"properties":{"a":{"type":"string","properties":{"b":{}}}}}`, `{"properties":{"a":{"type":"array"}}}`,
		`{"properties":{"a":{"type":"array","items":{"type":"string"}}}}`, `{"properties":{"a":{"type":"string","enum":[1]}}}`, `{"properties":[1]}`, `{"required":["a"]}`,
		`{"properties":{"a":{"type":"string"},"a":{"type":"string"}}}`, fmt.Sprintf(many, numbers...), `{"title":"` + strings.Repeat("x", elicit.MaxSchema) + `"}`,
	} {
		if _, err := elicit.Parse(json.RawMessage(s)); err == nil {
			t.Errorf("took %.80s", s)
		}
	}
}

// FuzzForm: no schema panics, and what a form reads from its own defaults it takes.
func FuzzForm(f *testing.F) {
	f.Add(all, "x")
	f.Add(`{"properties":{"a":{"type":"string","pattern":"(("}}}`, "a")
	f.Fuzz(func(t *testing.T, schema, text string) {
		form, err := elicit.Parse(json.RawMessage(schema))
		if err != nil {
			return
		}
		answer := form.Read(func(string) []string { return []string{text} })
		for _, m := range form.Check(answer) {
			if m.Code == elicit.Unknown || !slices.ContainsFunc(form.Fields, func(field elicit.Field) bool { return field.Name == m.Field }) {
				t.Errorf("%s: %v", schema, m)
			}
		}
	})
}
