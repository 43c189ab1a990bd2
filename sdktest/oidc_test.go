// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/artelhq/artel/model/fake"
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

// A zitadel is the example server of zitadel/oidc, an independent implementation of a
// provider.
type zitadel struct {
	t      *testing.T
	front  *httptest.Server
	issuer string
}

func newZitadel(t *testing.T) *zitadel {
	t.Helper()
	front := httptest.NewUnstartedServer(nil)
	t.Cleanup(front.Close)
	return &zitadel{t, front, "http://" + front.Listener.Addr().String()}
}

// config is the part of artel.yaml that lets its people log in.
func (z *zitadel) config() string {
	return "auth:\n  oidc:\n    issuer: " + z.issuer + "\n    client_id: artel\n    client_secret: a secret\n    allowed_domains: [zitadel.ch]\n"
}

// serve begins to serve the site that has the configuration, behind a gate.
func (z *zitadel) serve(site string, g *gate) {
	storage.RegisterClients(storage.WebClient("artel", "a secret", site+"/auth/oidc/callback"))
	z.front.Config.Handler = g.behind(exampleop.SetupServer(z.issuer, storage.NewStorage(withStranger{storage.NewUserStore(z.issuer)}), nil, false, op.WithAllowInsecure()))
	z.front.Start()
}

// withStranger adds a person whose domain is not allowed.
type withStranger struct{ storage.UserStore }

func stranger() *storage.User {
	return &storage.User{ID: "stranger", Username: "stranger", Password: "verysecure", Email: "test-user@zitadel.ch.example", EmailVerified: true}
}

// GetUserByID implements [storage.UserStore].
func (s withStranger) GetUserByID(id string) *storage.User {
	if id == "stranger" {
		return stranger()
	}
	return s.UserStore.GetUserByID(id)
}

// GetUserByUsername implements [storage.UserStore].
func (s withStranger) GetUserByUsername(name string) *storage.User {
	if name == "stranger" {
		return stranger()
	}
	return s.UserStore.GetUserByUsername(name)
}

// login logs a person of the provider in.
func (z *zitadel) login(p *visitor) {
	z.t.Helper()
	resp, err := p.http.Get(p.site + "/auth/oidc/start?next=/agents")
	if err != nil {
		z.t.Fatal(err)
	}
	resp.Body.Close()
	at := resp.Request.URL // the form of the provider
	if !strings.HasPrefix(at.String(), z.issuer+"/login/username") {
		z.t.Fatalf("sent to %s", at)
	}
	resp, err = p.http.PostForm(z.issuer+"/login/username", url.Values{"id": {at.Query().Get("authRequestID")}, "username": {"test-user2"}, "password": {"verysecure"}})
	if err != nil {
		z.t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.Request.URL.String() != p.site+"/agents" || resp.StatusCode != http.StatusOK {
		z.t.Fatalf("arrived at %s: %s %.500s", resp.Request.URL, resp.Status, page)
	}
}

// TestServerForOthers is a server that listens on every address, as in a container: it is
// set up with its link, a second person logs in at a provider, both work side by side and
// see nothing of each other, a key with a budget of one cent stops at one cent, and the
// metrics say what was spent.
func TestServerForOthers(t *testing.T) {
	z := newZitadel(t)
	upstream := httptest.NewServer(fake.OpenAI(fake.Options{Models: []string{"gpt-like"}}))
	defer upstream.Close()
	listening, setup := program.StartAt(t, "..", z.config()+fmt.Sprintf("services:\n  - {id: priced, dialect: openai, baseURL: %q, model: gpt-like, apiKey: sk-upstream, "+
		"context_window: 100000, max_output: 1000, price: {input: 20, output: 50}}\n", upstream.URL+"/v1"), "0.0.0.0:0")
	at, err := url.Parse(listening)
	if err != nil {
		t.Fatal(err)
	}
	site := "http://127.0.0.1:" + at.Port() // where the port is published
	z.serve(site, &gate{})
	code, err := url.Parse(setup)
	if err != nil || code.Query().Get("code") == "" {
		t.Fatalf("no link for the set-up: %q", setup)
	}

	admin, second := newVisitor(t, site), newVisitor(t, site)
	const ann = `"name":"Ann","email":"ann@example.org","password":"a long password"}`
	if status := admin.status(nil, "POST", "/api/v1/setup", "{"+ann); status < 400 {
		t.Errorf("a set-up without the code: %d", status)
	}
	admin.ask(nil, "POST", "/api/v1/setup", `{"code":"`+code.Query().Get("code")+`",`+ann)
	z.login(second)
	z.login(second) // the second time the account is known
	var me struct{ ID, Name, Email, Role string }
	second.ask(&me, "GET", "/api/v1/me", "")
	if me.Email != "test-user2@zitadel.ch" || me.Role != "member" || me.ID == "local" || me.Name == "" {
		t.Errorf("got %+v", me)
	}
	var users struct{ Items []struct{ Email string } }
	admin.ask(&users, "GET", "/api/v1/users", "")
	if len(users.Items) != 2 {
		t.Errorf("got %+v", users)
	}

	// Side by side.
	var his, hers struct{ ID string }
	for p, made := range map[*visitor]*struct{ ID string }{admin: &hers, second: &his} {
		p.ask(made, "POST", "/api/v1/conversations", "{}")
		p.ask(nil, "POST", "/api/v1/conversations/"+made.ID+"/artifacts", `{"id":"note","title":"Note","content":"mine"}`)
	}
	for p, foreign := range map[*visitor]string{admin: his.ID, second: hers.ID} {
		for _, path := range []string{"", "/artifacts", "/artifacts/note", "/messages", "/events"} {
			if status := p.status(nil, "GET", "/api/v1/conversations/"+foreign+path, ""); status != http.StatusNotFound {
				t.Errorf("a conversation of the other person, %s: %d", path, status)
			}
		}
	}
	var listed struct{ Items []struct{ ID string } }
	second.ask(&listed, "GET", "/api/v1/conversations", "")
	if len(listed.Items) != 1 || listed.Items[0].ID != his.ID {
		t.Errorf("got %+v", listed)
	}

	// One cent.
	var key struct{ Key string }
	second.ask(&key, "POST", "/api/v1/gateway/keys", `{"name":"cent","services":["priced"],"budget":{"usd":0.01,"period":"month"}}`)
	client := openai.NewClient(option.WithBaseURL(site+"/v1"), option.WithAPIKey(key.Key), option.WithMaxRetries(0))
	answered := 0
	for err == nil {
		_, err = client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "priced", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say something of some length, please.")},
		})
		if err == nil {
			answered++
		}
	}
	refused, ok := errors.AsType[*openai.Error](err)
	if !ok || refused.StatusCode != http.StatusTooManyRequests || refused.Code != "budget_exceeded" || answered == 0 {
		t.Errorf("after %d answers: %v", answered, err)
	}
	var usage struct {
		Total struct {
			Calls int
			Cost  struct{ USD float64 }
		}
	}
	second.ask(&usage, "GET", "/api/v1/usage", "")
	if usage.Total.Calls != answered || usage.Total.Cost.USD > 0.01 || usage.Total.Cost.USD < 0.008 {
		t.Errorf("%d answers: got %+v", answered, usage)
	}
	var token struct{ Token string }
	admin.ask(&token, "POST", "/api/v1/tokens", `{"name":"prometheus","scopes":["admin"]}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token.Token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	m := regexp.MustCompile(`(?m)^artel_cost_dollars_total\{service="priced",source="gateway"\} (\S+)$`).FindSubmatch(text)
	if err != nil || m == nil {
		t.Fatalf("no cost in the metrics: %v\n%s", err, text)
	}
	if spent, err := strconv.ParseFloat(string(m[1]), 64); err != nil || math.Abs(spent-usage.Total.Cost.USD) > 1e-9 {
		t.Errorf("the metrics have %s, the usage %v", m[1], usage.Total.Cost.USD)
	}
}
