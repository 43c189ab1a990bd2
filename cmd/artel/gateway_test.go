// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestGatewayKeys(t *testing.T) {
	t.Setenv("ARTEL_TEST_KEY", "secret-1")
	t.Setenv("ARTEL_TEST_EMPTY", "")
	for name, c := range map[string]struct{ in, want string }{
		"good":           {`keys: [{name: a, key: "${ARTEL_TEST_KEY}", services: [x], requests_per_minute: 3, concurrency: 2}]`, ""},
		"without a name": {`keys: [{key: "${ARTEL_TEST_KEY}"}]`, "gateway.keys[0] has no name"},
		"in clear":       {`keys: [{name: a, key: secret-1}]`, "want ${NAME}"},
		"empty":          {`keys: [{name: a, key: "${ARTEL_TEST_EMPTY}"}]`, "ARTEL_TEST_EMPTY of the key a is empty"},
		"twice":          {`keys: [{name: a, key: "${ARTEL_TEST_KEY}"}, {name: b, key: "${ARTEL_TEST_KEY}"}]`, "a and b are one key"},
		"one name twice": {`keys: [{name: a, key: "${ARTEL_TEST_KEY}"}, {name: a, key: "${ARTEL_TEST_KEY}"}]`, "the name a is taken"},
		"negative":       {`keys: [{name: a, key: "${ARTEL_TEST_KEY}", concurrency: -1}]`, "concurrency is -1"},
		"an unknown key": {`key: x`, `there is no key "gateway.key"; the nearest is "gateway.keys"`},
	} {
		var conf config
		err := conf.parse("artel.yaml", []byte("gateway:\n  "+c.in+"\n"))
		if err == nil {
			o, err2 := conf.gateway()
			if err = err2; err == nil && (len(o.Keys) != 1 || o.Keys[0].Secret.Reveal() != "secret-1" || o.Keys[0].PerMinute != 3 || o.Keys[0].Concurrency != 2 || o.NoRepair) {
				t.Errorf("%s: %+v", name, o)
			}
		}
		if said := ""; c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret-1")) {
			t.Errorf("%s: %v%s, want %q", name, err, said, c.want)
		}
	}
}
