// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	geminirules "github.com/artelhq/artel/model/fake/rules/gemini"
)

// TestGeminiTurns: requests of libraries that send each of several results in a
// content of its own, lose the signatures of calls, or their ids, reach a Gemini
// service in the form that it takes.
func TestGeminiTurns(t *testing.T) {
	const (
		calls = `{"role":"model","parts":[{"functionCall":{"id":"c1","name":"look","args":{"b":1,"a":[2.0]}}SIGN1},{"functionCall":{"id":"c2","name":"look","args":{"a":3}}}]}`
		one   = `{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"look","response":{"output":"one"}}}]}`
		two   = ` , {"role":"function", "parts": [ {"functionResponse":{"id":"c2","name":"look","response":{"output":"two"}}} ]}`
		both  = `{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"look","response":{"output":"one"}}},{"functionResponse":{"id":"c2","name":"look","response":{"output":"two"}}}]}`
	)
	body := func(turn string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"look"}]},` + turn + `],"tools":[{"functionDeclarations":[{"name":"look","description":"looks"}]}]}`
	}
	sign := func(s string) string {
		return strings.Replace(s, "SIGN1", `,"thoughtSignature":"c2ln"`, 1)
	}
	unsign := strings.NewReplacer("SIGN1", "")
	withoutIDs := strings.NewReplacer(`"id":"c1",`, "", `"id":"c2",`, "", `"b":1,"a":[2.0]`, `"a":[2],"b":1`)
	for _, stream := range []bool{true, false} {
		for name, c := range map[string]struct {
			sent, want string
			did        []string
		}{
			"as it should be": {sign(calls) + "," + both, sign(calls) + "," + both, nil},
			"split":           {sign(calls) + "," + one + two, sign(calls) + "," + both, []string{"moved"}},
			"unsigned":        {unsign.Replace(calls) + "," + both, sign(calls) + "," + both, []string{"signed"}},
			"both":            {unsign.Replace(calls) + "," + one + two, sign(calls) + "," + both, []string{"moved", "signed"}},
			"without ids":     {withoutIDs.Replace(unsign.Replace(calls) + "," + both), withoutIDs.Replace(sign(calls) + "," + both), []string{"signed"}},
		} {
			b := newBench(t)
			answer := `{"candidates":[{"content":` + sign(calls) + `,"finishReason":"STOP"}]}`
			b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent, _ := io.ReadAll(r.Body)
				if err := geminirules.ValidateJSON("gemini-3-test", sent); err != nil {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, `{"error":{"code":400,"message":`+quoted(err.Error())+`}}`)
					return
				}
				if stream {
					play(w, r, 0, "data: "+answer+"\r\n\r\n")
					return
				}
				says(answer).ServeHTTP(w, r)
			})
			path, first := request("gemini", "gemini", stream)
			if status, got := b.post(path, first); status != 200 || !strings.Contains(got, "c2ln") {
				t.Fatalf("%d %s", status, got)
			}
			status, got := b.post(path, body(c.sent))
			if status != 200 || !jsonEqual(b.last(), body(c.want)) {
				t.Errorf("%s, stream %v: %d %s\nit got %s\nwant   %s", name, stream, status, got, b.last(), body(c.want))
			}
			if did := b.did(); len(did) != len(c.did) || !has(did, c.did...) {
				t.Errorf("%s: did %v, want %v", name, did, c.did)
			}
			if name == "as it should be" && b.last() != body(c.sent) {
				t.Errorf("a request that needs nothing was changed: %s", b.last())
			}
		}
	}
}

// jsonEqual compares JSON texts without the space between their tokens.
func jsonEqual(a, b string) bool {
	return gjson.Get(a, "@ugly").Raw == gjson.Get(b, "@ugly").Raw
}
