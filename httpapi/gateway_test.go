// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/gatewaylog"
)

func TestGatewayLog(t *testing.T) {
	b := newBench(t, writes)
	if m := b.object(b.do("GET", "/gateway/log", ""), 200); fmt.Sprint(m["items"]) != "[]" {
		t.Error("nothing was asked yet:", m)
	}
	for i := range 3 {
		b.app.GatewayLog.Add(apptest.Context(t), gatewaylog.GatewayEntry{Status: 200 + 229*(i%2), Key: "ci", Service: "a", Endpoint: fmt.Sprint("/v1/", i)})
	}
	if err := b.app.GatewayLog.Flush(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
	page := b.object(b.do("GET", "/gateway/log?limit=2&key=ci&service=a", ""), 200)
	items, next := page["items"].([]any), page["next_cursor"]
	if len(items) != 2 || items[0].(map[string]any)["endpoint"] != "/v1/2" || next == nil {
		t.Fatal("the first page:", page)
	}
	page = b.object(b.do("GET", fmt.Sprint("/gateway/log?limit=2&key=ci&service=a&cursor=", next), ""), 200)
	if items = page["items"].([]any); len(items) != 1 || items[0].(map[string]any)["endpoint"] != "/v1/0" || page["next_cursor"] != nil {
		t.Error("the second page:", page)
	}
	for query, want := range map[string]int{"status=429": 1, "status=ok": 2, "status=failed": 1, "changed=true": 0, "key=other": 0} {
		if got := b.object(b.do("GET", "/gateway/log?"+query, ""), 200)["items"].([]any); len(got) != want {
			t.Errorf("%s: %d, want %d", query, len(got), want)
		}
	}
	for _, bad := range []string{"status=none", "cursor=x", "of=all"} {
		b.problem(b.do("GET", "/gateway/log?"+bad, ""), 422, "invalid")
	}
}

// TestReportedCalls: a proxy beside the server reports its calls, which are listed with those
// of the server, and can say nothing else.
func TestReportedCalls(t *testing.T) {
	b := newBench(t, writes)
	const call = `{"time":"2026-01-02T03:04:05Z","endpoint":"tools/call","status":200,"ms":1.5,"bytes_in":90000,"bytes_out":3000,
		"changes":[{"did":"offloaded","ref":"blob:sha256-2f351a7100000000000000000000000000000000000000000000000000000000","media_type":"text/plain","size":90000}],
		"mcp":{"server":"browser","tool":"shot","host":"claude-code","host_version":"2"}}`
	if a := b.do("POST", "/gateway/log", `{"calls":[`+call+`,`+call+`]}`); a.StatusCode != 204 {
		t.Fatal(b.object(a, 204))
	}
	if err := b.app.GatewayLog.Flush(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{"": 2, "of=mcp": 2, "of=gateway": 0, "server=browser&changed=true": 2, "server=artel": 0} {
		items := b.object(b.do("GET", "/gateway/log?"+query, ""), 200)["items"].([]any)
		if len(items) != want {
			t.Errorf("%s: %d, want %d", query, len(items), want)
		}
		if query == "" {
			if e := items[0].(map[string]any); e["key"] != nil || e["service"] != nil || e["mcp"].(map[string]any)["host"] != "claude-code" {
				t.Error(e)
			}
		}
	}
	for _, bad := range []string{`{"calls":[]}`, `{"calls":[` + strings.Replace(call, `"ms"`, `"key":"x","ms"`, 1) + `]}`, `{"calls":[` + strings.Replace(call, `"status":200`, `"status":7`, 1) + `]}`} {
		b.problem(b.do("POST", "/gateway/log", bad), 422, "invalid")
	}
}
