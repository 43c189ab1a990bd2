// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/gemini"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/providertest"
)

// declared returns the parameters that a tool with a schema is declared with.
func declared(t providertest.TB, schema string) string {
	r := &model.Request{
		Service:  model.Service{Model: "gemini-2.5-flash"},
		Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "hi"}}}},
		Tools:    []model.ToolSpec{{Name: "f", Schema: json.RawMessage(schema)}},
	}
	t.Helper()
	body := []byte(providertest.Encoded(t, gemini.Encode, r, nil))
	if err := rules.ValidateJSON("gemini-2.5-flash", body); err != nil {
		t.Fatal(err, string(body))
	}
	var in struct {
		Tools []struct {
			FunctionDeclarations []struct {
				Parameters json.RawMessage `json:"parameters"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	return string(in.Tools[0].FunctionDeclarations[0].Parameters)
}

// TestParameters has what becomes of each keyword of JSON Schema.
func TestParameters(t *testing.T) {
	t.Parallel()
	// Each is the schema of a property x.
	for name, c := range map[string]struct{ in, want string }{
		"plain":                {`{"type":"string","description":"a name"}`, `{"type":"STRING","description":"a name"}`},
		"order":                {`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["a","b","a","gone"]}`, `{"type":"OBJECT","properties":{"b":{"type":"STRING"},"a":{"type":"INTEGER"}},"required":["a","b"]}`},
		"nobody knows these":   {`{"$schema":"x","$id":"y","$comment":"z","type":"string","contentEncoding":"base64","readOnly":true,"deprecated":true,"x-order":1}`, `{"type":"STRING"}`},
		"null":                 {`{"type":["string","null"]}`, `{"type":"STRING","nullable":true}`},
		"null by option":       {`{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}],"description":"d","default":null}`, `{"type":"INTEGER","description":"d","nullable":true,"minimum":1}`},
		"null by enum":         {`{"enum":["a",null]}`, `{"type":"STRING","nullable":true,"format":"enum","enum":["a"]}`},
		"nothing but null":     {`{"type":"null"}`, `{"type":"NULL","nullable":true}`},
		"null, and nothing":    {`{"type":"null","const":"a","description":"d"}`, `{"type":"NULL","description":"d","nullable":true}`},
		"null, with the rest":  {`{"type":"null","format":"date-time","minimum":1,"properties":{"a":{}},"required":["a"],"items":{}}`, `{"type":"NULL","nullable":true}`},
		"types":                {`{"type":["string","integer"],"description":"d","minimum":1,"minLength":2}`, `{"description":"d","anyOf":[{"type":"STRING","minLength":2},{"type":"INTEGER","minimum":1}]}`},
		"options":              {`{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"string"}]}`, `{"anyOf":[{"type":"STRING"},{"type":"ARRAY","items":{"type":"STRING"}}]}`},
		"options, and more":    {`{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}}}]}`, `{"anyOf":[{"type":"OBJECT","properties":{"a":{"type":"STRING"},"k":{"type":"STRING"}},"required":["a","k"]},{"type":"OBJECT","properties":{"b":{"type":"STRING"},"k":{"type":"STRING"}},"required":["k"]}]}`},
		"all of":               {`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"boolean"}},"required":["b"]}]}`, `{"type":"OBJECT","properties":{"a":{"type":"STRING"},"b":{"type":"BOOLEAN"}},"required":["a","b"]}`},
		"const":                {`{"const":"a"}`, `{"type":"STRING","format":"enum","enum":["a"]}`},
		"const, a number":      {`{"const":5}`, `{"type":"INTEGER","description":"(one of: 5)"}`},
		"const, mixed":         {`{"enum":["a",1.5,true,""]}`, `{"type":"NUMBER","description":"(one of: 1.5, true, \"a\")"}`},
		"enum of numbers":      {`{"type":"integer","enum":[1,2],"description":"d"}`, `{"type":"INTEGER","description":"d (one of: 1, 2)"}`},
		"enum with emptiness":  {`{"type":"string","enum":["","a","a"]}`, `{"type":"STRING","format":"enum","enum":["a"]}`},
		"exclusive":            {`{"exclusiveMinimum":0,"exclusiveMaximum":10.5,"type":"integer"}`, `{"type":"INTEGER","minimum":1,"maximum":10}`},
		"exclusive, a number":  {`{"type":"number","exclusiveMinimum":0}`, `{"type":"NUMBER","description":"(more than 0)","minimum":0}`},
		"exclusive, of old":    {`{"type":"number","minimum":0,"exclusiveMinimum":true}`, `{"type":"NUMBER","minimum":0}`},
		"formats":              {`{"type":"string","format":"email"}`, `{"type":"STRING","description":"(format: email)"}`},
		"formats that it has":  {`{"type":"string","format":"date-time"}`, `{"type":"STRING","format":"date-time"}`},
		"formats of others":    {`{"type":"string","format":"int32"}`, `{"type":"STRING"}`},
		"limits":               {`{"type":"array","items":{"type":"string","pattern":"^a","maxLength":3},"minItems":1,"maxItems":2,"uniqueItems":true,"minimum":3}`, `{"type":"ARRAY","minItems":1,"maxItems":2,"items":{"type":"STRING","pattern":"^a","maxLength":3}}`},
		"default and title":    {`{"type":"integer","title":"Count","default":10}`, `{"type":"INTEGER","description":"(Count; default: 10)"}`},
		"title beside more":    {`{"description":"d","type":"integer","title":"Count"}`, `{"type":"INTEGER","description":"d"}`},
		"keys of one's choice": {`{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"OBJECT","description":"(with keys of your choice)"}`},
		"no other keys":        {`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"type":"OBJECT","properties":{"a":{"type":"STRING","description":"(any JSON value)"}}}`},
		"anything":             {`true`, `{"type":"STRING","description":"(any JSON value)"}`},
		"nothing":              {`false`, ``},
		"a list of anything":   {`{"type":"array"}`, `{"type":"ARRAY","items":{"type":"STRING","description":"(any JSON value)"}}`},
		"a tuple":              {`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}`, `{"type":"ARRAY","items":{"anyOf":[{"type":"STRING"},{"type":"INTEGER"}]}}`},
		"a tuple of old":       {`{"type":"array","items":[{"type":"string"},{"type":"string"}]}`, `{"type":"ARRAY","items":{"type":"STRING"}}`},
		"types unsaid":         {`{"properties":{"a":{"items":{}},"b":{"minLength":1},"c":{"maximum":1},"d":{"enum":["x"]}}}`, `{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"type":"STRING","description":"(any JSON value)"}},"b":{"type":"STRING","minLength":1},"c":{"type":"NUMBER","maximum":1},"d":{"type":"STRING","format":"enum","enum":["x"]}}}`},
		"reference":            {`{"$ref":"#/$defs/point","description":"where"}`, `{"type":"OBJECT","description":"where","properties":{"x":{"type":"NUMBER"}}}`},
		"reference to nothing": {`{"$ref":"#/$defs/gone"}`, `{"type":"STRING","description":"(any JSON value)"}`},
		"reference elsewhere":  {`{"$ref":"https://example.com/x"}`, `{"type":"STRING","description":"(any JSON value)"}`},
		"in circles":           {`{"$ref":"#/$defs/tree"}`, `{"type":"OBJECT","properties":{"kids":{"type":"ARRAY","items":{"type":"OBJECT"}}}}`},
		"an OpenAPI nullable":  {`{"type":"string","nullable":true}`, `{"type":"STRING","nullable":true}`},
		"not, if":              {`{"type":"string","not":{"const":"x"},"if":{},"then":{},"else":{}}`, `{"type":"STRING"}`},
	} {
		schema := `{"type":"object","properties":{"x":` + c.in + `,"y":{"type":"string"}},"$defs":{
			"point":{"type":"object","description":"a point","properties":{"x":{"type":"number"}}},
			"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`
		want := `{"type":"OBJECT","properties":{"x":` + c.want + `,"y":{"type":"STRING"}}}`
		if c.want == "" {
			want = `{"type":"OBJECT","properties":{"y":{"type":"STRING"}}}`
		}
		if got := declared(t, schema); got != want {
			t.Errorf("%s:\n%s\ngot  %s\nwant %s", name, c.in, got, want)
		}
	}
	for in, want := range map[string]string{
		``: ``, `{}`: ``, `{"type":"object"}`: ``, `{"type":"object","properties":{}}`: ``, `[]`: ``, `"x"`: ``, `{"type":"string"}`: ``,
		`{"anyOf":[{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`: `{"type":"OBJECT","properties":{"a":{"type":"STRING"},"b":{"type":"STRING"}},"required":["b"]}`,
		`{"type":["object","null"],"description":"d","properties":{"a":{"type":"string"}}}`:                                                                     `{"type":"OBJECT","description":"d","properties":{"a":{"type":"STRING"}}}`,
	} {
		if got := declared(t, in); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", in, got, want)
		}
	}
}

// TestLargeSchemas: what goes in circles in many ways ends all the same.
func TestLargeSchemas(t *testing.T) {
	t.Parallel()
	defs, props := []string{}, []string{}
	for _, a := range "abcdefgh" {
		for _, b := range "abcdefgh" {
			props = append(props, `"`+string(b)+`":{"$ref":"#/$defs/`+string(b)+`"}`)
		}
		defs = append(defs, `"`+string(a)+`":{"type":"object","properties":{`+strings.Join(props, ",")+`}}`)
		props = nil
	}
	got := declared(t, `{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{`+strings.Join(defs, ",")+`}}`)
	if len(got) > 1<<20 {
		t.Errorf("%d bytes", len(got))
	}
	deep := strings.Repeat(`{"type":"object","properties":{"x":`, 200) + `{"type":"string"}` + strings.Repeat(`}}`, 200)
	declared(t, deep)
}

// TestAnySchema: whatever the schema of a tool is, the API takes the tool.
func TestAnySchema(t *testing.T) {
	t.Parallel()
	var value func(depth int) *rapid.Generator[any]
	words := []string{
		"type", "description", "title", "nullable", "$ref", "allOf", "anyOf", "oneOf", "const", "enum", "default", "format", "properties", "required",
		"items", "prefixItems", "additionalProperties", "patternProperties", "exclusiveMinimum", "minimum", "maximum", "minLength", "maxItems", "pattern", "$defs", "x",
	}
	texts := []string{"string", "integer", "object", "array", "null", "boolean", "number", "#/properties/x", "#/$defs/x", "#", "", "date-time", "email", "x"}
	value = func(depth int) *rapid.Generator[any] {
		leaf := []*rapid.Generator[any]{
			rapid.SampledFrom(texts).AsAny(), rapid.Float64Range(-10, 10).AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
		}
		if depth == 0 {
			return rapid.OneOf(leaf...)
		}
		inner := rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) })
		object := rapid.MapOfN(rapid.SampledFrom(words), inner, 0, 5).AsAny()
		return rapid.OneOf(append(leaf, object, object, object, rapid.SliceOfN(inner, 0, 3).AsAny())...)
	}
	rapid.Check(t, func(rt *rapid.T) {
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"x": value(4).Draw(rt, "x"), "y": value(3).Draw(rt, "y")}})
		if err != nil {
			rt.Fatal(err)
		}
		if first, second := declared(rt, string(schema)), declared(rt, string(schema)); first != second {
			rt.Fatalf("%s becomes %s and %s", schema, first, second)
		}
	})
}
