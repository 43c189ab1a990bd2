// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// TestGoogleErrors has what Google's APIs tell beside the status.
func TestGoogleErrors(t *testing.T) {
	t.Parallel()
	const quota = `"message":"You exceeded your current quota, please check your plan and billing details."`
	for name, c := range map[string]struct {
		status    int
		body      string
		kind      artel.Kind
		transient bool
		retry     time.Duration
		code      string
	}{
		"a quota of the minute": {
			429, `{"error":{"code":429,` + quota + `,"status":"RESOURCE_EXHAUSTED","details":[
			{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"m","quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},
			{"@type":"type.googleapis.com/google.rpc.Help","links":[{"url":"https://ai.google.dev"}]},
			{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37.5s"}]}}`,
			artel.Unavailable, true, 37500 * time.Millisecond, "RESOURCE_EXHAUSTED",
		},
		"a quota of the day": {
			429, `{"error":{"code":429,` + quota + `,"status":"RESOURCE_EXHAUSTED","details":[
			{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"20s"}]}}`,
			artel.Unavailable, false, 20 * time.Second, "RESOURCE_EXHAUSTED",
		},
		"a quota of the day, by its limit": {
			429, `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"RequestsPerDay"}}]}}`,
			artel.Unavailable, false, 0, "RESOURCE_EXHAUSTED",
		},
		"a quota without details": {429, `{"error":{"code":429,` + quota + `,"status":"RESOURCE_EXHAUSTED"}}`, artel.Unavailable, false, 0, "RESOURCE_EXHAUSTED"},
		"a wrong key": {
			400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`,
			artel.Denied, false, 0, "INVALID_ARGUMENT",
		},
		"no details at all":     {503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE","details":"x"}}`, artel.Unavailable, true, 0, "UNAVAILABLE"},
		"a status that is none": {400, `{"error":{"code":"bad","message":"x","status":"failed"}}`, artel.Invalid, false, 0, "bad"},
	} {
		err := failures().Status(c.status, http.Header{}, []byte(c.body), time.Now())
		call, _ := errors.AsType[*model.CallError](err)
		if artel.KindOf(err) != c.kind || call.Transient != c.transient || call.RetryAfter != c.retry || call.Code != c.code {
			t.Errorf("%s: got %s %+v", name, artel.KindOf(err), call)
		}
	}
	for body, want := range map[string]artel.Kind{
		`{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}`:           artel.Unavailable,
		`{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT"}}`:      artel.Invalid,
		`{"error":{"code":403,"message":"x","status":"PERMISSION_DENIED"}}`:     artel.Denied,
		`{"error":{"message":"x","status":"UNAUTHENTICATED"}}`:                  artel.Denied,
		`{"error":{"code":404,"message":"no model","status":"NOT_FOUND"}}`:      artel.Invalid,
		`{"error":{"code":504,"message":"x","status":"DEADLINE_EXCEEDED"}}`:     artel.Unavailable,
		`{"error":{"code":501,"message":"x","status":"UNIMPLEMENTED"}}`:         artel.Unsupported,
		`{"error":{"code":500,"message":"x","status":"INTERNAL"}}`:              artel.Unavailable,
		`{"error":{"code":409,"message":"x","status":"ABORTED"}}`:               artel.Unavailable,
		`{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}`: artel.Unavailable,
	} {
		if got := artel.KindOf(failures().Reported([]byte(body))); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}
