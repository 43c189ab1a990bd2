// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

const key = "sk-very/secret+key"

func failures() provider.Failures {
	return provider.Failures{Op: "test.Generate", Service: &model.Service{ID: "svc", APIKey: key}}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status    int
		body      string
		kind      artel.Kind
		transient bool
		message   string
	}{
		{401, `{"error":{"message":"Incorrect API key provided: ` + key + `","code":"invalid_api_key"}}`, artel.Denied, false, "Incorrect API key provided: (secret)"},
		{402, `{"error":{"message":"no credits","code":402}}`, artel.Denied, false, "no credits"},
		{403, `{"message":"no"}`, artel.Denied, false, "no"},
		{400, `{"error":{"message":"Image URLs are only allowed for messages with role 'user'"}}`, artel.Unsupported, false, ""},
		{400, `{"error":{"code":"context_length_exceeded","message":"too much"}}`, artel.TooLarge, false, "too much"},
		{400, `[{"error":{"code":400,"message":"input token count exceeds the maximum"}}]`, artel.TooLarge, false, ""},
		{422, `{"detail":[{"msg":"field required"}]}`, artel.Invalid, false, `[{"msg":"field required"}]`},
		{404, `{"error":"model 'x' not found"}`, artel.Invalid, false, "model 'x' not found"},
		{404, `{"error":{"message":"No endpoints found that support image input","code":404}}`, artel.Unsupported, false, ""},
		{405, ``, artel.Unsupported, false, "status 405 method not allowed"},
		{413, ``, artel.TooLarge, false, ""},
		{408, ``, artel.Unavailable, true, ""},
		{409, ``, artel.Unavailable, true, ""},
		{429, `{"error":{"message":"slow down"}}`, artel.Unavailable, true, "slow down"},
		{429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, artel.Unavailable, false, ""},
		{500, `{"error":{"message":"image input is not supported - hint: mmproj"}}`, artel.Unsupported, false, ""},
		{502, `<html><h1>Bad Gateway</h1>`, artel.Unavailable, true, "the answer is a web page, not the API's; check the base URL"},
		{503, "overloaded\n\x00\xff", artel.Unavailable, true, ""},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, artel.Unavailable, true, "Overloaded"},
		{304, ``, artel.Unavailable, false, ""},
	} {
		err := failures().Status(c.status, http.Header{}, []byte(c.body), time.Now())
		call, ok := errors.AsType[*model.CallError](err)
		if !ok || artel.KindOf(err) != c.kind || call.Transient != c.transient || call.Status != c.status {
			t.Errorf("%d %s: got %s %+v", c.status, c.body, artel.KindOf(err), call)
			continue
		}
		if c.message != "" && call.Message != c.message {
			t.Errorf("%d: the message is %q, want %q", c.status, call.Message, c.message)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, call, call), key) {
			t.Errorf("%d: the key shows", c.status)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, "1.5": 1500 * time.Millisecond, "Fri, 02 Jan 2026 03:05:05 GMT": time.Minute,
		"Fri, 02 Jan 2026 03:00:00 GMT": 0, "soon": 0, "-3": 0, "1e99": 0, "": 0, "NaN": 0, "Inf": 0,
	} {
		err := failures().Status(429, http.Header{"Retry-After": {value}}, nil, now)
		if c, _ := errors.AsType[*model.CallError](err); c.RetryAfter != want {
			t.Errorf("%q: got %v, want %v", value, c.RetryAfter, want)
		}
	}
}

func TestReported(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]artel.Kind{
		`{"error":{"code":502,"message":"upstream"}}`:                artel.Unavailable,
		`{"error":{"type":"rate_limit_error","message":"slow"}}`:     artel.Unavailable,
		`{"error":{"type":"authentication_error"}}`:                  artel.Denied,
		`{"error":"maximum context length is 8"}`:                    artel.TooLarge,
		`{"error":{"type":"invalid_request_error","message":"bad"}}`: artel.Invalid,
		`{"error":{"message":"what"}}`:                               artel.Unavailable,
	} {
		if got := artel.KindOf(failures().Reported([]byte(body))); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

// TestStatusOfReportedErrors: an error inside a successful response has the status that
// the API has for it.
func TestStatusOfReportedErrors(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		status  int
		message string
	}{
		`{"error":{"message":"boom","type":"server_error","code":500}}`:                                                                  {500, "boom"},
		`{"error":{"message":"boom","type":"server_error","code":null}}`:                                                                 {500, "boom"},
		`{"type":"error","error":{"type":"api_error","message":"boom"}}`:                                                                 {500, "boom"},
		`{"type":"error","error":{"type":"overloaded_error","message":"boom"}}`:                                                          {529, "boom"},
		`{"type":"error","error":{"type":"timeout_error","message":"boom"}}`:                                                             {504, "boom"},
		`{"type":"error","error":{"type":"rate_limit_error","message":"boom"}}`:                                                          {429, "boom"},
		`{"type":"error","code":"server_error","message":"boom","sequence_number":1}`:                                                    {500, "boom"},
		`{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"boom"}}}`:            {500, "boom"},
		`{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"rate_limit_exceeded","message":"too many"}}}`: {429, "too many"},
		`{"error":{"code":500,"message":"boom","status":"INTERNAL"}}`:                                                                    {500, "boom"},
		`{"error":{"message":"boom","status":"UNAVAILABLE"}}`:                                                                            {503, "boom"},
		`{"error":{"message":"maximum context length is 8"}}`:                                                                            {400, "maximum context length is 8"},
		`{"error":{"message":"what"}}`:                                                                                                   {502, "what"},
	} {
		c, _ := errors.AsType[*model.CallError](failures().Reported([]byte(body)))
		if c == nil || c.Status != want.status || c.Message != want.message {
			t.Errorf("%s: %+v", body, c)
		}
	}
}

func TestTransportHidesTheAddress(t *testing.T) {
	t.Parallel()
	err := failures().Transport(t.Context(), &url.Error{Op: "Post", URL: "https://host/?key=" + key, Err: errors.New("refused by " + url.QueryEscape(key))})
	if s := err.Error(); strings.Contains(s, key) || strings.Contains(s, url.QueryEscape(key)) || !strings.Contains(s, "refused") {
		t.Errorf("got %q", s)
	}
}

// TestRefusedFields: the field that a model refuses is found in the errors of several
// servers.
func TestRefusedFields(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model.","param":"temperature","code":"unsupported_value"}}`:                                    "temperature",
		`{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":1}]},"type":"invalid_request_message_error"}`: "seed",
		`{"detail":[{"type":"extra_forbidden","loc":["body","reasoning_effort"],"msg":"Extra inputs are not permitted"}]}`:                                                                   "reasoning_effort",
		`{"type":"error","error":{"type":"invalid_request_error","message":"` + "`temperature`" + ` is deprecated for this model."}}`:                                                        "temperature",
		`{"error":{"code":400,"message":"Penalty is not enabled for models/gemini-2.5-pro","status":"INVALID_ARGUMENT"}}`:                                                                    "penalties",
		`{"error":{"message":"property 'verbosity' is unsupported","type":"invalid_request_error"}}`:                                                                                         "verbosity",
	} {
		call, ok := errors.AsType[*model.CallError](failures().Status(400, http.Header{}, []byte(body), time.Now()))
		if !ok || call.Refusal.Field != want {
			t.Errorf("%s: %+v, want %s", body, call, want)
		}
	}
}
