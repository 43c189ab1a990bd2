// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

func noEnv(string) string { return "" }

// parse reads the entries of a JSON list.
func parse(t *testing.T, list string, getenv func(string) string) ([]model.Service, []string) {
	t.Helper()
	var entries []any
	if err := json.Unmarshal([]byte(list), &entries); err != nil {
		t.Fatal(err)
	}
	services, findings := model.ParseServices(entries, "artel.yaml", getenv)
	return services, warningsOf(findings)
}

func warningsOf(findings []model.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Warnings()...)
	}
	return out
}

func TestParseServices(t *testing.T) {
	got, warnings := parse(t, `[{
		"id": "v1", "name": "Eyes", "baseURL": "https://api.example.com/v1/", "model": "some-model", "apiKey": "${KEY}",
		"capabilities": {"input": ["vision", "text", "file"], "output": ["text", "tool_calling"]},
		"capabilityTags": ["fast", "眼"], "maxConcurrentRequests": 3, "timeout": 90000, "maxTokens": 1000, "description": "sees",
		"dialect": "openai", "accepts": ["image/*", "application/pdf"], "limits": {"item_bytes": 5000000, "request_bytes": 9000000, "side": 2000, "images": 20, "many": 5, "side_of_many": 1000, "pages": 0},
		"placement": {"tool_image": true, "user_after_tool": false}, "transport": ["url", "bytes"], "context_window": 64000, "max_output": 2000, "tokenizer": "cl100k_base", "fallbacks": ["v2", "v3"]
	}]`, func(name string) string { return map[string]string{"KEY": "sk-1"}[name] })
	caps := model.TextOnly()
	caps.Input = model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile}, Source: model.FromOperator}
	caps.Accepts = model.Fact[[]string]{Value: []string{"image/*", "application/pdf"}, Source: model.FromOperator}
	caps.MaxItemBytes = model.Fact[int64]{Value: 5_000_000, Source: model.FromOperator}
	caps.MaxRequestBytes = model.Fact[int64]{Value: 9_000_000, Source: model.FromOperator}
	caps.MaxSide = model.Fact[int]{Value: 2000, Source: model.FromOperator}
	caps.MaxImages = model.Fact[int]{Value: 20, Source: model.FromOperator}
	caps.Many = model.Fact[int]{Value: 5, Source: model.FromOperator}
	caps.MaxSideOfMany = model.Fact[int]{Value: 1000, Source: model.FromOperator}
	caps.MaxPages = model.Fact[int]{Source: model.FromOperator}
	caps.ToolImage = model.Fact[bool]{Value: true, Source: model.FromOperator}
	caps.UserAfterTool = model.Fact[bool]{Source: model.FromOperator}
	caps.Transport = model.Fact[[]model.Transport]{Value: []model.Transport{model.ByURL, model.ByBytes}, Source: model.FromOperator}
	caps.ContextWindow = model.Fact[int]{Value: 64000, Source: model.FromOperator}
	caps.MaxOutput = model.Fact[int]{Value: 2000, Source: model.FromOperator}
	caps.Tokenizer = model.Fact[string]{Value: "cl100k_base", Source: model.FromOperator}
	want := []model.Service{{
		ID: "v1", Name: "Eyes", Dialect: model.OpenAI, BaseURL: "https://api.example.com/v1", Model: "some-model", APIKey: "sk-1",
		Capabilities: caps, Output: []string{"text", "tool_calling"}, Tags: []string{"fast", "眼"}, Description: "sees",
		MaxConcurrent: 3, Timeout: 90 * time.Second, Origin: "artel.yaml", Fallbacks: []artel.ServiceID{"v2", "v3"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
}

func TestParseServicesWarns(t *testing.T) {
	for _, tt := range []struct {
		name, entry string
		warn        string // part of the only warning; "": none
		ok          func(model.Service) bool
	}{
		{
			"routing only", `{"id":"a","capabilities":{"input":["text","vision"]}}`, "",
			func(s model.Service) bool {
				return !s.Callable() && s.Capabilities.Has(artel.CanVision) && s.Name == "a"
			},
		},
		{
			"nothing declared, nothing known", `{"id":"a","model":"nobody-knows-me"}`, "",
			func(s model.Service) bool { return cmp.Equal(s.Capabilities, model.TextOnly()) },
		},
		{
			"declared text only beats the catalog", `{"id":"a","model":"gpt-4o","capabilities":{"input":["text"]}}`, "",
			func(s model.Service) bool { return !s.Capabilities.Has(artel.CanVision) },
		},
		{
			"empty list is text only", `{"id":"a","model":"gpt-4o","capabilities":{"input":[]}}`, "",
			func(s model.Service) bool {
				return !s.Capabilities.Has(artel.CanVision) && s.Capabilities.Input.Source == model.FromOperator
			},
		},
		{
			"undeclared comes from the catalog", `{"id":"a","model":"gpt-4o"}`, "",
			func(s model.Service) bool {
				return s.Capabilities.Has(artel.CanVision) && !s.Capabilities.Admits("image/bmp")
			},
		},
		{
			"declared file is any file", `{"id":"a","model":"gpt-4o","capabilities":{"input":["file"]}}`, "",
			func(s model.Service) bool { return s.Capabilities.Takes(artel.CanFile, "application/zip") },
		},
		{
			"quirks", `{"id":"a","quirks":{"takes":["image/png"],"output_limit":"max_completion_tokens","call_ids":9,"no_usage":true,"reasoning":"always"}}`, "",
			func(s model.Service) bool {
				q := s.Quirks()
				return slices.Equal(q.Takes, []string{"image/png"}) && q.OutputLimit == "max_completion_tokens" && q.CallIDs == 9 && q.NoUsage && q.Reasoning == model.ReplayAlways && q.ToolLists
			},
		},
		{
			"quirks replace those of a known server", `{"id":"a","baseURL":"https://api.mistral.ai/v1","quirks":{"call_ids":0,"no_usage":false,"takes":[]}}`, "",
			func(s model.Service) bool {
				q := s.Quirks()
				return q.Name == "Mistral" && q.CallIDs == 0 && !q.NoUsage && len(q.Takes) == 0 && q.NoUserAfterTool
			},
		},
		{
			"unknown quirk", `{"id":"a","quirks":{"tool_list":true}}`, `has the unknown key "quirks.tool_list"; the nearest known one is "quirks.tool_lists"`,
			func(s model.Service) bool { return cmp.Equal(s.QuirkSettings, model.QuirkSettings{}) },
		},
		{
			"unknown word for a quirk", `{"id":"a","quirks":{"reasoning":"all"}}`, `quirks.reasoning: "all" is not one of the words`,
			func(s model.Service) bool { return cmp.Equal(s.QuirkSettings, model.QuirkSettings{}) },
		},
		{
			"ids of calls too long", `{"id":"a","quirks":{"call_ids":53}}`, "quirks.call_ids is not a whole number",
			func(s model.Service) bool { return s.Quirks().CallIDs == 0 },
		},
		{
			"quirks of another dialect", `{"id":"a","dialect":"gemini","quirks":{"no_usage":true}}`, `has the unknown key "quirks"`,
			func(s model.Service) bool { return cmp.Equal(s.QuirkSettings, model.QuirkSettings{}) },
		},
		{
			"capabilities is a list", `{"id":"a","capabilities":["vision"]}`, "capabilities is not an object",
			func(s model.Service) bool { return cmp.Equal(s.Capabilities, model.TextOnly()) },
		},
		{
			"input is a text", `{"id":"a","capabilities":{"input":"vision"}}`, "input is not a list of texts",
			func(s model.Service) bool { return cmp.Equal(s.Capabilities, model.TextOnly()) },
		},
		{
			"input holds a number", `{"id":"a","capabilities":{"input":["vision",1]}}`, "input is not a list of texts",
			func(s model.Service) bool { return cmp.Equal(s.Capabilities, model.TextOnly()) },
		},
		{
			"null is absent", `{"id":"a","capabilities":null,"timeout":null}`, "",
			func(s model.Service) bool { return cmp.Equal(s.Capabilities, model.TextOnly()) },
		},
		{
			"unknown word", `{"id":"a","capabilities":{"input":["vision","smell"]}}`, `"smell"`,
			func(s model.Service) bool {
				return s.Capabilities.Has(artel.CanVision) && len(s.Capabilities.Input.Value) == 2
			},
		},
		{
			"seed words that are no inputs", `{"id":"a","capabilities":{"input":["text","tool_calling","structured_output"]}}`, "",
			func(s model.Service) bool { return len(s.Capabilities.Input.Value) == 1 },
		},
		{"unknown key", `{"id":"a","basURL":"x"}`, `unknown key "basURL"; the nearest known one is "baseURL"`, nil},
		{"unknown inner key", `{"id":"a","limits":{"item_byte":1}}`, `"limits.item_byte"; the nearest known one is "limits.item_bytes"`, nil},
		{
			"unknown dialect", `{"id":"a","baseURL":"https://x.example","model":"m","dialect":"opnai"}`, `dialect "opnai"`,
			func(s model.Service) bool { return !s.Callable() },
		},
		{
			"known dialect", `{"id":"a","baseURL":"https://x.example","model":"m","dialect":"anthropic"}`, "",
			func(s model.Service) bool { return s.Dialect == model.Anthropic && s.Callable() },
		},
		{
			"text for a number", `{"id":"a","maxConcurrentRequests":"3"}`, "maxConcurrentRequests is not a whole number",
			func(s model.Service) bool { return s.MaxConcurrent == 0 },
		},
		{"negative number", `{"id":"a","context_window":-1}`, "context_window is not a whole number", nil},
		{"fraction", `{"id":"a","context_window":1.5}`, "context_window is not a whole number", nil},
		{
			"huge timeout", `{"id":"a","timeout":9007199254740992}`, "",
			func(s model.Service) bool { return s.Timeout == 24*time.Hour },
		},
		{
			"number for a text", `{"id":"a","model":5}`, "model is not a text",
			func(s model.Service) bool { return s.Model == "" },
		},
		{
			"bad media type", `{"id":"a","accepts":["png","image/png"]}`, `"png" is no media type`,
			func(s model.Service) bool { return cmp.Equal(s.Capabilities.Accepts.Value, []string{"image/png"}) },
		},
		{
			"placement of pictures and of files", `{"id":"a","placement":{"tool_image":true,"tool_file":false}}`, "",
			func(s model.Service) bool {
				c := s.Capabilities
				return c.ToolTakes("image/png") && !c.ToolTakes("application/pdf") && c.ToolFile.Source == model.FromOperator && !c.NeedsFiller()
			},
		},
		{
			"a transport that is none", `{"id":"a","transport":["bytes","pigeon"]}`, `"pigeon"`,
			func(s model.Service) bool {
				return cmp.Equal(s.Capabilities.Transport.Value, []model.Transport{model.ByBytes})
			},
		},
		{
			"an endpoint that takes no bytes gets none", `{"id":"a","capabilities":{"input":["vision"]},"transport":["url"]}`, "",
			func(s model.Service) bool {
				return s.Capabilities.Takes(artel.CanVision, "image/png") && !s.OnWire().Capabilities.Takes(artel.CanVision, "image/png")
			},
		},
		{
			"user_after_tool is a text", `{"id":"a","placement":{"user_after_tool":"no"}}`, "user_after_tool is not true or false",
			func(s model.Service) bool { return !s.Capabilities.NeedsFiller() },
		},
		{
			"unset variable", `{"id":"a","apiKey":"${NOPE}"}`, "NOPE is empty",
			func(s model.Service) bool { return s.APIKey == "" },
		},
		{
			"a plain dollar", `{"id":"a","apiKey":"pa$$word$X"}`, "",
			func(s model.Service) bool { return s.APIKey.Reveal() == "pa$$word$X" },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, warnings := parse(t, "["+tt.entry+"]", noEnv)
			if len(got) != 1 || tt.ok != nil && !tt.ok(got[0]) {
				t.Errorf("%+v", got)
			}
			switch {
			case tt.warn == "" && len(warnings) > 0:
				t.Errorf("warnings: %q", warnings)
			case tt.warn != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], tt.warn)):
				t.Errorf("warnings %q, want one with %q", warnings, tt.warn)
			}
		})
	}
}

func TestEntriesThatAreLeftOut(t *testing.T) {
	got, warnings := parse(t, `[5, {"name":"nameless"}, {"id":"a","name":"first"}, {"id":"a","name":"second"}, null, {"id":7}]`, noEnv)
	if len(got) != 1 || got[0].Name != "first" {
		t.Errorf("%+v", got)
	}
	if len(warnings) != 6 { // the last entry has two: the id is no text, and so there is none
		t.Errorf("warnings: %q", warnings)
	}
}

func TestWarningsHoldNoKey(t *testing.T) {
	_, warnings := parse(t, `[{"id":"a","apiKey":["sk-987654"]},{"id":"b","apiKey":{"value":"sk-987654"}}]`, noEnv)
	if len(warnings) != 2 || strings.Contains(strings.Join(warnings, "\n"), "987654") {
		t.Errorf("warnings: %q", warnings)
	}
}

// TestNumbersOfOtherDecoders: YAML decoders give integers.
func TestNumbersOfOtherDecoders(t *testing.T) {
	for _, n := range []any{uint64(7), int64(7), 7, 7.0, json.Number("7")} {
		got, findings := model.ParseServices([]any{map[string]any{"id": "a", "context_window": n}}, "", noEnv)
		warnings := warningsOf(findings)
		if len(warnings) > 0 || got[0].Capabilities.ContextWindow.Value != 7 {
			t.Errorf("%T: %+v %q", n, got, warnings)
		}
	}
}

func TestParseServicesFile(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"good", "\ufeff{\"services\":[{\"id\":\"a\"}]}\n", ""},
		{"other keys are not ours to judge", `{"services":[],"version":1}`, ""},
		{"empty", "", "llm.json: line 1: "},
		{"broken", "{\n\"services\": [\n  {\"id\": }\n]}", "llm.json: line 3: "},
		{"cut", "{\n\"services\": [\n", "llm.json: line 3: the file ends too early"},
		{"no list", "{\n\"services\":\n {}}", "llm.json: line 3: want {\"services\": [entries]}"},
		{"absent list", `{}`, `no list "services"`},
		{"a list", `[]`, "want {\"services\": [entries]}"},
		{"more", "{\"services\":[]}\n{}", "more follows"},
	} {
		_, _, err := model.ParseServicesFile("llm.json", []byte(tt.data), noEnv)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (!errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func FuzzParseServicesFile(f *testing.F) {
	f.Add([]byte(`{"services":[{"id":"a","capabilities":{"input":["text"]},"timeout":1e300,"limits":{"item_bytes":-0}}]}`))
	f.Add([]byte("{\"a\":{\"services\":[]},\n\"SERVICES\":[1],\"services\":[\n{},\n[\n],{}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		services, findings, err := model.ParseServicesFile("f", data, noEnv)
		if err != nil && artel.KindOf(err) != artel.Invalid {
			t.Fatalf("%v", err)
		}
		line := 1
		for _, f := range findings {
			if f.Line < line || f.Line > 1+bytes.Count(data, []byte("\n")) {
				t.Fatalf("an entry after line %d is on line %d", line, f.Line)
			}
			line = f.Line
		}
		for _, s := range services {
			if s.ID == "" || !s.Capabilities.Has(artel.CanText) || len(s.Capabilities.Input.Value) == 0 || s.Timeout < 0 || s.MaxConcurrent < 0 {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// TestExtraFields: headers take variables, the body is kept as JSON, and what is no
// header is reported.
func TestExtraFields(t *testing.T) {
	services, findings := model.ParseServices([]any{map[string]any{
		"id": "a", "baseURL": "http://x", "model": "m",
		"headers":         map[string]any{"x-title": "Artel", "x-key": "${KEY}", "bad name": "x", "x-empty": "${NONE}"},
		"body":            map[string]any{"tier": "flex", "g": map[string]any{"seed": 7}},
		"forward_headers": []any{"traceparent", "x-session-*", "not a name"},
	}}, "test", func(name string) string { return map[string]string{"KEY": "secret"}[name] })
	x := services[0].Extra
	if len(x.Header) != 2 || x.Header["X-Title"].Reveal() != "Artel" || x.Header["X-Key"].Reveal() != "secret" || string(x.Body) != `{"g":{"seed":7},"tier":"flex"}` {
		t.Errorf("%+v %s", x, x.Body)
	}
	for name, want := range map[string]bool{"Traceparent": true, "X-Session-Id": true, "X-Session": false, "Authorization": false} {
		if x.Forwards(name) != want {
			t.Errorf("%s: %v, want %v", name, !want, want)
		}
	}
	if said := strings.Join(findings[0].Warnings(), "\n"); !strings.Contains(said, "headers.bad name is not a field") || !strings.Contains(said, "NONE is empty") || !strings.Contains(said, "forward_headers is not") || strings.Contains(said, "secret") {
		t.Errorf("warnings: %s", said)
	}
}

// TestAuth: a cloud is named by a word or an object; its models are not asked for.
func TestAuth(t *testing.T) {
	entry := func(auth any) map[string]any {
		return map[string]any{"id": "a", "baseURL": "http://x", "model": "m", "auth": auth}
	}
	for _, c := range []struct {
		auth any
		want model.Auth
		flaw string
	}{
		{"aws", model.Auth{Kind: model.AuthAWS}, ""},
		{map[string]any{"type": "aws", "region": "eu-west-1"}, model.Auth{Kind: model.AuthAWS, Region: "eu-west-1"}, ""},
		{"google", model.Auth{Kind: model.AuthGoogle}, ""},
		{"azure", model.Auth{Kind: model.AuthAzure}, ""},
		{"ibm", model.Auth{}, `auth: "ibm" is not one of the words`},
		{map[string]any{"type": "aws", "zone": "x"}, model.Auth{Kind: model.AuthAWS}, `unknown key "auth.zone"`},
		{7, model.Auth{}, "auth is not an object"},
	} {
		services, findings := model.ParseServices([]any{entry(c.auth)}, "test", func(string) string { return "" })
		said := strings.Join(findings[0].Warnings(), "\n")
		if s := services[0]; s.Auth != c.want || (s.Server == model.NoServer) != (c.want.Kind != "") || (said == "") != (c.flaw == "") || !strings.Contains(said, c.flaw) {
			t.Errorf("%v: %+v, %s: %s", c.auth, s.Auth, s.Server, said)
		}
	}
}
