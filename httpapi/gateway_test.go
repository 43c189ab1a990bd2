// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"fmt"
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
	for _, bad := range []string{"status=none", "cursor=x"} {
		b.problem(b.do("GET", "/gateway/log?"+bad, ""), 422, "invalid")
	}
}
