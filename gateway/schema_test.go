// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// TestAnswerForms: every form of an answer is enforced by the service of any other
// dialect, or in the instructions and in the log.
func TestAnswerForms(t *testing.T) {
	b := newBench(t, setup{services: func(all []model.Service) []model.Service {
		all[3].Model = "claude-sonnet-4-5"
		all[5].Model = "gemini-2.5-flash"
		return all
	}})
	b.respond(fake.Echo)
	const tool = `{"type":"object","properties":{"q":{"type":"string"}}}`
	for name, c := range map[string]struct {
		schema   string   // "": any object
		enforced []string // services that enforce it
		said     []string // services that only read it
	}{
		"closed":    {`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`, []string{"chat", "responses", "messages", "gemini"}, nil},
		"bounded":   {`{"type":"object","properties":{"city":{"type":"string","pattern":"^[A-Z]"},"age":{"type":"integer","minimum":0}},"required":["city","age"],"additionalProperties":false}`, []string{"chat", "responses", "messages", "gemini"}, nil},
		"short":     {`{"type":"object","properties":{"city":{"type":"string","maxLength":30}},"required":["city"],"additionalProperties":false}`, []string{"messages", "gemini"}, []string{"chat", "responses"}},
		"optional":  {`{"type":"object","properties":{"city":{"type":"string"},"nick":{"type":"string"}},"required":["city"],"additionalProperties":false}`, []string{"messages", "gemini"}, []string{"chat", "responses"}},
		"open":      {`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`, []string{"messages", "gemini"}, []string{"chat", "responses"}},
		"map":       {`{"type":"object","additionalProperties":{"type":"string"}}`, []string{"gemini"}, []string{"chat", "responses", "messages"}},
		"recursive": {`{"type":"object","properties":{"city":{"type":"string"},"next":{"$ref":"#/$defs/n"}},"required":["city","next"],"additionalProperties":false,"$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"],"additionalProperties":false}}}`, []string{"chat", "responses"}, []string{"messages"}},
		"object":    {``, []string{"chat", "responses", "gemini"}, []string{"messages"}},
		"with tool": {`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`, []string{"chat", "responses", "messages"}, []string{"gemini"}},
	} {
		for _, dialect := range []string{"chat", "responses", "messages", "gemini"} {
			if dialect == "messages" && c.schema == "" || dialect == "gemini" && (name == "open" || name == "map" || name == "recursive") {
				continue // the dialect cannot ask for it
			}
			more := map[string]string{
				"chat":      `"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":` + c.schema + `}}`,
				"responses": `"text":{"format":{"type":"json_schema","name":"a","strict":true,"schema":` + c.schema + `}}`,
				"messages":  `"output_config":{"format":{"type":"json_schema","schema":` + c.schema + `}}`,
				"gemini":    `"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":` + c.schema + `}`,
			}[dialect]
			if c.schema == "" {
				more = map[string]string{"chat": `"response_format":{"type":"json_object"}`, "responses": `"text":{"format":{"type":"json_object"}}`, "gemini": `"generationConfig":{"responseMimeType":"application/json"}`}[dialect]
			}
			if name == "with tool" {
				more += map[string]string{
					"chat":      `,"tools":[{"type":"function","function":{"name":"f","parameters":` + tool + `}}]`,
					"responses": `,"tools":[{"type":"function","name":"f","parameters":` + tool + `}]`,
					"messages":  `,"tools":[{"name":"f","input_schema":` + tool + `}]`,
					"gemini":    `,"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":` + tool + `}]}]`,
				}[dialect]
			}
			for i, services := range [][]string{c.enforced, c.said} {
				for _, service := range services {
					if service == dialect {
						continue
					}
					path, body := withMore(dialect, service, more, false)
					status, got := b.post(path, body)
					if status != 200 {
						t.Errorf("%s, %s to %s: %d %s", name, dialect, service, status, got)
						continue
					}
					sent := b.last()
					if enforced := enforces(service, sent); enforced != (i == 0) {
						t.Errorf("%s, %s to %s: it is enforced: %v in %s", name, dialect, service, enforced, sent)
					}
					word := "city"
					if c.schema == "" {
						word = "JSON"
					} else if name == "map" {
						word = "additionalProperties"
					}
					if i == 1 && !strings.Contains(sent, word) {
						t.Errorf("%s, %s to %s: the service cannot know it: %s", name, dialect, service, sent)
					}
					var logged bool
					for _, change := range b.entry().Changes {
						logged = logged || change.Did == gateway.DidDrop && change.Reason == "not_enforced"
					}
					if logged != (i == 1) {
						t.Errorf("%s, %s to %s: the log has %v", name, dialect, service, b.entry().Changes)
					}
				}
			}
		}
	}
}

// enforces reports whether a request makes the service enforce the form of the
// answer.
func enforces(service, body string) bool {
	r := gjson.Parse(body)
	switch service {
	case "chat":
		return r.Get("response_format.json_schema.strict").Bool() || r.Get("response_format.type").Str == "json_object"
	case "responses":
		return r.Get("text.format.strict").Bool() || r.Get("text.format.type").Str == "json_object"
	case "messages":
		return r.Get("output_config.format.schema").Exists()
	}
	return r.Get("generationConfig.responseMimeType").Str == "application/json"
}

// TestStrictTools: strict tools stay strict where the service takes their schema.
func TestStrictTools(t *testing.T) {
	b := newBench(t, setup{services: reasoners})
	b.respond(fake.Echo)
	for schema, strict := range map[string]bool{
		`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`: true,
		`{"type":"object","properties":{"q":{"type":"string"}}}`:                                               false,
	} {
		chat := `"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":` + schema + `}}]`
		for service, path := range map[string]string{"responses": "tools.0.strict", "messages": "tools.0.strict"} {
			url, body := withMore("chat", service, chat, false)
			want := strict || service == "messages" // which closes the schema
			if status, got := b.post(url, body); status != 200 || gjson.Get(b.last(), path).Bool() != want {
				t.Errorf("%s, %s: %d %s, it got %s", service, schema, status, got, b.last())
			}
		}
		url, body := withMore("messages", "chat", `"tools":[{"name":"f","strict":true,"input_schema":`+schema+`}]`, false)
		if status, got := b.post(url, body); status != 200 || gjson.Get(b.last(), "tools.0.function.strict").Bool() != strict {
			t.Errorf("chat, %s: %d %s, it got %s", schema, status, got, b.last())
		}
	}
}
