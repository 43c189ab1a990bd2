// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/http"
	"net/url"
	"testing"

	"pgregory.net/rapid"
)

// TestRoutingDegrades: whatever service or capability words are named, a route
// is an answer, and nothing else (INV-5).
func TestRoutingDegrades(t *testing.T) {
	t.Parallel()
	b := newBench(t, writes)
	c := b.conversation()
	b.upload(c, "p.png", "", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	rapid.Check(t, func(rt *rapid.T) {
		q := url.Values{}
		name := rapid.OneOf(rapid.StringN(0, 40, 250), rapid.SampledFrom([]string{"demo", "nope", "null", "undefined", "../x", "%00"}))
		if rapid.Bool().Draw(rt, "service") {
			q.Set("service", name.Draw(rt, "id"))
		}
		if rapid.Bool().Draw(rt, "capabilities") {
			q.Set("capabilities", rapid.OneOf(rapid.StringN(0, 40, 250), rapid.SampledFrom([]string{"text,vision", "vision,,", "VISION", "smell"})).Draw(rt, "words"))
		}
		for _, at := range []struct{ method, path string }{{"POST", "/route"}, {"GET", "/conversations/" + c + "/artifacts/p.png/route"}} {
			var body any
			if at.method == http.MethodPost {
				body = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
			}
			a, err := b.try(at.method, at.path+"?"+q.Encode(), body)
			if err != nil || a.StatusCode != http.StatusOK {
				rt.Fatalf("%s %s: %v, %d %s", at.method, q.Encode(), err, a.StatusCode, a.body)
			}
		}
	})
}
