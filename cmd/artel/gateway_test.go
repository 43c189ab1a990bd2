// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/gateway/backend"
)

func TestGatewayAliases(t *testing.T) {
	var conf config
	if err := conf.parse("artel.yaml", []byte("gateway:\n  aliases: {\"claude-haiku-*\": small, team: {east: 3, west: 1}}\n  cooldown: 1m\n")); err != nil {
		t.Fatal(err)
	}
	o, err := conf.gateway()
	want := []backend.Alias{{Pattern: "claude-haiku-*", Services: []backend.Deployment{{Service: "small", Weight: 1}}}, {Pattern: "team", Services: []backend.Deployment{{Service: "east", Weight: 3}, {Service: "west", Weight: 1}}}}
	if err != nil || !reflect.DeepEqual(o.Aliases, want) || o.Cooldown != time.Minute {
		t.Errorf("%v: %+v, %v", err, o.Aliases, o.Cooldown)
	}
}

// TestUntrustedGateway: a file that is not trusted cannot send requests elsewhere or let
// the pages of a site in; its limits count.
func TestUntrustedGateway(t *testing.T) {
	var conf config
	if err := conf.parse("artel.yaml", []byte("gateway:\n  aliases: {a: b}\n  origins: [https://evil.example]\n  headers: {x: y}\n  keys: [{name: a, key: \"${X}\"}]\n")); err != nil {
		t.Fatal(err)
	}
	safe := conf.restricted()
	if safe.Gateway.Aliases != nil || safe.Gateway.Origins != nil || safe.Gateway.Headers != nil || len(safe.Gateway.Keys) != 1 || !reflect.DeepEqual(safe.withheld, []string{"gateway", "gateway.keys"}) {
		t.Errorf("%+v, withheld %v", safe.Gateway, safe.withheld)
	}
}

// TestUntrustedKeysLetNobodyIn: where a login is needed, a key of a file that is not
// trusted is none.
func TestUntrustedKeysLetNobodyIn(t *testing.T) {
	t.Setenv("APP_KEY", "sk-app")
	for _, trusted := range []bool{true, false} {
		g := newGuarded(t, access.Options{Mode: access.Required}, func(c *config) {
			if err := c.parse("artel.yaml", []byte("gateway: {keys: [{name: app, key: \"${APP_KEY}\"}]}\n")); err != nil {
				t.Fatal(err)
			}
			if !trusted {
				*c = c.restricted()
			}
		})
		ask := func() int {
			resp, _ := g.ask("POST", "/v1/chat/completions", `{"model":"demo","messages":[{"role":"user","content":"hi"}]}`, "Authorization", "Bearer sk-app")
			return resp.StatusCode
		}
		if got := ask(); got != 401 {
			t.Errorf("trusted %v, before the set-up: %d", trusted, got)
		}
		g.setUp()
		if got := ask(); (got == 200) != trusted || (got == 401) == trusted {
			t.Errorf("trusted %v: %d", trusted, got)
		}
	}
}

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
		"aliases": {`keys: [{name: a, key: "${ARTEL_TEST_KEY}", requests_per_minute: 3, concurrency: 2}]
  aliases: {"claude-haiku-*": small, team: {east: 3, west: 1}}
  cooldown: 1m`, ""},
		"rewriting": {`keys: [{name: a, key: "${ARTEL_TEST_KEY}", requests_per_minute: 3, concurrency: 2, scrub: parts, offload: off}]
  scrub: off
  offload: 30000`, ""},
		"headers": {`keys: [{name: a, key: "${ARTEL_TEST_KEY}", requests_per_minute: 3, concurrency: 2}]
  headers: {x-title: Artel, x-tenant: "t-${ARTEL_TEST_KEY}", x-number: 7}
  repair: false`, ""},
		"an empty header": {`headers: {x-tenant: "${ARTEL_TEST_EMPTY}"}`, "gateway.headers.x-tenant: the environment variable ARTEL_TEST_EMPTY is not set"},
		"no header":       {`headers: {"x tenant": a}`, `gateway.headers: "x tenant": want the name`},
		"no such scrub":   {`scrub: some`, `gateway.scrub: "some" is not one of all, parts and off`},
		"of a key":        {`keys: [{name: a, key: "${ARTEL_TEST_KEY}", offload: 7}]`, `gateway.keys[0].offload: "7" is neither off nor a number`},
		"a path":          {`origins: [https://app.example/x]`, "want an origin"},
		"every page":      {`origins: ["*"]`, "it needs gateway.keys"},
		"no weight":       {`aliases: {team: {east: 0}}`, "the weight of east is 0"},
		"no service":      {`aliases: {team: [east]}`, "gateway.aliases: team: want a service"},
		"a long time":     {`cooldown: 1h`, "want a time of up to 10m"},
		"no time":         {`cooldown: soon`, `gateway.cooldown is "soon"`},
		"an unknown key":  {`key: x`, `there is no key "gateway.key"; the nearest is "gateway.keys"`},
	} {
		var conf config
		err := conf.parse("artel.yaml", []byte("gateway:\n  "+c.in+"\n"))
		if err == nil {
			o, err2 := conf.gateway()
			if err = err2; err == nil && (len(o.Keys) != 1 || o.Keys[0].Secret.Reveal() != "secret-1" || o.Keys[0].Limits.Requests != 3 || o.Keys[0].Limits.Concurrent != 2 || o.Keys[0].Rewriting.Repair != nil) {
				t.Errorf("%s: %+v", name, o)
			}
		}
		if said := ""; c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret-1")) {
			t.Errorf("%s: %v%s, want %q", name, err, said, c.want)
		}
	}
}
