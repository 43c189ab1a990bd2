// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/artelhq/artel/sdktest/program"
)

// A visitor is someone with a browser.
type visitor struct {
	t    *testing.T
	http *http.Client
	site string
}

func newVisitor(t *testing.T, site string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, &http.Client{Jar: jar}, site}
}

// ask sends a request and decodes the answer, which has to be a success.
func (p *visitor) ask(out any, method, path, body string) {
	p.t.Helper()
	if status := p.status(out, method, path, body); status >= 300 {
		p.t.Fatalf("%s %s: %d", method, path, status)
	}
}

func (p *visitor) status(out any, method, path, body string) int {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.site+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", p.site)
	resp, err := p.http.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if out != nil && resp.StatusCode < 300 {
		if err := json.Unmarshal(b, out); err != nil {
			p.t.Fatalf("%s: %v", b, err)
		}
	}
	return resp.StatusCode
}

// TestLoginAtZitadel logs a second person in at the example server of zitadel/oidc, an
// independent implementation of a provider, beside an administrator with a password.
func TestLoginAtZitadel(t *testing.T) {
	front := httptest.NewUnstartedServer(nil)
	issuer := "http://" + front.Listener.Addr().String()
	site := program.Start(t, "..", "auth:\n  oidc:\n    issuer: "+issuer+"\n    client_id: artel\n    client_secret: a secret\n    allowed_domains: [zitadel.ch]\n")
	storage.RegisterClients(storage.WebClient("artel", "a secret", site+"/auth/oidc/callback"))
	front.Config.Handler = exampleop.SetupServer(issuer, storage.NewStorage(storage.NewUserStore(issuer)), nil, false, op.WithAllowInsecure())
	front.Start()
	defer front.Close()

	admin := newVisitor(t, site)
	admin.ask(nil, "POST", "/api/v1/setup", `{"name":"Ann","email":"ann@example.org","password":"a long password"}`)
	second := newVisitor(t, site)
	for range 2 { // the second time the account is known
		resp, err := second.http.Get(site + "/auth/oidc/start?next=/agents")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		at := resp.Request.URL // the form of the provider
		if !strings.HasPrefix(at.String(), issuer+"/login/username") {
			t.Fatalf("sent to %s", at)
		}
		resp, err = second.http.PostForm(issuer+"/login/username", url.Values{"id": {at.Query().Get("authRequestID")}, "username": {"test-user2"}, "password": {"verysecure"}})
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.Request.URL.String() != site+"/agents" || resp.StatusCode != http.StatusOK {
			t.Fatalf("arrived at %s: %s %.500s", resp.Request.URL, resp.Status, page)
		}
	}
	var me struct{ ID, Name, Email, Role string }
	second.ask(&me, "GET", "/api/v1/me", "")
	if me.Email != "test-user2@zitadel.ch" || me.Role != "member" || me.ID == "local" || me.Name == "" {
		t.Errorf("got %+v", me)
	}
	var his, hers struct{ ID string }
	admin.ask(&hers, "POST", "/api/v1/conversations", "{}")
	second.ask(&his, "POST", "/api/v1/conversations", "{}")
	for p, foreign := range map[*visitor]string{admin: his.ID, second: hers.ID} {
		if status := p.status(nil, "GET", "/api/v1/conversations/"+foreign, ""); status != http.StatusNotFound {
			t.Errorf("a conversation of the other person: %d", status)
		}
	}
	var users struct{ Items []struct{ Email string } }
	admin.ask(&users, "GET", "/api/v1/users", "")
	if len(users.Items) != 2 {
		t.Errorf("got %+v", users)
	}
}
