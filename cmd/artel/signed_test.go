// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/access"
)

// TestSignedFilesEndWithTheirUser: the addresses that a user has signed open nothing while
// the user is disabled, and after the user was deleted; those of viewers do.
func TestSignedFilesEndWithTheirUser(t *testing.T) {
	g := newGuarded(t, access.Options{Mode: access.Required}, nil)
	admin := g.setUp()
	bob := g.user(admin, "bob@example.org", "member")
	as := []string{"Cookie", bob, "Origin", g.http.URL}
	var c, me struct{ ID string }
	g.must(&me, "GET", "/api/v1/me", "", as...)
	g.must(&c, "POST", "/api/v1/conversations", "{}", as...)
	var made struct{ Ref string }
	g.must(&made, "POST", "/api/v1/conversations/"+c.ID+"/artifacts", `"top secret"`, as...)
	var signed struct{ URL string }
	g.must(&signed, "POST", "/api/v1/files/"+url.PathEscape(made.Ref)+"/sign", `{"expires_in":604800}`, as...)
	opens := func(what string, want bool) {
		t.Helper()
		resp, text := g.ask("GET", signed.URL, "")
		if got := resp.StatusCode == http.StatusOK; got != want || !want && (resp.StatusCode != http.StatusForbidden || strings.Contains(text, "secret")) {
			t.Errorf("%s: %s %s", what, resp.Status, text)
		}
	}
	change := func(body string) {
		t.Helper()
		g.must(nil, "PATCH", "/api/v1/users/"+me.ID, body, "Cookie", admin, "Origin", g.http.URL)
	}
	opens("a member", true)
	change(`{"role":"viewer"}`)
	opens("a viewer", true)
	change(`{"disabled":true}`)
	opens("a disabled user", false)
	change(`{"disabled":false}`)
	opens("a user who may log in again", true)
	g.must(nil, "DELETE", "/api/v1/users/"+me.ID, "", "Cookie", admin, "Origin", g.http.URL)
	opens("a deleted user", false)
}
