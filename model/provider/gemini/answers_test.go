// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/providertest"
)

// stream makes events of the candidates' JSON.
func stream(candidates ...string) string {
	var b strings.Builder
	for _, c := range candidates {
		fmt.Fprintf(&b, "data: {\"candidates\":[%s]}\r\n\r\n", c)
	}
	return b.String()
}

// parts makes a candidate of parts.
func parts(finish string, ps ...string) string {
	reason := ""
	if finish != "" {
		reason = `,"finishReason":"` + finish + `"`
	}
	return `{"content":{"role":"model","parts":[` + strings.Join(ps, ",") + `]}` + reason + `}`
}

// TestAnswers has what servers really send, right and wrong.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const events, one = "text/event-stream", "application/json"
	hi, end := `{"text":"hi"}`, parts("STOP")
	for name, c := range map[string]struct{ mediaType, body, want string }{
		"text":                          {events, stream(parts("", hi), parts("STOP", `{"text":"!"}`)), `"hi" "!" end 0/0`},
		"a reason in every piece":       {events, stream(parts("STOP", hi), parts("STOP", `{"text":"!"}`)), `"hi" "!" end 0/0`},
		"one response":                  {one, `{"candidates":[` + parts("STOP", hi) + `],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"thoughtsTokenCount":3,"toolUsePromptTokenCount":1}}`, `"hi" end 6/5 cached=0 stored=0 thought=3`},
		"a list":                        {one, "[{\"candidates\":[" + parts("", hi) + "]}\n,\r\n{\"candidates\":[" + end + "]}]", `"hi" end 0/0`},
		"a list that ends early":        {one, `[{"candidates":[` + parts("STOP", hi) + `]}`, `"hi" !unavailable transient=true the answer is not valid JSON: EOF`},
		"an empty list":                 {one, `[]`, `!unavailable transient=true the stream broke off: it ended without a finish reason`},
		"thoughts, and what follows":    {events, stream(parts("", `{"text":"hm","thought":true}`), parts("", `{"text":" so","thought":true}`, hi), end), `(hm) ( so) <> "hi" end 0/0`},
		"a signed thought":              {events, stream(parts("STOP", `{"text":"hm","thought":true,"thoughtSignature":"c2ln"}`, hi)), `(hm) <{"thoughtSignature":"c2ln","thought":true}> "hi" end 0/0`},
		"a signed text":                 {events, stream(parts("", `{"text":"a","thoughtSignature":"c2ln"}`), parts("STOP", `{"text":"b"}`)), `"a" "b" <{"thoughtSignature":"c2ln"}> end 0/0`},
		"a signature by itself":         {events, stream(parts("", hi), parts("STOP", `{"text":"","thoughtSignature":"c2ln"}`)), `"hi" <{"thoughtSignature":"c2ln"}> end 0/0`},
		"a signature without text":      {events, stream(parts("", hi), parts("STOP", `{"thoughtSignature":"c2ln"}`)), `"hi" <{"thoughtSignature":"c2ln"}> end 0/0`},
		"calls":                         {events, stream(parts("", hi, `{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2ln"}`), parts("STOP", `{"functionCall":{"id":"x","name":"g"}}`)), `"hi" new:f{"a":1}{"thoughtSignature":"c2ln"}kit x:g{} tools 0/0`},
		"a signed text before a call":   {events, stream(parts("STOP", `{"text":"a","thoughtSignature":"c2ln"}`, `{"functionCall":{"name":"f"}}`)), `"a" <{"thoughtSignature":"c2ln"}> new:f{} tools 0/0`},
		"a thought before a call":       {events, stream(parts("STOP", `{"text":"hm","thought":true}`, `{"functionCall":{"name":"f","args":null}}`)), `(hm) <> new:f{} tools 0/0`},
		"a tool by its name here":       {events, stream(parts("STOP", `{"functionCall":{"name":"_1_odd_tool_2ec778efe715"}}`)), `new:1 odd tool{} tools 0/0`},
		"a call without a name":         {events, stream(parts("STOP", `{"functionCall":{}}`)), `!unavailable transient=true the service sent a tool call without a name`},
		"out of tokens":                 {events, stream(parts("MAX_TOKENS", hi)), `"hi" length 0/0`},
		"out of tokens in thought":      {events, stream(`{"content":{},"finishReason":"MAX_TOKENS"}`), `length 0/0`},
		"filtered":                      {events, stream(parts("SAFETY", hi)), `"hi" refusal 0/0`},
		"filtered without a word":       {events, stream(`{"finishReason":"PROHIBITED_CONTENT"}`), `refusal 0/0`},
		"recitation":                    {events, stream(parts("", hi), `{"finishReason":"RECITATION"}`), `"hi" refusal 0/0`},
		"a blocked prompt":              {events, `data: {"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}` + "\n\n", `refusal 4/0`},
		"a blocked prompt, at once":     {one, `{"promptFeedback":{"blockReason":"OTHER","blockReasonMessage":"no"}}`, `refusal 0/0`},
		"a reason that nobody knows":    {events, stream(parts("SOMETHING_NEW", hi)), `"hi" end 0/0`},
		"a malformed call":              {events, stream(`{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print(f("}`), `!unavailable transient=true the model ended the answer with MALFORMED_FUNCTION_CALL: print(f(`},
		"an unexpected call":            {events, stream(parts("UNEXPECTED_TOOL_CALL", hi)), `"hi" !unavailable transient=true the model ended the answer with UNEXPECTED_TOOL_CALL`},
		"no candidates":                 {events, `data: {"usageMetadata":{"promptTokenCount":4}}` + "\n\n", `!unavailable transient=true the stream broke off: it ended without a finish reason`},
		"empty candidates":              {events, `data: {"candidates":[]}` + "\n\n", `!unavailable transient=true the stream broke off: it ended without a finish reason`},
		"an empty answer":               {events, stream(end), `!unavailable transient=true the service sent an empty answer`},
		"an empty content":              {events, stream(`{"content":{},"finishReason":"STOP"}`), `!unavailable transient=true the service sent an empty answer`},
		"other candidates are left out": {events, stream(`{"index":1,"content":{"parts":[{"text":"no"}]}},` + parts("STOP", hi)), `"hi" end 0/0`},
		"a picture":                     {events, stream(parts("STOP", `{"inlineData":{"mimeType":"image/png","data":"aGk="}}`)), `"![](data:image/png;base64,aGk=)" end 0/0`},
		"code that it ran":              {events, stream(parts("STOP", `{"executableCode":{"code":"1"}}`, hi)), `"hi" end 0/0`},
		"broken off":                    {events, stream(parts("", hi)), `"hi" !unavailable transient=true the stream broke off: it ended without a finish reason`},
		"an error in the stream":        {events, stream(parts("", hi)) + `data: {"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}` + "\r\n\r\n", `"hi" !unavailable transient=true overloaded`},
		"an error in a list":            {one, `[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]`, `!invalid transient=false bad`},
		"no response":                   {events, "data: [1]\n\n", `!unavailable transient=true the stream has a piece that is no response: json: cannot unmarshal array into Go value of type gemini.Response`},
		"an end mark of a proxy":        {events, stream(parts("STOP", hi)) + "data: [DONE]\n\n", `"hi" end 0/0`},
		"lines without events":          {events, ": hello\n\n", `!unavailable transient=true the answer is neither JSON nor an event stream`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := providertest.Answer(t, dialect("gemini-3-pro"), c.mediaType, c.body, model.ToolSpec{Name: "1 odd tool"})
			if got != c.want {
				t.Errorf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestAddresses: with and without the version, and for whatever collection.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ base, model, want string }{
		{"", "gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"},
		{"/", "models/gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"},
		{"/v1beta", "gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"},
		{"/v1/", "tunedModels/mine", "/v1/tunedModels/mine:streamGenerateContent?alt=sse"},
		{"/proxy", "a b", "/proxy/v1beta/models/a%20b:streamGenerateContent?alt=sse"},
	} {
		var got, key string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got, key = r.URL.RequestURI(), r.Header.Get("X-Goog-Api-Key")
			_, _ = io.WriteString(w, stream(parts("STOP", `{"text":"x"}`)))
		}))
		r := &model.Request{
			Service:  model.Service{ID: "s", BaseURL: srv.URL + c.base, Model: c.model, APIKey: "secret-key"},
			Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "hi"}}}},
		}
		for _, err := range gemini.New(gemini.Options{Client: srv.Client()}).Generate(t.Context(), r) {
			if err != nil {
				t.Error(err)
			}
		}
		srv.Client().CloseIdleConnections()
		srv.Close()
		if got != c.want || key != "secret-key" {
			t.Errorf("%q %q: got %s with key %q", c.base, c.model, got, key)
		}
	}
	for path, want := range map[string]string{
		"/v1beta/models/gemini-2.5-flash:generateContent": "gemini-2.5-flash generateContent true",
		"/v1beta/models/a/b:c:streamGenerateContent":      "a/b:c streamGenerateContent true",
		"/v1beta/tunedModels/mine:generateContent":        "tunedModels/mine generateContent true",
		"/v1beta/models/:generateContent":                 " generateContent false",
		"/v1beta/models/x":                                "  false",
		"/v1beta/files/x:generateContent":                 "  false",
		"/v1beta/models/x:":                               "x  false",
	} {
		name, method, ok := gemini.Target(path)
		if got := fmt.Sprint(name, " ", method, " ", ok); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// TestFilterStop: a filter ended an answer if it ended any candidate, and the answer is
// empty if all of them are.
func TestFilterStop(t *testing.T) {
	t.Parallel()
	for data, want := range map[string][2]bool{
		`{"candidates":[{"finishReason":"SAFETY"}]}`:                                                               {true, true},
		`{"candidates":[{"finishReason":"STOP"},{"finishReason":"SPII"}]}`:                                         {true, true},
		`{"candidates":[{"finishReason":"SAFETY"},{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`:    {true, false},
		`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},{"finishReason":"BLOCKLIST"}]}`: {true, false},
		`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MAX_TOKENS"}]}`:                        {false, false},
		`{"promptFeedback":{"blockReason":"OTHER"}}`:                                                               {true, true},
	} {
		if stopped, empty := gemini.Editor().FilterStop([]byte(data)); stopped != want[0] || empty != want[1] {
			t.Errorf("stopped is %v, empty is %v: %s", stopped, empty, data)
		}
	}
}
