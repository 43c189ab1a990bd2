// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestApplyRules(t *testing.T) {
	b := newBench(t, writes)
	for name, tt := range map[string]struct{ in, want string }{
		"in their order": {
			`{"text":"a {{user}}","rules":[{"id":"2","find":"b","replace":"$& {{char}}","order":2},{"id":"1","find":"/A/gi","replace":"b"}],"stage":"request","role":"user","user":"Ann","char":"$1"}`,
			`{"applied":["1","2"],"errors":[],"text":"b $1 {{user}}"}`,
		},
		"the stage":  {`{"text":"a","rules":[{"find":"a","stages":["request"]},{"id":"d","find":"a","replace":"b","stages":["display"]}],"stage":"display"}`, `{"applied":["d"],"errors":[],"text":"b"}`},
		"the role":   {`{"text":"a","rules":[{"find":"a","roles":["user"]}],"role":"assistant"}`, `{"applied":[],"errors":[],"text":"a"}`},
		"no depth":   {`{"text":"a","rules":[{"id":"x","find":"a","depth":{"min":3}}]}`, `{"applied":["x"],"errors":[],"text":""}`},
		"a depth":    {`{"text":"a","rules":[{"find":"a","depth":{"min":3}}],"depth":2}`, `{"applied":[],"errors":[],"text":"a"}`},
		"mistakes":   {`{"text":"a","rules":[{"id":"x","find":"("},{"find":"a","replace":"b"}]}`, `{"applied":["rules[1]"],"errors":[{"message":"the pattern is not valid: missing closing ) in ` + "`(`" + `","rule":"x"}],"text":"b"}`},
		"no rules":   {`{"text":"a","rules":[]}`, `{"applied":[],"errors":[],"text":"a"}`},
		"in presets": {`{"text":"a","rules":[],"presets":[{"rules":[{"find":"a","replace":"c"}]},{"priority":1,"rules":[{"find":"a","replace":"b"}]}]}`, `{"applied":["presets[1].rules[0]"],"errors":[],"text":"b"}`},
		"beyond BMP": {`{"text":"\ud83d\ude00","rules":[{"id":"x","find":"/./u","replace":"[$&]"}]}`, `{"applied":["x"],"errors":[],"text":"[😀]"}`},
	} {
		got, err := json.Marshal(b.object(b.do("POST", "/regex/apply", tt.in), 200))
		if err != nil || unescaped(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", name, unescaped(got), err, tt.want)
		}
	}
	// One that would take hours is stopped.
	m := b.object(b.do("POST", "/regex/apply", fmt.Sprintf(`{"text":"b%s!","rules":[{"id":"slow","find":"(?=a)(a+)+b"}]}`, strings.Repeat("a", 60))), 200)
	if errors := fmt.Sprint(m["errors"]); !strings.Contains(errors, "slow") || !strings.Contains(errors, "was stopped") {
		t.Error("a pattern that is too slow:", errors)
	}
	for _, bad := range []string{`{"text":"a"}`, `{"rules":[]}`, `{"text":"a","rules":[{"find":"a","sticky":1}]}`, `{"text":"a","rules":[],"stage":"later"}`, `{"text":"a","rules":[],"depth":-1}`} {
		b.problem(b.do("POST", "/regex/apply", bad), 422, "invalid")
	}
}

func unescaped(raw []byte) string {
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(string(raw))
}

func TestExpandMacros(t *testing.T) {
	b := newBench(t, writes)
	for name, tt := range map[string]struct{ in, want string }{
		"values": {
			`{"text":"{{user}} {{char}} {{agent}} {{description}} {{persona}} {{lastMessage}} {{lastUserMessage}} {{lastCharMessage}} {{input}}","user":"u","char":"c","description":"d","persona":"{{user}}","last_message":"m","last_reply":"r","input":"i"}`,
			`{"text":"u c c d {{user}} m m r i","unknown":[],"variables":{}}`,
		},
		"absent":    {`{"text":"[{{user}}]"}`, `{"text":"[]","unknown":[],"variables":{}}`},
		"unknown":   {`{"text":"{{nope}}{{roll::x}}{{nope::a}}"}`, `{"text":"{{nope}}{{roll::x}}{{nope::a}}","unknown":["nope","roll"],"variables":{}}`},
		"variables": {`{"text":"{{incvar::a}}{{setvar::b::x}}{{setglobalvar::g::1}}","variables":{"a":"1"}}`, `{"globals":{"g":"1"},"text":"","unknown":[],"variables":{"a":"2","b":"x"}}`},
		"time":      {`{"text":"{{datetime}}","clock":"2026-01-02T23:04:05Z","timezone":"Asia/Tokyo"}`, `{"text":"2026-01-03 08:04:05","unknown":[],"variables":{}}`},
		"zone":      {`{"text":"{{time24}}","clock":"2026-01-02T23:04:05+05:00"}`, `{"text":"23:04","unknown":[],"variables":{}}`},
	} {
		got, err := json.Marshal(b.object(b.do("POST", "/macros/expand", tt.in), 200))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, tt.want)
		}
	}
	seeded := `{"text":"{{randomInt::1::1000000000}} {{pick::a::b::c}}","seed":"%s","conversation_id":"c"}`
	first := b.object(b.do("POST", "/macros/expand", fmt.Sprintf(seeded, "1")), 200)["text"]
	again := b.object(b.do("POST", "/macros/expand", fmt.Sprintf(seeded, "1")), 200)["text"]
	other := b.object(b.do("POST", "/macros/expand", fmt.Sprintf(seeded, "2")), 200)["text"]
	if first != again || first == other {
		t.Error("seeds 1, 1, 2:", first, again, other)
	}
	b.problem(b.do("POST", "/macros/expand", `{"text":"a","clock":"noon"}`), 422, "invalid")
	b.problem(b.do("POST", "/macros/expand", `{"text":"a","timezone":"Mars/Olympus"}`), 422, "invalid")
	b.problem(b.do("POST", "/macros/expand", `{"text":"a","colour":"red"}`), 422, "invalid")
	b.problem(b.do("POST", "/macros/expand", fmt.Sprintf(`{"text":%q}`, strings.Repeat("{{repeat::", 40)+strings.Repeat("::1}}", 40))), 413, "too_large")
}

func TestImportRules(t *testing.T) {
	b := newBench(t, writes)
	m := b.object(b.do("POST", "/regex/import", `{"scriptName":"s","findRegex":"a","replaceString":"{{match}}$1","placement":[1],"promptOnly":true}`), 200)
	want := `{"config":{"presets":[{"name":"SillyTavern","rules":[{"find":"/a/","id":"s","replace":"$&","roles":["user"],"stages":["request"]}]}]},"losses":[{"field":"replaceString","message":"$1 names no group, so nothing stands there","script":"s"}]}`
	if got, err := json.Marshal(m); err != nil || unescaped(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	b.problem(b.do("POST", "/regex/import", `{"name":"no scripts"}`), 422, "invalid")
	b.problem(b.do("POST", "/regex/import?format=other", `{}`), 422, "invalid")
}
